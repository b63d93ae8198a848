//! One auditing thread: generates again what was sent to a series, reads the series from the
//! store, and compares the two.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tsb_core::time::SECOND_NS;
use tsb_core::workload::Replay;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{
    ArchiveRule, Consolidated, Exactness, OnConflict, Query, Resample, SlotArchives, StoreExt as _, TimeRange,
};

use super::compare::{Columns, Difference, Rules, compare};
use super::consolidate::{self, ArchiveRows, StoreAnswer, UncertainSamples};
use super::newest::Wrong;
use super::slots::{self, SlotAnswer};
use super::{Audit, NamedSamples, Scope, TicksByGroup};

/// Number of series that an auditor claims at a time.
const STRIDE: usize = 64;
/// Nanoseconds by which the store's newest accepted timestamp may differ from the one sent: a
/// store that parses times as floats rounds them.
const MISPLACED_NS: i64 = 4_000;

/// Seconds for which, beside two slots, the oldest slots of an archive may be missing although they
/// are kept: while it is read, time goes on.
const OLDEST_S: i64 = 5;

/// The store's answers about the newest samples of some series, given without reading the
/// series.
#[derive(Debug, Default)]
struct StatedNewest {
    newest: Vec<Option<Timestamp>>,
    accepted: Vec<Option<Timestamp>>,
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
        while let Some(ids) = self.take() {
            for id in ids {
                self.send(id);
                newest = newest.max(self.sent.times.iter().max().copied());
            }
        }
        newest
    }

    /// Claims and compares series until none is left.
    pub(super) fn compare(mut self, rules: &Rules, done: &AtomicU64) -> tsb_stores::Result<Audit> {
        while let Some(ids) = self.take() {
            let ids: Vec<SeriesId> = ids.collect();
            let said = self.ask(&ids)?;
            for (index, &id) in ids.iter().enumerate() {
                self.send(id);
                let newest_sent = self.sent.times.iter().max().copied();
                let accepted = said.accepted[index];
                let newest_found = self.one(id, rules, accepted)?;
                let (said, kept_from) = (said.newest[index], rules.keeps_from);
                let heard = self.scope.heard;
                let wrong = heard.check(id, newest_sent, said, newest_found, kept_from);
                // What was visible and not acknowledged may be gone after a restart.
                let wrong = wrong.filter(|wrong| !(self.scope.is_unconfirmed && matches!(wrong, Wrong::Back { .. })));
                let wrong = wrong.or_else(|| is_ahead(accepted, newest_sent));
                if let Some(wrong) = wrong {
                    self.audit.wrong_answers.push(id, wrong);
                }
            }
            done.fetch_add(ids.len() as u64, Ordering::Relaxed);
        }
        Ok(self.audit)
    }

    /// Claims the next series; `None` when all are claimed.
    fn take(&self) -> Option<impl Iterator<Item = SeriesId> + use<>> {
        let series = self.scope.workload.catalog().len();
        let from = self.next.fetch_add(STRIDE, Ordering::Relaxed);
        let ids = from..series.min(from + STRIDE);
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

    /// Compares what was sent to one series with what the store returns. Returns the newest
    /// timestamp that a query returned.
    fn one(
        &mut self,
        id: SeriesId,
        rules: &Rules,
        accepted: Option<Timestamp>,
    ) -> tsb_stores::Result<Option<Timestamp>> {
        let mut notes = Vec::new();
        let note = &mut |difference| notes.push(difference);
        let mut unanswered = self.made_in(&self.named.unanswered, id);
        let is_rows = matches!(rules.exactness, Exactness::Consolidated(_));
        if let (true, true, Some(open)) = (self.scope.is_cut_off, is_rows, &mut unanswered) {
            self.cut_off(open, accepted);
        }
        if let Some(unanswered) = &unanswered {
            self.audit.unanswered += unanswered.values().map(|&samples| u64::from(samples)).sum::<u64>();
        }
        let (mut tally, newest) = if let Exactness::Consolidated(rule) = rules.exactness {
            let admitted = (rules.late == OnConflict::Rejected).then(|| accepted.unwrap_or(Timestamp::MIN));
            let rows = self.archives(&rule, id)?;
            let newest = rows.first().and_then(|rows| rows.last()).map(|&(end_s, _)| end_s);
            let uncertain = self.uncertain(id);
            // A row does not show whether a particular sample is in it.
            unanswered = None;
            let answer = StoreAnswer {
                rows,
                admitted,
                is_continued: self.scope.since.is_some(),
            };
            let tally = consolidate::compare(&rule, &self.sent, &uncertain, &answer, note);
            (tally, self.scope.of_this_run(newest.map(Timestamp::from_secs)))
        } else if let Exactness::Slots(rule) = rules.exactness {
            let answer = self.slots(&rule, id)?;
            let newest = answer
                .archives
                .first()
                .and_then(|slots| slots.keys().next_back().copied());
            let may_be_absent = self.scope.is_unconfirmed || unanswered.is_some();
            let tally = slots::compare(&rule, &self.sent, may_be_absent, &answer, note);
            (tally, self.scope.of_this_run(newest.map(Timestamp::from_secs)))
        } else {
            self.read(id)?;
            let tally = compare(&mut self.sent, &self.found, rules, note);
            (tally, self.found.times.last().copied())
        };
        let absent = if self.scope.is_unconfirmed {
            self.audit.unanswered += self.sent.len() as u64;
            forgive(&mut notes)
        } else {
            unanswered.map_or(0, |unanswered| settle(&mut notes, unanswered))
        };
        tally.missing -= absent;
        self.audit.absent += absent;
        self.audit.tally.add(&tally);
        for difference in notes {
            self.audit.note(id, difference);
        }
        Ok(newest)
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

    fn ask(&mut self, ids: &[SeriesId]) -> tsb_stores::Result<StatedNewest> {
        let mut said = StatedNewest {
            newest: vec![None; ids.len()],
            accepted: vec![None; ids.len()],
        };
        let (scope, repeated) = (self.scope, &mut self.audit.repeated_reads);
        scope.answered(repeated, || scope.store.newest(ids, &mut said.newest))?;
        scope.answered(repeated, || scope.store.newest_accepted(ids, &mut said.accepted))?;
        for at in said.newest.iter_mut().chain(&mut said.accepted) {
            *at = self.scope.of_this_run(*at);
        }
        Ok(said)
    }

    /// The known rows of every archive, each with the time of its end.
    fn archives(&mut self, rule: &Consolidated, id: SeriesId) -> tsb_stores::Result<Vec<ArchiveRows>> {
        let (scope, repeated) = (self.scope, &mut self.audit.repeated_reads);
        let read = |archive: ArchiveRule| {
            let span_s = rule.step_s as i64 * i64::from(archive.steps);
            let resample = Resample {
                step_ns: span_s * 1_000_000_000,
                consolidation: archive.consolidation,
            };
            let rows = scope.answered(repeated, || scope.store.rows(id, TimeRange::ALL, Some(resample)))?;
            // A resampled row is stamped with its start.
            Ok(rows
                .into_iter()
                .map(|(at, value)| (at.as_secs() + span_s, value))
                .collect())
        };
        rule.archives().map(read).collect()
    }

    /// The known slots of every archive, and since when each keeps them.
    fn slots(&mut self, rule: &SlotArchives, id: SeriesId) -> tsb_stores::Result<SlotAnswer> {
        let (scope, repeated) = (self.scope, &mut self.audit.repeated_reads);
        let mut answer = SlotAnswer {
            since_s: self.scope.since.map(Timestamp::as_secs),
            ..SlotAnswer::default()
        };
        let newest_sent_s = self.sent.times.iter().max().map(|at| at.as_secs());
        for (level, archive) in rule.archives().enumerate() {
            let resample = Resample {
                step_ns: archive.slot_s * SECOND_NS as i64,
                consolidation: rule.consolidation,
            };
            let rows = scope.answered(repeated, || {
                scope.store.rows(id, TimeRange::ALL, (level > 0).then_some(resample))
            })?;
            answer
                .archives
                .push(rows.into_iter().map(|(at, value)| (at.as_secs(), value)).collect());
            let now_s = self.scope.clock.wall().as_secs();
            let newest_s = newest_sent_s.map_or(now_s, |at_s| at_s.max(now_s));
            answer
                .keeps_from_s
                .push(newest_s - archive.retention_s() + 2 * archive.slot_s + OLDEST_S);
        }
        Ok(answer)
    }

    fn read(&mut self, id: SeriesId) -> tsb_stores::Result<()> {
        let (scope, found) = (self.scope, &mut self.found);
        let query = Query {
            series: &[id],
            range: TimeRange {
                start: scope.since.unwrap_or(Timestamp::MIN),
                ..TimeRange::ALL
            },
            resample: None,
        };
        scope.answered(&mut self.audit.repeated_reads, || {
            found.clear();
            scope.store.query(&query, &mut |_, times, values| {
                found.times.extend_from_slice(times);
                found.values.extend_from_slice(values);
                ControlFlow::Continue(())
            })
        })
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
