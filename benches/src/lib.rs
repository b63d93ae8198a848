//! Inputs and names shared by the benchmarks: seeded, and built outside the timed region.

pub mod codec;
pub mod cold;
pub mod drive;
pub mod loopback;
pub mod mix;
pub mod rrd;
pub mod served;
pub mod write_cache;
