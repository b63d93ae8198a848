//! Executes a plan and produces a report: drive the load, watch, read back, judge.

mod aftermath;
mod asked;
mod assemble;
mod attempts;
mod calls;
pub(crate) mod ceiling;
mod cost;
pub(crate) mod earlier;
mod emitter_times;
mod engine;
mod finished_runs;
mod fit;
mod guarded_store;
mod hawkular;
mod hdr_log;
mod in_flight;
mod interval_latencies;
mod interval_recorder;
mod journaled;
mod judge;
mod ledger;
mod loss_window;
mod made_run;
mod missing;
mod monitor;
mod path;
pub(crate) mod peak;
mod phase_faults;
pub(crate) mod phases;
pub(crate) mod preload;
mod projection;
pub(crate) mod queries;
mod read_back;
mod read_through;
mod recorded;
mod rejects;
mod remote;
mod results;
pub(crate) mod route;
mod run_context;
mod run_state;
mod sink;
mod so_far;
mod store_timeouts;

use std::ops::Range;

use tsb_core::report::Run;
use tsb_core::workload::Workload;

pub use asked::check as check_asked;
pub(crate) use assemble::exactness;
pub use assemble::{fingerprint, issued, offered, size};
#[cfg(feature = "hosts")]
pub(crate) use cost::bytes_of_each;
pub use missing::{missing, missing_note};

pub use calls::Calls;
pub use emitter_times::EmitterTimes;
pub(crate) use emitter_times::of_all;
#[cfg(feature = "hosts")]
pub(crate) use engine::run_info;
pub use engine::{OpenStore, run_client, run_plan, run_store};
pub use finished_runs::FinishedRuns;
pub use guarded_store::GuardedStore;
pub use hawkular::HawkularListen;
pub use hdr_log::write as write_hdr_log;
#[cfg(feature = "hosts")]
pub(crate) use interval_latencies::by_interval;
pub use interval_latencies::with_latencies;
pub use interval_recorder::{IntervalRecorder, SampleCounters};
pub use journaled::{acceptance_of_emit, header_of_emit};
#[cfg(feature = "hosts")]
pub(crate) use judge::at_rate;
pub use judge::read_back;
pub use ledger::excepted;
pub use ledger::{ExpectedAbsent, settle};
pub use loss_window::{LossWindow, WriterWaits};
pub(crate) use made_run::run_in_round_place;
pub use made_run::{MadeRun, MakeRun};
pub use monitor::{Observations, progress};
pub use path::{Pass, PassResult, Watch};
pub use preload::history;
pub use queries::{QueryTimes, WrittenTimes};
pub use read_through::ReadThrough;
pub use rejects::Rejects;
pub use results::Finished;
pub use route::Route;
pub use run_context::timetable;
pub use run_context::{RunContext, open};
pub use sink::{SinkTotals, StoreSink, Writer};
pub use store_timeouts::{StoreTimeouts, WaitOutcome, Waiting, WorkEnd, at_once};

use crate::controls::Controls;
use crate::error::Error;
use crate::plan::Plan;

/// Checks that samples can be identified after they have arrived.
///
/// # Errors
/// If the plan uses a protocol without timestamps.
pub fn check_comparable(plan: &Plan) -> Result<(), Error> {
    if plan.transport.is_wire() && !plan.protocol.capabilities().timestamps {
        return Err(Error::plan(format!("cannot check a run over {}", plan.protocol))
            .because_of("it carries no timestamps, so what arrives cannot be compared with what was sent")
            .hint("send with tsb emit, and receive with tsb ingest"));
    }
    Ok(())
}

/// Runs the plan's stores one after the other on the same workload. Every finished run is shown
/// to `each` and then added to `kept`. If a later store cannot be run, its first error is
/// returned and further ones go to the observer as warnings.
///
/// # Errors
/// If the first store cannot be run: nothing was measured by then.
pub fn run_each(
    plan: &Plan,
    controls: &Controls,
    open: OpenStore<'_>,
    kept: &FinishedRuns,
    mut each: impl FnMut(&Finished),
) -> Result<Option<Error>, Error> {
    check_comparable(plan)?;
    let mut failed = None;
    for (index, store) in plan.stores.iter().enumerate() {
        if index > 0 {
            kept.save();
        }
        let single = Plan {
            stores: vec![store.clone()],
            ..plan.clone()
        };
        let mut finished = match attempts::run_until_quiet(&single, controls, open) {
            Ok(finished) => finished,
            Err(error) if index == 0 => return Err(error),
            Err(error) => {
                kept.note(format!("{store} was not measured: {error}"));
                match failed {
                    None => failed = Some(error),
                    Some(_) => controls.warn(&error.to_string()),
                }
                continue;
            }
        };
        finished.run.label = controls.labels.get(index).cloned();
        each(&finished);
        let interrupted = finished.run.interrupted;
        kept.add(finished.run);
        if interrupted {
            break;
        }
    }
    Ok(failed)
}

/// The ticks of each group that a run issued, from its report.
pub fn issued_ticks(run: &Run, workload: &Workload) -> Vec<Range<u64>> {
    issued_ranges(run, workload.groups().len())
}

/// The same of a workload with this number of groups.
pub(crate) fn issued_ranges(run: &Run, groups: usize) -> Vec<Range<u64>> {
    let mut ticks = vec![0..0; groups];
    for issued in &run.issued {
        let groups = issued.first_group as usize..(issued.first_group + issued.groups) as usize;
        for group in ticks.get_mut(groups).into_iter().flatten() {
            *group = issued.first_tick..issued.end_tick;
        }
    }
    ticks
}
