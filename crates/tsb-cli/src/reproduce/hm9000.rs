//! How many apps can HM9000 keep fresh? As it was: a timer; corrected: a complete scan that is
//! held against the simulator.

mod disturbance;
pub(super) mod text;

use tsb_core::report::Written;
use tsb_core::report::experiment::hm9000::{Hm9000Plan, OutagePlan, Reproduction};
use tsb_core::report::experiment::{Experiment, ExperimentPlan};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::experiment::Folder;
use tsb_run::hm9000::{Defect, Defects, Layout, MISTAKES, Request, measure, rows};

use super::keyed_layouts::layouts;
use super::say;
use crate::args::Hm9000Args;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outputs;
use crate::{interrupt, render};

/// The experiment's name.
pub(super) const NAME: &str = "hm9000";
/// Stores that need no server.
const STORES: [&str; 3] = ["memory:", "sqlite:", "series+memory:"];
/// Numbers of apps: those that the document speaks of, and those between.
const APPS: [usize; 7] = [1_000, 10_000, 20_000, 30_000, 50_000, 100_000, 200_000];
const APPS_QUICK: [usize; 1] = [5_000];
/// More stores than this have one round in a quick run, so that it ends within two minutes.
const STORES_QUICK: usize = 3;
/// Where doubling ends.
const APPS_MAX: usize = 1_600_000;
/// More apps than this do not fit into the memory of a common machine.
const APPS_LIMIT: usize = 10_000_000;

/// Runs the experiment.
pub(super) fn command(args: &Hm9000Args) -> Result<Exit, Failure> {
    let common = &args.experiment;
    let layouts = layouts(&args.stores, &STORES, args.etcd.as_slice(), "--rounds")?;
    let without = args.without.iter().map(|name| name.parse::<Defect>());
    let defects = Defects {
        without: without.collect::<Result<_, _>>()?,
    };
    let plan = plan(args, &layouts, &defects)?;
    let outputs = Outputs::of_experiment(common.format, common.out.as_deref(), common.html.as_deref())?;
    let folder = Folder::make(&common.dir, "reproduce")?;
    let clock = MonotonicClock::new();
    let request = Request {
        plan: plan.clone(),
        is_quick: common.quick,
        layouts,
        defects,
        folder: folder.path(),
        stop: interrupt::flag(),
    };
    let command = args.outage.as_deref().unwrap_or_default();
    let mut disturb = |_number| disturbance::run(command);
    let details = measure(&request, &mut disturb, &mut |what| say(common, what))?;
    let exit = match (details.interrupted, details.failures.is_empty()) {
        (true, _) => Exit::Interrupted,
        (false, false) => Exit::Unreachable,
        (false, true) => Exit::Done,
    };
    let result = Reproduction {
        written: Written::here(),
        plan: ExperimentPlan {
            experiment: NAME.to_owned(),
            is_quick: common.quick,
            asked: plan,
        },
        took_seconds: clock.now() as f64 / SECOND_NS as f64,
        experiment: Experiment {
            name: NAME.to_owned(),
            is_quick: common.quick,
            is_debug_build: cfg!(debug_assertions),
            rows: rows(&details),
            mistakes: MISTAKES.map(str::to_owned).to_vec(),
            details,
        },
    };
    outputs.write_with_page(&result, || text::page(&result), || render::html::hm9000_page(&result))?;
    Ok(exit)
}

fn plan(args: &Hm9000Args, layouts: &[Layout], defects: &Defects) -> Result<Hm9000Plan, Failure> {
    let is_quick = args.experiment.quick;
    let mut apps = match (args.apps.as_slice(), is_quick) {
        ([], true) => APPS_QUICK.to_vec(),
        ([], false) => APPS.to_vec(),
        (given, _) => given.to_vec(),
    };
    apps.sort_unstable();
    apps.dedup();
    let largest = apps.last().copied().unwrap_or_default();
    let apps_max = match args.apps_max {
        Some(given) => given,
        None if is_quick || !args.apps.is_empty() => largest,
        None => APPS_MAX,
    };
    for (flag, apps) in [
        ("apps", apps.first().copied()),
        ("apps", Some(largest)),
        ("apps-max", Some(apps_max)),
    ] {
        let given = apps.unwrap_or_default();
        if !(1..=APPS_LIMIT).contains(&given) {
            return Err(Failure::usage(format!("cannot simulate --{flag} {given}"))
                .because_of(format!("it is from 1 to {APPS_LIMIT}")));
        }
    }
    Ok(Hm9000Plan {
        seed: args.seed,
        stores: layouts.iter().map(ToString::to_string).collect(),
        apps,
        apps_max: apps_max.max(largest),
        rounds: args.rounds.unwrap_or(match is_quick {
            true if layouts.len() > STORES_QUICK => 1,
            true => 2,
            false => 5,
        }),
        // Beyond the time to live of 30 s; a quick run ends after one interval of heartbeats.
        seconds: args.seconds.unwrap_or(if is_quick { 10 } else { 45 }),
        seconds_as_it_was: args.seconds_as_it_was.unwrap_or(if is_quick { 32 } else { 60 }),
        without: defects.without.iter().map(ToString::to_string).collect(),
        outage: args.outage.clone().map(|command| OutagePlan {
            command,
            count: args.outages,
        }),
    })
}
