//! What a program writes to its standard error, bounded.

use std::collections::VecDeque;

/// Lines that are kept for messages.
const FIRST: usize = 50;
/// Lines that are kept for errors.
const LAST: usize = 4;
/// Bytes of a line that are kept.
const LINE: usize = 300;

/// The first and last lines, and their number.
#[derive(Debug, Default)]
pub(super) struct Said {
    first: Vec<String>,
    last: VecDeque<String>,
    count: u64,
    line: Vec<u8>,
}

impl Said {
    /// Adds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                self.end_line();
            } else if self.line.len() < LINE {
                self.line.push(*byte);
            }
        }
    }

    /// Ends a line without a line feed.
    pub(super) fn finish(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        self.line.clear();
        self.count += 1;
        if self.first.len() < FIRST {
            self.first.push(line.clone());
        }
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// The first lines, and how many more there were.
    pub(super) fn messages(&self) -> Vec<String> {
        let mut messages = self.first.clone();
        let more = self.count - self.first.len() as u64;
        if more > 0 {
            messages.push(format!("... and {more} more lines"));
        }
        messages
    }

    /// The last lines, as a clause at the end of an error; empty if there are none.
    pub(super) fn clause(&self) -> String {
        if self.last.is_empty() {
            return String::new();
        }
        let lines: Vec<&str> = self.last.iter().map(String::as_str).collect();
        format!("; its last words: {}", lines.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let mut said = Said::default();
        said.push(b"one\r\ntw");
        said.push(b"o\n");
        assert_eq!(said.messages(), ["one", "two"]);
        for number in 0..100 {
            said.push(format!("{number} {}\n", "x".repeat(1_000)).as_bytes());
        }
        said.push(b"end");
        said.finish();
        let messages = said.messages();
        assert_eq!(messages.len(), FIRST + 1);
        assert_eq!(messages[FIRST], "... and 53 more lines");
        assert!(messages.iter().all(|line| line.len() <= LINE));
        assert!(said.clause().ends_with(" | end"), "{}", said.clause());
    }
}
