//! rrdcached's protocol over RRD files, for `tsb`: a server and a client.
//!
//! [`FileCache`] is the cache of the server: it queues updates for RRD files of any layout, by
//! file name, with a journal that keeps what was acknowledged. [`Conversation`] is one connection
//! to it, written as a decoder of `tsb-core`; `listen` (feature `net`) serves one to each client of a
//! socket. [`RrdcachedStore`] is a [`Store`](tsb_stores::Store) in front of a server, rrdcached or ours;
//! it uses [`Connection`], the only client of the protocol here.
//!
//! The journal and the writeback threads are those of the write cache of series
//! ([`tsb_stores::write_cache`]). This crate does *not* contain the format of RRD files
//! (`tsb-rrd` does), nor the grammar of commands and replies (`tsb_core::wire::rrdcached`), nor
//! sockets and threads that listen (`tsb_core::net`). Documents named
//! `docs/...` are in the [repository](https://github.com/tsb-bench/tsb).

mod connection;
mod files;
#[cfg(feature = "net")]
mod listen;
mod store;

pub use connection::{Connection, Counters, Reply};
pub use files::{Conversation, FileBounds, FileCache, FileCacheStats, FileError, FileSystem, UpdateOutcome};
#[cfg(feature = "net")]
pub use listen::listen;
pub use store::{RrdcachedStore, series};
