//! Pages of experiments.

mod bars;
mod chart;
mod frame;
pub(super) mod hm9000;
pub(super) mod mohawk;
mod plot;
pub(super) mod rrdcached;
