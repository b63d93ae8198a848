//! Series of which a store keeps archives: rows that it calculated, or one value per slot.

use std::collections::HashMap;
use std::ops::ControlFlow;

use tsb_core::time::SECOND_NS;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{
    ArchiveRule, Consolidated, OnConflict, Query, Resample, SlotArchive, SlotArchives, StoreExt as _, TimeRange,
};

use super::{Auditor, Compared, out_of_order};
use crate::audit::Rules;
use crate::audit::consolidate::{self, ArchiveRows, StoreAnswer};
use crate::audit::slots::{self, KnownSlots, SlotAnswer};
use crate::audit::stated::StatedNewest;

/// Seconds for which, beside two slots, the oldest slots of an archive may be missing although they
/// are kept: while it is read, time goes on.
const OLDEST_S: i64 = 5;

/// An archive of slots as it was read of several series.
#[derive(Debug)]
struct ReadArchive {
    archive: SlotArchive,
    known: HashMap<SeriesId, KnownSlots>,
    /// When it had been read, in seconds.
    read_at_s: i64,
}

impl Auditor<'_> {
    /// Compares series of which the store keeps rows that it calculated.
    pub(super) fn compare_rows(
        &mut self,
        ids: &[SeriesId],
        stated: &[StatedNewest],
        rules: &Rules,
        rule: &Consolidated,
    ) -> tsb_stores::Result<()> {
        for (&id, &stated) in ids.iter().zip(stated) {
            let mut expected = self.expect(id, stated, rules);
            let admitted = (rules.late == OnConflict::Rejected).then(|| stated.accepted.unwrap_or(Timestamp::MIN));
            let rows = self.archives(rule, id)?;
            let newest = rows.first().and_then(|rows| rows.last()).map(|&(end_s, _)| end_s);
            let uncertain = self.uncertain(id);
            // A row does not show whether a particular sample is in it.
            expected.unanswered = None;
            let answer = StoreAnswer {
                rows,
                admitted,
                is_continued: self.scope.since.is_some(),
            };
            let newest = self.scope.of_this_run(newest.map(Timestamp::from_secs));
            let compared = Compared::new(newest, |note| {
                consolidate::compare(rule, &self.sent, &uncertain, &answer, note)
            });
            self.conclude(expected, compared, rules);
        }
        Ok(())
    }

    /// Compares series of which the store keeps one value per slot.
    pub(super) fn compare_slots(
        &mut self,
        ids: &[SeriesId],
        stated: &[StatedNewest],
        rules: &Rules,
        rule: &SlotArchives,
    ) -> tsb_stores::Result<()> {
        let mut archives = self.read_slots(rule, ids)?;
        for (&id, &stated) in ids.iter().zip(stated) {
            let expected = self.expect(id, stated, rules);
            let answer = self.take_slots(id, expected.newest_sent, &mut archives);
            let newest = answer
                .archives
                .first()
                .and_then(|slots| slots.keys().next_back().copied());
            let may_be_absent = self.scope.is_unconfirmed || expected.unanswered.is_some();
            let newest = self.scope.of_this_run(newest.map(Timestamp::from_secs));
            let compared = Compared::new(newest, |note| {
                slots::compare(rule, &self.sent, may_be_absent, &answer, note)
            });
            self.conclude(expected, compared, rules);
        }
        Ok(())
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

    /// Reads every archive of slots, of all series at once.
    fn read_slots(&mut self, rule: &SlotArchives, ids: &[SeriesId]) -> tsb_stores::Result<Vec<ReadArchive>> {
        let (scope, repeated) = (self.scope, &mut self.audit.repeated_reads);
        let read = |(level, archive): (usize, SlotArchive)| {
            let resample = Resample {
                step_ns: archive.slot_s * SECOND_NS as i64,
                consolidation: rule.consolidation,
            };
            let query = Query {
                series: ids,
                range: TimeRange::ALL,
                resample: (level > 0).then_some(resample),
            };
            let known = scope.answered(repeated, || {
                let mut known: HashMap<SeriesId, KnownSlots> = HashMap::new();
                let mut unexpected = None;
                scope.store.query(&query, &mut |series, times, values| {
                    if !ids.contains(&series) {
                        unexpected = Some(series);
                        return ControlFlow::Break(());
                    }
                    let slots = times.iter().map(|at| at.as_secs()).zip(values.iter().copied());
                    known.entry(series).or_default().extend(slots);
                    ControlFlow::Continue(())
                })?;
                unexpected.map_or(Ok(known), |series| Err(out_of_order(series)))
            })?;
            Ok(ReadArchive {
                archive,
                known,
                read_at_s: scope.clock.wall().as_secs(),
            })
        };
        rule.archives().enumerate().map(read).collect()
    }

    /// Takes the known slots of a series from every archive, and says since when each keeps them.
    fn take_slots(&self, id: SeriesId, newest_sent: Option<Timestamp>, archives: &mut [ReadArchive]) -> SlotAnswer {
        let mut answer = SlotAnswer {
            since_s: self.scope.since.map(Timestamp::as_secs),
            ..SlotAnswer::default()
        };
        for read in archives {
            let newest_s = newest_sent.map_or(read.read_at_s, |at| at.as_secs().max(read.read_at_s));
            let unsure_s = 2 * read.archive.slot_s + OLDEST_S;
            answer.archives.push(read.known.remove(&id).unwrap_or_default());
            answer
                .keeps_from_s
                .push(newest_s - read.archive.retention_s() + unsure_s);
        }
        answer
    }
}
