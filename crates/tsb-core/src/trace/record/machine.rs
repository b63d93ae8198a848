//! One tick of a machine: the files that are read, and the conversion of fields to samples.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::RecordOptions;
use super::processes::ProcessTable;
use crate::proc::recorded::{self, FILES};
use crate::series::{SeriesId, SeriesKey};
use crate::time::Timestamp;
use crate::trace::error::{Place, TraceDefect, TraceProblems};
use crate::trace::format::MAX_EXACT;
use crate::trace::writer::TraceWriter;

/// Maximum length of a file; the kernel's files are far shorter.
const MAX_FILE_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct Machine {
    root: PathBuf,
    processes: ProcessTable,
    series: SeriesTable,
}

impl Machine {
    pub(super) fn new(options: &RecordOptions) -> Self {
        Self {
            root: options.root.clone(),
            processes: ProcessTable::new(options),
            series: SeriesTable::new(options.max_series),
        }
    }

    pub(super) fn sample<W: Write>(
        &mut self,
        tick: u64,
        at: Timestamp,
        writer: &mut TraceWriter<W>,
        problems: &mut TraceProblems,
    ) -> Result<(), TraceDefect> {
        let mut sampler = Sampler {
            tick,
            at,
            out: writer,
            series: &mut self.series,
            problems,
        };
        let mut text = Vec::new();
        for (file, parse) in FILES {
            if read_file(&self.root.join(file), &mut text).is_err() {
                sampler.problem("a file that cannot be read", file.as_bytes());
                continue;
            }
            let mut result = Ok(());
            parse(&text, &mut |name, labels, digits| {
                if result.is_ok() {
                    result = sampler.field(name, labels, digits);
                }
            });
            result?;
        }
        self.processes.sample(&self.root, &mut sampler)
    }
}

/// Reads a whole file of the kernel into `text`, which is cleared first.
pub(super) fn read_file(path: &Path, text: &mut Vec<u8>) -> std::io::Result<()> {
    text.clear();
    File::open(path)?.take(MAX_FILE_BYTES).read_to_end(text)?;
    Ok(())
}

/// The output of a tick; hides the type of the file from other code.
pub(super) trait SampleOutput {
    fn define(&mut self, key: &SeriesKey) -> Result<SeriesId, TraceDefect>;
    fn push(&mut self, id: SeriesId, at: Timestamp, value: f64) -> Result<(), TraceDefect>;
}

impl<W: Write> SampleOutput for TraceWriter<W> {
    fn define(&mut self, key: &SeriesKey) -> Result<SeriesId, TraceDefect> {
        Self::define(self, key)
    }

    fn push(&mut self, id: SeriesId, at: Timestamp, value: f64) -> Result<(), TraceDefect> {
        Self::push(self, id, at, value)
    }
}

/// Converts the fields of one tick to samples.
pub(super) struct Sampler<'a> {
    tick: u64,
    at: Timestamp,
    out: &'a mut dyn SampleOutput,
    series: &'a mut SeriesTable,
    problems: &'a mut TraceProblems,
}

impl Sampler<'_> {
    pub(super) fn field(&mut self, name: &str, labels: &[(&str, &str)], digits: &[u8]) -> Result<(), TraceDefect> {
        let value = match value_of(digits) {
            Ok(value) => value,
            Err(what) => {
                let mut text = name.as_bytes().to_vec();
                text.push(b' ');
                text.extend_from_slice(digits);
                self.problem(what, &text);
                return Ok(());
            }
        };
        if let Some(id) = self.series.id(name, labels, self.out)? {
            self.out.push(id, self.at, value)?;
        } else {
            self.problem("a sample of a series beyond the limit of series", name.as_bytes());
        }
        Ok(())
    }

    pub(super) fn problem(&mut self, what: &'static str, bytes: &[u8]) {
        self.problems.add(Place::Tick(self.tick), what, bytes);
    }
}

/// An integer that an f64 holds exactly, or a decimal.
fn value_of(digits: &[u8]) -> Result<f64, &'static str> {
    const BEYOND: &str = "an integer beyond 2^53";
    const NO_NUMBER: &str = "a field that is not a number";
    if let Some(integer) = recorded::integer(digits) {
        return if integer <= MAX_EXACT {
            Ok(integer as f64)
        } else {
            Err(BEYOND)
        };
    }
    if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        return Err(BEYOND);
    }
    let is_decimal = digits
        .iter()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
    let text = std::str::from_utf8(digits).ok().filter(|_| is_decimal);
    text.and_then(|text| text.parse().ok()).ok_or(NO_NUMBER)
}

/// Looks up the id of a field without building a key, except the first time.
#[derive(Debug)]
struct SeriesTable {
    ids: HashMap<String, SeriesId, foldhash::fast::FixedState>,
    limit: usize,
    scratch: String,
}

impl SeriesTable {
    fn new(limit: usize) -> Self {
        Self {
            ids: HashMap::default(),
            limit,
            scratch: String::new(),
        }
    }

    fn id(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        out: &mut dyn SampleOutput,
    ) -> Result<Option<SeriesId>, TraceDefect> {
        self.scratch.clear();
        self.scratch.push_str(name);
        for (label, value) in labels {
            // Cleaned names contain no control characters, so no two fields share this text.
            self.scratch.extend(["\u{1}", label, "\u{2}", value]);
        }
        if let Some(&id) = self.ids.get(&self.scratch) {
            return Ok(Some(id));
        }
        if self.ids.len() >= self.limit {
            return Ok(None);
        }
        let id = out.define(&SeriesKey::with_labels(name, labels.iter().copied()))?;
        self.ids.insert(self.scratch.clone(), id);
        Ok(Some(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_numbers_become_values() {
        assert_eq!(value_of(b"0"), Ok(0.0));
        assert_eq!(value_of(b"9007199254740992"), Ok(9007199254740992.0));
        assert_eq!(value_of(b"9007199254740993"), Err("an integer beyond 2^53"));
        assert_eq!(value_of(b"18446744073709551616"), Err("an integer beyond 2^53"));
        assert_eq!(value_of(b"0.25"), Ok(0.25));
        assert_eq!(value_of(b"-3"), Ok(-3.0));
        for bad in [&b""[..], b"nan", b"1e5", b"0x10", b"12kB", b"-", b"."] {
            assert_eq!(value_of(bad), Err("a field that is not a number"), "{bad:?}");
        }
    }
}
