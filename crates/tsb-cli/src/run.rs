//! `tsb run` (and `tsb` alone): drive, read back, report.

mod aftermath;
mod asked;
mod assemble;
mod calls;
mod ceiling;
mod cost;
mod course;
mod engine;
mod fit;
mod guarded;
mod hdr_log;
mod hooks;
mod journaled;
mod judge;
mod kept;
mod ledger;
mod missing;
mod monitor;
mod path;
mod patience;
mod peak;
mod projection;
mod recorded;
mod rejects;
mod remote;
mod sink;
mod slices;
mod slicing;
mod so_far;
mod stage;
mod window;

use std::ops::Range;
use std::sync::Arc;

use tsb_core::report::{Report, Run};
use tsb_core::verdict::Status;
use tsb_core::workload::Workload;

pub(crate) use asked::check as check_asked;
pub(crate) use assemble::{fingerprint, issued, offered};
pub(crate) use missing::{missing, missing_note};

pub use calls::Calls;
pub use engine::{Finished, Open, run_plan, run_store};
pub(crate) use guarded::Guarded;
pub(crate) use hdr_log::write as write_hdr_log;
pub use hooks::Hooks;
pub(crate) use journaled::{boot_id, header_of_emit, journal, way_of_emit};
pub use judge::read_back;
pub use kept::Kept;
pub(crate) use ledger::excepted;
pub use ledger::{Elsewhere, settle};
pub(crate) use monitor::{Seen, progress};
pub use path::{Driven, Pass, Watch};
pub use patience::{Came, Over, Patience, Waiting, at_once};
pub use rejects::Rejects;
pub use sink::{SinkTotals, StoreSink, Writer};
pub(crate) use slices::with_latencies;
pub(crate) use slicing::{Counted, Slicing};
pub(crate) use stage::timetable;
pub use stage::{Stage, open_store};
pub use window::{Waits, Window};

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::live::{self, expose};
use crate::output::{Outputs, print};
use crate::plan::{self, Plan};
use crate::say;

/// Refuses a protocol whose samples cannot be told apart once they have arrived.
fn check_comparable(plan: &Plan) -> Result<(), Failure> {
    if plan.transport.is_wire() && !plan.protocol.facts().timestamps {
        return Err(Failure::usage(format!("cannot check a run over {}", plan.protocol))
            .because_of("it carries no timestamps, so what arrives cannot be compared with what was sent")
            .hint("send with tsb emit, and receive with tsb ingest"));
    }
    Ok(())
}

/// Refuses labels that are no run's.
///
/// # Errors
/// When there are more labels than runs.
pub fn check_labels(labels: usize, runs: usize) -> Result<(), Failure> {
    if labels <= runs {
        return Ok(());
    }
    Err(Failure::usage(format!("cannot give {labels} labels to {runs} runs"))
        .hint("--label names one run after the other, in their order"))
}

/// Runs the command.
pub fn command(args: &RunArgs) -> Result<Exit, Failure> {
    let args = &plan::with_file(args)?;
    plan::no_effect::check_run(args)?;
    let plan = plan::load(args)?;
    if args.print_plan {
        return print_plan(&plan);
    }
    check_comparable(&plan)?;
    check_labels(args.label.len(), plan.stores.len())?;
    let patience = Patience::of(args.store_timeout.as_deref())?;
    let mut outputs = Outputs::open(&args.output)?;
    let mut hooks = Hooks::new(Arc::default(), args.output.quiet).with_signals(&interrupt::signals());
    hooks.patience = patience;
    hooks.labels.clone_from(&args.label);
    let view = live::view(args, &mut hooks)?;
    let _exposed = expose(args, &mut hooks)?;
    let kept = Arc::new(Kept::new(outputs.report_file().cloned()));
    let keeper = Arc::clone(&kept);
    hooks.provisional = Some(Arc::new(move |run| keeper.keep_with(run)));
    hooks.journal = journal(args, &outputs)?;
    outputs.supersedes(hooks.journal.clone());
    let failed = run_each(&plan, &hooks, &open_store, &kept, outputs.hdr_log())?;
    drop(view);
    let report = kept.report();
    outputs.write(&report)?;
    let exit = exit_of(&report);
    match failed {
        Some(failure) if exit != Exit::Invalid => Err(failure),
        Some(failure) => {
            say::failure(&failure);
            Ok(exit)
        }
        None => Ok(exit),
    }
}

/// Runs the plan's stores one after the other, and keeps each run as it is over. Returns the
/// first failure of those that could not be run.
///
/// # Errors
/// When the first of them could not: then nothing was measured, and nothing is lost.
pub fn run_each(
    plan: &Plan,
    hooks: &Hooks,
    open: Open<'_>,
    kept: &Kept,
    mut log: Option<&mut Vec<u8>>,
) -> Result<Option<Failure>, Failure> {
    let mut failed = None;
    for (index, store) in plan.stores.iter().enumerate() {
        if index > 0 {
            kept.save();
        }
        let single = Plan {
            stores: vec![store.clone()],
            ..plan.clone()
        };
        let mut finished = match run_plan(&single, hooks, open) {
            Ok(finished) => finished,
            Err(failure) if index == 0 => return Err(failure),
            Err(failure) => {
                kept.note(format!("{store} was not measured: {}", failure.in_a_line()));
                match failed {
                    None => failed = Some(failure),
                    Some(_) => say::failure(&failure),
                }
                continue;
            }
        };
        if let Some(log) = log.as_deref_mut() {
            write_hdr_log(log, &finished.driven, finished.run.started_at_ns).unwrap_or_else(say::failure);
        }
        finished.run.label = hooks.labels.get(index).cloned();
        let interrupted = finished.run.interrupted;
        kept.add(finished.run);
        if interrupted {
            break;
        }
    }
    Ok(failed)
}

/// Prints a plan as `--plan` reads it.
pub(crate) fn print_plan(plan: &Plan) -> Result<Exit, Failure> {
    let text = serde_json::to_string_pretty(plan);
    let text = text.map_err(|error| Failure::new(Exit::Bug, "cannot print the plan").because(&error))?;
    print(format!("{text}\n").as_bytes())?;
    Ok(Exit::Done)
}

/// The ticks of each group that a reported run issued.
pub fn issued_ticks(run: &Run, workload: &Workload) -> Vec<Range<u64>> {
    let mut ticks = vec![0..0; workload.groups().len()];
    for issued in &run.issued {
        let groups = issued.first_group as usize..(issued.first_group + issued.groups) as usize;
        for group in ticks.get_mut(groups).into_iter().flatten() {
            *group = issued.first_tick..issued.end_tick;
        }
    }
    ticks
}

/// The worst verdict decides; an interruption comes before all but invalid data.
pub fn exit_of(report: &Report) -> Exit {
    let is_invalid = |status: Status| matches!(status, Status::Invalid | Status::GeneratorLimited);
    if report.runs.iter().any(|run| run.verdict.status == Status::Invalid) {
        Exit::Invalid
    } else if report.runs.iter().any(|run| run.interrupted) {
        Exit::Interrupted
    } else if report.runs.iter().any(|run| is_invalid(run.verdict.status)) {
        Exit::Invalid
    } else {
        Exit::Done
    }
}
