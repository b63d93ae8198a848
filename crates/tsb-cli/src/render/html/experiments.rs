//! Pages of experiments.

mod chart;
pub(super) mod hm9000;
