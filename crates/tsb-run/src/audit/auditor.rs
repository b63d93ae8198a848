//! One auditing thread: generates again what was sent to a series, reads the series from the
//! store, and compares the two.

mod archives;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tsb_core::workload::Replay;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{Exactness, Query, TimeRange};

use super::compare::{Columns, Difference, Rules, Tally, compare};
use super::consolidate::UncertainSamples;
use super::newest::Wrong;
use super::stated::StatedNewest;
use super::{Audit, NamedSamples, Scope, TicksByGroup};

/// Number of series that a query reads.
pub(super) const STRIDE: usize = 64;
/// Nanoseconds by which the store's newest accepted timestamp may differ from the one sent: a
/// store that parses times as floats rounds them.
const MISPLACED_NS: i64 = 4_000;

/// What is expected of a series, beside the samples that were sent to it.
#[derive(Debug)]
struct Expected {
    id: SeriesId,
    stated: StatedNewest,
    newest_sent: Option<Timestamp>,
    /// The samples that were never answered, by timestamp.
    unanswered: Option<HashMap<Timestamp, u32>>,
}

/// What a comparison found in a series.
#[derive(Debug)]
struct Compared {
    tally: Tally,
    /// The newest timestamp that a query returned.
    newest: Option<Timestamp>,
    differences: Vec<Difference>,
}

impl Compared {
    /// What `compare` finds, which notes each difference. `newest` is the newest timestamp that a query
    /// returned.
    fn new(newest: Option<Timestamp>, compare: impl FnOnce(&mut dyn FnMut(Difference)) -> Tally) -> Self {
        let mut differences = Vec::new();
        let tally = compare(&mut |difference| differences.push(difference));
        Self {
            tally,
            newest,
            differences,
        }
    }
}

/// One thread's part of an audit.
#[derive(Debug)]
pub(super) struct Auditor<'a> {
    scope: &'a Scope<'a>,
    named: &'a NamedSamples,
    next: &'a AtomicUsize,
    replay: Replay<'a>,
    before: Replay<'a>,
    sent: Columns,
    found: Columns,
    audit: Audit,
}

impl<'a> Auditor<'a> {
    /// An auditor that claims series by advancing the shared counter `next`.
    pub(super) fn new(scope: &'a Scope<'a>, named: &'a NamedSamples, next: &'a AtomicUsize) -> Self {
        Self {
            scope,
            named,
            next,
            replay: scope.workload.replay(scope.base),
            before: scope.workload.replay(scope.history.base()),
            sent: Columns::default(),
            found: Columns::default(),
            audit: Audit::default(),
        }
    }

    /// The newest timestamp that was sent and not rejected by name.
    pub(super) fn newest(mut self) -> Option<Timestamp> {
        let mut newest = None;
        while let Some(ids) = self.take(STRIDE) {
            for id in ids {
                self.send(id);
                newest = newest.max(self.sent.times.iter().max().copied());
            }
        }
        newest
    }

    /// Claims and compares series until none is left.
    pub(super) fn compare(mut self, rules: &Rules, done: &AtomicU64) -> tsb_stores::Result<Audit> {
        let most = self.scope.series_per_question();
        while let Some(ids) = self.take(most) {
            let ids: Vec<SeriesId> = ids.collect();
            let stated = self.scope.stated_newest(&ids, &mut self.audit.repeated_reads)?;
            for (ids, stated) in ids.chunks(STRIDE).zip(stated.chunks(STRIDE)) {
                match rules.exactness {
                    Exactness::Consolidated(rule) => self.compare_rows(ids, stated, rules, &rule)?,
                    Exactness::Slots(rule) => self.compare_slots(ids, stated, rules, &rule)?,
                    _ => self.compare_samples(ids, stated, rules)?,
                }
                done.fetch_add(ids.len() as u64, Ordering::Relaxed);
            }
        }
        Ok(self.audit)
    }

    /// Claims the next series, at most this number; `None` when all are claimed.
    fn take(&self, most: usize) -> Option<impl Iterator<Item = SeriesId> + use<>> {
        let series = self.scope.workload.catalog().len();
        let from = self.next.fetch_add(most, Ordering::Relaxed);
        let ids = from..series.min(from.saturating_add(most));
        (!ids.is_empty()).then(|| ids.map(|index| SeriesId(index as u32)))
    }

    /// Generates what was sent to a series, without the samples rejected by name.
    fn send(&mut self, id: SeriesId) {
        let workload = self.scope.workload;
        self.sent.clear();
        let group = workload.group_of(id);
        let ticks = group.and_then(|group| self.scope.ticks.get(group));
        let sent = &mut self.sent;
        let before = group.map_or(0..0, |group| self.scope.history.ticks(group));
        self.before.series(id, before, &mut |chunk| sent.extend(chunk));
        self.replay
            .series(id, ticks.cloned().unwrap_or(0..0), &mut |chunk| sent.extend(chunk));
        if let Some(unsent) = self.made_in(&self.named.unsent, id) {
            self.sent.remove(unsent);
        }
        self.audit.sent += self.sent.len() as u64;
        if let Some(rejected) = self.named.rejected.get(&id) {
            self.audit.rejected += self.sent.remove(rejected.clone());
        }
    }

    /// Compares series whose samples are read back as they were sent: all are asked for at once,
    /// and each is compared as soon as it has been read.
    fn compare_samples(&mut self, ids: &[SeriesId], stated: &[StatedNewest], rules: &Rules) -> tsb_stores::Result<()> {
        let (scope, mut at, mut repeated) = (self.scope, 0, 0);
        let answer = loop {
            let begun_at = at;
            let answer = scope.answered(&mut repeated, || self.read_on(ids, stated, rules, &mut at));
            // A server that answers in parts is asked on.
            let goes_on = at > begun_at && answer.as_ref().is_err_and(tsb_stores::Error::is_silence);
            if !goes_on {
                break answer;
            }
            repeated += 1;
        };
        self.audit.repeated_reads += repeated;
        answer?;
        for at in at..ids.len() {
            self.compare_read(ids[at], stated[at], rules);
        }
        Ok(())
    }

    /// Reads the series from `ids[at]` on, and compares each once the next one begins: then `ids[at]` is
    /// the one whose samples are in `found`.
    fn read_on(
        &mut self,
        ids: &[SeriesId],
        stated: &[StatedNewest],
        rules: &Rules,
        at: &mut usize,
    ) -> tsb_stores::Result<()> {
        let scope = self.scope;
        // After an answer that broke off, the series that it was about is read again.
        self.found.clear();
        let query = Query {
            series: &ids[*at..],
            range: TimeRange {
                start: scope.since.unwrap_or(Timestamp::MIN),
                ..TimeRange::ALL
            },
            resample: None,
        };
        let mut unexpected = None;
        scope.store.query(&query, &mut |series, times, values| {
            let Some(ahead) = ids[*at..].iter().position(|id| *id == series) else {
                unexpected = Some(series);
                return ControlFlow::Break(());
            };
            for _ in 0..ahead {
                self.compare_read(ids[*at], stated[*at], rules);
                *at += 1;
            }
            self.found.times.extend_from_slice(times);
            self.found.values.extend_from_slice(values);
            ControlFlow::Continue(())
        })?;
        unexpected.map_or(Ok(()), |series| Err(out_of_order(series)))
    }

    /// Compares the samples of a series that have been read, and forgets them.
    fn compare_read(&mut self, id: SeriesId, stated: StatedNewest, rules: &Rules) {
        let expected = self.expect(id, stated, rules);
        let newest = self.found.times.last().copied();
        let compared = Compared::new(newest, |note| compare(&mut self.sent, &self.found, rules, note));
        self.found.clear();
        self.conclude(expected, compared, rules);
    }

    /// Generates what was sent to a series, and says what else is expected of it.
    fn expect(&mut self, id: SeriesId, stated: StatedNewest, rules: &Rules) -> Expected {
        self.send(id);
        let newest_sent = self.sent.times.iter().max().copied();
        let mut unanswered = self.made_in(&self.named.unanswered, id);
        if let Some(unanswered) = &mut unanswered {
            if self.scope.is_cut_off && matches!(rules.exactness, Exactness::Consolidated(_)) {
                self.cut_off(unanswered, stated.accepted);
            }
            self.audit.unanswered += unanswered.values().map(|&samples| u64::from(samples)).sum::<u64>();
        }
        Expected {
            id,
            stated,
            newest_sent,
            unanswered,
        }
    }

    /// Adds what was found in a series. Missing samples that nobody acknowledged are absent, and
    /// what the store stated of its newest sample must agree.
    fn conclude(&mut self, expected: Expected, compared: Compared, rules: &Rules) {
        let Expected {
            id,
            stated,
            newest_sent,
            unanswered,
        } = expected;
        let Compared {
            mut tally,
            newest,
            mut differences,
        } = compared;
        let absent = if self.scope.is_unconfirmed {
            self.audit.unanswered += self.sent.len() as u64;
            forgive(&mut differences)
        } else {
            unanswered.map_or(0, |unanswered| settle(&mut differences, unanswered))
        };
        tally.missing -= absent;
        self.audit.absent += absent;
        self.audit.tally.add(&tally);
        for difference in differences {
            self.audit.note(id, difference);
        }
        let heard = self.scope.heard;
        let wrong = heard.check(id, newest_sent, stated.newest, newest, rules.keeps_from);
        // What was visible and not acknowledged may be gone after a restart.
        let wrong = wrong.filter(|wrong| !(self.scope.is_unconfirmed && matches!(wrong, Wrong::Back { .. })));
        if let Some(wrong) = wrong.or_else(|| is_ahead(stated.accepted, newest_sent)) {
            self.audit.wrong_answers.push(id, wrong);
        }
    }

    /// Removes the samples after the newest accepted one from those sent to a series whose run
    /// was cut off: the store's rows were made without them.
    fn cut_off(&mut self, open: &mut HashMap<Timestamp, u32>, newest: Option<Timestamp>) {
        let behind = |at: &Timestamp| newest.is_none_or(|newest| *at > newest + MISPLACED_NS);
        let mut gone = open.clone();
        gone.retain(|at, _| behind(at));
        open.retain(|at, _| !behind(at));
        let absent = self.sent.remove(gone);
        self.audit.unanswered += absent;
        self.audit.absent += absent;
    }

    /// The samples of a series that the store may or may not hold.
    fn uncertain(&mut self, id: SeriesId) -> UncertainSamples {
        if self.scope.unnamed > 0 {
            return UncertainSamples::OfAny;
        }
        self.made_in(&self.named.in_doubt, id)
            .map_or(UncertainSamples::None, UncertainSamples::Of)
    }

    /// Counts the samples of a series in the given ticks, by timestamp.
    fn made_in(&mut self, ticks: &TicksByGroup, id: SeriesId) -> Option<HashMap<Timestamp, u32>> {
        ticks.samples_of(id, self.scope.workload, &mut self.replay)
    }
}

/// The error of a store that answered about a series out of the order asked, or about one that was
/// not asked for.
fn out_of_order(series: SeriesId) -> tsb_stores::Error {
    tsb_stores::Error::Backend {
        action: "tell its series apart".to_owned(),
        source: format!("the store answered about series {series}, which was not the next one asked for").into(),
    }
}

/// Removes all missing samples from the differences: none was acknowledged. Returns how many.
fn forgive(differences: &mut Vec<Difference>) -> u64 {
    let before = differences.len();
    differences.retain(|difference| !matches!(difference, Difference::Missing { .. }));
    (before - differences.len()) as u64
}

/// An error if the store claims to have accepted a sample newer than any that was sent.
fn is_ahead(said: Option<Timestamp>, sent: Option<Timestamp>) -> Option<Wrong> {
    let said = said?;
    let is_ahead = sent.is_none_or(|sent| said > sent + MISPLACED_NS);
    is_ahead.then_some(Wrong::Accepted { said, sent })
}

/// Removes the differences that are explained by unanswered samples. Returns how many it
/// removed.
fn settle(differences: &mut Vec<Difference>, mut unanswered: HashMap<Timestamp, u32>) -> u64 {
    let before = differences.len();
    differences.retain(|difference| match difference {
        Difference::Missing { at, .. } => {
            let left = unanswered.get_mut(at).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_none()
        }
        _ => true,
    });
    (before - differences.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_unanswered_samples_are_absent_and_not_lost() {
        let missing = |seconds| Difference::Missing {
            at: Timestamp::from_secs(seconds),
            expected: 1.0,
        };
        let mut differences = vec![missing(1), missing(1), missing(2)];
        let unanswered = HashMap::from([(Timestamp::from_secs(1), 1), (Timestamp::from_secs(3), 1)]);
        assert_eq!(settle(&mut differences, unanswered), 1);
        assert_eq!(differences, [missing(1), missing(2)]);
    }

    #[test]
    fn a_store_accepted_nothing_newer_than_was_sent() {
        let at = |nanos| Some(Timestamp(nanos));
        assert_eq!(is_ahead(None, at(10)), None);
        assert_eq!(is_ahead(at(10 + MISPLACED_NS), at(10)), None);
        assert!(is_ahead(at(11 + MISPLACED_NS), at(10)).is_some());
        assert!(is_ahead(at(1), None).is_some());
    }
}
