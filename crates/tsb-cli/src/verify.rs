//! `tsb verify`: stores, read back against the report of the run that filled them.
//!
//! The same audit and the same ledger as at the end of a run. Every store of the report is
//! read; one that cannot be is said, and does not keep the others from it.

mod known;

use std::sync::atomic::AtomicU64;

use tsb_core::Timestamp;
use tsb_core::emit::ExceptionKind;
use tsb_core::report::{LedgerReport, Run, SCHEMA_VERSION, Verification, VerifiedStore};
use tsb_core::verdict::{Status, Verdict};
use tsb_core::workload::Workload;
use tsb_stores::Store;
use tsb_stores::spec::Spec;

use crate::args::{Format, VerifyArgs};
use crate::audit::{Audit, Heard, Scope};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::run::{issued_ticks, read_back, settle};
use crate::{output, query, reports, units};
use known::Known;

/// Samples named in the text; the JSON names more.
const SHOWN: usize = 10;

/// Runs the command.
///
/// # Errors
/// When the report cannot be read, or the result cannot be written. What is wrong with a
/// store is in the result.
pub fn command(args: &VerifyArgs) -> Result<Exit, Failure> {
    let runs = reports::read(&args.report)?.runs;
    if args.format == Format::Csv {
        return Err(Failure::usage("cannot write this result as CSV").hint("give --format json"));
    }
    if let (Some(store), true) = (&args.store, runs.len() > 1) {
        return Err(Failure::usage(format!("cannot use --store {store}"))
            .because_of(format!("the report is of {} stores", runs.len()))
            .hint("leave it out, and put each store where the run had it"));
    }
    let mut failures = Vec::new();
    let mut stores = Vec::new();
    for run in &runs {
        stores.push(one(run, args).unwrap_or_else(|failure| {
            let verified = unreadable(run, &failure);
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
    print(stores, args.format)?;
    let exits = failures.iter().map(|failure| failure.exit).chain(invalid);
    Ok(exits.max_by_key(|exit| gravity(*exit)).unwrap_or(Exit::Done))
}

/// Lost data is worse than a store that could not be looked at.
const fn gravity(exit: Exit) -> u8 {
    match exit {
        Exit::Done => 0,
        Exit::Usage => 1,
        Exit::Unreachable => 2,
        Exit::Invalid => 3,
        _ => 4,
    }
}

/// A store of which nothing can be said.
fn unreadable(run: &Run, failure: &Failure) -> VerifiedStore {
    let status = if failure.exit == Exit::Invalid {
        Status::Invalid
    } else {
        Status::Unverified
    };
    VerifiedStore {
        store: run.target.store.clone(),
        verdict: Verdict {
            status,
            reasons: vec![words(failure)],
            measured: Vec::new(),
        },
        ledger: None,
    }
}

/// A failure as one sentence.
fn words(failure: &Failure) -> String {
    let text = failure.to_string();
    text.trim_start_matches("tsb: ").replace("\n  ", "; ")
}

/// Makes a store invalid for a reason that is not in the ledger.
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
    if run.plan.is_null() {
        return Err(Failure::usage("cannot verify this report")
            .because_of("it is of tsb ingest: who sent the samples is not known there")
            .hint("verify the report of tsb run or tsb emit, with --store"));
    }
    let plan: Plan = serde_json::from_value(run.plan.clone())
        .map_err(|error| Failure::usage("cannot read the plan in the report").because(&error))?;
    let spec = match &args.store {
        Some(text) => text
            .parse::<Spec>()
            .map_err(|error| Failure::usage(format!("cannot use --store {text}")).because(&error))?,
        None => plan
            .stores
            .first()
            .cloned()
            .ok_or_else(|| Failure::usage("cannot verify: the report names no store").hint("give --store SPEC"))?,
    };
    let store = query::existing(&spec)?;
    let workload = Workload::new(&plan.workload)
        .map_err(|error| Failure::usage("cannot plan the workload again").because(&error))?;
    store
        .define(&workload.catalog().definitions())
        .map_err(|error| Failure::usage(format!("cannot define the series in {store}")).because(&error))?;
    let known = Known::of(run, plan.transport.is_wire());
    let audit = read(run, &*store, &workload, &known)?;
    let mut ledger = known.before();
    settle(&known.elsewhere(), &audit, &mut ledger);
    known.bound(&audit, &mut ledger);
    let mut verdict = judge(&ledger);
    if let Err(failure) = query::check_structure(&spec) {
        condemn(&mut verdict, &failure);
    }
    if let Err(error) = store.close() {
        let failure = Failure::new(Exit::Invalid, format!("cannot close {store}")).because(&error);
        condemn(&mut verdict, &failure);
    }
    Ok(VerifiedStore {
        store: store.to_string(),
        verdict,
        ledger: Some(ledger),
    })
}

fn read(run: &Run, store: &dyn Store, workload: &Workload, known: &Known<'_>) -> Result<Audit, Failure> {
    let ticks = issued_ticks(run, workload);
    let cpu_ns = AtomicU64::new(0);
    let scope = Scope {
        cpu_ns: &cpu_ns,
        store,
        workload,
        base: Timestamp(run.started_at_ns),
        ticks: &ticks,
        rejected: &known.rejected(),
        unsent: &known.operations(ExceptionKind::Shed),
        unanswered: &known.operations(ExceptionKind::Unknown),
        heard: &Heard::default(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let audit = scope.run(&AtomicU64::new(0));
    audit.map_err(|error| Failure::new(Exit::Invalid, format!("cannot read {store}")).because(&error))
}

/// What the ledger says of the store: the part of a run's verdict that can change later.
fn judge(ledger: &LedgerReport) -> Verdict {
    let evidence = read_back(ledger);
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
            "which samples never reached the store is not known: it lost between {} and {} samples",
            units::count(evidence.lost),
            units::count(at_most)
        ));
    }
    verdict
}

fn print(stores: Vec<VerifiedStore>, format: Format) -> Result<(), Failure> {
    if format == Format::Text {
        let texts: Vec<String> = stores.iter().map(text).collect();
        return output::print(texts.concat().as_bytes());
    }
    let verification = Verification {
        schema_version: SCHEMA_VERSION,
        tsb_version: env!("CARGO_PKG_VERSION").to_owned(),
        stores,
    };
    let json = serde_json::to_string_pretty(&verification);
    let json = json.map_err(|error| Failure::new(Exit::Bug, "cannot serialize the result").because(&error))?;
    output::print(format!("{json}\n").as_bytes())
}

/// A line for a store, and below it what is known of it.
fn text(store: &VerifiedStore) -> String {
    let mut lines = vec![format!("{}: {}", store.store, store.verdict.status)];
    if let Some(ledger) = &store.ledger {
        let counts = ledger.counts.counts();
        let cells = counts.map(|(counter, samples)| {
            let name = counter.name().replace('_', " ");
            format!("{name} {}", units::count(samples))
        });
        lines.push(cells.collect::<Vec<_>>().join(", "));
    }
    lines.extend(store.verdict.reasons.iter().cloned());
    let losses = store.ledger.as_ref().map_or(&[][..], |ledger| &ledger.losses);
    lines.extend(losses.iter().take(SHOWN).map(ToString::to_string));
    if losses.len() > SHOWN {
        lines.push(format!(
            "and {} more, named in --format json",
            units::count((losses.len() - SHOWN) as u64)
        ));
    }
    format!("{}\n", lines.join("\n  "))
}
