//! Combines files and flags into a complete plan.

use std::path::Path;

use serde_json::Value;

use super::{Apply, Plan, Transport, file, no_effect};
use crate::args::{Format, Progress, RunArgs};
use crate::failure::Failure;

/// The contents of the file that `--plan` names.
enum PlanFile {
    /// A complete plan, alone or from a report.
    Plan(Box<Plan>),
    /// A run file, as flags.
    Flags(Box<RunArgs>),
}

/// The plan of these arguments: the default run, changed by `--plan`, then by the flags.
///
/// If no transport is given, clients of servers are driven in process: the server is to be
/// measured, not a wire of ours in front of it.
pub fn load(args: &RunArgs) -> Result<Plan, Failure> {
    let (mut plan, mut is_said) = (Plan::default(), args.options.transport.is_some());
    match args.plan.as_deref().map(named).transpose()? {
        Some(PlanFile::Plan(named)) => (plan, is_said) = (*named, true),
        Some(PlanFile::Flags(flags)) => {
            plan.apply(&flags.options)?;
            is_said |= flags.options.transport.is_some();
            settle(&mut plan, is_said);
            no_effect::check(&flags.options, &plan)?;
        }
        None => {}
    }
    plan.apply(&args.options)?;
    settle(&mut plan, is_said);
    no_effect::check(&args.options, &plan)?;
    Ok(plan.complete()?)
}

/// Sets the default transport if none was given.
fn settle(plan: &mut Plan, is_said: bool) {
    if !is_said {
        let is_any_client = plan.stores.iter().any(tsb_run::spec::Spec::is_client);
        plan.transport = if is_any_client {
            Transport::Inproc
        } else {
            Plan::default().transport
        };
    }
}

/// The arguments, completed with the outputs that a run file names where no flag does.
pub fn with_file(args: &RunArgs) -> Result<RunArgs, Failure> {
    let mut args = args.clone();
    let Some(PlanFile::Flags(file)) = args.plan.as_deref().map(named).transpose()? else {
        return Ok(args);
    };
    let output = &mut args.output;
    output.out = output.out.take().or(file.output.out);
    output.html = output.html.take().or(file.output.html);
    output.hdr_log = output.hdr_log.take().or(file.output.hdr_log);
    args.journal = args.journal.take().or(file.journal);
    args.store_timeout = args.store_timeout.take().or(file.store_timeout);
    output.quiet |= file.output.quiet;
    if output.format == Format::default() {
        output.format = file.output.format;
    }
    if args.progress == Progress::default() {
        args.progress = file.progress;
    }
    args.expose = args.expose.or(file.expose);
    args.expose_remote |= file.expose_remote;
    Ok(args)
}

/// Reads a run file (TOML), a plan or a report (JSON).
fn named(path: &Path) -> Result<PlanFile, Failure> {
    let failure = || Failure::usage(format!("cannot read plan {}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failure().because(&error))?;
    if text.trim_start().starts_with('{') {
        let value: Value = serde_json::from_str(&text).map_err(|error| failure().because(&error))?;
        let plan = from_json(value).map_err(|why| failure().because_of(why))?;
        return Ok(PlanFile::Plan(Box::new(plan)));
    }
    file::parse(path, &text).map(|flags| PlanFile::Flags(Box::new(flags)))
}

/// The plan in a report, or a plan alone. A report with several runs gives the first run's plan
/// with the stores of all.
fn from_json(mut value: Value) -> Result<Plan, String> {
    let Some(runs) = value.get_mut("runs").and_then(Value::as_array_mut) else {
        let plan = match value.get_mut("plan") {
            Some(plan) => plan.take(),
            None => value,
        };
        return serde_json::from_value(plan).map_err(|error| error.to_string());
    };
    let mut plans = Vec::new();
    for run in runs {
        let plan = run
            .get_mut("plan")
            .map(Value::take)
            .ok_or("a run of the report has no plan")?;
        plans.push(serde_json::from_value::<Plan>(plan).map_err(|error| error.to_string())?);
    }
    let stores = plans.iter().flat_map(|plan| plan.stores.clone()).collect();
    let first = plans.into_iter().next().ok_or("the report has no run")?;
    Ok(Plan { stores, ..first })
}
