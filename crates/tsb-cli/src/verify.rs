//! `tsb verify`: reads stores back and checks them against the report of the run that filled
//! them, or against the journal of a run that left no report.
//!
//! It uses the same audit and ledger as the end of a run. Every store of the report is read; a
//! store that cannot be read is reported, and the others are still read.

mod journaled;
mod run_facts;
mod show;

use std::path::Path;
use std::sync::atomic::AtomicU64;

use tsb_core::Timestamp;
use tsb_core::emit::ExceptionKind;
use tsb_core::report::{LedgerReport, Run, VerifiedStore};
use tsb_core::time::{Clock as _, MonotonicClock};
use tsb_core::verdict::{Evidence, Status, Verdict};
use tsb_core::workload::Workload;
use tsb_run::spec::{Spec, Typed};
use tsb_stores::Store;

use crate::args::{DocumentFormat, VerifyArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::{query, reports, say};
use run_facts::RunFacts;
use show::print;
pub(crate) use show::text;
use tsb_run::audit::{Audit, History, NewestAnswers, Scope, is_unconfirmed, visibility_wait_ns};
use tsb_run::damage::ReportedDamage;
use tsb_run::run::{history, issued_ticks, read_back, settle};
use tsb_run::{journal, units};

/// Runs the command.
///
/// # Errors
/// If the report or journal cannot be read, an option does not fit it, the result cannot be written,
/// or the only store cannot be read. Of several stores, what is wrong with one is in the result.
pub fn command(args: &VerifyArgs) -> Result<Exit, Failure> {
    if journal::is_journal(&args.report).unwrap_or(false) {
        let contents = journal::read(&args.report)?;
        let sections = contents.sections.iter();
        let all = sections.map(|section| (section.header.store.clone(), journaled::one(section, &contents, args)));
        if contents.sections.is_empty() {
            say::line(format!(
                "tsb: no record of {} is whole: nothing is known to have been acknowledged",
                args.report.display()
            ));
        }
        check_stores(args, contents.sections.len())?;
        return finish(all.collect(), args.format);
    }
    if args.after.is_some() {
        return Err(Failure::usage("cannot use --after with a report")
            .because_of("the run had ended, and brought everything to the level that its report names")
            .hint("it is for the journal of a run that was killed"));
    }
    let runs = reports::read(&args.report)
        .map_err(|failure| with_journal(failure, &args.report))?
        .runs;
    check_stores(args, runs.len())?;
    let all = runs.iter().map(|run| (run.target.store.clone(), one(run, args)));
    finish(all.collect(), args.format)
}

/// Adds a hint if the run left a journal where its report would be.
fn with_journal(failure: Failure, report: &Path) -> Failure {
    let journal = journal::beside(report);
    if report.exists() || !journal.exists() {
        return failure;
    }
    failure.hint(format!("the run left its journal: tsb verify {}", journal.display()))
}

/// Refuses `--store` for several runs.
fn check_stores(args: &VerifyArgs, runs: usize) -> Result<(), Failure> {
    match &args.store {
        Some(store) if runs > 1 => Err(Failure::usage(format!("cannot use --store {store}"))
            .because_of(format!("the report is of {runs} stores"))
            .hint("leave it out, and put each store where the run had it")),
        _ => Ok(()),
    }
}

/// Prints the result of each store, and returns the exit code.
fn finish(all: Vec<(String, Result<VerifiedStore, Failure>)>, format: DocumentFormat) -> Result<Exit, Failure> {
    let mut failures = Vec::new();
    let mut stores = Vec::new();
    for (name, verified) in all {
        stores.push(verified.unwrap_or_else(|failure| {
            let verified = unreadable(&name, &failure);
            failures.push(failure);
            verified
        }));
    }
    let is_invalid = |store: &VerifiedStore| store.verdict.status == Status::Invalid;
    let invalid = stores.iter().any(is_invalid).then_some(Exit::Invalid);
    // A single store that cannot be read is the failure of the command.
    let (alone, failures) = match (stores.len(), failures.pop()) {
        (1, Some(failure)) => (Some(failure), failures),
        (_, last) => (None, failures.into_iter().chain(last).collect()),
    };
    if let Some(failure) = alone {
        return Err(failure);
    }
    print(stores, format)?;
    let exits = failures.iter().map(|failure| failure.exit).chain(invalid);
    Ok(exits.max_by_key(|exit| gravity(*exit)).unwrap_or(Exit::Done))
}

/// Severity of an exit code: lost data is worse than a store that could not be read.
const fn gravity(exit: Exit) -> u8 {
    match exit {
        Exit::Done => 0,
        Exit::Usage => 1,
        Exit::Unreachable => 2,
        Exit::Invalid => 3,
        _ => 4,
    }
}

/// The result of a store that could not be read.
fn unreadable(store: &str, failure: &Failure) -> VerifiedStore {
    let status = if failure.exit == Exit::Invalid {
        Status::Invalid
    } else {
        Status::Unverified
    };
    VerifiedStore::new(store, Verdict::new(status, vec![words(failure)]))
}

/// A failure as one line.
fn words(failure: &Failure) -> String {
    let text = failure.to_string();
    text.trim_start_matches("tsb: ").replace("\n  ", "; ")
}

/// Marks a store as invalid, for a reason that is not in the ledger.
fn condemn(verdict: &mut Verdict, failure: &Failure) {
    if verdict.status == Status::Valid {
        // What it says is why the store is valid.
        verdict.reasons.clear();
    }
    verdict.status = Status::Invalid;
    verdict.reasons.push(words(failure));
}

/// Reads back the store of one run.
fn one(run: &Run, args: &VerifyArgs) -> Result<VerifiedStore, Failure> {
    if run.is_of_strangers() {
        return Err(Failure::usage("cannot verify this report")
            .because_of("it is of tsb ingest: who sent the samples is not known there")
            .hint("verify the report of tsb run or tsb emit, with --store"));
    }
    let opened = opened(&run.plan, args.store.as_ref())?;
    let mut verified = check(run, &opened)?;
    let verdict = &mut verified.verdict;
    let ReopenedStore { spec, store, .. } = &opened;
    if let Err(failure) = query::check_structure(spec) {
        condemn(verdict, &failure);
    }
    verified.damage = opened.told.clone().damage_of(&**store, verdict, say::warning);
    if let Err(error) = store.close() {
        let failure = Failure::new(Exit::Invalid, format!("cannot close {store}")).because(&error);
        condemn(verdict, &failure);
    }
    Ok(verified)
}

/// Reads back what a host had sent that was lost, by its journal.
///
/// # Errors
/// If the store cannot be read.
#[cfg(feature = "hosts")]
pub(crate) fn lost(contents: &journal::Contents, store: Option<&Typed>) -> Result<VerifiedStore, Failure> {
    let args = VerifyArgs {
        report: std::path::PathBuf::new(),
        store: store.cloned(),
        after: None,
        format: DocumentFormat::Text,
    };
    let section = contents.sections.last();
    let section = section.ok_or_else(|| Failure::usage("cannot read back what it had sent: it has no journal"))?;
    journaled::one(section, contents, &args)
}

/// Reads back what `tsb emit` sent, by a program that only reads.
///
/// # Errors
/// If the program cannot be started, or does not answer.
pub fn emitted(run: &Run, reader: &Spec) -> Result<VerifiedStore, Failure> {
    let store = reader.open().map_err(|error| Failure::opening(reader, &error))?;
    let clock = MonotonicClock::new();
    clock.wait_until(clock.now() + visibility_wait_ns(&store.capabilities()));
    let opened = defined(&run.plan, reader.clone(), store)?;
    let mut verified = check(run, &opened)?;
    if let Err(error) = opened.store.close() {
        let failure = Failure::opening(reader, &error);
        verified.verdict.reasons.push(words(&failure));
    }
    Ok(verified)
}

/// Reads everything back, and compares it with what the run sent.
fn check(run: &Run, opened: &ReopenedStore) -> Result<VerifiedStore, Failure> {
    let ReopenedStore {
        plan, store, workload, ..
    } = opened;
    let facts = RunFacts::of(run, plan.transport.is_wire());
    let history = history(plan, workload, Timestamp(run.started_at_ns))?;
    let read = |unnamed| read(run, &**store, workload, &history, &facts, unnamed);
    let mut audit = read(facts.unnamed_in_all())?;
    if facts.is_open_to_doubt(&audit) {
        // A row of a consolidating store may differ because of any of them.
        audit = read(audit.sent)?;
    }
    let mut ledger = facts.before();
    settle(&facts.expected_absent(), &audit, &mut ledger);
    facts.bound(&audit, &mut ledger);
    let mut verdict = judge(&ledger, None);
    if audit.tally.duplicated > 0 && !audit.wrong_answers.is_empty() {
        verdict.reasons.push(
            "the store holds newer samples than this run sent: if a later run was told to --append here, verify the \
             report of that one"
                .to_owned(),
        );
    }
    let mut verified = VerifiedStore::new(store.to_string(), verdict);
    verified.plan = Some(run.plan.clone());
    verified.seed = Some(run.seed);
    verified.ledger = Some(ledger);
    Ok(verified)
}

/// The reopened store of a plan.
struct ReopenedStore {
    plan: Plan,
    spec: Spec,
    store: Box<dyn Store>,
    workload: Workload,
    /// Damage reported when it was opened.
    told: ReportedDamage,
}

fn plan_of(plan: &serde_json::Value) -> Result<Plan, Failure> {
    serde_json::from_value(plan.clone())
        .map_err(|error| Failure::usage("cannot read the plan in the report").because(&error))
}

/// Opens the store of a plan, or `store` instead, for example a copy of it.
fn opened(plan: &serde_json::Value, store: Option<&Typed>) -> Result<ReopenedStore, Failure> {
    let spec = match store {
        Some(text) => text
            .spec()
            .map_err(|error| Failure::usage(format!("cannot use --store {text}")).because(&error))?,
        None => plan_of(plan)?
            .stores
            .first()
            .cloned()
            .ok_or_else(|| Failure::usage("cannot verify: the report names no store").hint("give --store SPEC"))?,
    };
    if store.is_none() && spec.scheme() == "exec" {
        return Err(Failure::usage(format!("cannot verify {spec}"))
            .because_of("the report names a program, and no program is started because a file says so")
            .hint("if you trust it, name it with --store"));
    }
    let store = query::existing(&spec)?;
    defined(plan, spec, store)
}

/// Defines the series of a plan in an open store.
fn defined(plan: &serde_json::Value, spec: Spec, store: Box<dyn Store>) -> Result<ReopenedStore, Failure> {
    let plan = plan_of(plan)?;
    let mut told = ReportedDamage::default();
    told.tell(&*store, crate::say::warning);
    let workload = Workload::new(&plan.workload)
        .map_err(|error| Failure::usage("cannot plan the workload again").because(&error))?;
    store
        .define(&workload.catalog().definitions())
        .map_err(|error| Failure::usage(format!("cannot define the series in {store}")).because(&error))?;
    Ok(ReopenedStore {
        plan,
        spec,
        store,
        workload,
        told,
    })
}

/// Reads everything back. `unnamed` samples may not have arrived and cannot be identified.
fn read(
    run: &Run,
    store: &dyn Store,
    workload: &Workload,
    history: &History,
    facts: &RunFacts<'_>,
    unnamed: u64,
) -> Result<Audit, Failure> {
    let ticks = issued_ticks(run, workload);
    let earlier = run.place.as_ref().and_then(|place| place.earlier);
    let cpu_ns = AtomicU64::new(0);
    let scope = Scope {
        cpu_ns: &cpu_ns,
        store,
        workload,
        base: Timestamp(run.started_at_ns),
        history,
        since: earlier.map(|earlier| Timestamp(earlier.before_ns)),
        ticks: &ticks,
        rejected: &facts.rejected(),
        unsent: &facts.operations(ExceptionKind::Shed),
        unanswered: &facts.operations(ExceptionKind::Unknown),
        is_cut_off: false,
        in_doubt: &facts.in_doubt(),
        unnamed,
        is_unconfirmed: facts.is_direct() && is_unconfirmed(&store.capabilities()),
        clock: &MonotonicClock::new(),
        heard: &NewestAnswers::default(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let audit = scope.run(&AtomicU64::new(0));
    audit.map_err(|error| Failure::new(Exit::Invalid, format!("cannot read {store}")).because(&error))
}

/// The verdict on the store's data: the part of a run's verdict that can change later.
fn judge(ledger: &LedgerReport, unread: Option<String>) -> Verdict {
    let evidence = Evidence {
        unread,
        // Said below, whatever its share is.
        lost_at_most: None,
        ..read_back(ledger)
    };
    let mut verdict = evidence.verdict();
    if verdict.status == Status::Valid {
        let verified = units::count(evidence.verified);
        verdict.reasons = vec![format!("{verified} samples are as they were sent")];
    }
    if let Some(at_most) = ledger.lost_at_most {
        if verdict.status == Status::Valid {
            verdict.reasons.clear();
        }
        verdict.status = verdict.status.min(Status::Unverified);
        verdict.reasons.push(format!(
            "the store lost between {} and {} samples: {} may have been lost by the store or on the way, and it \
             is unknown which",
            units::count(evidence.lost),
            units::count(at_most),
            units::count(at_most.saturating_sub(evidence.lost)),
        ));
    }
    verdict
}
