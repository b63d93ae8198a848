//! Inputs and names that the benchmarks share: seeded, built outside the timed region.

pub mod codec;
pub mod loopback;
pub mod mix;
