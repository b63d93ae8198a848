//! Runs as flags would ask for them.

use std::sync::Arc;

use tsb_cli::args::RunOptions;
use tsb_cli::plan::{Apply, Plan};
use tsb_run::{Controls, Finished, run_store};
use tsb_stores::Store;

/// The plan of these flags, completed.
pub(crate) fn plan_of(options: &RunOptions) -> Plan {
    let mut plan = Plan::default();
    plan.apply(options).unwrap();
    plan.complete().unwrap()
}

/// A run into a store to its end, with nobody who watches.
pub(crate) fn run_into(store: &Arc<dyn Store>, options: &RunOptions) -> Finished {
    run_store(&plan_of(options), store, &Controls::default()).unwrap()
}
