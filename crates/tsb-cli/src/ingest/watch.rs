//! Decides when listening ends, and shows progress until then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tsb_core::net::{Address, ListenerStats};
use tsb_core::report::Interval;
use tsb_core::resource::Usage;
use tsb_core::time::{Clock, SECOND_NS};
use tsb_run::spec::Typed;
use tsb_stores::Damage;

use crate::args::IngestArgs;
use crate::failure::Failure;
use tsb_run::damage::ReportedDamage;
use tsb_run::run::{IntervalRecorder, SampleCounters};
use tsb_run::units;

/// Interval between two checks whether listening is over, unless the thread is unparked.
const TICK_NS: u64 = SECOND_NS / 5;

/// Length of a reporting interval.
const INTERVAL_NS: u64 = SECOND_NS;

/// Interval between two checks for damage: some stores scan their files for it.
const DAMAGE_NS: u64 = 60 * SECOND_NS;

/// When listening ends, and whether progress is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchOptions {
    duration_ns: Option<u64>,
    once: bool,
    quiet: bool,
}

impl WatchOptions {
    /// From the command line.
    pub(super) const fn of(args: &IngestArgs, duration_ns: Option<u64>) -> Self {
        Self {
            duration_ns,
            once: args.once,
            quiet: args.output.quiet,
        }
    }
}

/// The source of the progress figures.
pub(super) trait ProgressSource {
    /// Counters of each listener.
    fn listeners(&self) -> Vec<ListenerStats>;
    /// Samples accepted so far.
    fn accepted(&self) -> u64;
    /// Further text for the progress line.
    fn detail(&self) -> String;
    /// Damage that the store has found so far.
    fn damage(&self) -> Vec<Damage>;
    /// Whether the store has failed, so that listening should end.
    fn has_failed(&self) -> bool {
        false
    }
}

/// The reporting intervals of the listeners. They outlive the thread that serves.
pub(super) struct IngestIntervals(Mutex<Option<IntervalRecorder>>);

impl IngestIntervals {
    /// Intervals from `started` on.
    pub(super) fn begin(started: u64) -> Self {
        Self(Mutex::new(Some(IntervalRecorder::new(started, INTERVAL_NS, &[]))))
    }

    /// Ends the current interval if its time is over.
    fn cut(&self, now: u64, source: &impl ProgressSource) {
        let mut intervals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(intervals) = intervals.as_mut().filter(|intervals| now >= intervals.end_ns()) {
            let accepted = source.accepted();
            let interval = intervals.cut(now, SampleCounters { sent: 0, accepted });
            intervals.push(now, interval);
        }
    }

    /// All intervals and the resources of tsb; `accepted` is the total. Empty on a second call.
    pub(super) fn end(&self, now: u64, accepted: u64) -> (Vec<Interval>, Vec<Usage>) {
        let intervals = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        intervals.map_or_else(Default::default, |mut intervals| {
            let rest = intervals.cut(now, SampleCounters { sent: 0, accepted });
            intervals.finish(now, rest)
        })
    }
}

/// Shows progress until `stop` is set, `duration_ns` is over, the store has failed, or with
/// `--once` the last connection has closed. Unpark the thread after setting `stop`.
pub(super) fn watch(
    source: &impl ProgressSource,
    options: &WatchOptions,
    clock: &dyn Clock,
    stop: &AtomicBool,
    told: &mut ReportedDamage,
    intervals: &IngestIntervals,
) {
    let duration_ns = options.duration_ns;
    let started = clock.now();
    let (mut shown, mut asked, mut before) = (started, started, 0);
    while !stop.load(Ordering::SeqCst) && !source.has_failed() {
        let now = clock.now();
        intervals.cut(now, source);
        let stats = source.listeners();
        let sum = |count: fn(&ListenerStats) -> u64| stats.iter().map(count).sum::<u64>();
        let open = sum(|stats| stats.open_connections);
        let was_once = options.once && open == 0 && sum(|stats| stats.connections) > 0;
        if was_once || duration_ns.is_some_and(|duration| now - started >= duration) {
            return;
        }
        if !options.quiet && now - shown >= SECOND_NS {
            let accepted = source.accepted();
            let rate = (accepted - before) as f64 * SECOND_NS as f64 / (now - shown) as f64;
            crate::say::line(format_args!(
                "{:>6.0} s  {}/s accepted, {} in all, {}, {open} connections",
                (now - started) as f64 / SECOND_NS as f64,
                units::scaled(rate),
                units::count(accepted),
                source.detail(),
            ));
            (shown, before) = (now, accepted);
        }
        if now - asked >= DAMAGE_NS {
            told.tell_list(source.damage(), crate::say::warning);
            asked = now;
        }
        let left_ns = duration_ns.map_or(u64::MAX, |duration| (started + duration).saturating_sub(now));
        std::thread::park_timeout(Duration::from_nanos(TICK_NS.min(left_ns)));
    }
}

/// Refuses an address that other machines can reach, unless `--allow-remote` was given.
pub(super) fn refuse_remote(url: &Typed, address: &Address, allow_remote: bool) -> Result<(), Failure> {
    if address.is_local() || allow_remote {
        return Ok(());
    }
    Err(Failure::usage(format!("cannot listen on {url}"))
        .because_of("other machines could reach it, and there is no authentication")
        .hint("give --allow-remote if that is meant"))
}

#[cfg(test)]
mod tests {
    use tsb_core::time::MonotonicClock;

    use super::*;

    struct NoProgress;

    impl ProgressSource for NoProgress {
        fn listeners(&self) -> Vec<ListenerStats> {
            Vec::new()
        }
        fn accepted(&self) -> u64 {
            0
        }
        fn detail(&self) -> String {
            String::new()
        }
        fn damage(&self) -> Vec<Damage> {
            Vec::new()
        }
    }

    fn watch_until(duration_ns: Option<u64>, stop: &AtomicBool) {
        let options = WatchOptions {
            duration_ns,
            once: false,
            quiet: true,
        };
        let (clock, mut told) = (MonotonicClock::new(), ReportedDamage::default());
        let intervals = IngestIntervals::begin(clock.now());
        watch(&NoProgress, &options, &clock, stop, &mut told, &intervals);
    }

    #[test]
    fn a_stop_ends_the_wait_at_once() {
        // The median of some: the machine may be busy.
        let mut taken: Vec<u64> = (0..9)
            .map(|_| {
                let (clock, stop) = (MonotonicClock::new(), AtomicBool::new(false));
                std::thread::scope(|threads| {
                    let watching = threads.spawn(|| watch_until(None, &stop));
                    clock.wait_until(TICK_NS / 10);
                    let asked = clock.now();
                    stop.store(true, Ordering::SeqCst);
                    watching.thread().unpark();
                    assert!(watching.join().is_ok());
                    clock.now() - asked
                })
            })
            .collect();
        taken.sort_unstable();
        assert!(taken[4] < TICK_NS / 4, "{taken:?}");
    }

    #[test]
    fn a_duration_ends_when_it_is_over() {
        let (clock, stop) = (MonotonicClock::new(), AtomicBool::new(false));
        watch_until(Some(TICK_NS / 2), &stop);
        assert!(clock.now() >= TICK_NS / 2);
    }
}
