//! Pages of experiments.

mod bars;
pub(super) mod dalmatiner;
mod frame;
pub(super) mod hm9000;
pub(super) mod mohawk;
pub(super) mod records;
pub(super) mod rrdcached;
