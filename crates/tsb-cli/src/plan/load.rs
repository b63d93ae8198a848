//! From files and flags to a complete plan.

use std::path::Path;

use serde_json::Value;

use super::Plan;
use crate::args::{RunArgs, RunOptions};
use crate::failure::Failure;

/// The plan that these arguments mean: the default run, changed by `--plan`, changed by
/// the flags.
pub fn load(args: &RunArgs) -> Result<Plan, Failure> {
    let mut plan = match &args.plan {
        Some(path) => from_file(path)?,
        None => Plan::default(),
    };
    plan.apply(&args.options)?;
    plan.complete()
}

/// A run file (TOML), a plan or a report (JSON).
fn from_file(path: &Path) -> Result<Plan, Failure> {
    let failure = || Failure::usage(format!("cannot read plan {}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failure().because(&error))?;
    if text.trim_start().starts_with('{') {
        let value: Value = serde_json::from_str(&text).map_err(|error| failure().because(&error))?;
        return from_json(value).map_err(|why| failure().because_of(why));
    }
    let options: RunOptions = toml::from_str(&text).map_err(|error| {
        failure()
            .because_of(error.to_string().trim_end().to_owned())
            .hint("its keys are the names of the flags")
    })?;
    let mut plan = Plan::default();
    plan.apply(&options)?;
    Ok(plan)
}

/// The plan within a report, or a plan alone. Of a report with several runs: the first
/// one's, with the stores of all.
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
