//! Prints samples as CSV.

use std::fmt::Write as _;
use std::io::{self, Write};

use tsb_core::Timestamp;

use crate::failure::Failure;
use crate::output::ignore_broken_pipe;
use tsb_run::foreign;
use tsb_run::units::rfc3339;

/// Writes a header line, then rows.
#[derive(Debug)]
pub(super) struct Printer<W: Write> {
    out: W,
    is_rfc3339: bool,
    rows: u64,
    written: io::Result<()>,
    has_head: bool,
}

impl<W: Write> Printer<W> {
    pub(super) fn new(out: W, is_rfc3339: bool) -> Self {
        Self {
            out,
            is_rfc3339,
            rows: 0,
            written: Ok(()),
            has_head: false,
        }
    }

    /// Writes the header line, right before the first row: a refused query prints nothing.
    fn head(&mut self) {
        if !std::mem::replace(&mut self.has_head, true) {
            self.written = writeln!(self.out, "series,time,value");
        }
    }

    /// Writes the samples of a series. Returns whether more can be written.
    pub(super) fn rows(&mut self, name: &str, samples: impl Iterator<Item = (Timestamp, f64)>) -> bool {
        self.head();
        let (name, mut text) = (foreign::cell(name), String::new());
        for (at, value) in samples {
            let at = if self.is_rfc3339 { rfc3339(at) } else { at.to_string() };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name},{at},{value:?}");
            self.rows += 1;
        }
        if self.written.is_ok() {
            self.written = self.out.write_all(text.as_bytes());
        }
        self.written.is_ok()
    }

    /// Flushes. Returns the number of rows.
    pub(super) fn finish(mut self) -> Result<u64, Failure> {
        self.head();
        let flushed = self.written.and_then(|()| self.out.flush());
        ignore_broken_pipe(flushed)?;
        Ok(self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_csv_with_seconds_or_dates() {
        let print = |is_rfc3339| {
            let mut out = Vec::new();
            let mut printer = Printer::new(&mut out, is_rfc3339);
            let samples = [
                (Timestamp(1_700_000_000_000_000_000), 1.5),
                (Timestamp(1_700_000_000_000_000_001), 2.0),
            ];
            assert!(printer.rows("x{a=1,b=2}", samples.into_iter()));
            assert_eq!(printer.finish().unwrap(), 2);
            String::from_utf8(out).unwrap()
        };
        let head = "series,time,value\n\"x{a=1,b=2}\",";
        assert_eq!(
            print(false),
            format!("{head}1700000000.000000000,1.5\n\"x{{a=1,b=2}}\",1700000000.000000001,2.0\n")
        );
        assert!(print(true).starts_with(&format!("{head}2023-11-14T22:13:20Z,1.5\n")));
        assert!(print(true).ends_with(",2023-11-14T22:13:20.000000001Z,2.0\n"));
    }

    #[test]
    fn nothing_is_written_after_a_failure() {
        struct FullDisk;
        impl Write for FullDisk {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut printer = Printer::new(FullDisk, false);
        assert!(!printer.rows("a", std::iter::once((Timestamp(0), 1.0))));
        assert!(printer.finish().is_err());
    }
}
