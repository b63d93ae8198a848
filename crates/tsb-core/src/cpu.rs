//! CPU time of one thread, divided by kinds of work so that the parts add up to the thread's
//! total.
//!
//! Reading a thread's CPU clock is a system call that costs as much as handling dozens of samples,
//! so it is read about 500 times per second and not around operations. Between two readings, the
//! run's clock, which costs a twentieth and is read anyway, divides the time among the kinds of
//! work. The time between two readings of the CPU clock is a *window*. The total of a window is
//! exact. The share of each kind is known only by the run's clock, which also counts time in which
//! the thread waited or was interrupted. So one kind in each window is *suspect*: either the
//! longest piece of work, after which the window is closed at once, or the kind that may block.
//! The other kinds count as the run's clock measured them, and the suspect gets the rest.
//!
//! Nothing is sampled or extrapolated, so a rare and expensive piece of work counts once, wherever
//! it falls.

use crate::time::Clock;

/// A piece of work longer than this closes its window: the reading costs less than 1 % of it.
pub(crate) const LONG_NS: u64 = 150_000;
/// A window that has been open for longer is closed.
const WINDOW_NS: u64 = 2_000_000;
/// A piece shorter than this does not justify closing a window.
const TINY_NS: u64 = 2_000;

/// The cost of reading the clocks on this machine, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockCosts {
    /// One reading of the run's clock.
    pub(crate) now_ns: u64,
    /// One reading of the thread's CPU clock.
    pub(crate) cpu_ns: u64,
}

impl ClockCosts {
    /// Measures both: the minimum over several rounds of many readings.
    pub(crate) fn measure(clock: &dyn Clock) -> Self {
        const ROUNDS: usize = 16;
        const NOWS: u64 = 32;
        let now = || {
            let start = clock.now();
            let last = (0..NOWS).fold(start, |_, _| clock.now());
            (last - start) / NOWS
        };
        let cpu = || {
            let before = clock.thread_cpu_ns();
            clock.thread_cpu_ns().saturating_sub(before)
        };
        Self {
            now_ns: (0..ROUNDS).map(|_| now()).min().unwrap_or(0),
            cpu_ns: (0..ROUNDS).map(|_| cpu()).min().unwrap_or(0),
        }
    }
}

/// A thread's CPU time by kind of work, in which kinds are indexes.
#[derive(Debug)]
pub(crate) struct Split<const KINDS: usize> {
    costs: ClockCosts,
    settled: [u64; KINDS],
    measuring_ns: u64,
    readings: u64,
    /// Time by kind in the open window, by the run's clock.
    open: [u64; KINDS],
    opened_ns: u64,
    since_ns: u64,
    /// The last reading of the CPU clock.
    mark_ns: u64,
}

impl<const KINDS: usize> Split<KINDS> {
    /// A split of the calling thread's time, from the thread's start.
    pub(crate) fn new(clock: &dyn Clock) -> Self {
        let now = clock.now();
        Self {
            costs: ClockCosts::measure(clock),
            settled: [0; KINDS],
            measuring_ns: 0,
            readings: 0,
            open: [0; KINDS],
            opened_ns: now,
            since_ns: now,
            mark_ns: 0,
        }
    }

    /// The cost of reading the clocks.
    pub(crate) fn costs(&self) -> ClockCosts {
        self.costs
    }

    /// Attributes the time since the last call, up to `now_ns`, to `kind`. Returns that time.
    #[inline]
    pub(crate) fn lap(&mut self, kind: usize, now_ns: u64) -> u64 {
        let length = now_ns.saturating_sub(self.since_ns);
        self.open[kind] += length;
        self.since_ns = now_ns;
        length
    }

    /// Like [`Split::lap`], and closes the window if that is due: after a long piece, which is
    /// then the suspect, or because the window has been open for long, in which case all pieces of
    /// `kind` are suspect.
    #[inline]
    pub(crate) fn lap_and_close(&mut self, kind: usize, now_ns: u64, clock: &dyn Clock) {
        let length = self.lap(kind, now_ns);
        if length >= LONG_NS {
            self.close(kind, length, clock);
        } else if now_ns.saturating_sub(self.opened_ns) >= WINDOW_NS {
            self.close(kind, self.open[kind], clock);
        }
    }

    /// Closes the window unless it is empty; all pieces of `suspect` are suspect.
    pub(crate) fn settle(&mut self, suspect: usize, clock: &dyn Clock) {
        if self.since_ns.saturating_sub(self.opened_ns) >= TINY_NS {
            self.close(suspect, self.open[suspect], clock);
        }
    }

    /// Closes the window. Up to `suspect_ns` of the time of `suspect` may have passed without
    /// using the CPU.
    #[cold]
    #[inline(never)]
    pub(crate) fn close(&mut self, suspect: usize, suspect_ns: u64, clock: &dyn Clock) {
        self.open[suspect] -= suspect_ns.min(self.open[suspect]);
        self.end(suspect, suspect_ns, clock);
    }

    /// Closes the window and attributes all CPU time beyond its pieces to `kind`. For long work of
    /// one known kind, such as a sleep.
    pub(crate) fn assign(&mut self, kind: usize, clock: &dyn Clock) {
        self.end(kind, u64::MAX, clock);
    }

    /// Closes the window and returns its CPU time, for the caller to attribute.
    #[cfg(any(feature = "net", test))]
    pub(crate) fn take(&mut self, clock: &dyn Clock) -> u64 {
        self.open = [0; KINDS];
        self.read(clock)
    }

    /// CPU time since the last reading, without the cost of reading.
    fn read(&mut self, clock: &dyn Clock) -> u64 {
        let mark_ns = clock.thread_cpu_ns();
        let used_ns = mark_ns.saturating_sub(std::mem::replace(&mut self.mark_ns, mark_ns));
        let cost_ns = self.costs.cpu_ns.min(used_ns);
        self.readings += 1;
        self.measuring_ns += cost_ns;
        self.since_ns = clock.now();
        self.opened_ns = self.since_ns;
        used_ns - cost_ns
    }

    fn end(&mut self, suspect: usize, suspect_ns: u64, clock: &dyn Clock) {
        let used_ns = self.read(clock);
        let open = std::mem::replace(&mut self.open, [0; KINDS]);
        let trusted_ns: u64 = open.iter().sum();
        let mut left_ns = used_ns;
        for (settled, open) in self.settled.iter_mut().zip(open) {
            // There were interruptions too short to notice: scale the pieces to the CPU time used.
            let part_ns = if trusted_ns > used_ns {
                (u128::from(open) * u128::from(used_ns) / u128::from(trusted_ns)) as u64
            } else {
                open
            };
            *settled += part_ns;
            left_ns -= part_ns;
        }
        let rest_ns = left_ns.min(suspect_ns);
        self.settled[suspect] += rest_ns;
        // More CPU time than wall time passed: clock readings cost more than was calibrated.
        self.measuring_ns += left_ns - rest_ns;
    }

    /// Moves up to `ns` from one kind to another.
    pub(crate) fn move_over(&mut self, from: usize, to: usize, ns: u64) {
        let ns = ns.min(self.settled[from]);
        self.settled[from] -= ns;
        self.settled[to] += ns;
    }

    /// CPU time by kind over all closed windows.
    pub(crate) fn settled(&self) -> [u64; KINDS] {
        self.settled
    }

    /// CPU time spent on reading the CPU clock.
    pub(crate) fn measuring_ns(&self) -> u64 {
        self.measuring_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ManualClock;

    const LIGHT: usize = 0;
    const HEAVY: usize = 1;

    fn split(clock: &ManualClock) -> Split<2> {
        Split::new(clock)
    }

    #[test]
    fn pieces_of_a_window_add_up_to_what_it_used() {
        let clock = ManualClock::new();
        let mut split = split(&clock);
        for _ in 0..10_000 {
            clock.work(700);
            split.lap_and_close(LIGHT, clock.now(), &clock);
            clock.work(300);
            split.lap_and_close(HEAVY, clock.now(), &clock);
        }
        split.close(HEAVY, u64::MAX, &clock);
        assert_eq!(split.settled(), [7_000_000, 3_000_000]);
        assert_eq!(split.measuring_ns(), 0);
        // 10 ms of windows that are 2 ms long.
        assert_eq!(split.readings, 5 + 1);
    }

    #[test]
    fn a_piece_that_blocks_counts_what_it_used_and_nothing_else_changes() {
        let clock = ManualClock::new();
        let mut split = split(&clock);
        for round in 0..1_000 {
            clock.work(400);
            split.lap_and_close(LIGHT, clock.now(), &clock);
            clock.work(100);
            if round % 100 == 7 {
                // A commit: 1 ms of work and 9 ms of waiting for a medium.
                clock.work(1_000_000);
                clock.advance(9_000_000);
            }
            split.lap_and_close(HEAVY, clock.now(), &clock);
        }
        split.close(HEAVY, u64::MAX, &clock);
        assert_eq!(split.settled(), [400_000, 100_000 + 10 * 1_000_000]);
    }

    #[test]
    fn an_interruption_is_nobodys_work() {
        let clock = ManualClock::new();
        let mut split = split(&clock);
        for round in 0..1_000 {
            clock.work(400);
            if round % 50 == 3 {
                clock.advance(3_000_000);
            }
            split.lap_and_close(LIGHT, clock.now(), &clock);
            clock.work(100);
            split.lap_and_close(HEAVY, clock.now(), &clock);
        }
        split.close(HEAVY, u64::MAX, &clock);
        assert_eq!(split.settled(), [400_000, 100_000]);
    }

    #[test]
    fn assigned_time_has_one_kind_and_the_total_is_kept() {
        let clock = ManualClock::new();
        let mut split = split(&clock);
        clock.work(5_000);
        split.assign(LIGHT, &clock);
        clock.work(10);
        split.lap(HEAVY, clock.now());
        clock.work(90);
        split.assign(LIGHT, &clock);
        clock.work(1_000);
        assert_eq!(split.take(&clock), 1_000);
        assert_eq!(split.settled(), [5_090, 10]);
        split.move_over(LIGHT, HEAVY, 90);
        split.move_over(HEAVY, LIGHT, 1_000_000);
        assert_eq!(split.settled(), [5_100, 0]);
    }

    #[test]
    fn real_clocks_cost_something_and_the_cpu_clock_more() {
        let costs = ClockCosts::measure(&crate::time::MonotonicClock::new());
        assert!(costs.now_ns > 0 && costs.now_ns < 100_000, "{costs:?}");
        assert!(costs.cpu_ns > 0 && costs.cpu_ns < 1_000_000, "{costs:?}");
    }
}
