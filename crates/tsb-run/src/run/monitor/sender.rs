//! Monitors a run without a store of its own (`tsb emit`): progress and reporting intervals.

use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::emit::Live;
use tsb_core::report::Interval;
use tsb_core::resource::Usage;
use tsb_core::time::SECOND_NS;

use super::SLICE_NS;
use super::asked::Asked;
use crate::beside::{beside, resumed};
use crate::controls::Controls;
use crate::observer::{Phase, Progress};
use crate::run::Watch;
use crate::run::interval_recorder::{IntervalRecorder, SampleCounters};
use crate::run::run_context::RunContext;
use crate::units;

/// The observations of a sender.
#[derive(Debug, Default)]
pub struct Observations {
    /// The reporting intervals; latencies are filled in from the histograms later.
    pub intervals: Vec<Interval>,
    /// Resources that tsb itself used.
    pub resources: Vec<Usage>,
}

/// Calls `run`, which sends from `start_ns` of the clock on, and reports its progress meanwhile.
pub fn progress<T: Send>(
    context: &RunContext,
    (live, watch): (&Live, &Watch),
    controls: &Controls,
    start_ns: u64,
    run: impl FnOnce() -> T,
) -> (T, Observations) {
    let begin = || SenderMonitor {
        context,
        live,
        requests: watch,
        controls,
        start_ns,
        intervals: IntervalRecorder::new(start_ns, context.plan.report_interval_ns, &[]),
        asked: Asked::new(context),
        shown: (context.clock.now(), 0),
    };
    let (result, observed) = beside(|is_over| begin().watch(is_over), run);
    // A panic of the monitor loses the intervals, not the run.
    (resumed(result), observed.unwrap_or_default())
}

/// The state of the monitor thread.
struct SenderMonitor<'a> {
    context: &'a RunContext,
    live: &'a Live,
    /// The requests in flight, where there are any.
    requests: &'a Watch,
    controls: &'a Controls,
    start_ns: u64,
    intervals: IntervalRecorder,
    // `None` for a closed loop, which has no due times.
    asked: Option<Asked>,
    // When progress was last shown, and the samples sent by then.
    shown: (u64, u64),
}

impl SenderMonitor<'_> {
    fn watch(mut self, is_over: &AtomicBool) -> Observations {
        let clock = &self.context.clock;
        while !is_over.load(Ordering::Acquire) {
            clock.wait_until((clock.now() + SLICE_NS).min(self.intervals.end_ns()));
            let now = clock.now();
            if now >= self.intervals.end_ns() {
                let interval = self.cut(now);
                self.intervals.push(now, interval);
            }
            self.show(now);
        }
        let now = clock.now();
        let rest = self.cut(now);
        let (intervals, resources) = self.intervals.finish(now, rest);
        Observations { intervals, resources }
    }

    fn cut(&mut self, now: u64) -> Interval {
        let totals = self.requests.completed(self.live.totals());
        self.requests.cut(now);
        let counted = SampleCounters {
            sent: totals.samples,
            accepted: totals.accepted,
        };
        let mut interval = self.intervals.cut(now, counted);
        let asked = self.asked.as_mut();
        interval.asked = asked.map(|asked| asked.since(self.context, interval.end_ns));
        interval
    }

    fn show(&mut self, now: u64) {
        let totals = self.requests.completed(self.live.totals());
        self.controls.enter(Phase::Running);
        self.controls.observer.progress(&Progress {
            elapsed_ns: now.saturating_sub(self.start_ns),
            totals,
            ..Progress::default()
        });
        let (shown, before) = self.shown;
        if now - shown >= SECOND_NS {
            let rate = totals.samples.saturating_sub(before) as f64 * 1e9 / (now - shown) as f64;
            self.controls.note(&format!(
                "sent {}/s, {} in all, lag {}",
                units::scaled(rate),
                units::count(totals.samples),
                units::nanos(totals.lag_ns)
            ));
            self.shown = (now, totals.samples);
        }
    }
}
