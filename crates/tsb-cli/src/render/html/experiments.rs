//! Pages of experiments.

mod bars;
mod chart;
pub(super) mod dalmatiner;
mod frame;
pub(super) mod hm9000;
pub(super) mod mohawk;
mod plot;
pub(super) mod rrdcached;
