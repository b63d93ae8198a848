//! The interval log of a run: response, delivery, service and lag, each under its tag.

use std::fs::File;
use std::io::{BufWriter, Write};

use tsb_core::Timestamp;
use tsb_core::latency::{LoggedSeries, write_interval_log};

use super::path::Driven;
use crate::exit::Exit;
use crate::failure::Failure;

/// Appends the log of one run.
pub(super) fn write(file: &mut File, driven: &Driven, started_at_ns: i64) -> Result<(), Failure> {
    let failure =
        |error: &dyn std::error::Error| Failure::new(Exit::Usage, "cannot write the interval log").because(error);
    let series = [
        LoggedSeries {
            tag: "response",
            recording: &driven.response,
        },
        // Without intervals it leaves no line.
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
    let mut out = BufWriter::new(file);
    write_interval_log(&mut out, Timestamp(started_at_ns), driven.start_ns, &series)
        .map_err(|error| failure(&error))?;
    out.flush().map_err(|error| failure(&error))
}
