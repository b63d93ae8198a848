//! Writes the HdrHistogram interval log of a run: response, delivery, service and lag, each
//! under its tag.

use tsb_core::Timestamp;
use tsb_core::latency::{LoggedSeries, write_interval_log};

use super::path::PassResult;
use crate::error::Error;

/// Appends the log of one run.
pub fn write(out: &mut Vec<u8>, driven: &PassResult, started_at_ns: i64) -> Result<(), Error> {
    let series = [
        LoggedSeries {
            tag: "response",
            recording: &driven.response,
        },
        // A recording without intervals produces no lines.
        LoggedSeries {
            tag: "delivery",
            recording: &driven.delivery,
        },
        LoggedSeries {
            tag: "service",
            recording: &driven.service,
        },
        LoggedSeries {
            tag: "lag",
            recording: &driven.lag,
        },
    ];
    write_interval_log(out, Timestamp(started_at_ns), driven.start_ns, &series)
        .map_err(|error| Error::internal("cannot write the interval log").because(&error))
}
