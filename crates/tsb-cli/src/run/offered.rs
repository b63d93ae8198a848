//! How compressible the offered values were, as the report says it.

use std::ops::Range;

use tsb_core::workload::{Offered, Workload};

/// Repeat rate and entropy of what was issued; `ticks` has an entry a group. The
/// estimator and its errors are described at [`tsb_core::workload::Estimator`].
pub fn estimate(workload: &Workload, ticks: &[Range<u64>]) -> Offered {
    workload.offered(ticks)
}
