//! Shows the run of many hosts as one: what they say of their intervals, added.

use std::collections::{BTreeMap, BTreeSet};

use tsb_core::emit::LiveTotals;
use tsb_core::latency::Cells;
use tsb_core::report::Interval;

use super::Host;
use crate::hosts::documents::{HostInterval, HostProgress};
use crate::hosts::merge::add_interval;
use crate::observer::{HostStatus, IntervalLatencies, Observer, Phase, Progress};

/// Most intervals that wait for a host.
const OPEN_MAX: usize = 1_000;

/// The intervals that some hosts have ended and others have not.
#[derive(Debug, Default)]
pub(super) struct ShownIntervals {
    open: BTreeMap<u64, AddedInterval>,
    /// Intervals before this one were shown, or never will be.
    shown: u64,
}

/// An interval of some hosts.
#[derive(Debug, Default)]
struct AddedInterval {
    interval: Interval,
    timed: IntervalLatencies,
    hosts: BTreeSet<String>,
}

impl ShownIntervals {
    /// Adds what a host says; it says each interval more than once.
    pub(super) fn add(&mut self, host: &str, said: &[HostInterval]) {
        for of_host in said.iter().filter(|of_host| of_host.number >= self.shown) {
            self.open.entry(of_host.number).or_default().add(host, of_host);
        }
        while self.open.len() > OPEN_MAX {
            self.open.pop_first();
        }
    }

    /// Takes the intervals, in their order, of which all of these hosts have said something. One that was missed
    /// of a host is dropped with the next that is whole.
    pub(super) fn take_whole(&mut self, hosts: &[&str]) -> Vec<(Interval, IntervalLatencies)> {
        let mut whole = Vec::new();
        let is_whole = |added: &AddedInterval| hosts.iter().all(|host| added.hosts.contains(*host));
        let last = self.open.iter().rev().find(|(_, added)| is_whole(added));
        let Some((&last, _)) = last else { return whole };
        self.shown = last + 1;
        let later = self.open.split_off(&self.shown);
        let ended = std::mem::replace(&mut self.open, later);
        whole.extend(
            ended
                .into_values()
                .filter(is_whole)
                .map(|added| (added.interval, added.timed)),
        );
        whole
    }
}

impl AddedInterval {
    fn add(&mut self, host: &str, of_host: &HostInterval) {
        if !self.hosts.insert(host.to_owned()) {
            return;
        }
        self.interval.end_ns = self.interval.end_ns.max(of_host.interval.end_ns);
        add_interval(&mut self.interval, &of_host.interval);
        let timed = &of_host.timed;
        for (sum, more) in [
            (&mut self.interval.response_cells, &of_host.interval.response_cells),
            (&mut self.timed.delivery, &timed.delivery),
            (&mut self.timed.service, &timed.service),
            (&mut self.timed.lag, &timed.lag),
        ] {
            *sum = added(sum.take(), more.as_ref());
        }
    }
}

fn added(sum: Option<Cells>, more: Option<&Cells>) -> Option<Cells> {
    match (sum, more) {
        (Some(mut sum), Some(more)) => {
            sum.merge(more);
            Some(sum)
        }
        (sum, more) => sum.or_else(|| more.cloned()),
    }
}

/// Tells an observer how far all hosts are.
pub(super) fn tell(observer: &dyn Observer, hosts: &BTreeMap<String, Host>, intervals: &mut ShownIntervals) {
    for (name, host) in hosts {
        intervals.add(name, &host.progress.intervals);
    }
    let sum = sum_of(hosts);
    let mut totals = LiveTotals::default();
    (totals.operations, totals.samples) = (sum.operations, sum.sent);
    (totals.unknown, totals.shed) = (sum.unknown, sum.shed);
    observer.progress(&Progress {
        elapsed_ns: sum.elapsed_ns,
        totals,
        accepted: Some(sum.accepted),
        rejected: Some(sum.rejected),
        staleness_ms: sum.staleness_ms,
    });
    // One that is lost, or has sent everything, ends no further interval.
    let sending: Vec<&str> = hosts
        .iter()
        .filter(|(_, host)| host.lost.is_none() && host.progress.phase == Phase::Running.name())
        .map(|(name, _)| name.as_str())
        .collect();
    for (interval, timed) in intervals.take_whole(&sending) {
        observer.interval(&interval, &timed);
    }
    let statuses: Vec<HostStatus<'_>> = hosts.iter().map(|(name, host)| status(name, host)).collect();
    observer.hosts(&statuses);
}

/// How far all hosts are together, without intervals.
pub(super) fn sum_of(hosts: &BTreeMap<String, Host>) -> HostProgress {
    let mut sum = HostProgress {
        phase: format!("{} hosts", hosts.len()),
        ..HostProgress::default()
    };
    for Host { progress, .. } in hosts.values() {
        sum.elapsed_ns = sum.elapsed_ns.max(progress.elapsed_ns);
        sum.operations += progress.operations;
        sum.sent += progress.sent;
        sum.accepted += progress.accepted;
        sum.rejected += progress.rejected;
        sum.unknown += progress.unknown;
        sum.shed += progress.shed;
        let stalest = sum.staleness_ms.into_iter().chain(progress.staleness_ms);
        sum.staleness_ms = stalest.reduce(f64::max);
    }
    sum
}

/// What is known of a host.
pub(super) fn status<'a>(name: &'a str, host: &'a Host) -> HostStatus<'a> {
    status_of(name, &host.progress, host.lost.as_deref())
}

/// The same of one that said this last, or of all.
pub(super) fn status_of<'a>(name: &'a str, progress: &'a HostProgress, lost: Option<&'a str>) -> HostStatus<'a> {
    let mut status = HostStatus::new(name, &progress.phase);
    (status.sent, status.accepted) = (progress.sent, progress.accepted);
    (status.staleness_ms, status.lost) = (progress.staleness_ms, lost);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(numbers: std::ops::Range<u64>) -> Vec<HostInterval> {
        let one = |number| {
            let mut of_host = HostInterval {
                number,
                ..HostInterval::default()
            };
            (of_host.interval.sent, of_host.interval.end_ns) = (10 + number, 100 * (number + 1));
            let cells = Cells {
                first: 5,
                counts: vec![1, 2],
            };
            of_host.interval.response_cells = Some(cells.clone());
            of_host.timed.lag = Some(cells);
            of_host
        };
        numbers.map(one).collect()
    }

    #[test]
    fn an_interval_is_shown_once_when_every_host_has_ended_it() {
        let mut intervals = ShownIntervals::default();
        intervals.add("a", &said(0..3));
        assert!(intervals.take_whole(&["a", "b"]).is_empty());
        // It says its last ones again.
        intervals.add("a", &said(1..3));
        intervals.add("b", &said(0..2));
        let whole = intervals.take_whole(&["a", "b"]);
        let sent: Vec<(u64, u64)> = whole.iter().map(|(one, _)| (one.end_ns, one.sent)).collect();
        assert_eq!(sent, [(100, 20), (200, 22)]);
        let lag = whole[0].1.lag.as_ref().unwrap();
        assert_eq!((lag.first, &lag.counts[..]), (5, &[2, 4][..]));
        intervals.add("b", &said(0..3));
        assert_eq!(intervals.take_whole(&["a", "b"]).len(), 1);
        assert!(intervals.take_whole(&["a", "b"]).is_empty());
    }

    #[test]
    fn an_interval_that_was_missed_of_a_host_is_not_waited_for() {
        let mut intervals = ShownIntervals::default();
        intervals.add("a", &said(0..3));
        intervals.add("b", &said(2..3));
        let whole = intervals.take_whole(&["a", "b"]);
        assert_eq!(whole.iter().map(|(one, _)| one.sent).collect::<Vec<_>>(), [24]);
        // A host that is lost is not waited for, either.
        intervals.add("a", &said(3..4));
        assert_eq!(intervals.take_whole(&["a"]).len(), 1);
    }
}
