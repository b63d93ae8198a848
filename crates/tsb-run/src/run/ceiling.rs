//! Measures the generator's ceiling: the same workload over the same transport, as fast as
//! possible, into a store that discards everything.

use std::sync::Arc;

use tsb_core::emit::Live;
use tsb_core::time::SECOND_NS;
use tsb_stores::Store;
use tsb_stores::null::NullStore;

use super::path::{Pass, Watch, accepted};
use super::rejects::Rejects;
use super::run_context::RunContext;
use super::sink::SinkTotals;
use crate::controls::Controls;
use crate::error::Error;

/// Length of the measurement.
const LENGTH_NS: u64 = SECOND_NS / 2;

/// Samples per second that the generator and the transport reach; `None` if it was stopped or
/// nothing arrived.
pub(crate) fn measure(context: &RunContext, controls: &Controls) -> Result<Option<f64>, Error> {
    let store: Arc<dyn Store> = Arc::new(NullStore::new());
    let failure = |error: &dyn std::error::Error| Error::plan("cannot calibrate").because(error);
    store
        .define(&context.workload.catalog().definitions())
        .map_err(|error| failure(&error))?;
    let timetable = context.flat_out(LENGTH_NS);
    let live = Live::new(context.plan.workers);
    let (totals, rejects) = (Arc::new(SinkTotals::default()), Arc::new(Rejects::new()));
    let pass = Pass {
        context,
        timetable: &timetable,
        store,
        client: None,
        start_ns: context.clock.now() + SECOND_NS / 200,
        base: context.clock.wall(),
        stop: &controls.stops.stop,
        live: &live,
        totals: Arc::clone(&totals),
        rejects,
        window: None,
        written: None,
        listening: &Watch::default(),
        start_relay: None,
        sockets: &controls.sockets,
    };
    let driven = pass.drive()?;
    let taken = accepted(&live, &totals, context.plan.transport);
    let is_whole = !driven.interrupted && taken > 0;
    Ok(is_whole.then(|| taken as f64 * SECOND_NS as f64 / driven.elapsed_ns.max(1) as f64))
}
