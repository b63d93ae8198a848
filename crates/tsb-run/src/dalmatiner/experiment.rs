//! The whole experiment: in rounds over the targets, the feed, the highest rate, the queries of a
//! day, its size, and a kill.

mod published;
mod summary;

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::report::experiment::dalmatiner::{DalmatinerDetails, DalmatinerPlan};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use super::feed::{self, Load};
use super::history::History;
use super::kill::kill;
use super::opened::{OpenOptions, OpenTarget};
use super::queries;
use super::target::{DalmatinerTarget, TargetWay};
use crate::error::{Error, chain};
use crate::experiment::in_rounds;

pub use published::{MISTAKES, compressed_bits, rows};

/// What is asked of the experiment.
#[derive(Debug)]
pub struct Request<'a> {
    /// The settings, which the report repeats.
    pub plan: DalmatinerPlan,
    /// The targets of `plan.targets`.
    pub targets: Vec<DalmatinerTarget>,
    /// The program `tsb`, whose `ingest` is our endpoint.
    pub program: &'a Path,
    /// The folder for files of stores.
    pub folder: &'a Path,
    /// Ends it early, with what was found.
    pub stop: Arc<AtomicBool>,
}

/// A part of the experiment, in which each target has a turn in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// The feed of this many series.
    Feed(u64),
    /// The highest rate, with the most series.
    Peak,
    /// The queries of a day.
    Queries,
    /// Its size.
    Size,
    /// The loss window.
    Kill,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feed(series) => write!(f, "{series} samples per second"),
            Self::Peak => f.write_str("highest rate"),
            Self::Queries => f.write_str("queries of a day"),
            Self::Size => f.write_str("size of a day"),
            Self::Kill => f.write_str("killed"),
        }
    }
}

impl Part {
    /// Whether a target has a turn in it.
    fn is_for(self, target: &DalmatinerTarget) -> bool {
        match self {
            Self::Feed(_) | Self::Queries => true,
            // In this process the generator and the store would share what is there.
            Self::Peak => target.way() != TargetWay::InProcess,
            // In this process the files are the same. What somebody started is not ours to kill, and
            // memory loses everything.
            Self::Size | Self::Kill => target.has_files() && target.way() == TargetWay::Tcp,
        }
    }

    /// Seconds that a first turn takes about, as far as the plan says it.
    const fn estimate(self, plan: &DalmatinerPlan) -> u64 {
        match self {
            Self::Feed(_) => 2 * plan.seconds + 2,
            Self::Peak => plan.peak_seconds + 1,
            Self::Queries | Self::Size | Self::Kill => 2,
        }
    }
}

struct Experiment<'a> {
    request: &'a Request<'a>,
    clock: MonotonicClock,
    say: &'a mut dyn FnMut(&str),
    places: u32,
    details: DalmatinerDetails,
    /// Targets and parts that failed, or for which the time was too short.
    is_out: Vec<(usize, Part)>,
    /// When it started, by its clock.
    started: u64,
    /// Seconds of the last turn.
    took: HashMap<(usize, Part), f64>,
    /// The histories by their number of series.
    histories: HashMap<u64, Arc<History>>,
}

/// Runs the experiment. A turn that cannot be made is a failure in the result, and the others go
/// on.
pub fn measure(request: &Request<'_>, say: &mut dyn FnMut(&str)) -> DalmatinerDetails {
    let clock = MonotonicClock::new();
    let mut experiment = Experiment {
        started: clock.now(),
        request,
        clock,
        say,
        places: 0,
        details: DalmatinerDetails {
            absent: absent(&request.targets),
            ..DalmatinerDetails::default()
        },
        is_out: Vec::new(),
        took: HashMap::new(),
        histories: HashMap::new(),
    };
    let plan = &request.plan;
    let mut parts: Vec<Part> = plan.series.iter().map(|series| Part::Feed(*series)).collect();
    parts.extend([Part::Kill, Part::Size, Part::Queries]);
    if plan.peak_seconds > 0 {
        parts.push(Part::Peak);
    }
    for round in 0..plan.rounds {
        // The first rounds of everything come first: what the time does not allow are later ones.
        for part in &parts {
            experiment.in_turns(*part, round);
        }
    }
    let mut details = experiment.details;
    details.interrupted = request.stop.load(Ordering::Relaxed);
    summary::summarize(&mut details, plan);
    details
}

/// What does not take part, and why.
fn absent(targets: &[DalmatinerTarget]) -> Vec<String> {
    let has = |scheme: &str| {
        targets
            .iter()
            .any(|target| matches!(target, DalmatinerTarget::Given(spec) if spec.scheme() == scheme))
    };
    let servers = [
        ("dalmatiner", "DalmatinerDB itself"),
        ("graphite", "Graphite (carbon and whisper)"),
        ("influx", "InfluxDB"),
        ("victoriametrics", "VictoriaMetrics"),
        ("clickhouse", "ClickHouse"),
        ("kairosdb", "KairosDB"),
    ];
    servers
        .into_iter()
        .filter(|(scheme, _)| !has(scheme))
        .map(|(scheme, name)| format!("{name}: no running one was given (--store {scheme}://HOST:PORT/...)"))
        .collect()
}

impl Experiment<'_> {
    fn is_stopped(&self) -> bool {
        self.request.stop.load(Ordering::Relaxed)
    }

    /// Gives each target its turn of a round, as far as the time allows.
    fn in_turns(&mut self, part: Part, round: u32) {
        let (seed, rounds) = (self.request.plan.seed, self.request.plan.rounds);
        let count = self.request.targets.len();
        in_rounds(seed.wrapping_add(u64::from(round)), 1, count, |turn| {
            if self.is_stopped() {
                return ControlFlow::Break(());
            }
            let target = &self.request.targets[turn.of];
            if !part.is_for(target) || self.is_out.contains(&(turn.of, part)) {
                return ControlFlow::Continue(());
            }
            let about = format!("{part}, {target}, round {} of {rounds}", round + 1);
            if let Some(why) = self.too_long((turn.of, part)) {
                self.details.absent.push(format!("{about}, and later ones: {why}"));
                self.is_out.push((turn.of, part));
                return ControlFlow::Continue(());
            }
            (self.say)(&about);
            let begun = self.clock.now();
            let taken = self.take(turn.of, part, round);
            let seconds = (self.clock.now() - begun) as f64 / SECOND_NS as f64;
            self.took.insert((turn.of, part), seconds);
            if let Err(error) = taken
                && !self.is_stopped()
            {
                self.details.failures.push(format!("{about}: {}", chain(&error)));
                self.is_out.push((turn.of, part));
            }
            ControlFlow::Continue(())
        });
    }

    /// Why a turn is left out, if it would exceed the budget.
    fn too_long(&self, turn: (usize, Part)) -> Option<String> {
        let budget = self.request.plan.budget_seconds?;
        // What another target took tells more than the plan.
        let of_part = self.took.iter().filter(|((_, part), _)| *part == turn.1);
        let of_others = of_part.map(|(_, took)| *took).reduce(f64::max);
        let took = self.took.get(&turn).copied().or(of_others);
        let needed = took.unwrap_or(turn.1.estimate(&self.request.plan) as f64);
        let elapsed = (self.clock.now() - self.started) as f64 / SECOND_NS as f64;
        (elapsed + needed > budget as f64)
            .then(|| format!("it would take about {needed:.0} s, and the {budget} s of a quick run were nearly over"))
    }

    fn take(&mut self, of: usize, part: Part, round: u32) -> Result<(), Error> {
        self.places += 1;
        let (request, target) = (self.request, &self.request.targets[of]);
        let options = OpenOptions {
            program: request.program,
            folder: request.folder,
            place: self.places,
            clock: &self.clock,
        };
        let mut opened = OpenTarget::open(target, options)?;
        let (plan, stop) = (&request.plan, &request.stop);
        match part {
            Part::Feed(series) => {
                let fed = feed::cost(target, &mut opened, plan, series, stop)?;
                opened.remove()?;
                self.places += 1;
                let options = OpenOptions {
                    place: self.places,
                    ..options
                };
                let opened = OpenTarget::open(target, options)?;
                let of_run = (series, Load::Feed, round);
                let run = feed::verified(target, &opened, plan, of_run, (Some(&fed), stop))?;
                self.details.feeds.push(run);
                opened.remove()
            }
            Part::Peak => {
                let series = plan.series.iter().copied().max().unwrap_or(1);
                let run = feed::verified(target, &opened, plan, (series, Load::Peak, round), (None, stop))?;
                self.details.feeds.push(run);
                opened.remove()
            }
            Part::Queries => {
                let history = Self::history(&mut self.histories, target, plan, &self.clock)?;
                let mut found = Vec::new();
                let asked = queries::ask_all(&mut opened, &history, (plan, round), (&self.clock, stop), &mut found);
                self.details.queries.append(&mut found);
                asked?;
                opened.remove()
            }
            Part::Size => {
                let history = Self::history(&mut self.histories, target, plan, &self.clock)?;
                let size = queries::size(target, &mut opened, &history, round)?;
                self.details.sizes.extend(size);
                opened.remove()
            }
            Part::Kill => {
                let run = kill(&mut opened, (plan, round), &self.clock)?;
                self.details.kills.push(run);
                Ok(())
            }
        }
    }

    /// The history of a target, which those of the same size share.
    fn history(
        histories: &mut HashMap<u64, Arc<History>>,
        target: &DalmatinerTarget,
        plan: &DalmatinerPlan,
        clock: &dyn Clock,
    ) -> Result<Arc<History>, Error> {
        let count = match target.way() {
            TargetWay::Given => plan.history_series_of_servers,
            TargetWay::Tcp | TargetWay::InProcess => plan.history_series,
        };
        if let Some(history) = histories.get(&count) {
            return Ok(Arc::clone(history));
        }
        let series = plan.series.iter().copied().min().unwrap_or(1);
        let history = Arc::new(History::new(plan, series, count, clock)?);
        histories.insert(count, Arc::clone(&history));
        Ok(history)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_would_end_too_late_is_left_out() {
        let request = Request {
            plan: DalmatinerPlan {
                seconds: 60,
                budget_seconds: Some(100),
                ..DalmatinerPlan::default()
            },
            targets: DalmatinerTarget::usual(),
            program: Path::new("/nonexistent"),
            folder: Path::new("/nonexistent"),
            stop: Arc::default(),
        };
        let mut say = |_: &str| {};
        let experiment = Experiment {
            request: &request,
            clock: MonotonicClock::new(),
            say: &mut say,
            places: 0,
            details: DalmatinerDetails::default(),
            is_out: Vec::new(),
            started: 0,
            took: HashMap::from([((0, Part::Size), 300.0)]),
            histories: HashMap::new(),
        };
        assert!(
            experiment.too_long((0, Part::Feed(15_000))).is_some(),
            "122 s by the plan"
        );
        assert!(experiment.too_long((0, Part::Size)).is_some(), "300 s by the last turn");
        assert!(
            experiment.too_long((1, Part::Size)).is_some(),
            "300 s by another target"
        );
        assert_eq!(experiment.too_long((1, Part::Kill)), None);
    }

    #[test]
    fn what_cannot_be_started_is_a_failure_and_the_rest_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let request = Request {
            plan: DalmatinerPlan {
                series: vec![50],
                rounds: 1,
                seconds: 1,
                history_series: 8,
                repeats: 1,
                killed_series: 50,
                killed_seconds: 3,
                ..DalmatinerPlan::default()
            },
            targets: vec![
                DalmatinerTarget::named("memory").unwrap(),
                DalmatinerTarget::named("memory in process").unwrap(),
            ],
            program: Path::new("/nonexistent"),
            folder: folder.path(),
            stop: Arc::default(),
        };
        let details = measure(&request, &mut |_| {});
        assert!(
            details.failures.iter().all(|why| why.contains("/nonexistent")),
            "{:?}",
            details.failures
        );
        assert_eq!(details.failures.len(), 2, "the feed and the queries of one target");
        let [feed] = &details.feeds[..] else {
            panic!("{:?}", details.feeds)
        };
        assert_eq!((feed.verified, feed.sent, feed.lost), (50, 50, 0));
        let rows: Vec<u64> = details.queries.iter().map(|run| run.rows).collect();
        assert_eq!(rows, [60, 60, 168, 168, 60, 168], "{:?}", details.queries);
        assert!(details.is_right(), "{:?}", details.wrong().collect::<Vec<_>>());
    }
}
