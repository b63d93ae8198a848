//! The JSON form: one run stands at the top level, several in `runs`.
//!
//! Indented, but numbers and texts of an array stay on one line: a report has many small
//! arrays of counts.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use tsb_core::report::{Report, Run};

/// Writes a report: what `tsb run --out` writes, and `tsb report` reads.
///
/// # Errors
/// When `out` takes no more.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut json = Serializer::with_formatter(&mut *out, Layout::default());
    match report.runs.as_slice() {
        [run] => SingleRun {
            schema_version: report.schema_version,
            tsb_version: &report.tsb_version,
            run,
        }
        .serialize(&mut json),
        _ => report.serialize(&mut json),
    }?;
    out.write_all(b"\n")
}

/// A report of one run.
#[derive(Serialize)]
struct SingleRun<'a> {
    schema_version: u32,
    tsb_version: &'a str,
    #[serde(flatten)]
    run: &'a Run,
}

/// What has been opened and not closed yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenBracket {
    Object {
        is_empty: bool,
    },
    /// An array; on many lines once it turned out to hold an object.
    Array {
        has_lines: bool,
    },
}

#[derive(Default)]
struct Layout {
    open: Vec<OpenBracket>,
}

fn new_line<W: ?Sized + Write>(out: &mut W, depth: usize) -> io::Result<()> {
    out.write_all(b"\n")?;
    (0..depth).try_for_each(|_| out.write_all(b"  "))
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open.push(OpenBracket::Array { has_lines: false });
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.open.pop() == Some(OpenBracket::Array { has_lines: true }) {
            new_line(out, self.open.len())?;
        }
        out.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b",") }
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if let Some(OpenBracket::Array { has_lines }) = self.open.last_mut() {
            *has_lines = true;
            new_line(out, self.open.len())?;
        }
        self.open.push(OpenBracket::Object { is_empty: true });
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.open.pop() == Some(OpenBracket::Object { is_empty: false }) {
            new_line(out, self.open.len())?;
        }
        out.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if let Some(OpenBracket::Object { is_empty }) = self.open.last_mut() {
            *is_empty = false;
        }
        if !first {
            out.write_all(b",")?;
        }
        new_line(out, self.open.len())
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_numbers_stay_on_one_line_and_everything_can_be_read_again() {
        let value = serde_json::json!({
            "counts": [1, 2, 3], "pairs": [[0.5, 7], [0.9, 8]], "empty": [], "none": {},
            "runs": [{"a": 1, "words": ["x, y", "z\""]}, {"b": [{}]}], "null": null,
        });
        let mut out = Vec::new();
        value
            .serialize(&mut Serializer::with_formatter(&mut out, Layout::default()))
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\n  \"counts\": [1,2,3],\n"), "{text}");
        assert!(text.contains("\n    {\n      \"a\": 1,\n"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
