//! Reads CSV files of other programs.
//!
//! There are three forms, distinguished by the header: *long* (a row names its series:
//! `timestamp`, `series` and `value` in any order, further columns are labels), *two columns*
//! (time and `value`; the series is named after the file) and *wide* (one series per numeric
//! column; text columns are labels). `docs/formats/trace.md` defines what each may contain, and
//! how times are recognized. [`Trace::decisions`] lists the reader's decisions where the file is
//! ambiguous; [`Trace::problems`] lists the cells that were left out.

mod clock;
mod layout;
mod records;

use std::io::Read;

use super::dates::DateOrder;
use super::error::{Place, TraceDefect};
use super::memory::{Trace, TraceBuilder};
use super::text::{self, Numbers, ReadOptions, TextLine};
use crate::series::{SeriesId, SeriesKey};
use crate::time::Timestamp;
use clock::Clock;
use layout::{Header, Layout, RowShape, TimeAt};
use records::{LineStatus, Records};

const UNFINISHED_QUOTES: &str = "a quoted field that does not end";
const BAD_KEY: &str = "a series that is neither name nor name{label=value,...}";
const NOT_UTF8: &str = "a name that is not UTF-8";
/// The name of the problem of a cell without a value.
pub(crate) const MISSING: &str = "a cell without a value (empty, NaN, null, NA or the like)";

/// Words that stand for a missing value, in lower case.
const MISSING_WORDS: [&[u8]; 11] = [
    b"", b"nan", b"null", b"na", b"n/a", b"#n/a", b"none", b"nil", b"?", b"-", b"\\n",
];

/// Names taken from the file, for series that have no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// The name of the series in a two-column file, or in a column called `value`.
    pub series: String,
    /// A label `file` for series named after their column: in a folder, other files may have the
    /// same columns.
    pub file: Option<String>,
}

impl Default for Naming {
    fn default() -> Self {
        Self {
            series: "value".to_owned(),
            file: None,
        }
    }
}

/// Reads a CSV file. Invalid rows and cells without a value become problems of the trace.
///
/// # Errors
/// A header that does not determine the columns, a failed read, or more samples than the limits
/// allow.
pub fn parse_csv(input: impl Read, options: &ReadOptions) -> Result<Trace, TraceDefect> {
    parse_csv_named(input, options, &Naming::default())
}

/// Reads a CSV file with the given names.
///
/// # Errors
/// As [`parse_csv`].
pub fn parse_csv_named(input: impl Read, options: &ReadOptions, naming: &Naming) -> Result<Trace, TraceDefect> {
    let mut parser = CsvParser {
        trace: TraceBuilder::new(options.limits),
        naming: naming.clone(),
        records: None,
        separator: options.separator,
        decimal_comma: options.decimal_comma,
        clock: Clock::new(options.unit, options.dates),
        header: None,
        layout: None,
        ids: Vec::new(),
        joined: Vec::new(),
    };
    text::each_line(input, &mut |line| parser.line(line))?;
    parser.finish()
}

/// Whether a cell contains one of the words for a missing value.
fn is_missing(cell: &[u8]) -> bool {
    MISSING_WORDS.iter().any(|word| cell.eq_ignore_ascii_case(word))
}

struct CsvParser {
    trace: TraceBuilder,
    naming: Naming,
    /// `None` until the separator is known.
    records: Option<Records>,
    separator: Option<u8>,
    decimal_comma: bool,
    clock: Clock,
    header: Option<Header>,
    layout: Option<Layout>,
    /// The series of each column of a wide file without label columns.
    ids: Vec<SeriesId>,
    joined: Vec<u8>,
}

impl CsvParser {
    fn line(&mut self, line: TextLine<'_>) -> Result<(), TraceDefect> {
        let mut bytes = line.bytes;
        if line.number == 1 {
            if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
                return Err(TraceDefect::Foreign {
                    what: "the file is UTF-16; save it as UTF-8",
                });
            }
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            // The first line of a file from Excel may state the separator.
            if let [separator] = bytes.strip_prefix(b"sep=").unwrap_or_default() {
                self.separator.get_or_insert(*separator);
                return Ok(());
            }
        }
        if line.is_too_long {
            let place = Place::Line(line.number);
            self.trace.problem(place, "a line that is too long", bytes);
            return Ok(());
        }
        self.feed(line.number, line.offset, bytes)
    }

    fn feed(&mut self, number: u64, offset: u64, bytes: &[u8]) -> Result<(), TraceDefect> {
        let separator = self.separator;
        let is_blank = bytes.trim_ascii().is_empty();
        let Some(mut records) = self.records.take().or_else(|| {
            // A blank line does not show the separator.
            (!is_blank).then(|| Records::new(separator.unwrap_or_else(|| records::sniff(bytes))))
        }) else {
            return Ok(());
        };
        let goes_on = records.began();
        let fed = if is_blank && goes_on.is_none() {
            None
        } else {
            Some(records.feed(number, offset, bytes))
        };
        let result = match fed {
            Some(LineStatus::Row) => {
                let (number, offset) = goes_on.unwrap_or((number, offset));
                let result = self.row(&records, number, offset);
                records.next();
                result
            }
            _ => Ok(()),
        };
        let open = if fed == Some(LineStatus::TooLong) {
            records.take_open()
        } else {
            Vec::new()
        };
        self.records = Some(records);
        result?;
        self.give_up(open)
    }

    /// Handles an unterminated quoted field that starts in the first of these lines.
    fn give_up(&mut self, open: Vec<records::OpenLine>) -> Result<(), TraceDefect> {
        let mut open = open.into_iter();
        if let Some(first) = open.next() {
            self.trace
                .problem(Place::Line(first.number), UNFINISHED_QUOTES, &first.bytes);
        }
        open.try_for_each(|line| self.feed(line.number, line.offset, &line.bytes))
    }

    fn finish(mut self) -> Result<Trace, TraceDefect> {
        while let Some(open) = self.records.as_mut().map(Records::take_open) {
            if open.is_empty() {
                break;
            }
            self.give_up(open)?;
        }
        for decision in self.clock.decision().into_iter().chain(self.shape()) {
            self.trace.decide(decision);
        }
        Ok(self.trace.finish())
    }

    /// A description of what the columns were taken for.
    fn shape(&self) -> Option<String> {
        let layout = self.layout.as_ref()?;
        let labels: Vec<&str> = layout.labels.iter().map(|(_, name)| name.as_str()).collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("; columns taken as labels: {}", labels.join(", "))
        };
        Some(match &layout.kind {
            RowShape::Long { .. } => format!("each row names its series{labels}"),
            RowShape::Wide(values) if matches!(values[..], [(_, None)]) => {
                format!("the series is called as the file{labels}")
            }
            RowShape::Wide(_) => format!("each column of numbers is a series{labels}"),
        })
    }

    fn row(&mut self, row: &Records, number: u64, offset: u64) -> Result<(), TraceDefect> {
        if self.header.is_none() {
            if is_header(row) {
                self.header = Some(Header::of(row, number));
                return Ok(());
            }
            self.header = Some(Header::assumed(row, number)?);
        }
        let place = Place::Line(number);
        let width = self.header.as_ref().map_or(0, Header::width);
        if row.len() != width {
            let what = if row.len() < width {
                "too few fields"
            } else {
                "too many fields"
            };
            self.trace.problem(place, what, &row.shown());
            return Ok(());
        }
        if let (None, Some(header)) = (&self.layout, &mut self.header) {
            self.layout = Some(header.layout(row)?);
            if let Some(unit) = header.unit {
                self.clock.header_unit(unit);
            }
        }
        let Some(layout) = self.layout.take() else {
            return Ok(());
        };
        let result = match self.time(&layout, row) {
            Ok(at) => self.samples(&layout, row, at, place, offset),
            Err(what) => {
                self.trace.problem(place, what, &row.shown());
                Ok(())
            }
        };
        self.layout = Some(layout);
        result
    }

    fn time(&mut self, layout: &Layout, row: &Records) -> Result<Timestamp, &'static str> {
        match layout.time {
            TimeAt::Column(time) => self.clock.read(row.field(time)),
            TimeAt::DateAndTime(date, time) => {
                self.joined.clear();
                self.joined.extend_from_slice(row.field(date));
                self.joined.push(b' ');
                self.joined.extend_from_slice(row.field(time));
                self.clock.read(self.joined.trim_ascii())
            }
        }
    }

    /// Adds the samples of a row with a valid time.
    fn samples(
        &mut self,
        layout: &Layout,
        row: &Records,
        at: Timestamp,
        place: Place,
        offset: u64,
    ) -> Result<(), TraceDefect> {
        let values = match &layout.kind {
            RowShape::Long { series, value } => {
                let sample = cell_value(row.field(*value), self.decimal_comma)
                    .and_then(|value| Ok((parse_key(row.field(*series), labels_of(layout, row))?, value)))
                    .and_then(|(key, value)| Ok((self.trace.series(key)?, value)));
                return match sample {
                    Ok((id, value)) => self.trace.push(id, at, value, offset),
                    Err(what) => {
                        self.trace.problem(place, what, &row.shown());
                        Ok(())
                    }
                };
            }
            RowShape::Wide(values) => values,
        };
        for (number, (index, name)) in values.iter().enumerate() {
            let id = cell_value(row.field(*index), self.decimal_comma).and_then(|value| {
                let known = self.ids.get(number).filter(|_| layout.labels.is_empty());
                Ok((
                    known
                        .copied()
                        .map_or_else(|| self.column(layout, row, name.as_deref()), Ok)?,
                    value,
                ))
            });
            match id {
                Ok((id, value)) => self.trace.push(id, at, value, offset)?,
                Err(what) => {
                    let column = name.as_deref().unwrap_or("value").as_bytes();
                    let cell = [column, row.field(*index)].join(&b"="[..]);
                    self.trace.problem(place, what, &cell);
                }
            }
        }
        if self.ids.is_empty() && layout.labels.is_empty() {
            // Every column of the first row is looked up, so later rows have no new ones.
            let ids = values.iter().map(|(_, name)| self.column(layout, row, name.as_deref()));
            self.ids = ids.collect::<Result<_, _>>().unwrap_or_default();
        }
        Ok(())
    }

    /// The series of a column.
    fn column(&mut self, layout: &Layout, row: &Records, name: Option<&str>) -> Result<SeriesId, &'static str> {
        let mut labels = labels_of(layout, row).map(|(label, value)| {
            let value = std::str::from_utf8(value).map_err(|_| NOT_UTF8)?;
            Ok((label, value))
        });
        let mut all: Vec<(&str, &str)> = labels.by_ref().collect::<Result<_, &str>>()?;
        if let (Some(_), Some(file)) = (name, &self.naming.file) {
            all.push(("file", file));
        }
        let count = all.len();
        let key = SeriesKey::with_labels(name.unwrap_or(&self.naming.series), all);
        if key.labels().len() != count {
            return Err("a label that occurs twice");
        }
        self.trace.series(key)
    }
}

/// The labels of a row that come from columns. An empty cell gives no label.
fn labels_of<'a>(layout: &'a Layout, row: &'a Records) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let labels = layout.labels.iter();
    let cells = labels.map(|(index, label)| (label.as_str(), row.field(*index)));
    cells.filter(|(_, cell)| !is_missing(cell))
}

/// Whether a number has exactly one comma in place of a decimal point.
fn has_decimal_comma(cell: &[u8]) -> bool {
    let digits = cell.strip_prefix(b"-").unwrap_or(cell);
    let comma = memchr::memchr(b',', digits);
    let is_digits = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    comma.is_some_and(|at| is_digits(&digits[..at]) && is_digits(&digits[at + 1..]))
}

fn cell_value(cell: &[u8], decimal_comma: bool) -> Result<f64, &'static str> {
    if is_missing(cell) {
        return Err(MISSING);
    }
    match text::number(cell, Numbers::All) {
        Err(_) if has_decimal_comma(cell) && decimal_comma => {
            let pointed: Vec<u8> = cell
                .iter()
                .map(|byte| if *byte == b',' { b'.' } else { *byte })
                .collect();
            text::number(&pointed, Numbers::All)
        }
        Err(_) if has_decimal_comma(cell) => {
            Err("a number with a comma; if that is its decimal point, give decimal=comma")
        }
        value => value,
    }
}

/// Whether the first row is a header: its first field begins with a letter or `_`, or none of its
/// fields is a number or a date.
fn is_header(row: &Records) -> bool {
    let first = row.field(0).trim_ascii_start();
    let first = first.strip_prefix(b"#").unwrap_or(first).trim_ascii_start();
    if first
        .first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'@'))
    {
        return true;
    }
    row.len() > 1
        && row.fields().all(|field| {
            !field
                .first()
                .is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.'))
        })
        && row
            .fields()
            .any(|field| field.first().is_some_and(u8::is_ascii_alphabetic))
}

/// Parses the key `name` or `name{label=value,...}`, and adds the labels from columns.
fn parse_key<'a>(text: &[u8], columns: impl Iterator<Item = (&'a str, &'a [u8])>) -> Result<SeriesKey, &'static str> {
    let text = std::str::from_utf8(text).map_err(|_| NOT_UTF8)?.trim();
    let (name, mut rest) = match text.split_once('{') {
        Some((name, rest)) => (name, Some(rest.strip_suffix('}').ok_or(BAD_KEY)?)),
        None => (text, None),
    };
    if name.is_empty() {
        return Err("no series");
    }
    let mut labels: Vec<(&str, &str)> = Vec::new();
    while let Some(text) = rest {
        let (label, text) = text.split_once('=').ok_or(BAD_KEY)?;
        let (value, behind) = match text.strip_prefix('"') {
            Some(quoted) => {
                let (value, behind) = quoted.split_once('"').ok_or(BAD_KEY)?;
                let behind = behind.strip_prefix(',').or(behind.is_empty().then_some(""));
                (value, behind.ok_or(BAD_KEY)?)
            }
            None => text.split_once(',').unwrap_or((text, "")),
        };
        if label.trim().is_empty() {
            return Err(BAD_KEY);
        }
        labels.push((label.trim(), value));
        rest = Some(behind).filter(|behind| !behind.is_empty());
    }
    for (label, value) in columns {
        labels.push((label, std::str::from_utf8(value).map_err(|_| NOT_UTF8)?));
    }
    let count = labels.len();
    let key = SeriesKey::with_labels(name, labels);
    if key.labels().len() != count {
        return Err("a label that occurs twice");
    }
    Ok(key)
}

#[cfg(test)]
mod tests;
