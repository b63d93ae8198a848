//! rrdcached's protocol over RRD files, for `tsb`: the server and its client.
//!
//! [`FileCache`] is rrdcached's cache itself, for files of any layout by their names, with a
//! journal that keeps what its acknowledgements promise; [`Conversation`] is a connection to it as
//! a decoder of `tsb-core`, so that any listener of that crate serves it. [`RrdcachedStore`] is a
//! [`Store`](tsb_stores::Store) in front of a daemon, the real one or ours, behind a
//! [`Connection`], which is the one client of the protocol.
//!
//! The journal and the threads that write behind it are those of the write cache of series
//! ([`tsb_stores::write_cache`]). It is *not* the format of RRD files (that is `tsb-rrd`), and it
//! opens no socket to listen on (that is `tsb-core`).
//! Documents that are named `docs/...` are in the [repository](https://github.com/tsb-bench/tsb).

mod connection;
mod files;
mod store;

pub use connection::{Connection, Counters, Reply};
pub use files::{Conversation, FileBounds, FileCache, FileCacheStats, FileError, FileSystem, Taken};
pub use store::{RrdcachedStore, series};
