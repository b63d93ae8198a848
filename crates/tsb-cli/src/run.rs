//! `tsb run` (and `tsb` alone): turns flags into a plan, and its report into outputs and an exit
//! code.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tsb_core::report::Report;
use tsb_core::verdict::Status;
use tsb_run::journal::Journal;
use tsb_run::run::write_hdr_log;
use tsb_run::{Controls, FinishedRuns, Plan, StoreTimeouts, run_each, units};

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::live::Display;
use crate::output::{Outputs, Target, json, print};
use crate::{credentials, interrupt, plan, say, thresholds};

/// Refuses more labels than runs.
///
/// # Errors
/// If there are more labels than runs.
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
    tsb_run::run::check_comparable(&plan)?;
    check_labels(args.label.len(), plan.stores.len())?;
    let thresholds = thresholds::of_run(args)?;
    plan::no_effect::check_repeated(args, &plan)?;
    let store_timeouts = store_timeouts(args.store_timeout.as_deref())?;
    let mut outputs = Outputs::open(&args.output)?;
    let display = Display::open(args, &interrupt::signals())?;
    let kept = Arc::new(FinishedRuns::new(outputs.report_file().cloned().map(saver)));
    let keeper = Arc::clone(&kept);
    let journal = journal(args, &outputs)?;
    outputs.supersedes(journal.clone());
    let controls = Controls {
        store_timeouts,
        labels: args.label.clone(),
        retry_noisy: args.retry_noisy.unwrap_or(0),
        provisional: Some(Arc::new(move |run| keeper.keep_with(run))),
        journal,
        ..display.controls()
    };
    let mut log = outputs.hdr_log();
    let failed = run_each(&plan, &controls, &credentials::open, &kept, |finished| {
        if let Some(log) = log.as_deref_mut() {
            write_hdr_log(log, &finished.driven, finished.run.started_at_ns)
                .unwrap_or_else(|error| say::failure(Failure::from(error)));
        }
    })?;
    drop((controls, display));
    let mut report = kept.report();
    let is_passed = thresholds::check(&mut report.runs, &thresholds);
    outputs.write(&report)?;
    let exit = exit_of(&report, is_passed);
    match failed {
        Some(error) if exit != Exit::Invalid => Err(error.into()),
        Some(error) => {
            say::failure(Failure::from(error));
            Ok(exit)
        }
        None => Ok(exit),
    }
}

/// Makes a function that writes reports into a file. It ignores failures: the final write
/// reports them.
fn saver(file: Target) -> Box<dyn Fn(&Report) + Send + Sync> {
    Box::new(move |report| {
        let _ = json(report).and_then(|bytes| file.write(&bytes));
    })
}

/// The time limit of `--store-timeout`, or the default.
///
/// # Errors
/// If it is not a duration, or is 0.
pub fn store_timeouts(typed: Option<&str>) -> Result<StoreTimeouts, Failure> {
    let Some(text) = typed else {
        return Ok(StoreTimeouts::default());
    };
    let failure = || Failure::usage(format!("cannot read --store-timeout {text}"));
    let ns = units::parse_duration(text).map_err(|why| failure().because_of(why))?;
    StoreTimeouts::of(Duration::from_nanos(ns)).map_err(|_| failure().because_of("every call takes some time"))
}

/// The journal of a run: the one that was named, or one next to its report.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn journal(args: &RunArgs, outputs: &Outputs) -> Result<Option<Arc<Journal>>, Failure> {
    let taken = [&args.output.out, &args.output.html, &args.output.hdr_log];
    if args.journal.is_some() && taken.contains(&&args.journal) {
        return Err(
            Failure::usage("cannot write the journal into a file that another result goes to")
                .hint("give --journal another file"),
        );
    }
    let journal = match (&args.journal, outputs.report_file()) {
        (Some(path), _) => Some(named_journal(path)?),
        (None, Some(report)) => report.is_replaced().then(|| Journal::beside(report.path())),
        (None, None) => None,
    };
    Ok(journal.map(Arc::new))
}

fn named_journal(path: &Path) -> Result<Journal, Failure> {
    if Target::prepare(path)?.is_replaced() {
        return Ok(Journal::named(path));
    }
    Err(
        Failure::usage(format!("cannot write a journal into {}", path.display()))
            .because_of("it is a device, a pipe, or in a folder that takes no other files")
            .hint("give the path of a file"),
    )
}

/// Prints a plan in the form that `--plan` reads.
pub(crate) fn print_plan(plan: &Plan) -> Result<Exit, Failure> {
    let text = serde_json::to_string_pretty(plan);
    let text = text.map_err(|error| Failure::new(Exit::Bug, "cannot print the plan").because(&error))?;
    print(format!("{text}\n").as_bytes())?;
    Ok(Exit::Done)
}

/// The exit code of a report. INVALID comes first, then an interruption, then GENERATOR-LIMITED, then
/// a threshold that was not passed.
pub fn exit_of(report: &Report, is_passed: bool) -> Exit {
    let is_invalid = |status: Status| matches!(status, Status::Invalid | Status::GeneratorLimited);
    if report.runs.iter().any(|run| run.verdict.status == Status::Invalid) {
        Exit::Invalid
    } else if report.runs.iter().any(|run| run.interrupted) {
        Exit::Interrupted
    } else if report.runs.iter().any(|run| is_invalid(run.verdict.status)) {
        Exit::Invalid
    } else if is_passed {
        Exit::Done
    } else {
        Exit::Crossed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_duration_above_0() {
        assert_eq!(store_timeouts(Some("2s")).unwrap().stopped, Duration::from_secs(2));
        assert_eq!(store_timeouts(None).unwrap().stopped, Duration::from_secs(30));
        for bad in ["0s", "soon"] {
            assert!(store_timeouts(Some(bad)).is_err(), "{bad}");
        }
    }
}
