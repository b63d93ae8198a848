//! Measures disturbances of the machine: a thread that only wakes up every 10 ms and notes how
//! late it is, and reads the kernel's counters four times per second. It also notes what else
//! happens ([`super::events`]). It calls no store, so no store can delay it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tsb_core::breakdown::EventLog;
use tsb_core::resource::{MeasuredProcesses, Noise, NoiseMeter, own_thread_waited_ns};
use tsb_core::time::{Clock, SECOND_NS, thread_cpu_ns};
use tsb_stores::Activity;

use super::events::{EventMonitor, Readings};

/// Interval between two wake-ups.
const PULSE_NS: u64 = SECOND_NS / 100;
/// Interval between two readings of the kernel's counters.
const READ_NS: u64 = SECOND_NS / 4;

/// What the thread has found out.
#[derive(Debug)]
pub(super) struct Watched {
    /// Disturbances of the machine.
    pub(super) noise: Noise,
    /// What else happened.
    pub(super) events: EventLog,
    /// CPU time of the thread, in nanoseconds.
    pub(super) cpu_ns: u64,
}

/// Measures disturbances until the run ends.
#[derive(Debug)]
pub(super) struct NoiseMonitor {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<Watched>>,
}

/// The stop flag, and a condition variable that signals it.
#[derive(Debug, Default)]
struct Stop {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    fn set(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Sleeps until `due_ns` of `clock` or until the stop flag is set. Returns the flag.
    fn sleep_until(&self, due_ns: u64, clock: &dyn Clock) -> bool {
        let mut is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_over {
            let left_ns = due_ns.saturating_sub(clock.now());
            if left_ns == 0 {
                break;
            }
            let woken = self.changed.wait_timeout(is_over, Duration::from_nanos(left_ns));
            is_over = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        *is_over
    }
}

/// The wake-ups of the thread. Each is due a fixed time after the last one, not after the readings that
/// follow it: a process that is stopped during the readings is late as well.
#[derive(Debug)]
struct Pulse {
    woke_ns: u64,
    /// Time that the thread had waited for a CPU by then.
    waited_ns: u64,
}

impl Pulse {
    /// The thread runs at `now_ns`.
    fn since(now_ns: u64) -> Self {
        Self {
            woke_ns: now_ns,
            waited_ns: own_thread_waited_ns(),
        }
    }

    /// When the next wake-up is due.
    const fn due_ns(&self) -> u64 {
        self.woke_ns + PULSE_NS
    }

    /// The thread woke up at `now_ns`. Returns how long it has waited for a CPU since the last wake-up,
    /// in nanoseconds.
    fn woke(&mut self, now_ns: u64) -> u64 {
        let before = std::mem::replace(self, Self::since(now_ns));
        self.waited_ns.saturating_sub(before.waited_ns)
    }
}

impl NoiseMonitor {
    /// Measures from `start_ns` of `clock` on; `targets` are the processes that the run drives, and
    /// `activities` what its store does.
    pub(super) fn start(clock: Arc<dyn Clock>, start_ns: u64, targets: &[u32], activities: Vec<Activity>) -> Self {
        let stop = Arc::new(Stop::default());
        let parties = MeasuredProcesses::with_targets(targets);
        let watching = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("tsb-sentry".to_owned());
        let thread = thread.spawn(move || {
            let (noise, events) = watch(&*clock, start_ns, &parties, activities, &watching);
            Watched {
                noise,
                events,
                cpu_ns: thread_cpu_ns(),
            }
        });
        Self {
            stop,
            thread: thread.ok(),
        }
    }

    /// What was found out; `None` if the thread could not be started or panicked.
    pub(super) fn finish(mut self) -> Option<Watched> {
        self.stop.set();
        self.thread.take()?.join().ok()
    }
}

impl Drop for NoiseMonitor {
    /// Stops the thread without waiting for it.
    fn drop(&mut self) {
        self.stop.set();
    }
}

fn watch(
    clock: &dyn Clock,
    start_ns: u64,
    parties: &MeasuredProcesses,
    activities: Vec<Activity>,
    stop: &Stop,
) -> (Noise, EventLog) {
    let mut is_over = stop.sleep_until(start_ns, clock);
    // A process that is stopped before the start and goes on after it stood still since the start.
    let mut pulse = Pulse::since(start_ns.min(clock.now()));
    let mut disturbance = NoiseMeter::since(parties.read(pulse.woke_ns));
    let mut read_ns = pulse.woke_ns + READ_NS;
    let mut events = EventMonitor::since(pulse.woke_ns, activities, Readings::read());
    while !is_over {
        let due_ns = pulse.due_ns();
        is_over = stop.sleep_until(due_ns, clock);
        let now = clock.now();
        let waited_ns = pulse.woke(now);
        disturbance.woke(now.saturating_sub(due_ns), waited_ns);
        events.woke(due_ns, now, waited_ns);
        events.look(now, Readings::read());
        if now >= read_ns || is_over {
            disturbance.add(parties.read(now));
            read_ns = now + READ_NS;
        }
    }
    (disturbance.noise(), events.finish())
}

#[cfg(test)]
mod tests {
    use tsb_core::time::{ManualClock, MonotonicClock};

    use super::*;

    #[test]
    fn a_sentry_that_is_told_to_stop_does_so_at_once() {
        let noise_monitor = NoiseMonitor::start(Arc::new(MonotonicClock::new()), u64::MAX, &[], Vec::new());
        let watched = noise_monitor.finish().unwrap();
        assert_eq!(watched.noise.late_max_ms, 0.0);
    }

    #[test]
    fn a_process_that_was_stopped_before_the_start_stood_still_since_then() {
        let clock = MonotonicClock::new();
        clock.wait_until(SECOND_NS / 10);
        let noise_monitor = NoiseMonitor::start(Arc::new(clock), SECOND_NS / 50, &[], Vec::new());
        let clock = MonotonicClock::new();
        clock.wait_until(SECOND_NS / 20);
        let noise = noise_monitor.finish().unwrap().noise;
        assert!(noise.late_max_ms >= 70.0, "{noise:?}");
    }

    #[test]
    fn a_process_that_stood_still_is_seen_by_the_clock() {
        // Virtual time that jumps by three seconds while the monitor sleeps, and by four while it
        // reads counters: what SIGSTOP does.
        let (clock, stop) = (ManualClock::new(), Stop::default());
        let parties = MeasuredProcesses::with_targets(&[]);
        let mut disturbance = NoiseMeter::since(parties.read(clock.now()));
        let mut pulse = Pulse::since(clock.now());
        for stopped_ns in [3 * SECOND_NS, 4 * SECOND_NS] {
            let due_ns = pulse.due_ns();
            clock.advance(stopped_ns);
            assert!(!stop.sleep_until(due_ns, &clock));
            pulse.woke(clock.now());
            disturbance.woke(clock.now() - due_ns, 0);
        }
        clock.advance(3 * SECOND_NS);
        disturbance.add(parties.read(clock.now()));
        let noise = disturbance.noise();
        assert!((noise.late_share - 0.698).abs() < 1e-9, "{noise:?}");
        assert!((noise.late_max_ms - 3_990.0).abs() < 1e-9, "{noise:?}");
    }
}
