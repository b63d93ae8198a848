//! Pages of experiments.

mod chart;
pub(super) mod hm9000;
pub(super) mod rrdcached;
