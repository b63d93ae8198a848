//! Reads beside writes: streams of queries, each with a schedule, threads and histograms of its
//! own, on the clock of the run, from its start to its end.
//!
//! Queries ask only for samples that must be there ([`known`]), and every answer is compared with
//! what was sent ([`check`]). What a store refused is known for certain only when the run is over,
//! so an answer that differs is kept and judged then ([`judge`]).

mod answer;
mod check;
mod choice;
mod derive;
mod fit;
mod judge;
mod known;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::Timestamp;
use tsb_core::emit::{self, Ended, Live, Settings, Worker};
use tsb_core::schedule::{Group, Pace, Roster, Schedule, Speed, Timetable};
use tsb_core::time::SECOND_NS;
use tsb_stores::{Capabilities, Store};

use super::preload::history_of;
use super::run_context::RunContext;
use super::sink::SinkTotals;
use crate::audit::History;
use crate::error::chain;
use crate::plan::{Plan, QueryRate, QueryStream, QueryTurn, TimedStream};
use check::AnswerCheck;
use choice::QueryChoice;
use known::KnownSamples;
use stream::{CheckedAnswers, QuerySource, QueryTarget};

pub(super) use fit::check as check_fit;
#[cfg(feature = "hosts")]
pub(crate) use judge::NAMED_MAX;
pub use judge::QueryTimes;
pub(super) use judge::{JudgedStream, judge};
pub use known::WrittenTimes;

/// The streams of a run that is in progress.
#[derive(Debug)]
pub(super) struct QueryStreams<'a> {
    context: &'a RunContext,
    store: Arc<dyn Store>,
    capabilities: Capabilities,
    totals: Arc<SinkTotals>,
    start_ns: u64,
    base: Timestamp,
    history: History,
    known: KnownSamples,
    written: Option<Arc<WrittenTimes>>,
    streams: Vec<TimedStream>,
    /// Ends the streams.
    stop: AtomicBool,
}

/// What one stream came to. Its answers are not judged yet.
#[derive(Debug)]
pub(super) struct AskedStream {
    /// What was asked for.
    stream: QueryStream,
    /// Counts, times and the CPU time of its threads; absent if they could not be started.
    times: Option<StreamTimes>,
    answers: Vec<CheckedAnswers>,
    /// Panics, in words.
    failures: Vec<String>,
    /// Why a server did not answer, the first time.
    silence: Option<String>,
}

/// Counts and times of a stream.
#[derive(Debug)]
struct StreamTimes {
    counts: emit::Counts,
    latency: emit::Latency,
    cpu: emit::PhaseCpu,
    elapsed_ns: u64,
    asked_ns: u64,
}

impl<'a> QueryStreams<'a> {
    /// The streams of the plan, for a run that begins at `start_ns` on the clock and whose first
    /// timestamp is `base`; `None` if the plan has no streams.
    pub(super) fn new(
        context: &'a RunContext,
        (store, capabilities): (&Arc<dyn Store>, Capabilities),
        totals: &Arc<SinkTotals>,
        (start_ns, base): (u64, Timestamp),
        live: &Arc<Live>,
    ) -> Option<Self> {
        let streams = context.plan.timed_streams();
        if streams.is_empty() {
            return None;
        }
        let listens = context.plan.transport.is_wire();
        let written = listens.then(|| Arc::new(WrittenTimes::new(context, base)));
        Some(Self {
            context,
            store: Arc::clone(store),
            capabilities,
            totals: Arc::clone(totals),
            start_ns,
            base,
            history: history_of(context, base),
            known: KnownSamples::new(context, base, live, written.as_ref()),
            written,
            streams,
            stop: AtomicBool::new(false),
        })
    }

    /// Where the sinks of the listener say how far they have written, if the run has one.
    pub(super) fn written(&self) -> Option<&Arc<WrittenTimes>> {
        self.written.as_ref()
    }

    /// Asks until the planned end, or until [`Self::end`] is called.
    pub(super) fn ask(&self) -> Vec<AskedStream> {
        std::thread::scope(|threads| {
            let streams = self.streams.iter().enumerate();
            let asking: Vec<_> = streams
                .map(|(place, timed)| (&timed.stream, threads.spawn(move || self.ask_stream(place, timed))))
                .collect();
            let join = |(stream, thread): (&QueryStream, std::thread::ScopedJoinHandle<'_, AskedStream>)| {
                thread
                    .join()
                    .unwrap_or_else(|panic| AskedStream::failed(stream, crate::error::panic_message(&*panic)))
            };
            asking.into_iter().map(join).collect()
        })
    }

    /// All samples are sent, or the run was stopped. Where the plan says how long to send, streams
    /// go on until then.
    pub(super) fn end(&self, is_stopped: bool) {
        let plan = &self.context.plan;
        if is_stopped || plan.duration_ns.is_none() || plan.fleet_time_ns.is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn ask_stream(&self, place: usize, timed: &TimedStream) -> AskedStream {
        let (plan, stream) = (&self.context.plan, &timed.stream);
        let timetable = match timetable(stream, plan, timed.length_ns) {
            Ok(timetable) => timetable,
            Err(why) => return AskedStream::failed(stream, why),
        };
        let live = Live::new(plan.query_workers);
        let workers = timetable
            .roster
            .split(plan.query_workers)
            .into_iter()
            .map(|groups| Worker {
                groups,
                source: self.source(place, stream),
                target: QueryTarget::new(Arc::clone(&self.store), Arc::clone(&self.totals)),
            });
        let run = emit::Run {
            clock: &*self.context.clock,
            timetable: &timetable,
            stop: &self.stop,
            live: &live,
            settings: Settings {
                start_ns: Some((self.start_ns + timed.from_ns).max(self.context.clock.now())),
                interval_ns: plan.report_interval_ns,
                exceptions_max: 0,
                thread_name: "tsb-query",
                ..Settings::default()
            },
        };
        match emit::run(&run, workers.collect()) {
            Ok(report) => AskedStream::of(stream, report),
            Err(error) => AskedStream::failed(stream, chain(&error)),
        }
    }

    fn source(&self, place: usize, stream: &QueryStream) -> QuerySource<'_> {
        let shape = stream.kind.shape();
        QuerySource::new(
            (&*self.context.clock, self.start_ns),
            QueryChoice::new(self.context, &self.known, self.base, shape, place),
            &self.known,
            AnswerCheck::new(self.context, (self.base, &self.history), shape, &self.capabilities),
            (shape, self.capabilities.retention_ns),
        )
    }
}

impl AskedStream {
    /// CPU time of its threads, in nanoseconds.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.times.as_ref().map_or(0, |times| times.cpu.total_ns)
    }

    fn of(stream: &QueryStream, report: emit::Report<QuerySource<'_>, QueryTarget>) -> Self {
        let (elapsed_ns, asked_ns, cpu) = (report.elapsed_ns(), report.asked_ns(), report.cpu());
        let mut asked = Self {
            stream: stream.clone(),
            times: None,
            answers: Vec::new(),
            failures: Vec::new(),
            silence: None,
        };
        for worker in report.workers {
            if let Ended::Panicked(message) = worker.ended {
                asked
                    .failures
                    .push(format!("a thread that asked {} panicked: {message}", stream.name));
            }
            if asked.silence.is_none() {
                asked.silence = worker.target.silence.map(|error| chain(&error));
            }
            asked.answers.push(worker.source.finish());
        }
        asked.times = Some(StreamTimes {
            counts: report.counts,
            latency: report.latency,
            cpu,
            elapsed_ns,
            asked_ns,
        });
        asked
    }

    fn failed(stream: &QueryStream, why: impl std::fmt::Display) -> Self {
        Self {
            stream: stream.clone(),
            times: None,
            answers: Vec::new(),
            failures: vec![format!("cannot ask {}: {why}", stream.name)],
            silence: None,
        }
    }
}

/// When the threads of this host ask: those of all hosts take turns.
fn timetable(stream: &QueryStream, plan: &Plan, end_ns: Option<u64>) -> Result<Timetable, String> {
    let workers = plan.query_workers;
    let turn = plan.query_turn.unwrap_or(QueryTurn { host: 0, hosts: 1 });
    let (turn_ns, pace) = match stream.rate {
        QueryRate::PerSecond(rate) => (SECOND_NS as f64 / rate, Pace::Fleet(Speed::NATURAL)),
        QueryRate::Max => (SECOND_NS as f64, Pace::Shape(Schedule::Unpaced)),
    };
    let interval_ns = (turn_ns * (workers * turn.hosts) as f64).round().max(1.0) as u64;
    let groups = (0..workers).map(|worker| {
        let phase_ns = (turn_ns * (turn.host * workers + worker) as f64) as u64;
        Group::new(interval_ns, phase_ns.min(interval_ns - 1), 1)
    });
    Ok(Timetable {
        roster: Roster::new(groups.collect()).map_err(|error| error.to_string())?,
        pace,
        end_ns,
        fleet_end_ns: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(query_workers: usize) -> Plan {
        Plan {
            query_workers,
            ..Plan::default()
        }
    }

    fn dues_of(text: &str, plan: &Plan) -> Vec<u64> {
        let timetable = timetable(&text.parse().unwrap(), plan, Some(SECOND_NS)).unwrap();
        let agenda = timetable.agenda(0..plan.query_workers as u32);
        agenda.map(|planned| planned.due_ns.unwrap()).collect()
    }

    fn dues(text: &str, workers: usize) -> Vec<u64> {
        dues_of(text, &plan(workers))
    }

    #[test]
    fn the_threads_of_several_hosts_take_turns() {
        let of_host = |host| {
            let plan = Plan {
                query_turn: Some(QueryTurn { host, hosts: 3 }),
                ..plan(2)
            };
            dues_of("q1@60/s", &plan)
        };
        let mut together: Vec<u64> = (0..3).flat_map(of_host).collect();
        together.sort_unstable();
        let mut alone = dues("q1@60/s", 6);
        alone.sort_unstable();
        assert_eq!(together, alone);
        assert_eq!(of_host(1).len(), 20);
    }

    #[test]
    fn threads_take_turns_at_the_rate_of_their_stream() {
        let ms = |list: &[u64]| list.iter().map(|ms| ms * 1_000_000).collect::<Vec<_>>();
        assert_eq!(dues("q1@4/s", 1), ms(&[0, 250, 500, 750]));
        assert_eq!(dues("q1@4/s", 2), ms(&[0, 250, 500, 750]));
        assert_eq!(dues("q1@1000/s", 7).len(), 1_000);
        // Less often than once in the run: at its beginning.
        assert_eq!(dues("q1@0.1/s", 3), [0]);
        let closed = timetable(&"q1@max".parse().unwrap(), &plan(2), None).unwrap();
        assert!(!closed.pace.is_open_loop());
    }
}
