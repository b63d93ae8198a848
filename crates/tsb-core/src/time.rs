//! Time: the timestamp of a sample, and the only clock.
//!
//! No measurement takes its time from elsewhere, so each can run in virtual time. (`tsb-rrd` reads the
//! kernel's clock of files, to stamp files.)

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// When a sample was taken: nanoseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The earliest representable timestamp.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest representable timestamp.
    pub const MAX: Self = Self(i64::MAX);

    /// Whole seconds since the epoch; saturates at the ends of the range.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(SECOND_NS as i64))
    }

    /// Milliseconds since the epoch; saturates at the ends of the range.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(SECOND_NS as i64)
    }
}

impl Add<i64> for Timestamp {
    type Output = Self;
    /// The timestamp `nanos` later; saturates.
    fn add(self, nanos: i64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub for Timestamp {
    type Output = i64;
    /// Nanoseconds from `other` to `self`; saturates.
    fn sub(self, other: Self) -> i64 {
        self.0.saturating_sub(other.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.rem_euclid(SECOND_NS as i64);
        write!(f, "{}.{nanos:09}", self.as_secs())
    }
}

/// A clock: nanoseconds since an arbitrary start, which never run backwards.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Now, in nanoseconds since the clock's own start.
    fn now(&self) -> u64;

    /// The time of day, for the timestamps of samples: it may step forward and back.
    fn wall(&self) -> Timestamp;

    /// Returns at `due` or as soon after as possible; at once if `due` has passed.
    fn wait_until(&self, due: u64);

    /// CPU time that the calling thread has used, in nanoseconds.
    fn thread_cpu_ns(&self) -> u64 {
        thread_cpu_ns()
    }
}

/// The machine's clock: sleeps until shortly before `due`, then spins.
///
/// The operating system wakes a sleeping thread 50 microseconds late or more (measured: 83 us at
/// the median with the default timer slack), so the thread spins for the last part.
#[derive(Debug)]
pub struct MonotonicClock {
    /// When it was started, in nanoseconds of the operating system's clock.
    start_ns: u64,
}

/// How long before a due time the clock stops sleeping and spins. In measurements a longer time
/// gained nothing, and a shorter one increased the median.
pub(crate) const SPIN_NS: u64 = 100_000;

impl MonotonicClock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Self {
            start_ns: read(ClockId::Monotonic),
        }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    /// Reads the operating system's clock: to subtract two [`std::time::Instant`] takes a quarter as
    /// long again.
    #[inline]
    fn now(&self) -> u64 {
        read(ClockId::Monotonic).saturating_sub(self.start_ns)
    }

    /// Reads the operating system's clock at each call, so it follows steps of that clock. A
    /// caller that needs even progress adds [`Clock::now`] to a time that it read once.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn wall(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(since_epoch.as_nanos() as i64)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn wait_until(&self, due: u64) {
        loop {
            let now = self.now();
            if now >= due {
                return;
            }
            let left = due - now;
            if left > SPIN_NS {
                std::thread::sleep(std::time::Duration::from_nanos(left - SPIN_NS));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// A clock that moves only when it is told to: virtual time for tests.
#[derive(Debug, Default)]
pub struct ManualClock {
    now: AtomicU64,
    cpu: AtomicU64,
}

impl ManualClock {
    /// A clock at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward by `nanos`.
    pub fn advance(&self, nanos: u64) {
        self.now.fetch_add(nanos, Ordering::SeqCst);
    }

    /// Moves the clock forward by `nanos`, and the CPU time of the threads as well.
    pub fn work(&self, nanos: u64) {
        self.cpu.fetch_add(nanos, Ordering::SeqCst);
        self.advance(nanos);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    fn wall(&self) -> Timestamp {
        Timestamp(self.now() as i64)
    }

    fn wait_until(&self, due: u64) {
        self.now.fetch_max(due, Ordering::SeqCst);
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.cpu.load(Ordering::SeqCst)
    }
}

/// Requests the most precise wake-ups for the calling thread: a timer slack of 1 ns instead of 50
/// us. Has no effect where the system does not support it.
pub fn sharpen_timers() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// CPU time of the calling thread, in nanoseconds. A call costs about 0.4 us: use it around whole
/// phases, not around operations.
pub fn thread_cpu_ns() -> u64 {
    read(ClockId::ThreadCPUTime)
}

/// CPU time of the whole process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    read(ClockId::ProcessCPUTime)
}

/// A clock of the operating system, in nanoseconds.
#[inline]
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_prints_seconds_and_nanoseconds() {
        assert_eq!(Timestamp(1_404_770_400_000_000_001).to_string(), "1404770400.000000001");
        assert_eq!(Timestamp(-1).as_secs(), -1);
        assert_eq!(Timestamp::MAX + 1, Timestamp::MAX);
    }

    #[test]
    fn waiting_reaches_the_due_time_and_never_passes_it_in_virtual_time() {
        let clock = ManualClock::new();
        clock.wait_until(500);
        assert_eq!(clock.now(), 500);
        clock.wait_until(100);
        assert_eq!(clock.now(), 500);
        let real = MonotonicClock::new();
        let due = real.now() + 200_000;
        real.wait_until(due);
        assert!(real.now() >= due);
    }
}
