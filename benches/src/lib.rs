//! Inputs and names that the benchmarks share: seeded, built outside the timed region.

pub mod codec;
pub mod drive;
pub mod loopback;
pub mod mix;
pub mod rrd;
pub mod write_cache;
