//! `tsb run` (and `tsb` alone): drive, read back, report.

mod assemble;
mod ceiling;
mod engine;
mod hdr_log;
mod ledger;
mod monitor;
mod path;
mod projection;
mod rejects;
mod sink;
mod slices;
mod stage;
mod window;

use std::io::Write;
use std::ops::Range;

use tsb_core::report::{Report, Run, SCHEMA_VERSION};
use tsb_core::verdict::Status;
use tsb_core::workload::Workload;

pub use engine::{Finished, Hooks, run_plan, run_store};
pub use monitor::progress;
pub use path::{Driven, Pass, Watch};
pub use rejects::Rejects;
pub use sink::{SinkTotals, StoreSink, Writer};
pub use stage::{Stage, open_store};
pub use window::{Waits, Window};

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::live::{self, expose};
use crate::output::Outputs;
use crate::plan::{self, Plan};

/// Refuses a protocol whose samples cannot be told apart once they have arrived.
fn check_comparable(plan: &Plan) -> Result<(), Failure> {
    if plan.transport.is_wire() && !plan.protocol.facts().timestamps {
        return Err(Failure::usage(format!("cannot check a run over {}", plan.protocol))
            .because_of("it carries no timestamps, so what arrives cannot be compared with what was sent")
            .hint("send with tsb emit, and receive with tsb ingest"));
    }
    Ok(())
}

/// Runs the command.
pub fn command(args: &RunArgs) -> Result<Exit, Failure> {
    let plan = plan::load(args)?;
    if args.print_plan {
        return print_plan(&plan);
    }
    check_comparable(&plan)?;
    let mut outputs = Outputs::open(&args.output)?;
    let mut hooks = Hooks::new(interrupt::flag(), args.output.quiet);
    let view = live::view(args, &mut hooks)?;
    let _exposed = expose(args, &mut hooks)?;
    let mut runs = Vec::new();
    for store in &plan.stores {
        let single = Plan {
            stores: vec![store.clone()],
            ..plan.clone()
        };
        let finished = run_plan(&single, &hooks)?;
        if let Some(file) = outputs.hdr_log() {
            hdr_log::write(file, &finished.driven, finished.run.started_at_ns)?;
        }
        let interrupted = finished.run.interrupted;
        runs.push(finished.run);
        if interrupted {
            break;
        }
    }
    drop(view);
    let report = Report {
        schema_version: SCHEMA_VERSION,
        tsb_version: env!("CARGO_PKG_VERSION").to_owned(),
        runs,
    };
    outputs.write(&report, &args.output)?;
    Ok(exit_of(&report))
}

fn print_plan(plan: &Plan) -> Result<Exit, Failure> {
    let text = serde_json::to_string_pretty(plan);
    let text = text.map_err(|error| Failure::new(Exit::Bug, "cannot print the plan").because(&error))?;
    let written = writeln!(std::io::stdout().lock(), "{text}");
    written.map_err(|error| Failure::usage("cannot write to stdout").because(&error))?;
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
