//! Pages of experiments.

mod bars;
mod chart;
pub(super) mod hm9000;
pub(super) mod mohawk;
pub(super) mod rrdcached;
