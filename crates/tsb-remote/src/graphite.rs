//! Graphite: samples as plaintext or pickles to carbon-cache, carbon-relay or go-carbon, read back by
//! the render API of graphite-web or go-carbon.
//!
//! Carbon acknowledges nothing: an ack of this client is `Unconfirmed` and says that the operating
//! system took the bytes. What was lost on the way, or by the server, shows when it is read back.
//! Whisper keeps the last value of each slot, and consolidates slots as `storage-schemas.conf` and
//! `storage-aggregation.conf` say; the client cannot read those files, so its options state them.
//! <https://graphite.readthedocs.io/en/latest/whisper.html>
//!
//! A series becomes a path below the prefix, its labels the last parts of the path. The client is
//! *not* one of tagged series: those need a database of tags beside Whisper. The server
//! has no name for a run and no request that removes a series: [`remove`] deletes the files of
//! Whisper, where an option names their folder.

mod client;
mod cursor;
mod files;
mod options;
mod path;
mod render;

pub use client::GraphiteClient;
pub use cursor::GraphiteCursor;
pub use files::remove;
pub use options::{GraphiteOptions, GraphiteProtocol};

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// Prepares a client behind a blocking [`Bridge`], and connects to every address.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for options that fit no server, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if an address or the render API does not
/// answer.
pub fn open(address: &Address, options: &GraphiteOptions) -> Result<Bridge<GraphiteClient>> {
    Bridge::connect(|| GraphiteClient::connect(address, options))
}

/// The series below a prefix, in the order of their paths; those with paths that no run makes are
/// left out. Changes nothing.
///
/// # Errors
/// [`Error::Unsupported`](tsb_stores::Error::Unsupported) without a render API, and
/// [`Error::Unanswered`](tsb_stores::Error::Unanswered) if it does not answer.
pub fn series(address: &Address, options: &GraphiteOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}

fn spec_error(what: String) -> tsb_stores::Error {
    tsb_stores::Error::Spec {
        spec: "graphite:".to_owned(),
        what,
    }
}

#[cfg(test)]
mod tests;
