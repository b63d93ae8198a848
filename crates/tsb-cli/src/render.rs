//! How results look: text for people, JSON and CSV for programs.

pub mod csv;
pub mod lines;
pub mod text;

use std::io::Write;

use tsb_core::report::Report;

use crate::args::Format;
use crate::exit::Exit;
use crate::failure::Failure;

/// Writes a report in the asked format.
pub fn report(report: &Report, format: Format, out: &mut dyn Write) -> Result<(), Failure> {
    let written = match format {
        Format::Text => out.write_all(text::report(report).as_bytes()),
        Format::Json => json(report, out),
        Format::Csv => out.write_all(csv::report(report).as_bytes()),
    };
    written
        .and_then(|()| out.flush())
        .map_err(|error| Failure::new(Exit::Usage, "cannot write the result").because(&error))
}

/// The JSON form: one run stands at the top level, several in `runs`.
pub fn json(report: &Report, out: &mut dyn Write) -> std::io::Result<()> {
    let mut value = match report.runs.as_slice() {
        [run] => serde_json::to_value(run)?,
        runs => serde_json::json!({ "runs": runs }),
    };
    if let Some(map) = value.as_object_mut() {
        map.insert("schema_version".to_owned(), report.schema_version.into());
        map.insert("tsb_version".to_owned(), report.tsb_version.clone().into());
    }
    serde_json::to_writer_pretty(&mut *out, &value)?;
    out.write_all(b"\n")
}
