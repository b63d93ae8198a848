//! Opens a file of any of the formats, or a folder of them.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::str::FromStr;

use super::csv::{Naming, parse_csv_named};
use super::error::{TraceDefect, TraceError};
use super::format::MAGIC;
use super::memory::Trace;
use super::prometheus::parse_exposition;
use super::text::ReadOptions;
use super::{folder, parse_influx};

/// The formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceFormat {
    /// The trace file of `tsb`: `docs/formats/trace.md`.
    Trace,
    /// Influx line protocol.
    Influx,
    /// Prometheus text exposition or OpenMetrics, distinguished by content.
    Prometheus,
    /// OpenMetrics only: times are seconds.
    OpenMetrics,
    /// CSV: rows of a time and values.
    Csv,
}

impl TraceFormat {
    /// Every format, with its name and its file name extensions.
    pub const ALL: [(Self, &'static str, &'static [&'static str]); 5] = [
        (Self::Trace, "tsbtrace", &["tsbtrace"]),
        (Self::Influx, "influx", &["lp", "influx"]),
        (Self::Prometheus, "prometheus", &["prom"]),
        (Self::OpenMetrics, "openmetrics", &["om", "openmetrics"]),
        (Self::Csv, "csv", &["csv", "tsv"]),
    ];

    /// The format for a file name's extension.
    pub fn of_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        let mut formats = Self::ALL.iter();
        formats
            .find(|(_, _, endings)| endings.contains(&ending.as_str()))
            .map(|(format, ..)| *format)
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(format, ..)| format == self);
        f.write_str(named.map_or("", |(_, name, _)| name))
    }
}

impl FromStr for TraceFormat {
    type Err = TraceDefect;

    fn from_str(text: &str) -> Result<Self, TraceDefect> {
        let named = Self::ALL.iter().find(|(_, name, _)| *name == text);
        named.map(|(format, ..)| *format).ok_or(TraceDefect::Invalid {
            what: "a format of traces is tsbtrace, influx, prometheus, openmetrics or csv",
        })
    }
}

/// Opens a trace of any format: a trace file of `tsb` is recognized by its first bytes, other
/// formats by their extension. For a folder, it reads all files below it with a known extension.
///
/// # Errors
/// Names the file, the position and the cause. Invalid rows are [`Trace::problems`] and not
/// errors, unless no row is valid.
pub fn open(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
    open_with(path, None, &ReadOptions::default())
}

/// Opens a trace with a given format, units or limits.
///
/// # Errors
/// As [`open`].
pub fn open_with(
    path: impl AsRef<Path>,
    format: Option<TraceFormat>,
    options: &ReadOptions,
) -> Result<Trace, TraceError> {
    let path = path.as_ref();
    if path.is_dir() {
        return folder::read(path, format, options);
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let naming = Naming {
        series: stem.into_owned(),
        file: None,
    };
    read_file(path, format, options, &naming).map_err(|defect| defect.reading(path))
}

pub(super) fn read_file(
    path: &Path,
    format: Option<TraceFormat>,
    options: &ReadOptions,
    naming: &Naming,
) -> Result<Trace, TraceDefect> {
    let file = File::open(path).map_err(TraceDefect::io("open"))?;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut start = Vec::new();
    file.by_ref()
        .take(MAGIC.len() as u64)
        .read_to_end(&mut start)
        .map_err(TraceDefect::io("read"))?;
    let found = if start == MAGIC {
        Some(TraceFormat::Trace)
    } else {
        TraceFormat::of_path(path)
    };
    let format = format.or(found).ok_or(TraceDefect::Foreign {
        what: "neither its first bytes nor the ending of its name (.csv, .tsv, .lp, .influx, .prom, .om, .openmetrics, \
               .tsbtrace) say which format it has",
    })?;
    parse_named(std::io::Cursor::new(start).chain(file), format, options, naming)
}

/// Parses a trace of the given format; one without samples is a defect.
///
/// # Errors
/// Names the position and the cause.
pub fn parse(input: impl Read, format: TraceFormat, options: &ReadOptions) -> Result<Trace, TraceDefect> {
    parse_named(input, format, options, &Naming::default())
}

fn parse_named(
    input: impl Read,
    format: TraceFormat,
    options: &ReadOptions,
    naming: &Naming,
) -> Result<Trace, TraceDefect> {
    let trace = match format {
        TraceFormat::Trace => Trace::read(input, options.limits),
        TraceFormat::Influx => parse_influx(input, options),
        TraceFormat::Prometheus => parse_exposition(input, options, false),
        TraceFormat::OpenMetrics => parse_exposition(input, options, true),
        TraceFormat::Csv => parse_csv_named(input, options, naming),
    }?;
    if trace.columns.iter().all(super::Column::is_empty) {
        return Err(TraceDefect::Empty {
            problems: trace.problems,
        });
    }
    Ok(trace)
}
