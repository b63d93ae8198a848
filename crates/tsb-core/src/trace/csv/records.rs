//! Splits lines into rows of fields. Quoting follows `csv-core`; line splitting is done here.
//!
//! A quoted field may span several lines. An unterminated one would consume the rest of the file.
//! So beyond [`MAX_OPEN_BYTES`], or at the end of the file, only its first line is reported as
//! invalid, and the others are parsed again on their own.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

/// Maximum bytes of lines that wait for the end of a quoted field.
const MAX_OPEN_BYTES: usize = 1 << 20;

/// A line of an unfinished row.
#[derive(Debug)]
pub(super) struct OpenLine {
    pub(super) number: u64,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

/// The result of adding a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineStatus {
    /// A row is complete: see [`Records::fields`].
    Row,
    /// A quoted field continues on the next line.
    Open,
    /// A quoted field exceeds the limit.
    TooLong,
}

/// The row being read. Its buffers are reused.
#[derive(Debug)]
pub(super) struct Records {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    text_len: usize,
    count: usize,
    open: Vec<OpenLine>,
    open_bytes: usize,
}

impl Records {
    pub(super) fn new(separator: u8) -> Self {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(separator).terminator(Terminator::Any(b'\n'));
        Self {
            reader: builder.build(),
            text: vec![0; 1024],
            ends: vec![0; 64],
            text_len: 0,
            count: 0,
            open: Vec::new(),
            open_bytes: 0,
        }
    }

    /// Adds one line, without its end.
    pub(super) fn feed(&mut self, number: u64, offset: u64, line: &[u8]) -> LineStatus {
        if self.open.is_empty() {
            self.reader.reset();
            (self.text_len, self.count) = (0, 0);
        }
        if self.take(line) || self.take(b"\n") {
            return LineStatus::Row;
        }
        self.open.push(OpenLine {
            number,
            offset,
            bytes: line.to_vec(),
        });
        self.open_bytes += line.len();
        if self.open_bytes > MAX_OPEN_BYTES {
            LineStatus::TooLong
        } else {
            LineStatus::Open
        }
    }

    /// Parses input; returns whether the row ended in it.
    fn take(&mut self, mut input: &[u8]) -> bool {
        while !input.is_empty() {
            let (text, ends) = (&mut self.text[self.text_len..], &mut self.ends[self.count..]);
            let (result, taken, written, ended) = self.reader.read_record(input, text, ends);
            input = &input[taken..];
            self.text_len += written;
            self.count += ended;
            match result {
                ReadRecordResult::Record => return true,
                ReadRecordResult::OutputFull => self.text.resize(2 * self.text.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::InputEmpty | ReadRecordResult::End => {}
            }
        }
        false
    }

    /// Line and offset at which the row began, if not on its last line.
    pub(super) fn began(&self) -> Option<(u64, u64)> {
        self.open.first().map(|line| (line.number, line.offset))
    }

    /// Removes and returns the lines of the unfinished row.
    pub(super) fn take_open(&mut self) -> Vec<OpenLine> {
        self.open_bytes = 0;
        std::mem::take(&mut self.open)
    }

    /// Prepares for the next row.
    pub(super) fn next(&mut self) {
        self.open.clear();
        self.open_bytes = 0;
    }

    /// Number of fields in the row.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// A field of the row, trimmed; empty if it does not exist.
    pub(super) fn field(&self, index: usize) -> &[u8] {
        let Some(&end) = self.ends[..self.count].get(index) else {
            return b"";
        };
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        self.text.get(start..end).unwrap_or_default().trim_ascii()
    }

    /// All fields of the row.
    pub(super) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count).map(|index| self.field(index))
    }

    /// The row as text, for display.
    pub(super) fn shown(&self) -> Vec<u8> {
        self.fields().collect::<Vec<_>>().join(&b","[..])
    }
}

/// Determines the separator of a file from its first line: the most frequent of comma, semicolon
/// and tab outside quotes.
pub(super) fn sniff(line: &[u8]) -> u8 {
    let mut is_quoted = false;
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    for &byte in line {
        is_quoted ^= byte == b'"';
        let count = counts
            .iter_mut()
            .find(|(separator, _)| *separator == byte && !is_quoted);
        if let Some((_, count)) = count {
            *count += 1;
        }
    }
    // Of equal counts, the first is chosen.
    let best = counts.iter().rev().max_by_key(|(_, count)| *count);
    best.map_or(b',', |(separator, _)| *separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(records: &Records) -> Vec<String> {
        records
            .fields()
            .map(|field| String::from_utf8_lossy(field).into_owned())
            .collect()
    }

    #[test]
    fn quoted_fields_go_over_lines_and_rows_of_any_width_are_taken() {
        let mut records = Records::new(b',');
        assert_eq!(records.feed(1, 0, b"a, b ,\"c\"\"d\""), LineStatus::Row);
        assert_eq!(fields(&records), ["a", "b", "c\"d"]);
        records.next();
        assert_eq!(records.feed(2, 10, b"x,\"one"), LineStatus::Open);
        assert_eq!(records.feed(3, 20, b"two\",y"), LineStatus::Row);
        assert_eq!(fields(&records), ["x", "one\ntwo", "y"]);
        assert_eq!(records.began(), Some((2, 10)));
        records.next();
        let wide = vec![&b"123456789"[..]; 5_000].join(&b","[..]);
        assert_eq!(records.feed(4, 30, &wide), LineStatus::Row);
        assert_eq!((records.len(), records.field(4_999)), (5_000, &b"123456789"[..]));
        assert_eq!(records.field(5_000), b"");
    }

    #[test]
    fn an_endless_line_is_bounded() {
        let mut records = Records::new(b';');
        assert_eq!(records.feed(1, 0, b"\"open"), LineStatus::Open);
        assert_eq!(records.feed(2, 6, &vec![b'x'; MAX_OPEN_BYTES]), LineStatus::TooLong);
        assert_eq!(records.take_open().len(), 2);
        assert_eq!(records.feed(3, 0, b"a;b"), LineStatus::Row);
        assert_eq!(fields(&records), ["a", "b"]);
    }

    #[test]
    fn the_separator_is_the_most_frequent_outside_quotes() {
        for (line, separator) in [
            (&b"timestamp,value"[..], b','),
            (b"5;a{x=1,y=2};1", b';'),
            (b"Date\tTime\tValue, total", b'\t'),
            (b"\"a;b;c\",d", b','),
            (b"value", b','),
        ] {
            assert_eq!(sniff(line), separator, "{}", line.escape_ascii());
        }
    }
}
