//! Watches a run from beside: progress, staleness of every series, resources.
//!
//! One thread, which wakes ten times a second; nothing here is on the emitting path.

use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::emit::Live;
use tsb_core::report::Interval;
use tsb_core::resource::{Noise, Process, Usage};
use tsb_core::staleness::Staleness;
use tsb_core::time::{SECOND_NS, process_cpu_ns};
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::Store;

use super::engine::Hooks;
use super::path::{Watch, accepted};
use super::sink::SinkTotals;
use super::stage::Stage;
use crate::units;

/// From one look to the next.
const LOOK_NS: u64 = SECOND_NS / 10;
/// How long a sleep may keep the end of a run waiting.
const SLICE_NS: u64 = SECOND_NS / 100;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// The run slice by slice; latencies are filled in from the histograms later.
    pub intervals: Vec<Interval>,
    /// Age of the newest visible sample, over series and moments.
    pub staleness: Staleness,
    /// Processes watched, tsb itself first.
    pub resources: Vec<Usage>,
    /// CPU of the ingest threads, in nanoseconds.
    pub ingest_cpu_ns: u64,
    /// Share of the time that others took the CPU: stolen, or waited for while our own
    /// threads left cores free. in [0, 1]
    pub noise_share: Option<f64>,
}

/// What a monitor looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    /// The run.
    pub stage: &'a Stage,
    /// Its store.
    pub store: &'a dyn Store,
    /// When it starts, on the clock.
    pub start_ns: u64,
    /// The timestamp of that moment.
    pub base: Timestamp,
    /// The emitter's counters.
    pub live: &'a Live,
    /// The sinks' counters.
    pub totals: &'a SinkTotals,
    /// The listener, where there is one.
    pub watch: &'a Watch,
    /// Where progress goes.
    pub hooks: &'a Hooks,
}

/// Watches one run.
#[derive(Debug)]
pub(super) struct Monitor<'a> {
    subject: Subject<'a>,
    is_over: AtomicBool,
}

/// The state of the watching thread.
struct Notes {
    observed: Observed,
    processes: Vec<Process>,
    noise: Noise,
    series: Vec<SeriesId>,
    newest: Vec<Option<Timestamp>>,
    // At the end of the slice before.
    sent: u64,
    accepted: u64,
    cpu_ns: u64,
    shown_ns: u64,
    stalest_ns: Option<u64>,
    began_ns: u64,
    began_cpu_ns: u64,
}

impl<'a> Monitor<'a> {
    /// A monitor that has not begun.
    pub(super) fn new(subject: Subject<'a>) -> Self {
        Self {
            subject,
            is_over: AtomicBool::new(false),
        }
    }

    /// Nothing more will happen: [`Self::watch`] returns soon.
    pub(super) fn finish(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Watches until told that it is over.
    pub(super) fn watch(&self) -> Observed {
        let subject = &self.subject;
        let clock = &subject.stage.clock;
        let mut notes = self.begin();
        let slice_ns = subject.stage.plan.report_interval_ns;
        let mut slice_end_ns = subject.start_ns + slice_ns;
        let mut look_ns = subject.start_ns + LOOK_NS;
        loop {
            while clock.now() < look_ns.min(slice_end_ns) && !self.is_over.load(Ordering::Acquire) {
                clock.wait_until((clock.now() + SLICE_NS).min(look_ns).min(slice_end_ns));
            }
            if self.is_over.load(Ordering::Acquire) {
                break;
            }
            let now = clock.now();
            if now >= look_ns {
                self.look(&mut notes);
                look_ns += LOOK_NS * (1 + (now - look_ns) / LOOK_NS);
            }
            if now >= slice_end_ns {
                self.cut(&mut notes, now);
                slice_end_ns += slice_ns * (1 + (now - slice_end_ns) / slice_ns);
            }
        }
        self.end(notes)
    }

    fn begin(&self) -> Notes {
        let subject = &self.subject;
        let series = subject.stage.workload.catalog().len();
        let watched = subject
            .stage
            .plan
            .watch_pids
            .iter()
            .filter_map(|&pid| Process::watch(pid));
        Notes {
            observed: Observed::default(),
            processes: Process::own().into_iter().chain(watched).collect(),
            noise: Noise::read(),
            series: (0..series as u32).map(SeriesId).collect(),
            newest: vec![None; series],
            sent: 0,
            accepted: 0,
            cpu_ns: process_cpu_ns(),
            shown_ns: subject.start_ns,
            stalest_ns: None,
            began_ns: subject.stage.clock.now(),
            began_cpu_ns: process_cpu_ns(),
        }
    }

    /// Looks at the staleness of every series that is alive. A schedule with a shape of its
    /// own has no fleet time to compare with.
    fn look(&self, notes: &mut Notes) {
        let subject = &self.subject;
        let Some(speed) = subject.stage.speed() else { return };
        if subject.store.newest(&notes.series, &mut notes.newest).is_err() {
            return;
        }
        let elapsed = subject.stage.clock.now().saturating_sub(subject.start_ns);
        let now = subject.base + speed.fleet_ns(elapsed) as i64;
        let workload = &subject.stage.workload;
        for (index, group) in workload.groups().iter().enumerate() {
            let tick = (now - workload.timestamp(index, 0, subject.base)).max(0) as u64 / group.interval_ns;
            if !group.ticks.contains(&tick) {
                continue;
            }
            let series = group.first.index()..group.first.index() + group.len as usize;
            let oldest = notes
                .observed
                .staleness
                .observe(now, group.first, &notes.newest[series], speed.as_f64());
            notes.stalest_ns = notes.stalest_ns.max(oldest);
        }
    }

    /// Ends a slice.
    fn cut(&self, notes: &mut Notes, now: u64) {
        let subject = &self.subject;
        let totals = subject.live.totals();
        let taken = accepted(subject.live, subject.totals, subject.stage.plan.transport);
        let cpu_ns = process_cpu_ns();
        let response = subject.watch.cut(now);
        let slice = Interval {
            end_ns: now - subject.start_ns,
            sent: totals.samples - notes.sent,
            accepted: taken - notes.accepted,
            response_p50_ns: response.as_ref().and_then(|response| response.supported_quantile(0.5)),
            response_p99_ns: response.as_ref().and_then(|response| response.supported_quantile(0.99)),
            response_max_ns: response.as_ref().and_then(tsb_core::latency::Histogram::max),
            lag_max_ns: None,
            staleness_max_ms: notes.stalest_ns.take().map(|ns| ns as f64 / 1e6),
            cpu_ns: cpu_ns - notes.cpu_ns,
            rss_bytes: notes.processes.first().and_then(Process::rss_bytes).unwrap_or(0),
        };
        (notes.sent, notes.accepted, notes.cpu_ns) = (totals.samples, taken, cpu_ns);
        notes.observed.intervals.push(slice);
        if now - notes.shown_ns >= SECOND_NS * 9 / 10 {
            let length = (now - notes.shown_ns) as f64 / 1e9;
            notes.shown_ns = now;
            let shown = response
                .as_ref()
                .and_then(|response| response.quantile(0.99))
                .unwrap_or(totals.interval_p99_ns);
            subject.hooks.say(|| line(&slice, length, shown, totals.lag_ns));
        }
    }

    fn end(&self, mut notes: Notes) -> Observed {
        notes.observed.ingest_cpu_ns = self.subject.watch.ingest_cpu_ns();
        notes.observed.resources = notes.processes.iter().filter_map(Process::usage).collect();
        notes.observed.noise_share = noise_share(&notes, self.subject.stage.clock.now());
        notes.observed
    }
}

/// Waiting for a CPU is noise only where tsb itself used less than half of them: its own
/// threads wait for each other too.
fn noise_share(notes: &Notes, now: u64) -> Option<f64> {
    let noise = Noise::read();
    let stolen = noise.stolen_since(&notes.noise);
    let elapsed = now.saturating_sub(notes.began_ns).max(1) as f64;
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let own = (process_cpu_ns() - notes.began_cpu_ns) as f64 / elapsed / cores;
    let waited = noise.waited_us_since(&notes.noise).map(|us| us as f64 * 1e3 / elapsed);
    match waited.filter(|_| own < 0.5) {
        Some(waited) => Some(stolen.unwrap_or(0.0).max(waited)),
        None => stolen,
    }
}

/// One progress line.
fn line(slice: &Interval, length: f64, response_p99_ns: u64, lag_ns: u64) -> String {
    let rate = |samples: u64| units::scaled(samples as f64 / length);
    let staleness = slice
        .staleness_max_ms
        .map_or(String::new(), |ms| format!(", stalest {ms:.0} ms"));
    format!(
        "{:>6.0} s  sent {}/s, accepted {}/s, response p99 {}, lag {}{staleness}",
        slice.end_ns as f64 / 1e9,
        rate(slice.sent),
        rate(slice.accepted),
        units::nanos(response_p99_ns),
        units::nanos(lag_ns),
    )
}

/// Shows progress of a run that has no store of its own to watch.
pub fn progress<T: Send>(stage: &Stage, live: &Live, hooks: &Hooks, run: impl FnOnce() -> T + Send) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let clock = &stage.clock;
            let (mut shown, mut before) = (clock.now(), 0);
            while !is_over.load(Ordering::Acquire) {
                clock.wait_until(clock.now() + SLICE_NS);
                let now = clock.now();
                if now - shown >= SECOND_NS {
                    let totals = live.totals();
                    let rate = (totals.samples - before) as f64 * 1e9 / (now - shown) as f64;
                    hooks.say(|| {
                        format!(
                            "sent {}/s, {} in all, lag {}",
                            units::scaled(rate),
                            units::count(totals.samples),
                            units::nanos(totals.lag_ns)
                        )
                    });
                    (shown, before) = (now, totals.samples);
                }
            }
        });
        let result = run();
        is_over.store(true, Ordering::Release);
        result
    })
}
