//! Checks the store of a killed run against the run's journal.
//!
//! The last record of the journal says which operations had been acknowledged, at which level.
//! Later samples may or may not be stored; a stored sample must have been sent.

use std::ops::Range;
use std::sync::atomic::AtomicU64;

use tsb_core::ledger::{Counter, OF_ACCEPTED};
use tsb_core::proc::boot_id;
use tsb_core::report::{Exceptions, JournalReport, LedgerReport, LevelReport, VerifiedStore};
use tsb_core::schedule::{Frontier, Roster};
use tsb_core::time::MonotonicClock;
use tsb_core::workload::Workload;
use tsb_core::{Durability, SeriesId, Timestamp};
use tsb_stores::Store;

use super::{ReopenedStore, condemn, judge, opened};
use crate::args::{RunEnd, VerifyArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::query;
use tsb_run::audit::{Audit, NewestAnswers, Scope, is_unconfirmed};
use tsb_run::journal::{Claim, Contents, Section};
use tsb_run::run::{ExpectedAbsent, history, settle, timetable};
use tsb_run::units;

/// Upper bound, per series, of the ticks after the last record that are looked for in a store.
/// An emitter that gets further between two records is unheard of.
const BEHIND_MAX: u64 = 1 << 24;
/// Number of series per query for the newest samples.
const SERIES_PER_QUERY: usize = 4096;

/// Reads back the store of one run of a journal.
///
/// # Errors
/// If the journal does not fit its plan, or the store cannot be read.
pub(super) fn one(section: &Section, contents: &Contents, args: &VerifyArgs) -> Result<VerifiedStore, Failure> {
    let must_be_there = must_survive(section, args)?;
    let opened = opened(&section.header.plan, args.store.as_ref())?;
    let claims = Claims::of(section, &opened)?;
    let mut verified = judged(section, contents, &opened, &claims, must_be_there)?;
    let ReopenedStore { store, spec, .. } = opened;
    if let Err(failure) = query::check_structure(&spec) {
        condemn(&mut verified.verdict, &failure);
    }
    if let Err(error) = store.close() {
        let failure = Failure::new(Exit::Invalid, format!("cannot close {store}")).because(&error);
        condemn(&mut verified.verdict, &failure);
    }
    Ok(verified)
}

/// The lowest durability level that survives what ended the run.
fn must_survive(section: &Section, args: &VerifyArgs) -> Result<Durability, Failure> {
    let header = &section.header;
    if header.command == "emit" {
        // The server lives on, and its answer is all that is known.
        return match args.after {
            None => Ok(Durability::Unconfirmed),
            Some(_) => Err(Failure::usage("cannot use --after with a journal of tsb emit")
                .because_of("what the answers of its server survive, the journal does not know")
                .hint("leave it out: everything that the server confirmed is looked for")),
        };
    }
    let has_rebooted = header.boot_id.is_some() && header.boot_id != boot_id();
    Ok(match args.after {
        Some(RunEnd::PowerCut) => Durability::Synced,
        None if has_rebooted => Durability::Synced,
        Some(RunEnd::Kill) | None => Durability::Buffered,
    })
}

/// The claims of a run, as ticks of its groups.
#[derive(Debug)]
struct Claims<'a> {
    section: &'a Section,
    roster: Roster,
    rejected: Vec<(SeriesId, Timestamp)>,
    /// Per group: one past the last tick of which the store may hold samples.
    may_have: Vec<u64>,
}

impl<'a> Claims<'a> {
    fn of(section: &'a Section, opened: &ReopenedStore) -> Result<Self, Failure> {
        let roster = timetable(&opened.plan, &opened.workload)?.roster;
        let mut refused = Exceptions::default();
        refused.rejected.clone_from(&section.refused);
        let base = Timestamp(section.header.base_ns);
        Ok(Self {
            may_have: may_have(&*opened.store, &opened.workload, &roster, base)?,
            rejected: refused.rejected_samples(),
            section,
            roster,
        })
    }

    /// The acknowledged ticks of each group.
    fn ticks(&self, claim: &Claim) -> Result<Vec<Range<u64>>, Failure> {
        let mut ticks: Vec<Range<u64>> = self.roster.groups().iter().map(|_| 0..0).collect();
        let workers = self.section.header.workers.iter().zip(&claim.operations);
        for (&(first, end), &operations) in workers {
            let mut walk = self.roster.walk_range(first..end);
            let Some(last) = operations.checked_sub(1) else {
                continue;
            };
            let slot = usize::try_from(last).ok().and_then(|last| walk.nth(last));
            let Some(slot) = slot.filter(|_| end as usize <= ticks.len()) else {
                return Err(Failure::usage("cannot use this journal").because_of(format!(
                    "it acknowledges {operations} operations, and its plan has fewer"
                )));
            };
            for group in first..end {
                ticks[group as usize] = self.roster.ticks_through(group, Some(Frontier::from(slot)));
            }
        }
        Ok(ticks)
    }

    /// Audits the store, given the acknowledged ticks.
    fn read(&self, opened: &ReopenedStore, acknowledged: &[Range<u64>]) -> Result<Audit, Failure> {
        let mut ticks = acknowledged.to_vec();
        let mut behind = Vec::new();
        for (group, ticks) in ticks.iter_mut().enumerate() {
            let first = self.roster.groups().get(group).map_or(0, |group| group.first_tick);
            let from = if ticks.is_empty() { first } else { ticks.end };
            let end = self.may_have[group].min(from.saturating_add(BEHIND_MAX));
            if from < end {
                behind.push((group as u32, from..end));
                *ticks = if ticks.is_empty() { from..end } else { ticks.start..end };
            }
        }
        // Over a wire that delivers everything, what did not come is behind what was cut off.
        let nameless = self.section.reached.levels.iter().map(|claim| claim.nameless).max();
        let unnamed = nameless.filter(|_| opened.plan.transport.may_lose());
        let base = Timestamp(self.section.header.base_ns);
        let scope = Scope {
            cpu_ns: &AtomicU64::new(0),
            store: &*opened.store,
            workload: &opened.workload,
            base,
            history: &history(&opened.plan, &opened.workload, base)?,
            since: self.section.header.since_ns.map(Timestamp),
            ticks: &ticks,
            rejected: &self.rejected,
            unsent: &[],
            unanswered: &behind,
            is_cut_off: true,
            in_doubt: &[],
            unnamed: unnamed.unwrap_or(0),
            is_unconfirmed: is_unconfirmed(&opened.store.capabilities()),
            clock: &MonotonicClock::new(),
            heard: &NewestAnswers::default(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        };
        scope
            .run(&AtomicU64::new(0))
            .map_err(|error| Failure::new(Exit::Invalid, format!("cannot read {}", opened.store)).because(&error))
    }
}

/// Per group: one past the last tick of which the store may hold samples, from the newest sample
/// of its series and the largest lateness of a sample.
fn may_have(store: &dyn Store, workload: &Workload, roster: &Roster, base: Timestamp) -> Result<Vec<u64>, Failure> {
    let cannot = |error| Failure::new(Exit::Invalid, format!("cannot read {store}")).because(&error);
    let mut newest: Vec<Option<Timestamp>> = vec![None; workload.groups().len()];
    let ids: Vec<SeriesId> = (0..workload.catalog().len() as u32).map(SeriesId).collect();
    for ids in ids.chunks(SERIES_PER_QUERY) {
        let mut there = vec![None; ids.len()];
        let mut accepted = vec![None; ids.len()];
        store.newest(ids, &mut there).map_err(cannot)?;
        store.newest_accepted(ids, &mut accepted).map_err(cannot)?;
        for ((&id, there), accepted) in ids.iter().zip(there).zip(accepted) {
            if let Some(group) = workload.group_of(id) {
                newest[group] = newest[group].max(there).max(accepted);
            }
        }
    }
    let spec = workload.spec();
    let late_ticks = if spec.disorder.late > 0.0 {
        spec.disorder.late_ticks
    } else {
        0
    };
    let ends = newest.iter().zip(workload.groups()).enumerate();
    Ok(ends
        .map(|(group, (newest, planned))| {
            let Some(newest) = newest else { return 0 };
            let margin_ns = planned.interval_ns.saturating_mul(u64::from(late_ticks) + 3);
            let offset_ns = u64::try_from(newest.0.saturating_sub(base.0)).unwrap_or(0);
            let frontier = Frontier {
                offset_ns: offset_ns.saturating_add(margin_ns),
                group: u32::MAX,
            };
            roster.ticks_through(group as u32, Some(frontier)).end
        })
        .collect())
}

/// The result of an audit for one level.
#[derive(Clone, Debug)]
struct LevelResult {
    report: LevelReport,
    ledger: LedgerReport,
    undecided_found: u64,
}

fn judged(
    section: &Section,
    contents: &Contents,
    opened: &ReopenedStore,
    claims: &Claims<'_>,
    must_be_there: Durability,
) -> Result<VerifiedStore, Failure> {
    let mut levels: Vec<LevelResult> = Vec::new();
    let mut known: Vec<(&Claim, LevelResult)> = Vec::new();
    for claim in &section.reached.levels {
        let same = known
            .iter()
            .find(|(one, _)| (&one.operations, one.nameless) == (&claim.operations, claim.nameless));
        let mut level = match same {
            Some((_, level)) => level.clone(),
            None => level(section, claim, &claims.read(opened, &claims.ticks(claim)?)?),
        };
        level.report.level = claim.level;
        level.report.must_be_there = claim.level >= must_be_there;
        known.push((claim, level.clone()));
        levels.push(level);
    }
    // The lowest of those that must be there holds all of the higher ones.
    let decisive = levels.iter().find(|level| level.report.must_be_there);
    let ledger = if let Some(level) = decisive {
        level.ledger.clone()
    } else {
        // What the lower levels lost may be gone.
        let none = Claim::default();
        level(section, &none, &claims.read(opened, &claims.ticks(&none)?)?).ledger
    };
    let acknowledged = decisive.map_or(0, |level| level.report.acknowledged);
    let nothing = (acknowledged == 0).then(|| {
        format!(
            "by its last record, the journal knows of no sample that had been acknowledged as {must_be_there} or better"
        )
    });
    let mut verdict = judge(&ledger, nothing);
    if contents.damaged > 0 {
        verdict.reasons.push(format!(
            "{} records of the journal are damaged: the others say what is judged here",
            units::count(contents.damaged)
        ));
    }
    let damage = opened
        .told
        .clone()
        .damage_of(&*opened.store, &mut verdict, crate::say::warning);
    let mut journal = JournalReport::default();
    journal.last_record_ns = section.reached.at_ns;
    journal.sent = section.reached.sent;
    journal.records = contents.records;
    journal.torn_bytes = contents.torn_bytes;
    journal.damaged_records = contents.damaged;
    journal.is_over = section.is_over;
    journal.undecided_found = decisive.or(levels.first()).map_or(0, |level| level.undecided_found);
    journal.levels = levels.into_iter().map(|level| level.report).collect();
    let mut verified = VerifiedStore::new(opened.store.to_string(), verdict);
    verified.plan = Some(section.header.plan.clone());
    verified.seed = Some(opened.plan.workload.seed);
    verified.ledger = Some(ledger);
    verified.journal = Some(journal);
    verified.damage = damage;
    Ok(verified)
}

fn level(section: &Section, claim: &Claim, audit: &Audit) -> LevelResult {
    let nameless = claim.nameless + section.reached.refused_unnamed;
    let expected_absent = ExpectedAbsent {
        nameless,
        // At the most: as many as are missing may be of these.
        is_guess: true,
        ..ExpectedAbsent::default()
    };
    let mut ledger = LedgerReport::default();
    ledger.counts.set(Counter::Sent, audit.sent);
    settle(&expected_absent, audit, &mut ledger);
    let lost = ledger.counts.count(Counter::Lost);
    ledger.lost_at_most = (audit.tally.missing > lost).then_some(audit.tally.missing);
    let mut counts = tsb_core::ledger::Ledger::new();
    let accepted = OF_ACCEPTED.iter().map(|&counter| ledger.counts.count(counter)).sum();
    counts
        .set(Counter::Rejected, audit.rejected)
        .set(Counter::Accepted, accepted);
    for counter in OF_ACCEPTED.into_iter().chain([Counter::Duplicated]) {
        if let Some(samples) = ledger.counts.get(counter) {
            counts.set(counter, samples);
        }
    }
    ledger.counts = counts;
    let undecided_found = audit.unanswered.saturating_sub(audit.absent);
    let in_claim = audit
        .sent
        .saturating_sub(audit.rejected)
        .saturating_sub(audit.unanswered);
    let mut report = LevelReport::new(claim.level);
    report.acknowledged = in_claim.saturating_sub(nameless);
    report.found = in_claim.saturating_sub(audit.tally.missing);
    report.lost = lost;
    report.lost_at_most = ledger.lost_at_most;
    LevelResult {
        report,
        ledger,
        undecided_found,
    }
}
