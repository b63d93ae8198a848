//! A run of many of the same work, in a fresh place: a round of a comparison, a probe of a search.

use super::engine::{OpenStore, run_plan};
use super::results::Finished;
use crate::controls::Controls;
use crate::error::Error;
use crate::place::RoundPlace;
use crate::plan::Plan;

/// Runs a plan in the place of round `number`, without a journal and labels of its own. The caller
/// removes the place.
///
/// # Errors
/// If the plan has no store, and as [`RoundPlace::new`] and [`run_plan`].
pub(crate) fn run_in_round_place(
    mut plan: Plan,
    number: u32,
    controls: &Controls,
    open: OpenStore<'_>,
) -> Result<(Finished, RoundPlace), Error> {
    let spec = plan.stores.first();
    let spec = spec.ok_or_else(|| Error::plan("cannot make a run without a store"))?;
    let place = RoundPlace::new(spec, number)?;
    plan.stores = vec![place.spec().clone()];
    let controls = Controls {
        labels: Vec::new(),
        journal: None,
        provisional: None,
        ..controls.clone()
    };
    Ok((run_plan(&plan, &controls, open)?, place))
}
