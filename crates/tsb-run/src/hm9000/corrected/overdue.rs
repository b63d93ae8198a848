//! When heartbeats were overdue: due for longer than a second, and neither they nor later ones of
//! the same apps acknowledged.

use tsb_core::time::SECOND_NS;

use super::worker::{PutTimes, Written};
use crate::hm9000::simulator::HEARTBEAT_INTERVAL_S;

/// A heartbeat that is not acknowledged after this time is overdue, in nanoseconds.
const GRACE_NS: u64 = SECOND_NS;

/// A time in which heartbeats were overdue, in nanoseconds from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overdue {
    from: u64,
    /// The answer that ended it; `u64::MAX` where none came.
    until: u64,
}

/// The times of all workers, in any order.
pub(super) fn times(written: &[Written]) -> Vec<Overdue> {
    written.iter().flat_map(|worker| of_worker(&worker.puts)).collect()
}

/// Heartbeats due at the same second of an interval are of the same apps.
fn of_worker(puts: &[PutTimes]) -> Vec<Overdue> {
    let mut overdue = Vec::new();
    // When the news of these apps, or later news, was acknowledged.
    let mut acknowledged = [u64::MAX; HEARTBEAT_INTERVAL_S as usize];
    for put in puts.iter().rev() {
        let until = &mut acknowledged[(put.due / SECOND_NS % HEARTBEAT_INTERVAL_S) as usize];
        if put.is_acknowledged {
            *until = put.ended;
        }
        let from = put.due + GRACE_NS;
        if *until > from {
            overdue.push(Overdue { from, until: *until });
        }
    }
    overdue
}

/// The moment from which nothing was overdue, of what was overdue at any time from `begin` to
/// `end`: `begin` itself if nothing was, and `None` if something was overdue until `end`.
pub(super) fn over_at(times: &[Overdue], begin: u64, end: u64) -> Option<u64> {
    let within = times.iter().filter(|time| time.from < end && time.until > begin);
    let last = within.map(|time| time.until).max().unwrap_or(begin);
    (last < end).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(due_s: u64, took_ms: u64, is_acknowledged: bool) -> PutTimes {
        PutTimes {
            due: due_s * SECOND_NS,
            ended: due_s * SECOND_NS + took_ms * 1_000_000,
            keys: 1,
            is_acknowledged,
        }
    }

    fn seconds(overdue: &[Overdue]) -> Vec<(f64, f64)> {
        let in_seconds = |ns: u64| ns as f64 / SECOND_NS as f64;
        let all = overdue.iter();
        all.map(|time| (in_seconds(time.from), in_seconds(time.until)))
            .collect()
    }

    #[test]
    fn an_answer_within_a_second_is_not_overdue() {
        assert_eq!(of_worker(&[put(3, 1_000, true), put(13, 20, true)]), []);
    }

    #[test]
    fn a_late_answer_is_overdue_until_it_comes() {
        assert_eq!(seconds(&of_worker(&[put(3, 2_500, true)])), [(4.0, 5.5)]);
    }

    #[test]
    fn a_failed_heartbeat_is_overdue_until_the_next_one_of_the_same_apps() {
        // Others of the same worker are in between.
        let puts = [put(3, 100, false), put(4, 100, true), put(13, 250, true)];
        assert_eq!(seconds(&of_worker(&puts)), [(4.0, 13.25)]);
    }

    #[test]
    fn nothing_ends_what_no_later_heartbeat_makes_good() {
        let puts = [put(3, 100, true), put(13, 100, false)];
        let overdue = of_worker(&puts);
        assert_eq!((overdue.len(), overdue[0].until), (1, u64::MAX));
        assert_eq!(over_at(&overdue, 0, 30 * SECOND_NS), None);
    }

    #[test]
    fn it_is_over_when_the_last_of_all_was_acknowledged() {
        let written = |puts: &[PutTimes]| Written {
            puts: puts.to_vec(),
            ..Written::default()
        };
        let all = times(&[
            written(&[put(3, 4_000, true)]),
            written(&[put(5, 100, false), put(15, 500, true)]),
        ]);
        let second = |second: u64| second * SECOND_NS;
        assert_eq!(over_at(&all, second(2), second(40)), Some(second(15) + SECOND_NS / 2));
        assert_eq!(over_at(&all, second(2), second(12)), None);
        // Before and after it nothing was overdue.
        assert_eq!(over_at(&all, 0, second(3)), Some(0));
        assert_eq!(over_at(&all, second(20), second(40)), Some(second(20)));
    }
}
