//! A trace in memory: keys, and one column of samples per series.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use super::error::{Place, TraceDefect, TraceProblems};
use super::format::{MAX_LABELS, MAX_TEXT_BYTES};
use super::reader::{Ending, TraceReader};
use super::writer::{TraceTotals, TraceWriter};
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::Timestamp;

/// Limits of a reader, so that no file can fill memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of series. In a text file, rows of further series are left out and counted;
    /// in a trace file, exceeding it is a defect.
    pub series: usize,
    /// Maximum number of samples, at 16 bytes each in memory. Exceeding it is a defect.
    pub samples: u64,
    /// Maximum total bytes of names and labels. Exceeding it is a defect.
    pub key_bytes: u64,
}

impl Default for Limits {
    /// A million series, 2^27 samples (2 GiB), 256 MiB of names.
    fn default() -> Self {
        Self {
            series: 1_000_000,
            samples: 1 << 27,
            key_bytes: 256 << 20,
        }
    }
}

/// The samples of one series, in the order in which they were read. Timestamps may be irregular,
/// equal or out of order: they are kept as given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    // Invariant: as long as `values`.
    times: Vec<Timestamp>,
    values: Vec<f64>,
}

impl Column {
    /// The timestamps of the samples.
    pub fn times(&self) -> &[Timestamp] {
        &self.times
    }

    /// The values, as many as there are timestamps.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// A trace in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The series. A key's index is also its index in [`columns`](Self::columns).
    pub keys: Vec<SeriesKey>,
    /// The samples, one column per series; a column may be empty.
    pub columns: Vec<Column>,
    /// The file's notes on its origin.
    pub notes: BTreeMap<String, String>,
    /// What was left out when the file was read.
    pub problems: TraceProblems,
    /// The reader's decisions where the file is ambiguous: how times were interpreted, which
    /// columns are series. Not written to trace files.
    pub decisions: Vec<String>,
}

impl Trace {
    /// Number of samples.
    pub fn samples(&self) -> u64 {
        self.columns.iter().map(|column| column.len() as u64).sum()
    }

    /// The earliest and the latest timestamp; `None` without samples.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let times = || self.columns.iter().flat_map(|column| &column.times).copied();
        Some((times().min()?, times().max()?))
    }

    /// A checksum of the series and samples, to tell whether two traces hold the same.
    pub fn checksum(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        for (key, column) in self.keys.iter().zip(&self.columns) {
            hasher.update(key.to_string().as_bytes());
            hasher.update(&(column.len() as u64).to_le_bytes());
            for (at, value) in column.times.iter().zip(&column.values) {
                hasher.update(&at.0.to_le_bytes());
                hasher.update(&value.to_bits().to_le_bytes());
            }
        }
        hasher.finalize()
    }

    /// Reads a trace file. An incomplete file is read up to its last complete block, and its
    /// truncation is one of the problems.
    ///
    /// # Errors
    /// A defect with its position, or an exceeded limit.
    pub fn read(input: impl Read, limits: Limits) -> Result<Self, TraceDefect> {
        let mut reader = TraceReader::new(input, limits)?;
        let mut columns: Vec<Column> = Vec::new();
        while reader.next_block(&mut |id, times, values| {
            if columns.len() <= id.index() {
                columns.resize_with(id.index() + 1, Column::default);
            }
            let column = &mut columns[id.index()];
            column.times.extend_from_slice(times);
            column.values.extend_from_slice(values);
        })? {}
        columns.resize_with(reader.keys().len(), Column::default);
        let mut problems = TraceProblems::new();
        match reader.ending() {
            Some(Ending::Unfinished { offset }) => {
                problems.add(
                    Place::Byte(offset),
                    "the file has no end block: its recorder was stopped",
                    b"",
                );
            }
            Some(Ending::Cut { offset }) => {
                problems.add(Place::Byte(offset), "the file ends within a block, which is lost", b"");
            }
            Some(Ending::Complete) | None => {}
        }
        Ok(Self {
            keys: reader.keys().to_vec(),
            columns,
            notes: reader.notes().clone(),
            problems,
            decisions: Vec::new(),
        })
    }

    /// Writes a trace file that holds these samples. Problems are not written.
    pub fn write(&self, out: impl Write) -> Result<TraceTotals, TraceDefect> {
        let notes: Vec<(&str, &str)> = self
            .notes
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let mut writer = TraceWriter::new(out, &notes)?;
        for (key, column) in self.keys.iter().zip(&self.columns) {
            let id = writer.define(key)?;
            for (&at, &value) in column.times.iter().zip(&column.values) {
                writer.push(id, at, value)?;
            }
        }
        let (_, totals) = writer.finish()?;
        Ok(totals)
    }
}

/// A timestamp that no `i64` of nanoseconds holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfRange;

/// Builds a trace sample by sample, within limits.
#[derive(Debug, Default)]
pub struct TraceBuilder {
    catalog: Catalog,
    columns: Vec<Column>,
    problems: TraceProblems,
    decisions: Vec<String>,
    limits: Limits,
    samples: u64,
    key_bytes: u64,
}

impl TraceBuilder {
    /// A builder with an empty trace, limited by `limits`.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// The id of a series.
    ///
    /// # Errors
    /// Why a new series is not admitted: a limit, or a key that a trace file cannot represent.
    pub fn series(&mut self, key: SeriesKey) -> Result<SeriesId, &'static str> {
        if let Some(id) = self.catalog.id(&key) {
            return Ok(id);
        }
        let labels = key
            .labels()
            .iter()
            .flat_map(|(label, value)| [label.len(), value.len()]);
        let lengths = || labels.clone().chain([key.name().len()]);
        let key_bytes = self.key_bytes + lengths().sum::<usize>() as u64;
        if self.catalog.len() == self.limits.series {
            return Err("a row of a series beyond the limit of series");
        }
        if key_bytes > self.limits.key_bytes {
            return Err("a row of a series beyond the limit of names");
        }
        if lengths().any(|length| length as u64 > MAX_TEXT_BYTES) || key.labels().len() as u64 > MAX_LABELS {
            return Err("a series with a name of more than 4096 bytes, or more than 64 labels");
        }
        self.key_bytes = key_bytes;
        self.columns.push(Column::default());
        Ok(self.catalog.intern(key))
    }

    /// Adds a sample; `offset` is its position in the file, for the error.
    ///
    /// # Errors
    /// [`TraceDefect::TooMuch`] at the limit of samples, [`TraceDefect::Invalid`] for an id that
    /// [`series`](Self::series) did not return.
    pub fn push(&mut self, id: SeriesId, at: Timestamp, value: f64, offset: u64) -> Result<(), TraceDefect> {
        if self.samples == self.limits.samples {
            return Err(TraceDefect::TooMuch {
                offset,
                what: "samples",
                limit: self.limits.samples,
            });
        }
        let Some(column) = self.columns.get_mut(id.index()) else {
            return Err(TraceDefect::Invalid {
                what: "a sample of a series that was not defined",
            });
        };
        column.times.push(at);
        column.values.push(value);
        self.samples += 1;
        Ok(())
    }

    /// Counts a row that is left out.
    pub fn problem(&mut self, place: Place, what: &'static str, bytes: &[u8]) {
        self.problems.add(place, what, bytes);
    }

    /// Records a decision of the reader where the file is ambiguous.
    pub fn decide(&mut self, decision: String) {
        self.decisions.push(decision);
    }

    /// Multiplies the timestamps of all samples, or only of those in `only` (series and index in
    /// its column), after their unit was taken for a smaller one.
    ///
    /// # Errors
    /// If a timestamp would exceed its range; some are multiplied already then.
    pub(super) fn rescale(&mut self, factor: i64, only: Option<&[(SeriesId, usize)]>) -> Result<(), OutOfRange> {
        let scaled = |at: &mut Timestamp| {
            at.0 = at.0.checked_mul(factor).ok_or(OutOfRange)?;
            Ok(())
        };
        let Some(only) = only else {
            return self
                .columns
                .iter_mut()
                .flat_map(|column| &mut column.times)
                .try_for_each(scaled);
        };
        for (id, place) in only {
            let column = self.columns.get_mut(id.index());
            column
                .and_then(|column| column.times.get_mut(*place))
                .map_or(Ok(()), scaled)?;
        }
        Ok(())
    }

    /// Number of samples of a series.
    pub(super) fn len_of(&self, id: SeriesId) -> usize {
        self.columns.get(id.index()).map_or(0, Column::len)
    }

    /// Adds all samples of another trace, matching series by key, and its problems under the name
    /// of its file.
    ///
    /// # Errors
    /// If both together exceed a limit of samples or series.
    pub(super) fn merge(&mut self, other: Trace, file: &str) -> Result<(), TraceDefect> {
        for (key, column) in other.keys.into_iter().zip(other.columns) {
            let id = self.series(key).map_err(|what| TraceDefect::Invalid { what })?;
            for (at, value) in column.times.into_iter().zip(column.values) {
                self.push(id, at, value, 0)?;
            }
        }
        self.problems.merge(other.problems, file);
        Ok(())
    }

    /// Adds the problems of a file without samples, which is itself a problem.
    pub(super) fn problems_of(&mut self, mut problems: TraceProblems, file: &str) {
        problems.add(Place::Byte(0), "a file without a sample", b"");
        self.problems.merge(problems, file);
    }

    /// The trace.
    pub fn finish(self) -> Trace {
        Trace {
            keys: self.catalog.keys().to_vec(),
            columns: self.columns,
            notes: BTreeMap::new(),
            problems: self.problems,
            decisions: self.decisions,
        }
    }
}
