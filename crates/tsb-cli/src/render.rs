//! How results look: text for people, JSON and CSV for programs.

pub mod compare;
pub mod csv;
pub mod figures;
pub mod html;
pub mod json;
pub mod lines;
pub mod text;
pub mod times;

use std::io::Write;

use tsb_core::report::Report;

use crate::args::Format;
use crate::exit::Exit;
use crate::failure::Failure;

/// Writes a report in the asked format.
pub fn report(report: &Report, format: Format, out: &mut dyn Write) -> Result<(), Failure> {
    let written = match format {
        Format::Text => out.write_all(text::report(report).as_bytes()),
        Format::Json => json::write(report, out),
        Format::Csv => out.write_all(csv::report(report).as_bytes()),
    };
    written
        .and_then(|()| out.flush())
        .map_err(|error| Failure::new(Exit::Usage, "cannot write the result").because(&error))
}
