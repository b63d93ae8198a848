//! Hawkular Metrics and Mohawk, which imitates its interface, over HTTP: batches as JSON, read back by
//! the same interface; a tenant is the place, and a gauge is a series.
//!
//! What a server keeps of samples, and what its acks are worth, is read off its status, or told by
//! [`HawkularOptions::kept`]: see [`KeptSamples`]. Hawkular acknowledges what Cassandra has taken, Mohawk from
//! 0.33 on what its backend has taken, and older versions answer 200 to everything, so that an ack is
//! `Unconfirmed`. Nothing makes more of an ack. A write without an answer is never repeated: it is
//! `Unknown`, and reading back settles it.
//!
//! Timestamps are whole milliseconds from the second second of 1970 on, and whole seconds in Mohawk's
//! memory. NaN and infinities are refused before they are sent: JSON has neither.
//! docs/formats/hawkular-client.md has the requests and answers with their sources.
//!
//! It is *not* a client of counters, availability, tags, or statistics.

mod body;
mod client;
mod connection;
mod cursor;
mod kept;
mod names;
mod options;
mod page;
mod ring;
mod rules;
mod status;

pub use client::HawkularClient;
pub use cursor::HawkularCursor;
pub use kept::KeptSamples;
pub use options::{HawkularApi, HawkularOptions};

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::{Error, Result};

/// Nanoseconds of the interface's unit of time.
const MS_NS: i64 = 1_000_000;

/// The port of a server that names none.
pub const DEFAULT_PORT: u16 = 8080;

/// Connects, and returns the client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Spec`] for a server that is none, or metrics of another program,
/// and [`Error::Unreachable`] if no server answers.
pub fn open(address: &Address, options: &HawkularOptions) -> Result<Bridge<HawkularClient>> {
    Bridge::connect(|| HawkularClient::connect(address, options))
}

/// The series that earlier runs left samples of in a tenant. Changes nothing.
///
/// # Errors
/// [`Error::Spec`] for a tenant that holds nothing of a run, and
/// [`Error::Unreachable`] if no server answers.
pub fn series(address: &Address, options: &HawkularOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}

/// Deletes the samples that runs have left in a tenant, and looks that they are gone. Without any, it does
/// nothing.
///
/// # Errors
/// [`Error::Spec`] for metrics of another program,
/// [`Error::Backend`] if the server keeps them, and
/// [`Error::Unreachable`] if no server answers.
pub fn remove(address: &Address, options: &HawkularOptions) -> Result<()> {
    crate::bridge::once(|| client::remove_runs(address, options))
}

/// An error about the options, or what they name.
fn spec_error(what: impl Into<String>) -> Error {
    Error::Spec {
        spec: "hawkular:".to_owned(),
        what: what.into(),
    }
}
