//! The requests that Prometheus answers: remote write, and the parts of its API that find, count
//! and remove the series of a place; remote read is in `read`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use http::StatusCode;
use serde::Deserialize;
use tsb_core::bytes::percent::encoded;
use tsb_core::wire::remote_write::series_key;
use tsb_core::{SeriesKey, Timestamp};

use super::message::{Matcher, TimeSeries};
use super::{DEFAULT_PORT, PLACE_LABEL, PrometheusOptions};
use crate::Address;
use crate::http::{Access, Answer, HttpServer, Request};
use tsb_stores::error::{Error, Result};
use tsb_stores::store::Reason;

/// The last second of our time, and how far PromQL can look back from it; then the rest.
const SPANS: [(i64, &str); 2] = [(Timestamp::MAX.0 / 1_000_000_000, "292y"), (20_000_000, "292y")];

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// All of it is stored.
    All,
    /// Nothing of it is.
    Nothing(Reason),
}

/// A place at one server.
#[derive(Debug)]
pub(super) struct PrometheusServer {
    http: HttpServer,
    place: String,
}

/// An answer of the API.
#[derive(Debug, Deserialize)]
struct Reply<T> {
    data: Option<T>,
}

/// The result of a query in PromQL.
#[derive(Debug, Deserialize)]
struct Vector {
    result: Vec<Element>,
}

#[derive(Debug, Deserialize)]
struct Element {
    metric: BTreeMap<String, String>,
    /// The time, and the value as text.
    value: (f64, String),
}

/// The configuration, as text.
#[derive(Debug, Deserialize)]
struct Configuration {
    yaml: String,
}

impl PrometheusServer {
    pub(super) fn new(address: &Address, options: &PrometheusOptions) -> Result<Self> {
        let access = Access::of(address, options.tls.clone(), options.timeout)?;
        let http = HttpServer::new("Prometheus", address.hosts(), DEFAULT_PORT, access)?;
        let place = address.place().to_owned();
        Ok(Self { http, place })
    }

    pub(super) fn http(&self) -> &HttpServer {
        &self.http
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Whether it takes remote write: an empty one stores nothing.
    pub(super) async fn check_writing(&self) -> Result<()> {
        const ACTION: &str = "ask whether it takes remote write";
        let answer = self.http.ask(ACTION, &write_request(vec![0]).reading()).await?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND => Err(self
                .http
                .failed(ACTION, "it does not; start it with --web.enable-remote-write-receiver")),
            StatusCode::SERVICE_UNAVAILABLE => Err(self.starting(ACTION, &answer)),
            _ => Err(self.http.refused(ACTION, &answer)),
        }
    }

    /// Writes a body that is compressed already.
    pub(super) async fn write(&self, body: Vec<u8>) -> Result<Written> {
        const ACTION: &str = "write samples";
        let answer = self.http.ask(ACTION, &write_request(body)).await?;
        match answer.status() {
            status if status.is_success() => Ok(Written::All),
            StatusCode::BAD_REQUEST => Ok(Written::Nothing(reason_of(answer.body()))),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Err(self.starting(ACTION, &answer)),
            status if status.is_client_error() => Err(self.http.refused(ACTION, &answer)),
            _ => Err(self.http.unknown(ACTION, answer.described())),
        }
    }

    /// It is not ready, or has no room at the moment: it did nothing.
    pub(super) fn starting(&self, action: &str, answer: &Answer) -> Error {
        Error::Unreachable {
            action: format!("{action} ({})", self.http.name()),
            source: answer.described().into(),
        }
    }

    /// The matcher of this place.
    pub(super) fn of_place(&self) -> Matcher {
        Matcher {
            name: PLACE_LABEL.to_owned(),
            value: self.place.clone(),
        }
    }

    async fn answered(&self, action: &str, request: &Request) -> Result<Answer> {
        let answer = self.http.ask(action, request).await?;
        match answer.status() {
            status if status.is_success() => Ok(answer),
            StatusCode::SERVICE_UNAVAILABLE => Err(self.starting(action, &answer)),
            _ => Err(self.http.refused(action, &answer)),
        }
    }

    async fn asked<T: for<'de> Deserialize<'de>>(&self, action: &str, path: String) -> Result<T> {
        let answer = self.answered(action, &Request::get(path)).await?;
        let reply: Reply<T> = serde_json::from_slice(answer.body()).map_err(|error| self.http.failed(action, error))?;
        reply
            .data
            .ok_or_else(|| self.http.failed(action, "it answers without data"))
    }

    async fn vector(&self, action: &str, query: &str, at_s: i64) -> Result<Vec<Element>> {
        let path = format!("/api/v1/query?query={}&time={at_s}", encoded(query));
        Ok(self.asked::<Vector>(action, path).await?.result)
    }

    /// The series of the place that have samples.
    pub(super) async fn series(&self) -> Result<Vec<SeriesKey>> {
        const ACTION: &str = "ask for the series of the place";
        let mut keys = Vec::new();
        for (at_s, span) in SPANS {
            let query = format!("last_over_time({{{PLACE_LABEL}=\"{}\"}}[{span}])", self.place);
            for element in self.vector(ACTION, &query, at_s).await? {
                let labels = element
                    .metric
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()));
                keys.push(own_key(labels).map_err(|why| self.http.failed(ACTION, why))?);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// Number of samples of these series; of those with one name together, because a function
    /// drops the name of what it counts.
    pub(super) async fn count(&self, keys: &[SeriesKey]) -> Result<u64> {
        const ACTION: &str = "count the samples of the place";
        let mut names: Vec<&str> = keys.iter().map(SeriesKey::name).collect();
        names.sort_unstable();
        names.dedup();
        let mut total = 0;
        for name in names {
            let labels = tsb_core::wire::remote_write::labels_of(&SeriesKey::new(name));
            let labels = labels.map_err(|why| self.http.failed(ACTION, why))?;
            let name = labels.first().map_or("", |(_, name)| name.as_str());
            for (at_s, span) in SPANS {
                let selector = format!("{{__name__=\"{name}\",{PLACE_LABEL}=\"{}\"}}", self.place);
                let query = format!("sum(count_over_time({selector}[{span}]))");
                for element in self.vector(ACTION, &query, at_s).await? {
                    total += element.value.1.parse::<f64>().unwrap_or(0.0) as u64;
                }
            }
        }
        Ok(total)
    }

    /// How far before the newest sample of the server a sample may be, in nanoseconds: an hour, or
    /// the window of the configuration. `None` if it does not show its configuration.
    pub(super) async fn window_ns(&self) -> Option<i64> {
        let path = "/api/v1/status/config".to_owned();
        let configuration: Configuration = self.asked("ask for the configuration", path).await.ok()?;
        Some(window_of(&configuration.yaml))
    }

    /// The folder of all its samples, if it is on this machine.
    pub(super) async fn folder(&self) -> Option<PathBuf> {
        let path = "/api/v1/status/flags".to_owned();
        let flags: BTreeMap<String, String> = self.asked("ask for its folder", path).await.ok()?;
        let folder = PathBuf::from(flags.get("storage.tsdb.path")?);
        (folder.is_absolute() && folder.join("wal").is_dir()).then_some(folder)
    }

    /// Removes the samples of the place, and looks whether they are gone.
    pub(super) async fn remove(&self) -> Result<()> {
        const ACTION: &str = "remove the samples of the place";
        if self.series().await?.is_empty() {
            return Ok(());
        }
        let selector = encoded(&format!("{{{PLACE_LABEL}=\"{}\"}}", self.place));
        let request = Request::post(format!("/api/v1/admin/tsdb/delete_series?match[]={selector}"), "");
        let answer = self.http.ask(ACTION, &request).await?;
        if !answer.status().is_success() {
            let why = format!("{}; start it with --web.enable-admin-api", answer.described());
            return Err(self.http.failed(ACTION, why));
        }
        match self.series().await?.len() {
            0 => Ok(()),
            left => Err(self.http.failed(
                ACTION,
                format!("samples of {left} series are still there: it deletes no out-of-order samples before they are in a block"),
            )),
        }
    }
}

fn write_request(body: Vec<u8>) -> Request {
    Request::post("/api/v1/write", body)
        .with_header("content-type", "application/x-protobuf")
        .with_header("content-encoding", "snappy")
        .with_header("x-prometheus-remote-write-version", "0.1.0")
}

/// The reason of a refusal, from its text.
fn reason_of(body: &[u8]) -> Reason {
    let text = String::from_utf8_lossy(body);
    if text.contains("duplicate sample") {
        Reason::Duplicate
    } else if ["out of order", "out of bounds", "too old"]
        .iter()
        .any(|words| text.contains(words))
    {
        Reason::Late
    } else {
        Reason::Refused
    }
}

/// The series of labels, without that of the place.
fn own_key<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> std::result::Result<SeriesKey, &'static str> {
    series_key(labels.filter(|(name, _)| *name != PLACE_LABEL))
}

/// The series of an answer to a remote read.
pub(super) fn key_of(series: &TimeSeries) -> std::result::Result<SeriesKey, &'static str> {
    own_key(
        series
            .labels
            .iter()
            .map(|label| (label.name.as_str(), label.value.as_str())),
    )
}

/// The window of a configuration as Prometheus shows it: in milliseconds, an hour without one.
fn window_of(yaml: &str) -> i64 {
    const HOUR_MS: i64 = 3_600_000;
    let mut lines = yaml.lines().filter_map(|line| line.trim().split_once(": "));
    let window = lines.find(|(name, _)| *name == "outofordertimewindow");
    let window_ms = window.and_then(|(_, text)| text.trim().parse::<i64>().ok());
    window_ms
        .unwrap_or(0)
        .max(HOUR_MS)
        .saturating_mul(crate::admission::MILLI_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_its_reason() {
        for (text, reason) in [
            ("duplicate sample for timestamp\n", Reason::Duplicate),
            ("out of order sample\n", Reason::Late),
            ("out of bounds\n", Reason::Late),
            ("too old sample\n", Reason::Late),
            ("label name \"\" is not valid\n", Reason::Refused),
        ] {
            assert_eq!(reason_of(text.as_bytes()), reason);
        }
    }

    #[test]
    fn the_window_is_an_hour_or_what_the_configuration_says() {
        let hour_ns = 3_600_000_000_000;
        assert_eq!(window_of("global:\n  scrape_interval: 1m\n"), hour_ns);
        let yaml = "storage:\n  tsdb:\n    outofordertimewindow: 86400000\n    out_of_order_time_window: 1d\n";
        assert_eq!(window_of(yaml), 24 * hour_ns);
        assert_eq!(window_of("    outofordertimewindow: 60000\n"), hour_ns);
        assert_eq!(window_of("    outofordertimewindow: 9223372036854775\n"), i64::MAX);
    }
}
