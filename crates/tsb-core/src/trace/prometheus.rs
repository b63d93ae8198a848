//! Reads Prometheus text exposition, `name{label="value"} 1.5 1700000000000`, and
//! OpenMetrics, whose timestamps are seconds.
//!
//! Written from the formats' references (prometheus.io, "exposition formats", version 0.0.4;
//! OpenMetrics 1.0), with quoted UTF-8 names. The name becomes the series' name, and labels become
//! labels; a label with an empty value is no label, as in Prometheus. `open_metrics` determines
//! which of the two a file is.

use std::collections::HashSet;
use std::io::Read;

use super::error::{Place, TraceDefect};
use super::memory::{Trace, TraceBuilder};
use super::open_metrics::Dialect;
use super::text::{self, NO_TIMESTAMP, Numbers, ReadOptions, Scrapes, TextLine};
use crate::series::{SeriesId, SeriesKey};
use crate::time::Timestamp;

/// Maximum number of histograms remembered by name; rows of further ones are problems.
const MAX_HISTOGRAMS: usize = 100_000;

/// Reads a file of text exposition with one or more scrapes. Its content decides whether it is
/// parsed as OpenMetrics.
///
/// # Errors
/// A failed read, more samples than the limits allow, or timestamps whose unit cannot be
/// determined.
pub fn parse_prometheus(input: impl Read, options: &ReadOptions) -> Result<Trace, TraceDefect> {
    parse_exposition(input, options, false)
}

/// The same; `is_open_metrics` if that is known.
pub(super) fn parse_exposition(
    input: impl Read,
    options: &ReadOptions,
    is_open_metrics: bool,
) -> Result<Trace, TraceDefect> {
    let mut parser = ExpositionParser {
        trace: TraceBuilder::new(options.limits),
        dialect: Dialect::new(options.unit, options.scrapes.is_some()),
        histogram_rows: options.histogram_rows,
        scrapes: options.scrapes,
        scrape: 0,
        last_scrape: Vec::new(),
        histograms: HashSet::new(),
    };
    if is_open_metrics {
        parser.dialect.sign("the name of the file", &mut parser.trace)?;
    }
    text::each_line(input, &mut |line| parser.line(line))?;
    if let Some(decision) = parser.dialect.finish()? {
        parser.trace.decide(decision);
    }
    Ok(parser.trace.finish())
}

struct ExpositionParser {
    trace: TraceBuilder,
    dialect: Dialect,
    histogram_rows: bool,
    scrapes: Option<Scrapes>,
    // Number of the current scrape in the file, from 0.
    scrape: i64,
    // For each series, the scrape in which it last occurred.
    last_scrape: Vec<Option<i64>>,
    histograms: HashSet<Vec<u8>>,
}

impl ExpositionParser {
    fn line(&mut self, line: TextLine<'_>) -> Result<(), TraceDefect> {
        let bytes = line.bytes.trim_ascii();
        let place = Place::Line(line.number);
        if bytes.is_empty() {
            return Ok(());
        }
        if line.is_too_long {
            self.trace.problem(place, "a line that is too long", bytes);
            return Ok(());
        }
        if let Some(comment) = bytes.strip_prefix(b"#") {
            return self.comment(comment, place);
        }
        match parse_row(bytes) {
            Ok(row) => self.row(row, line),
            Err(what) => {
                self.trace.problem(place, what, bytes);
                Ok(())
            }
        }
    }

    fn comment(&mut self, comment: &[u8], place: Place) -> Result<(), TraceDefect> {
        let mut words = comment.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let words = (words.next(), words.next(), words.next());
        match words {
            (Some(b"EOF"), None, None) => self.dialect.sign("# EOF", &mut self.trace)?,
            (Some(b"UNIT"), Some(_), Some(_)) => self.dialect.sign("# UNIT", &mut self.trace)?,
            (Some(b"TYPE"), Some(_), Some(b"unknown" | b"info" | b"stateset" | b"gaugehistogram")) => {
                self.dialect.sign("a type that only it has", &mut self.trace)?;
            }
            _ => {}
        }
        match words {
            (Some(b"EOF"), None, None) => self.scrape += 1,
            (Some(b"TYPE"), Some(name), Some(b"histogram" | b"gaugehistogram")) => {
                if self.histograms.len() < MAX_HISTOGRAMS {
                    self.histograms.insert(name.to_vec());
                } else {
                    self.trace.problem(place, "more histograms than are remembered", name);
                }
            }
            (Some(b"TYPE"), Some(name), _) => {
                self.histograms.remove(name);
            }
            _ => {}
        }
        Ok(())
    }

    fn row(&mut self, row: Row<'_>, line: TextLine<'_>) -> Result<(), TraceDefect> {
        let place = Place::Line(line.number);
        if row.has_exemplar {
            self.dialect.sign("an exemplar", &mut self.trace)?;
            self.trace
                .problem(place, "an exemplar, which is not a sample of its series", line.bytes);
        }
        if !self.histogram_rows && self.is_of_histogram(&row) {
            self.trace
                .problem(place, "a row of a histogram, which is not a value", line.bytes);
            return Ok(());
        }
        if row
            .at
            .is_some_and(|digits| text::split_time(digits).is_ok_and(|(_, fraction)| !fraction.is_empty()))
        {
            self.dialect.sign("a timestamp with a fraction", &mut self.trace)?;
        }
        let at = match row.at {
            Some(digits) => self.dialect.read(digits).map(Some),
            None if self.scrapes.is_some() => Ok(None),
            None => Err(NO_TIMESTAMP),
        };
        let labels = row.labels.into_iter().filter(|(_, value)| !value.is_empty());
        let admitted = at.and_then(|at| {
            let id = self.trace.series(SeriesKey::with_labels(row.name, labels))?;
            Ok((id, at))
        });
        match admitted {
            Ok((id, at)) => {
                if at.is_some() {
                    self.dialect.took(id, self.trace.len_of(id));
                }
                let at = at.unwrap_or_else(|| self.scrape_time(id));
                self.trace.push(id, at, row.value, line.offset)
            }
            Err(what) => {
                self.trace.problem(place, what, line.bytes);
                Ok(())
            }
        }
    }

    fn is_of_histogram(&self, row: &Row<'_>) -> bool {
        let name = row.name.as_bytes();
        let parts: [&[u8]; 6] = [b"_bucket", b"_sum", b"_count", b"_created", b"_gsum", b"_gcount"];
        let mut bases = parts.iter().filter_map(|part| name.strip_suffix(*part));
        bases.any(|base| self.histograms.contains(base))
    }

    /// The time of the current scrape, for a row without a timestamp.
    fn scrape_time(&mut self, id: SeriesId) -> Timestamp {
        if self.last_scrape.len() <= id.index() {
            self.last_scrape.resize(id.index() + 1, None);
        }
        if self.last_scrape[id.index()] == Some(self.scrape) {
            self.scrape += 1;
        }
        self.last_scrape[id.index()] = Some(self.scrape);
        match self.scrapes {
            Some(scrapes) => scrapes.start + scrapes.interval_ns.saturating_mul(self.scrape),
            None => Timestamp::default(),
        }
    }
}

struct Row<'a> {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
    at: Option<&'a [u8]>,
    has_exemplar: bool,
}

fn parse_row(line: &[u8]) -> Result<Row<'_>, &'static str> {
    let mut scan = Scan { rest: line };
    let mut name = scan.word(is_name_byte).unwrap_or_default().to_owned();
    scan.skip_blanks();
    let labels = if scan.skip(b'{') {
        scan.labels(&mut name)?
    } else {
        Vec::new()
    };
    if name.is_empty() {
        return Err("no name, or one that needs quotes");
    }
    scan.skip_blanks();
    let (sample, exemplar) = match memchr::memmem::find(scan.rest, b" # ") {
        Some(at) => (&scan.rest[..at], true),
        None => (scan.rest, false),
    };
    if sample.first() == Some(&b'{') {
        return Err("a composite value, which is not a value");
    }
    let mut words = sample.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let value = text::number(words.next().ok_or("no value")?, Numbers::All)?;
    let at = words.next();
    if words.next().is_some() {
        return Err("more than a value and a timestamp");
    }
    Ok(Row {
        name,
        labels,
        value,
        at,
        has_exemplar: exemplar,
    })
}

fn is_name_byte(byte: u8, is_first: bool) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || (!is_first && byte.is_ascii_digit())
}

fn is_label_byte(byte: u8, is_first: bool) -> bool {
    byte != b':' && is_name_byte(byte, is_first)
}

struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    fn skip(&mut self, byte: u8) -> bool {
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip_blanks(&mut self) {
        while self.skip(b' ') || self.skip(b'\t') {}
    }

    /// A word of bytes that `belongs` accepts; `None` if it is empty.
    fn word(&mut self, belongs: fn(u8, bool) -> bool) -> Option<&'a str> {
        let bytes = self.rest.iter().enumerate();
        let length = bytes.take_while(|&(at, &byte)| belongs(byte, at == 0)).count();
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        std::str::from_utf8(word).ok().filter(|word| !word.is_empty())
    }

    /// Everything up to the closing brace. A quoted word without a value is the name.
    fn labels(&mut self, name: &mut String) -> Result<Vec<(String, String)>, &'static str> {
        let mut labels: Vec<(String, String)> = Vec::new();
        loop {
            self.skip_blanks();
            if self.skip(b'}') {
                break;
            }
            let is_quoted = self.rest.first() == Some(&b'"');
            let label = if is_quoted {
                self.quoted()?
            } else {
                self.word(is_label_byte).ok_or("a label without a name")?.to_owned()
            };
            self.skip_blanks();
            if self.skip(b'=') {
                self.skip_blanks();
                labels.push((label, self.quoted()?));
            } else if is_quoted && name.is_empty() && !label.is_empty() {
                *name = label;
            } else {
                return Err("a label without a value");
            }
            self.skip_blanks();
            if !self.skip(b',') && self.rest.first() != Some(&b'}') {
                return Err("labels that do not end on their line");
            }
        }
        let mut names: Vec<&str> = labels.iter().map(|(label, _)| label.as_str()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("a label that occurs twice");
        }
        if names.iter().any(|&label| label == "__name__" || label.is_empty()) {
            return Err("a label of a reserved or empty name");
        }
        Ok(labels)
    }

    /// A quoted text; `\\`, `\"` and `\n` are escapes.
    fn quoted(&mut self) -> Result<String, &'static str> {
        const OPEN: &str = "a quoted text that does not end on its line";
        if !self.skip(b'"') {
            return Err("a label whose value is not in quotes");
        }
        let mut text = Vec::new();
        loop {
            let stop = memchr::memchr2(b'"', b'\\', self.rest).ok_or(OPEN)?;
            text.extend_from_slice(&self.rest[..stop]);
            let is_end = self.rest[stop] == b'"';
            self.rest = &self.rest[stop + 1..];
            if is_end {
                return String::from_utf8(text).map_err(|_| "a label that is not UTF-8");
            }
            let (&escaped, rest) = self.rest.split_first().ok_or(OPEN)?;
            self.rest = rest;
            text.push(match escaped {
                b'n' => b'\n',
                b'\\' | b'"' => escaped,
                _ => return Err("an escape that is none"),
            });
        }
    }
}

#[cfg(test)]
mod tests;
