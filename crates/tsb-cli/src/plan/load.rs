//! Combines files, `--set` and flags into a complete plan.

use std::path::Path;

use serde_json::Value;
use tsb_run::spec::Typed;

use super::file::{self, RunFile};
use super::{Apply, Plan, Transport, no_effect, phases};
use crate::args::{Format, Progress, RunArgs};
use crate::failure::Failure;

/// The contents of the file that `--plan` names.
enum PlanFile {
    /// A complete plan, alone or from a report.
    Plan(Box<Plan>),
    /// A run file.
    RunFile(Box<RunFile>),
}

/// The plan of these arguments: the default run, changed by `--plan`, then by `--set`, then by the
/// flags.
///
/// If no transport is given, clients of servers are driven in process: the server is to be
/// measured, not a wire of ours in front of it.
pub fn load(args: &RunArgs) -> Result<Plan, Failure> {
    load_side(args, &[])
}

/// As [`load`], changed last by `own`, which are `KEY=VALUE` as `--set` takes them.
pub fn load_side(args: &RunArgs, own: &[Typed]) -> Result<Plan, Failure> {
    let mut draft = match args.plan.as_deref().map(named).transpose()? {
        Some(PlanFile::Plan(plan)) => Draft {
            plan: *plan,
            is_transport_said: true,
        },
        Some(PlanFile::RunFile(file)) => Draft::of_file(&file)?,
        None => Draft::default(),
    };
    let mut applied = Vec::new();
    for set in &args.set {
        applied.extend(draft.set(set)?);
    }
    draft.apply(args)?;
    for set in own {
        applied.extend(draft.set(set)?);
    }
    // Whether a flag has an effect depends on all of them, such as on the transport.
    for args in &applied {
        no_effect::check(&args.options, &draft.plan)?;
    }
    Ok(draft.plan.complete()?)
}

/// The plan of a run file alone.
pub(super) fn of_file(file: &RunFile) -> Result<Plan, Failure> {
    Ok(Draft::of_file(file)?.plan.complete()?)
}

/// A plan that is being put together.
#[derive(Default)]
struct Draft {
    plan: Plan,
    is_transport_said: bool,
}

impl Draft {
    fn of_file(file: &RunFile) -> Result<Self, Failure> {
        let mut draft = Self::default();
        draft.plan.phases.clone_from(&file.phases);
        draft.plan.queries.clone_from(&file.queries);
        draft.apply(&file.args)?;
        Ok(draft)
    }

    /// Applies flags, and refuses those without effect.
    fn apply(&mut self, args: &RunArgs) -> Result<(), Failure> {
        self.merge(args)?;
        no_effect::check(&args.options, &self.plan)
    }

    /// Applies flags, whether or not they have an effect.
    fn merge(&mut self, args: &RunArgs) -> Result<(), Failure> {
        self.plan.apply(&args.options)?;
        self.is_transport_said |= args.options.transport.is_some();
        settle(&mut self.plan, self.is_transport_said);
        Ok(())
    }

    /// Applies one `--set`. Returns the flag that it stands for, if it is not of a phase.
    fn set(&mut self, set: &Typed) -> Result<Option<RunArgs>, Failure> {
        match split(set)? {
            (SetKey::Flag(key), text) => {
                let args = file::of_text(key, text).map_err(|why| bad_set(set, why))?;
                self.merge(&args)?;
                Ok(Some(args))
            }
            (SetKey::Phase(name, key), text) => {
                // What followed from the phases as they were.
                (self.plan.schedule, self.plan.duration_ns) = (None, None);
                phases::change(&mut self.plan.phases, name, key, text).map_err(|why| bad_set(set, why))?;
                Ok(None)
            }
        }
    }
}

/// The left side of a `--set`.
enum SetKey<'a> {
    /// A key of the run file.
    Flag(&'a str),
    /// The name of a phase, and what is to be changed of it.
    Phase(&'a str, &'a str),
}

fn bad_set(set: &Typed, why: impl Into<String>) -> Failure {
    Failure::usage(format!("cannot use --set {set}"))
        .because_of(why)
        .hint("it is KEY=VALUE with a key of a run file, or NAME.KEY=VALUE for the phase NAME; docs/formats/plan.md lists the keys")
}

fn split(set: &Typed) -> Result<(SetKey<'_>, &str), Failure> {
    let Some((key, text)) = set.expose().split_once('=') else {
        return Err(bad_set(set, "it has no ="));
    };
    let key = match key.split_once('.') {
        Some((name, key)) => SetKey::Phase(name, key),
        None => SetKey::Flag(key),
    };
    Ok((key, text))
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

/// The arguments, completed with the outputs that `--set` or a run file name where no flag does.
pub fn with_file(args: &RunArgs) -> Result<RunArgs, Failure> {
    let mut args = args.clone();
    // The last one wins, as with flags.
    for set in args.set.clone().iter().rev() {
        if let (SetKey::Flag(key), text) = split(set)? {
            let from = file::of_text(key, text).map_err(|why| bad_set(set, why))?;
            fill_outputs(&mut args, from);
        }
    }
    if let Some(PlanFile::RunFile(file)) = args.plan.as_deref().map(named).transpose()? {
        fill_outputs(&mut args, file.args);
    }
    Ok(args)
}

/// Takes what is no part of a plan from `from`, where `args` does not say it.
fn fill_outputs(args: &mut RunArgs, from: RunArgs) {
    let output = &mut args.output;
    output.out = output.out.take().or(from.output.out);
    output.html = output.html.take().or(from.output.html);
    output.hdr_log = output.hdr_log.take().or(from.output.hdr_log);
    output.quiet |= from.output.quiet;
    if output.format == Format::default() {
        output.format = from.output.format;
    }
    if args.label.is_empty() {
        args.label = from.label;
    }
    args.journal = args.journal.take().or(from.journal);
    args.store_timeout = args.store_timeout.take().or(from.store_timeout);
    if args.fail_if.is_empty() {
        args.fail_if = from.fail_if;
    }
    if args.fail_unless.is_empty() {
        args.fail_unless = from.fail_unless;
    }
    args.retry_noisy = args.retry_noisy.or(from.retry_noisy);
    if args.progress == Progress::default() {
        args.progress = from.progress;
    }
    args.expose = args.expose.or(from.expose);
    args.expose_remote |= from.expose_remote;
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
    file::parse(path, &text).map(|file| PlanFile::RunFile(Box::new(file)))
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
