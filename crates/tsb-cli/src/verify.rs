//! `tsb verify`: a store, read back against the report of the run that filled it.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use serde_json::json;
use tsb_core::Timestamp;
use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::workload::Workload;
use tsb_stores::spec::Spec;

use crate::args::{Format, VerifyArgs};
use crate::audit::{Audit, Scope};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::run::issued_ticks;
use crate::units;

/// Runs the command.
pub fn command(args: &VerifyArgs) -> Result<Exit, Failure> {
    let mut ended = Exit::Done;
    for run in runs(&args.report)? {
        ended = ended.max(one(&run, args)?);
    }
    Ok(ended)
}

fn runs(path: &Path) -> Result<Vec<Run>, Failure> {
    let failure = || Failure::usage(format!("cannot read report {}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failure().because(&error))?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| failure().because(&error))?;
    let version = value.get("schema_version").and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(tsb_core::report::SCHEMA_VERSION)) {
        return Err(failure().because_of(match version {
            Some(version) => format!(
                "its schema_version is {version}; this program reads {}",
                tsb_core::report::SCHEMA_VERSION
            ),
            None => "it has no schema_version: it is no report of tsb".to_owned(),
        }));
    }
    let runs = match value.get("runs") {
        Some(runs) => serde_json::from_value(runs.clone()),
        None => serde_json::from_value(value).map(|run| vec![run]),
    };
    runs.map_err(|error| failure().because(&error))
}

fn one(run: &Run, args: &VerifyArgs) -> Result<Exit, Failure> {
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
            .ok_or_else(|| Failure::usage("the report names no store"))?,
    };
    let store = spec
        .open()
        .map_err(|error| Failure::new(Exit::Unreachable, format!("cannot open store {spec}")).because(&error))?;
    if !store.capabilities().persistent {
        return Err(Failure::usage(format!("cannot verify {store}"))
            .because_of("it keeps nothing past the process that filled it")
            .hint("the run itself has read everything back: its verdict is in the report"));
    }
    let workload = Workload::new(&plan.workload)
        .map_err(|error| Failure::usage("cannot plan the workload again").because(&error))?;
    store
        .define(&workload.catalog().definitions())
        .map_err(|error| Failure::usage(format!("cannot define the series in {store}")).because(&error))?;
    let ticks = issued_ticks(run, &workload);
    let scope = Scope {
        store: &*store,
        workload: &workload,
        base: Timestamp(run.started_at_ns),
        ticks: &ticks,
        rejected: &[],
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let audit = scope.run(&AtomicU64::new(0));
    let audit = audit.map_err(|error| Failure::new(Exit::Invalid, format!("cannot read {store}")).because(&error))?;
    let rejected = run.ledger.counts.count(Counter::Rejected);
    let lost = audit.tally.missing.saturating_sub(rejected);
    print(&store.to_string(), &audit, rejected, lost, args.format)?;
    let is_whole = lost == 0 && audit.tally.altered == 0 && audit.tally.duplicated == 0;
    Ok(if is_whole { Exit::Done } else { Exit::Invalid })
}

fn print(store: &str, audit: &Audit, rejected: u64, lost: u64, format: Format) -> Result<(), Failure> {
    use std::io::Write;
    let tally = &audit.tally;
    let text = match format {
        Format::Json => format!(
            "{:#}\n",
            json!({
                "schema_version": 1, "store": store, "sent": audit.sent, "rejected": rejected, "verified": tally.verified,
                "superseded": tally.superseded, "expired": tally.expired, "lost": lost, "altered": tally.altered,
                "duplicated": tally.duplicated, "losses": audit.findings.as_slice(),
            })
        ),
        Format::Text => {
            let counts = [
                ("sent", audit.sent),
                ("rejected", rejected),
                ("verified", tally.verified),
                ("superseded", tally.superseded),
                ("expired", tally.expired),
                ("lost", lost),
                ("altered", tally.altered),
                ("duplicated", tally.duplicated),
            ];
            let cells = counts.map(|(name, count)| format!("{name} {}", units::count(count)));
            format!("{store}: {}\n", cells.join(", "))
        }
        Format::Csv => return Err(Failure::usage("cannot write this result as CSV").hint("give --format json")),
    };
    let written = std::io::stdout().lock().write_all(text.as_bytes());
    written.map_err(|error| Failure::usage("cannot write to stdout").because(&error))
}
