//! Formats results: text and HTML pages for people, JSON and CSV for programs.

pub mod breakdown;
pub mod capacity;
pub mod compare;
pub mod compared_files;
pub mod csv;
pub mod disorder;
pub mod experiment_figures;
pub mod figures;
mod hosts;
pub mod html;
pub mod keyed_names;
pub mod lines;
pub mod names;
pub mod outages;
pub mod phases;
mod queries;
mod scaling;
pub mod side_by_side;
pub mod sides;
pub mod text;
pub mod thresholds;
pub mod times;
mod verdict_basis;

use tsb_core::report::Report;

use crate::args::Format;
use crate::failure::Failure;

/// A report in the given format.
pub fn bytes(report: &Report, format: Format) -> Result<Vec<u8>, Failure> {
    match format {
        Format::Text => Ok(text::report(report, lines::terminal_width()).into_bytes()),
        Format::Json => crate::output::json(report),
        Format::Csv => Ok(csv::report(report).into_bytes()),
    }
}
