//! Runs of which a comparison or a search makes many, each in a fresh place.

use tsb_core::report::Run;

use super::emitter_times::EmitterTimes;
use super::engine::run_plan;
use super::results::Finished;
use crate::controls::Controls;
use crate::error::Error;
use crate::place::RoundPlace;
use crate::plan::Plan;
use crate::spec::OpenedStore;

/// A run as a comparison or a search takes it.
#[derive(Debug)]
#[non_exhaustive]
pub struct MadeRun {
    /// Its report.
    pub run: Run,
    /// The times of everything that sent: of one process, or of several hosts.
    pub emitters: Vec<EmitterTimes>,
}

impl MadeRun {
    /// A report, and the times of everything that sent.
    pub const fn new(run: Run, emitters: Vec<EmitterTimes>) -> Self {
        Self { run, emitters }
    }
}

impl From<Finished> for MadeRun {
    fn from(finished: Finished) -> Self {
        let emitters = vec![EmitterTimes::of(&finished.driven)];
        Self::new(finished.run, emitters)
    }
}

/// Makes the runs of a comparison or a search. A closure that opens the store of a plan makes them in this
/// process.
pub trait MakeRun {
    /// Runs a plan of one store, whose place is fresh.
    ///
    /// # Errors
    /// If nothing could be measured.
    fn make(&self, plan: &Plan, controls: &Controls) -> Result<MadeRun, Error>;

    /// Whether hosts share each run, in proportion to the ceilings that each of them measures before it.
    fn divides(&self) -> bool {
        false
    }
}

impl<F: Fn(&Plan) -> Result<OpenedStore, Error>> MakeRun for F {
    fn make(&self, plan: &Plan, controls: &Controls) -> Result<MadeRun, Error> {
        run_plan(plan, controls, self).map(MadeRun::from)
    }
}

/// Runs a plan in the place of round `number`, without a journal and labels of its own. The caller
/// removes the place.
///
/// # Errors
/// If the plan has no store, and as [`RoundPlace::new`] and [`MakeRun::make`].
pub(crate) fn run_in_round_place(
    mut plan: Plan,
    number: u32,
    controls: &Controls,
    maker: &dyn MakeRun,
) -> Result<(MadeRun, RoundPlace), Error> {
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
    Ok((maker.make(&plan, &controls)?, place))
}
