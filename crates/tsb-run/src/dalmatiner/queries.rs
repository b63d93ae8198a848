//! The two queries of the document, of a day that is in the store: first and repeated, beside the
//! feed, and cold. Every answer is compared with what was written.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use tsb_core::latency::{Histogram, Quantiles};
use tsb_core::report::experiment::dalmatiner::{DalmatinerPlan, QueryRun, SizeRun, TestedTarget};
use tsb_core::time::{Clock, SECOND_NS};
use tsb_core::workload::Workload;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{Consolidation, Exactness, Query, Refusals, Resample, Store, TimeRange};

use super::files;
use super::history::{DAY_S, History, check, maxima};
use super::opened::OpenTarget;
use super::target::DalmatinerTarget;
use crate::audit::{Columns, Rules};
use crate::error::{Error, panic_message};
use crate::run::exactness;

/// Most sets of series of a query whose first answers are timed.
const SETS_MAX: usize = 5;
/// Between two queries beside the feed.
const BESIDE_NS: u64 = SECOND_NS / 20;

/// A query of the document.
#[derive(Clone, Copy, Debug)]
struct Asked {
    name: &'static str,
    series: usize,
    span_s: u64,
    step_s: u64,
}

const Q1: Asked = Asked {
    name: "q1",
    series: 1,
    span_s: 3_600,
    step_s: 60,
};
const Q2: Asked = Asked {
    name: "q2",
    series: 7,
    span_s: DAY_S,
    step_s: 3_600,
};

/// Writes the history, asks, and asks again beside the feed and cold. `found` keeps what was
/// measured before an error.
///
/// # Errors
/// If the target does not take the history or does not answer.
pub(super) fn ask_all(
    opened: &mut OpenTarget<'_>,
    history: &History,
    (asked, round): (&DalmatinerPlan, u32),
    (clock, stop): (&dyn Clock, &AtomicBool),
    found: &mut Vec<QueryRun>,
) -> Result<(), Error> {
    let failed = |what: &str, why: String| Error::unreachable(what.to_owned()).because_of(why);
    let store = opened.connect()?;
    let definitions = history.definitions();
    store
        .define(&definitions)
        .map_err(|error| failed("cannot define the series of the history", error.to_string()))?;
    history
        .write(&*store)
        .map_err(|why| failed("cannot write the history", why))?;
    let capabilities = store.capabilities();
    let tested = opened.tested(capabilities.acknowledges, &exactness(capabilities.exactness));
    let session = Session {
        history,
        asked,
        clock,
        stop,
        tested,
        round,
        rules: Rules::of(&capabilities, Timestamp::MIN),
        by_target: capabilities.resample,
    };
    if capabilities.exactness != Exactness::Nothing {
        session.first_and_repeated(&*store, found);
        session.beside_the_feed(&*store, found);
    }
    store
        .close()
        .map_err(|error| failed("cannot close it after the queries", error.to_string()))?;
    drop(store);
    let Some(folder) = opened.files().map(std::path::Path::to_owned) else {
        return Ok(());
    };
    opened.reopen()?;
    let store = opened.connect()?;
    store
        .define(&definitions)
        .map_err(|error| failed("cannot define the series of the history again", error.to_string()))?;
    files::evict(&folder).map_err(|error| failed("cannot empty the page cache", error.to_string()))?;
    session.cold(&*store, found);
    store
        .close()
        .map_err(|error| failed("cannot close it after the cold queries", error.to_string()))
}

/// Writes the history alone, and measures its files.
///
/// # Errors
/// If the target does not take the history, or its files cannot be read.
pub(super) fn size(
    target: &DalmatinerTarget,
    opened: &mut OpenTarget<'_>,
    history: &History,
    round: u32,
) -> Result<Option<SizeRun>, Error> {
    let Some(folder) = opened.files().map(std::path::Path::to_owned) else {
        return Ok(None);
    };
    let failed = |what: &str, why: String| Error::unreachable(what.to_owned()).because_of(why);
    let store = opened.connect()?;
    let written = store
        .define(&history.definitions())
        .map_err(|error| error.to_string())
        .and_then(|()| history.write(&*store));
    written.map_err(|why| failed("cannot write the history", why))?;
    let capabilities = store.capabilities();
    let tested = opened.tested(capabilities.acknowledges, &exactness(capabilities.exactness));
    store
        .close()
        .map_err(|error| failed("cannot close it", error.to_string()))?;
    opened.end()?;
    let occupied = files::measure(&folder).map_err(|error| failed("cannot measure its files", error.to_string()))?;
    let samples = history.samples();
    let bits = |bytes: u64| 8.0 * bytes as f64 / samples.max(1) as f64;
    Ok(Some(SizeRun {
        target: tested,
        round,
        samples,
        nominal_bits: target.nominal_bits(),
        apparent_bits: bits(occupied.apparent),
        disk_bits: bits(occupied.blocks),
        compressed_bits: bits(occupied.compressed),
    }))
}

/// The queries of one target.
struct Session<'a> {
    history: &'a History,
    asked: &'a DalmatinerPlan,
    clock: &'a dyn Clock,
    stop: &'a AtomicBool,
    tested: TestedTarget,
    round: u32,
    rules: Rules,
    by_target: bool,
}

/// The times of answers, and what was wrong with them.
#[derive(Default)]
struct Times {
    histogram: Histogram,
    sum_ns: u64,
    rows: u64,
    wrong: Vec<String>,
}

impl Times {
    fn add(&mut self, answered: Result<(u64, u64), String>) {
        match answered {
            Ok((took_ns, rows)) => {
                self.histogram.record(took_ns);
                self.sum_ns += took_ns;
                self.rows = rows;
            }
            Err(why) => self.wrong.push(why),
        }
    }
}

impl Session<'_> {
    /// The places of the series of each set of a query; no two queries share one.
    fn sets(&self, asked: Asked) -> Vec<Vec<usize>> {
        let all = self.history.ids.len();
        let of_q2 = (all.saturating_sub(1) / Q2.series).min(SETS_MAX);
        if asked.series == Q2.series {
            return (0..of_q2)
                .map(|set| (set * Q2.series..(set + 1) * Q2.series).collect())
                .collect();
        }
        let behind = of_q2 * Q2.series;
        (behind..all).take(SETS_MAX).map(|place| vec![place]).collect()
    }

    fn run(&self, asked: Asked, state: &str, times: Times) -> QueryRun {
        let quantiles = Quantiles::new(&times.histogram);
        QueryRun {
            target: self.tested.clone(),
            round: self.round,
            query: asked.name.to_owned(),
            state: state.to_owned(),
            samples: asked.span_s * asked.series as u64,
            rows: times.rows,
            by_target: self.by_target,
            mean_ms: times.sum_ns as f64 / quantiles.count.max(1) as f64 / 1e6,
            times: quantiles,
            wrong: times.wrong,
        }
    }

    fn first_and_repeated(&self, store: &dyn Store, into: &mut Vec<QueryRun>) {
        for asked in [Q1, Q2] {
            let (mut first, mut repeated) = (Times::default(), Times::default());
            for set in self.sets(asked) {
                first.add(self.ask(store, asked, &set));
                for _ in 0..self.asked.repeats {
                    repeated.add(self.ask(store, asked, &set));
                }
            }
            into.push(self.run(asked, "first", first));
            into.push(self.run(asked, "repeated", repeated));
        }
    }

    fn cold(&self, store: &dyn Store, into: &mut Vec<QueryRun>) {
        for asked in [Q1, Q2] {
            let mut times = Times::default();
            // The first reads the pages of later ones, where series share them.
            if let Some(set) = self.sets(asked).first() {
                times.add(self.ask(store, asked, set));
            }
            into.push(self.run(asked, "cold", times));
        }
    }

    /// Asks while another thread writes the feed.
    fn beside_the_feed(&self, store: &dyn Store, into: &mut Vec<QueryRun>) {
        let is_over = AtomicBool::new(false);
        let mut times = [Times::default(), Times::default()];
        let fed = std::thread::scope(|scope| {
            let feeding = scope.spawn(|| self.feed(store, &is_over));
            self.clock.wait_until(self.clock.now() + SECOND_NS);
            for repeat in 0..self.asked.repeats {
                for (asked, times) in [Q1, Q2].into_iter().zip(&mut times) {
                    let sets = self.sets(asked);
                    if let Some(set) = sets.get(repeat as usize % sets.len().max(1)) {
                        times.add(self.ask(store, asked, set));
                    }
                    self.clock.wait_until(self.clock.now() + BESIDE_NS);
                }
                if self.stop.load(Ordering::Relaxed) || feeding.is_finished() {
                    break;
                }
            }
            is_over.store(true, Ordering::Release);
            joined(feeding)
        });
        for (asked, mut times) in [Q1, Q2].into_iter().zip(times) {
            times.wrong.extend(fed.as_ref().err().cloned());
            into.push(self.run(asked, "beside", times));
        }
    }

    /// Writes the feed as it is due, until it is over.
    fn feed(&self, store: &dyn Store, is_over: &AtomicBool) -> Result<(), String> {
        let workload: &Workload = &self.history.workload;
        let base = Timestamp::from_secs(self.clock.wall().as_secs() + 1);
        store
            .define(&workload.catalog().definitions())
            .map_err(|error| format!("the feed could not be defined: {error}"))?;
        let start = self.clock.now() + (base - self.clock.wall()).max(0).cast_unsigned();
        let groups = workload.groups();
        let mut generator = workload.generator(0..groups.len(), base);
        let mut refused = Refusals::new();
        for tick in 0.. {
            for (number, group) in groups.iter().enumerate() {
                if is_over.load(Ordering::Acquire) {
                    return Ok(());
                }
                self.clock.wait_until(start + tick * group.interval_ns + group.phase_ns);
                let ack = store.write(&generator.operation(number, tick), &mut refused);
                let ack = ack.map_err(|error| format!("the feed could not be written: {error}"))?;
                if ack.rejected > 0 {
                    return Err("a sample of the feed was refused".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Asks once: the time until the answer in nanoseconds, and its rows.
    fn ask(&self, store: &dyn Store, asked: Asked, set: &[usize]) -> Result<(u64, u64), String> {
        let end = self.history.end;
        let range = TimeRange {
            start: end + -((asked.span_s * SECOND_NS) as i64),
            end,
        };
        let ids: Vec<SeriesId> = set
            .iter()
            .filter_map(|place| self.history.ids.get(*place).copied())
            .collect();
        let query = Query {
            series: &ids,
            range,
            resample: self.by_target.then_some(Resample {
                step_ns: (asked.step_s * SECOND_NS) as i64,
                consolidation: Consolidation::Max,
            }),
        };
        let mut rows: Vec<Columns> = ids.iter().map(|_| Columns::default()).collect();
        let begun = self.clock.now();
        let answered = store.query(&query, &mut |id, times, values| {
            if let Some(rows) = ids
                .iter()
                .position(|asked| *asked == id)
                .and_then(|place| rows.get_mut(place))
            {
                if self.by_target {
                    rows.times.extend_from_slice(times);
                    rows.values.extend_from_slice(values);
                } else {
                    maxima(times, values, asked.step_s, rows);
                }
            }
            ControlFlow::Continue(())
        });
        let took_ns = self.clock.now() - begun;
        answered.map_err(|error| format!("no answer: {error}"))?;
        for (place, rows) in set.iter().zip(&rows) {
            let expected = self.history.maxima(*place, asked.span_s, asked.step_s);
            check(&expected, rows, &self.rules)?;
        }
        Ok((took_ns, rows.iter().map(|rows| rows.len() as u64).sum()))
    }
}

fn joined(thread: ScopedJoinHandle<'_, Result<(), String>>) -> Result<(), String> {
    thread.join().unwrap_or_else(|panic| Err(panic_message(&*panic)))
}
