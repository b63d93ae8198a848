//! Fleets, store drivers, sockets and servers that the benchmarks share; all are seeded, and built
//! outside the timed region.

pub mod codec;
pub mod loopback;
pub mod mix;
pub mod page_cache;
pub mod rrd;
pub mod rrdcached_server;
pub mod store_driver;
pub mod write_cache;
