//! Computes when a throttled write starts and ends: arithmetic on the clock's nanoseconds,
//! without a clock of its own.

use tsb_core::time::SECOND_NS;

use super::ThrottleOptions;

/// The time during which one write occupies the store, in the clock's nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A single server with a queue, and periodic stalls.
#[derive(Debug)]
pub(super) struct ServiceQueue {
    rate_per_second: Option<u64>,
    stall: Option<Stall>,
    opened: u64,
    busy_until: u64,
    // Numerator of the fraction of a nanosecond carried over, so that the rate does not drift.
    owed: u128,
}

#[derive(Clone, Copy, Debug)]
struct Stall {
    first: u64,
    // `None`: once.
    every: Option<u64>,
    length: u64,
}

impl ServiceQueue {
    /// An idle server, opened at `now`; or what is wrong with the options.
    pub(super) fn new(options: &ThrottleOptions, now: u64) -> std::result::Result<Self, &'static str> {
        if options.rate_per_second == Some(0) {
            return Err("a service rate of 0 never serves");
        }
        let (every, length) = (options.stall_every_ns, options.stall_for_ns);
        let stall = match (options.stall_first_ns.or(every), length) {
            (None, None) => None,
            (Some(_), Some(length)) if every.is_some_and(|every| length >= every) => {
                return Err("stall_for must be less than stall_every");
            }
            (Some(first), Some(length)) => Some(Stall { first, every, length }),
            _ => return Err("stall_every and stall_for need each other"),
        };
        Ok(Self {
            rate_per_second: options.rate_per_second,
            stall,
            opened: now,
            busy_until: now,
            owed: 0,
        })
    }

    /// The service time of `samples` that arrive at `now`: after earlier writes, and not starting
    /// during a stall. A service that has started is not interrupted by a stall.
    pub(super) fn admit(&mut self, now: u64, samples: u64) -> Service {
        let start = self.after_stall(now.max(self.busy_until));
        let Some(rate) = self.rate_per_second else {
            return Service { start, end: start };
        };
        let owed = self.owed + u128::from(samples) * u128::from(SECOND_NS);
        let length = u64::try_from(owed / u128::from(rate)).unwrap_or(u64::MAX);
        self.owed = owed % u128::from(rate);
        let end = start.saturating_add(length);
        self.busy_until = end;
        Service { start, end }
    }

    /// Stalls are `[first + k * every, first + k * every + length)` after opening, for k = 0, 1, ...
    fn after_stall(&self, at: u64) -> u64 {
        let Some(stall) = self.stall else { return at };
        let Some(since) = at.saturating_sub(self.opened).checked_sub(stall.first) else {
            return at;
        };
        let into = stall.every.map_or(since, |every| since % every);
        at + stall.length.saturating_sub(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(rate: Option<u64>, stall: Option<(u64, u64)>) -> ServiceQueue {
        let options = ThrottleOptions {
            rate_per_second: rate,
            stall_every_ns: stall.map(|(every, _)| every),
            stall_for_ns: stall.map(|(_, length)| length),
            ..ThrottleOptions::default()
        };
        ServiceQueue::new(&options, 1_000).unwrap()
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_does_not_drift() {
        let mut queue = queue(Some(7), None);
        let last = (0..7_000).map(|_| queue.admit(1_000, 1)).last().unwrap();
        assert_eq!(last.end, 1_000 + 1_000 * SECOND_NS);
        // An idle server does not accumulate capacity.
        let later = queue.admit(last.end + 500, 7);
        assert_eq!((later.start, later.end), (last.end + 500, last.end + 500 + SECOND_NS));
    }

    #[test]
    fn stalls_are_a_function_of_time() {
        let mut queue = queue(None, Some((100, 10)));
        for (now, start) in [
            (1_000, 1_000),
            (1_005, 1_005),
            (1_099, 1_099),
            (1_100, 1_110),
            (1_109, 1_110),
            (1_110, 1_110),
            (1_205, 1_210),
        ] {
            assert_eq!(queue.admit(now, 5), Service { start, end: start });
        }
    }

    #[test]
    fn a_stall_may_be_the_first_thing_and_the_only_one() {
        let mut queue = ServiceQueue::new(
            &ThrottleOptions {
                stall_first_ns: Some(0),
                stall_for_ns: Some(10),
                ..ThrottleOptions::default()
            },
            1_000,
        )
        .unwrap();
        for (now, start) in [(1_000, 1_010), (1_009, 1_010), (1_010, 1_010), (5_000, 5_000)] {
            assert_eq!(queue.admit(now, 5), Service { start, end: start });
        }
    }

    #[test]
    fn options_that_cannot_be_are_refused() {
        let refused = |options: ThrottleOptions| ServiceQueue::new(&options, 0).is_err();
        let base = ThrottleOptions::default();
        assert!(refused(ThrottleOptions {
            rate_per_second: Some(0),
            ..base
        }));
        assert!(refused(ThrottleOptions {
            stall_for_ns: Some(1),
            ..base
        }));
        assert!(refused(ThrottleOptions {
            stall_every_ns: Some(1),
            ..base
        }));
        assert!(refused(ThrottleOptions {
            stall_every_ns: Some(5),
            stall_for_ns: Some(5),
            ..base
        }));
        assert!(!refused(base));
    }
}
