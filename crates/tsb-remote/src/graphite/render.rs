//! The render API of graphite-web and of go-carbon: slots of paths, and the paths below a prefix.

use std::collections::HashMap;

use http::StatusCode;
use serde::Deserialize;
use tsb_core::bytes::percent::encoded;
use tsb_core::time::{Clock, MonotonicClock};

use crate::http::{Answer, HttpServer, Request};
use tsb_stores::error::{Error, Result};
use tsb_stores::store::SlotArchive;

/// Seconds for which the oldest slots of an archive are not asked for: they may end meanwhile, and
/// the server would answer from another archive.
const OLDEST_S: i64 = 2;
/// Seconds after the time of day within which slots are asked for.
const AHEAD_S: i64 = 60;
const READING: &str = "read slots";
const LISTING: &str = "list series";

/// Known slots of a path: the start in seconds, and the value.
pub(super) type Slots = Vec<(i64, f64)>;

/// A path that no series has: an answer about it shows that the server is well.
const NOBODY: &str = "tsb-nobody";

/// What was read of some paths.
#[derive(Debug, Default)]
pub(super) struct SlotsRead {
    /// The known slots of each path; a path without any is left out.
    pub(super) slots: HashMap<String, Slots>,
    /// Paths whose file the server cannot read.
    pub(super) unreadable: Vec<String>,
    /// Whether the server has answered about other paths since it failed.
    is_well: bool,
}

/// Why a request has no slots.
enum NoSlots {
    /// The server failed, which may be the fault of one file.
    Failed(Error),
    Other(Error),
}

impl From<Error> for NoSlots {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// The slots to ask for, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Slots that begin after this second.
    pub(super) after: i64,
    /// The last second that a slot may begin at.
    pub(super) until: i64,
    /// The length of slots that the server must have there.
    pub(super) slot: i64,
}

/// Slots to ask for, in seconds of their beginning; the window of a request depends on when it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The archive, the finest being 0.
    pub(super) level: usize,
    pub(super) from_s: i64,
    pub(super) until_s: i64,
}

impl Span {
    /// The window of a request that is sent at `now_s`.
    pub(super) fn window(self, archives: &[SlotArchive], now_s: i64) -> Window {
        let archive = archives[self.level];
        let oldest_s = now_s - archive.retention_s() + OLDEST_S;
        // The server answers from the finest archive that reaches back to the first second asked for.
        let finer = self.level.checked_sub(1).map(|finer| archives[finer].retention_s());
        let newest_s = finer.map_or(i64::MAX, |finer_s| now_s - finer_s - archive.slot_s);
        // At whole slots: of others, go-carbon fills one slot too many with 0.
        let aligned = |second: i64| second.div_euclid(archive.slot_s) * archive.slot_s;
        let from_s = self.from_s.saturating_sub(1);
        let after = aligned(from_s.min(newest_s).max(oldest_s).min(now_s));
        Window {
            after: if after < oldest_s {
                after + archive.slot_s
            } else {
                after
            },
            until: aligned(self.until_s.min(now_s + AHEAD_S)),
            slot: archive.slot_s,
        }
    }
}

/// The render API of one server.
#[derive(Debug)]
pub(super) struct Render {
    server: HttpServer,
    clock: MonotonicClock,
}

/// A series as graphite-web answers.
#[derive(Deserialize)]
struct WebSeries {
    target: String,
    datapoints: Vec<(Option<f64>, i64)>,
}

/// An answer of go-carbon; what is 0, false or empty is left out.
#[derive(Deserialize)]
struct GoAnswer {
    #[serde(default)]
    metrics: Vec<GoSeries>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoSeries {
    name: String,
    #[serde(default)]
    start_time: i64,
    #[serde(default)]
    step_time: i64,
    #[serde(default)]
    values: Vec<f64>,
    #[serde(default)]
    is_absent: Vec<bool>,
}

/// A path as graphite-web lists it.
#[derive(Deserialize)]
struct WebNode {
    path: String,
    is_leaf: bool,
}

#[derive(Deserialize)]
struct GoListing {
    #[serde(default)]
    metrics: Vec<GoMatches>,
}

#[derive(Deserialize)]
struct GoMatches {
    #[serde(default)]
    matches: Vec<GoNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoNode {
    path: String,
    #[serde(default)]
    is_leaf: bool,
}

/// A series as either server answers.
struct Read {
    path: String,
    slots: Slots,
    /// Length of its slots in seconds, where the answer shows it.
    slot_s: Option<i64>,
}

impl Render {
    pub(super) fn new(server: HttpServer) -> Self {
        Self {
            server,
            clock: MonotonicClock::new(),
        }
    }

    /// The time of day in seconds: archives count back from it.
    pub(super) fn now_s(&self) -> i64 {
        self.clock.wall().as_secs()
    }

    /// The known slots of each path in a window; a path without any is left out.
    ///
    /// graphite-web fails a request if one file of it is still being made, or was when carbon was
    /// killed. So paths are divided until those are found.
    pub(super) async fn read(&self, paths: &[String], window: Window) -> Result<SlotsRead> {
        let mut read = SlotsRead::default();
        // The server refuses an empty window.
        if window.after >= window.until {
            return Ok(read);
        }
        let mut parts = vec![paths];
        while let Some(part) = parts.pop() {
            match self.ask(part, window).await {
                Ok(slots) => read.slots.extend(slots),
                Err(NoSlots::Other(error)) => return Err(error),
                Err(NoSlots::Failed(error)) => {
                    let is_well = read.is_well || self.ask(&[NOBODY.to_owned()], window).await.is_ok();
                    read.is_well = is_well;
                    match part {
                        _ if !is_well => return Err(error),
                        [path] => read.unreadable.push(path.clone()),
                        _ => parts.extend([&part[..part.len() / 2], &part[part.len() / 2..]]),
                    }
                }
            }
        }
        Ok(read)
    }

    async fn ask(&self, paths: &[String], window: Window) -> std::result::Result<HashMap<String, Slots>, NoSlots> {
        let (after, until) = (window.after.to_string(), window.until.to_string());
        let mut fields = vec![
            ("format", "json"),
            ("noCache", "1"),
            ("from", &*after),
            ("until", &*until),
        ];
        // Slots without a value show how long slots are; of many they would be most of the answer.
        if (window.until - window.after) / window.slot.max(1) > EMPTY_SLOTS_MAX {
            fields.push(("noNullPoints", "1"));
        }
        fields.extend(paths.iter().map(|path| ("target", &**path)));
        let request = Request::form("/render/", &fields).reading();
        let answer = self.server.ask(READING, &request).await?;
        let refused = || self.server.refused(READING, &answer);
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::INTERNAL_SERVER_ERROR => return Err(NoSlots::Failed(refused())),
            _ => return Err(refused().into()),
        }
        let mut of_path = HashMap::new();
        for series in self.series(&answer)? {
            self.check(&series, window.slot)?;
            of_path.insert(series.path, series.slots);
        }
        Ok(of_path)
    }

    /// Refuses slots of another length than the options state.
    fn check(&self, series: &Read, slot_s: i64) -> Result<()> {
        let is_other = series.slot_s.is_some_and(|found| found != slot_s);
        if !is_other && series.slots.iter().all(|(start_s, _)| start_s % slot_s == 0) {
            return Ok(());
        }
        let found = series
            .slot_s
            .map_or("of another length".to_owned(), |found| format!("of {found} s"));
        Err(self.server.failed(
            READING,
            format!(
                "the slots of {} are {found}, and ?archives= says {slot_s} s: state there what the server's \
                 storage-schemas.conf says for this prefix",
                series.path
            ),
        ))
    }

    fn series(&self, answer: &Answer) -> Result<Vec<Read>> {
        if is_list(answer.body()) {
            let series: Vec<WebSeries> = self.parsed(READING, answer)?;
            return Ok(series.into_iter().map(Read::of_web).collect());
        }
        let answered: GoAnswer = self.parsed(READING, answer)?;
        Ok(answered.metrics.into_iter().map(Read::of_go_carbon).collect())
    }

    fn parsed<'a, T: Deserialize<'a>>(&self, action: &str, answer: &'a Answer) -> Result<T> {
        serde_json::from_slice(answer.body()).map_err(|error| {
            let why = format!("{error}, in what is no answer of a render API");
            Error::Unanswered {
                action: format!("{action} ({})", self.server.name()),
                source: why.into(),
            }
        })
    }

    /// The paths of all series below a path, folder by folder.
    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let (mut series, mut folders) = (Vec::new(), vec![prefix.to_owned()]);
        while let Some(folder) = folders.pop() {
            let query = encoded(&format!("{folder}.*"));
            let request = Request::get(format!("/metrics/find/?format=json&query={query}"));
            let answer = self.server.ask(LISTING, &request).await?;
            let nodes = if is_nothing_found(&answer) {
                Vec::new()
            } else if answer.status() != StatusCode::OK {
                return Err(self.server.refused(LISTING, &answer));
            } else {
                self.nodes(&answer)?
            };
            for (path, is_leaf) in nodes {
                if is_leaf { &mut series } else { &mut folders }.push(path);
            }
        }
        series.sort_unstable();
        Ok(series)
    }

    fn nodes(&self, answer: &Answer) -> Result<Vec<(String, bool)>> {
        if is_list(answer.body()) {
            let nodes: Vec<WebNode> = self.parsed(LISTING, answer)?;
            return Ok(nodes.into_iter().map(|node| (node.path, node.is_leaf)).collect());
        }
        let listing: GoListing = self.parsed(LISTING, answer)?;
        let nodes = listing.metrics.into_iter().flat_map(|metric| metric.matches);
        Ok(nodes.map(|node| (node.path, node.is_leaf)).collect())
    }
}

/// Of longer windows, slots without a value are not asked for.
const EMPTY_SLOTS_MAX: i64 = 64;

impl Read {
    fn of_web(series: WebSeries) -> Self {
        let starts = series.datapoints.iter().map(|(_, start_s)| *start_s);
        let steps = starts.clone().zip(starts.skip(1)).map(|(one, next)| next - one);
        Self {
            path: series.target,
            // Without empty slots, the smallest step is only an upper bound, which a gap makes larger.
            slot_s: steps
                .min()
                .filter(|_| series.datapoints.iter().any(|(value, _)| value.is_none())),
            slots: (series.datapoints.into_iter())
                .filter_map(|(value, start_s)| Some((start_s, value?)))
                .collect(),
        }
    }

    fn of_go_carbon(series: GoSeries) -> Self {
        let starts = (0..).map(|index| series.start_time + index * series.step_time);
        let known = starts.zip(&series.values).enumerate();
        let known = known.filter(|(index, _)| !series.is_absent.get(*index).copied().unwrap_or(false));
        Self {
            slots: known.map(|(_, (start_s, value))| (start_s, *value)).collect(),
            path: series.name,
            slot_s: Some(series.step_time).filter(|step| *step > 0),
        }
    }
}

fn is_list(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'[')
}

/// go-carbon answers a listing without a match with status 500 or 404 and these words.
fn is_nothing_found(answer: &Answer) -> bool {
    let is_failure = [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::NOT_FOUND].contains(&answer.status());
    is_failure
        && answer
            .body()
            .windows(9)
            .any(|words| words.eq_ignore_ascii_case(b"not found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_servers_answer_with_known_slots() {
        let web = r#"[{"target":"p.a","tags":{},"datapoints":[[null,10],[1.5,20],[0.1,30]]}]"#;
        let go = r#"{"metrics":[{"name":"p.a","startTime":10,"stopTime":40,"stepTime":10,
            "values":[0,1.5,0.1],"isAbsent":[true,false,false]}]}"#;
        let read = [
            Read::of_web(serde_json::from_str::<Vec<WebSeries>>(web).unwrap().remove(0)),
            Read::of_go_carbon(serde_json::from_str::<GoAnswer>(go).unwrap().metrics.remove(0)),
        ];
        for read in read {
            assert_eq!((read.path.as_str(), read.slot_s), ("p.a", Some(10)));
            assert_eq!(read.slots, [(20, 1.5), (30, 0.1)]);
        }
        assert!(serde_json::from_str::<GoAnswer>("{}").unwrap().metrics.is_empty());
    }

    #[test]
    fn slots_that_are_known_do_not_show_their_length() {
        let web = r#"[{"target":"p.a","datapoints":[[1,20],[2,50]]}]"#;
        let read = Read::of_web(serde_json::from_str::<Vec<WebSeries>>(web).unwrap().remove(0));
        assert_eq!(read.slot_s, None);
    }
}
