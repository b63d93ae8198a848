//! Puts the faults of a plan's phases in front of its store.

use std::sync::Arc;

use tsb_core::time::MonotonicClock;
use tsb_stores::Store;
use tsb_stores::throttle::Throttle;

use crate::error::Error;
use crate::plan::Plan;

/// Faults in front of a store.
type Faults = Throttle<Arc<dyn Store>>;

/// The store behind the faults of the plan, which wait for
/// [`begin_in`](Throttle::begin_in); `None` where the plan has none.
///
/// # Errors
/// If the faults cannot be; a checked plan has no such faults.
pub(super) fn before(store: &Arc<dyn Store>, plan: &Plan) -> Result<Option<Arc<Faults>>, Error> {
    let windows = plan.fault_windows();
    if windows.is_empty() {
        return Ok(None);
    }
    // Its clock is its own: the beginning is given as a delay.
    let clock = Arc::new(MonotonicClock::new());
    let throttle = Throttle::in_windows(Arc::clone(store), &windows, clock);
    let throttle = throttle.map_err(|error| Error::plan("cannot use the faults of the phases").because(&error))?;
    Ok(Some(Arc::new(throttle)))
}
