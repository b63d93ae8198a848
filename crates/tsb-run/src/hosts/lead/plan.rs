//! The plan of a run that hosts share, and its store before they come.

use tsb_core::workload::BatchMode;

use crate::error::Error;
use crate::observer::RunInfo;
use crate::place::Place;
use crate::plan::Plan;
use crate::run::{OpenStore, RunContext, earlier, run_info};

/// Most hosts of a run.
const HOSTS_MAX: usize = 10_000;

/// A plan that can be divided, or why this one cannot.
pub(super) fn divisible(plan: &Plan, hosts: usize) -> Result<Plan, Error> {
    let refuse = |why: &str| Err(Error::plan(format!("cannot share this run among {hosts} hosts")).because_of(why));
    if !(1..=HOSTS_MAX).contains(&hosts) {
        return refuse("--hosts is from 1 to 10000");
    }
    let [store] = &plan.stores[..] else {
        return refuse("such a run has one store");
    };
    let keeps_files = Place::of(store)?.is_some() && !store.is_client();
    let obstacles = [
        (
            keeps_files,
            "several processes cannot have the files of one store open: give a server",
        ),
        (
            plan.append,
            "the place of such a run is empty before: leave --append out",
        ),
        (
            plan.phases.iter().any(|phase| phase.faults.rate_per_second.is_some()),
            "a phase slows the store down in front of each host: leave its rate out, or slow down the server",
        ),
        (
            !plan.watch_pids.is_empty(),
            "a process is on one host: leave --watch-pid out",
        ),
    ];
    if let Some((_, why)) = obstacles.iter().find(|(is_there, _)| *is_there) {
        return refuse(why);
    }
    let mut plan = plan.clone();
    if plan.workload.batch == BatchMode::Tick {
        // As one process with the workers of all hosts sends it.
        plan.workload.tick_parts = plan.workers * hosts;
    }
    Ok(plan)
}

/// Plans the whole, and defines all series in the store, which was empty: clients of several hosts
/// then find the numbers of their series there. Also the facts that observers are given.
pub(super) fn prepare(plan: &Plan, hosts: usize, open: OpenStore<'_>) -> Result<(RunContext, RunInfo), Error> {
    let opened = open(plan)?;
    let store = opened.store();
    let context = RunContext::new(plan, store.capabilities().resolution_ns)?;
    let groups = context.workload.groups().len();
    if groups < hosts {
        return Err(Error::plan(format!("cannot divide this fleet among {hosts} hosts"))
            .because_of(format!("it has {groups} groups of series that report together"))
            .hint("give more --series or fewer --hosts"));
    }
    let place = earlier::place_of(&context)?;
    earlier::check(&context, &*store, place.as_ref())?;
    let failure = || Error::plan(format!("cannot define the series in {store}"));
    store
        .define(&context.workload.catalog().definitions())
        .map_err(|error| failure().because(&error))?;
    earlier::check_defined(&context, &*store, place.as_ref())?;
    store.close().map_err(|error| failure().because(&error))?;
    let subject = run_info(&context, &store);
    Ok((context, subject))
}
