//! Measures the generator's ceiling: the same workload over the same transport, as fast as
//! possible, into a store that discards everything.

use std::sync::Arc;

use tsb_core::emit::Live;
use tsb_core::time::SECOND_NS;
use tsb_stores::Store;
use tsb_stores::null::NullStore;

use super::path::{Pass, Watch, accepted};
use super::rejects::Rejects;
use super::sink::SinkTotals;
use super::stage::Stage;
use crate::controls::Controls;
use crate::error::Error;

/// Length of the measurement.
const LENGTH_NS: u64 = SECOND_NS / 2;

/// Samples per second that the generator and the transport reach; `None` if it was stopped or
/// nothing arrived.
pub(super) fn measure(stage: &Stage, controls: &Controls) -> Result<Option<f64>, Error> {
    let store: Arc<dyn Store> = Arc::new(NullStore::new());
    let failure = |error: &dyn std::error::Error| Error::plan("cannot calibrate").because(error);
    store
        .define(&stage.workload.catalog().definitions())
        .map_err(|error| failure(&error))?;
    let timetable = stage.flat_out(LENGTH_NS);
    let live = Live::new(stage.plan.workers);
    let (totals, rejects) = (Arc::new(SinkTotals::default()), Arc::new(Rejects::new()));
    let pass = Pass {
        stage,
        timetable: &timetable,
        store,
        start_ns: stage.clock.now() + SECOND_NS / 200,
        base: stage.clock.wall(),
        stop: &controls.stops.stop,
        live: &live,
        totals: Arc::clone(&totals),
        rejects,
        window: None,
        listening: &Watch::default(),
        between: None,
        sockets: &controls.sockets,
    };
    let driven = pass.drive()?;
    let taken = accepted(&live, &totals, stage.plan.transport);
    let is_whole = !driven.interrupted && taken > 0;
    Ok(is_whole.then(|| taken as f64 * SECOND_NS as f64 / driven.elapsed_ns.max(1) as f64))
}
