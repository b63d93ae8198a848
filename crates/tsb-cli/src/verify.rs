//! `tsb verify`: a store, read back against the report of the run that filled it.

use std::sync::atomic::AtomicU64;

use serde_json::json;
use tsb_core::Timestamp;
use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::workload::Workload;
use tsb_stores::spec::Spec;

use crate::args::{Format, VerifyArgs};
use crate::audit::{Audit, Heard, Scope};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::query;
use crate::run::issued_ticks;
use crate::{reports, units};

/// Runs the command.
pub fn command(args: &VerifyArgs) -> Result<Exit, Failure> {
    let mut ended = Exit::Done;
    for run in &reports::read(&args.report)?.runs {
        ended = ended.max(one(run, args)?);
    }
    Ok(ended)
}

fn one(run: &Run, args: &VerifyArgs) -> Result<Exit, Failure> {
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
    let ticks = issued_ticks(run, &workload);
    let cpu_ns = AtomicU64::new(0);
    let scope = Scope {
        cpu_ns: &cpu_ns,
        store: &*store,
        workload: &workload,
        base: Timestamp(run.started_at_ns),
        ticks: &ticks,
        rejected: &[],
        unsent: &[],
        unanswered: &[],
        heard: &Heard::default(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let audit = scope.run(&AtomicU64::new(0));
    let audit = audit.map_err(|error| Failure::new(Exit::Invalid, format!("cannot read {store}")).because(&error))?;
    let rejected = run.ledger.counts.count(Counter::Rejected);
    let lost = audit.tally.missing.saturating_sub(rejected);
    print(&store.to_string(), &audit, rejected, lost, args.format)?;
    query::check_structure(&spec)?;
    let is_whole = lost == 0 && audit.tally.altered == 0 && audit.tally.duplicated == 0;
    Ok(if is_whole { Exit::Done } else { Exit::Invalid })
}

fn print(store: &str, audit: &Audit, rejected: u64, lost: u64, format: Format) -> Result<(), Failure> {
    let tally = &audit.tally;
    let text = match format {
        Format::Json => format!(
            "{:#}\n",
            json!({
                "schema_version": 1, "store": store, "sent": audit.sent, "rejected": rejected, "verified": tally.verified,
                "superseded": tally.superseded, "expired": tally.expired, "lost": lost, "altered": tally.altered,
                "duplicated": tally.duplicated, "unconsolidated": tally.unconsolidated, "losses": audit.findings.as_slice(),
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
                ("unconsolidated", tally.unconsolidated),
            ];
            let cells = counts.map(|(name, count)| format!("{name} {}", units::count(count)));
            format!("{store}: {}\n", cells.join(", "))
        }
        Format::Csv => return Err(Failure::usage("cannot write this result as CSV").hint("give --format json")),
    };
    crate::output::print(text.as_bytes())
}
