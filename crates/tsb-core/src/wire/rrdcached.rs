//! rrdcached's line protocol, both sides: commands, replies, fetched rows.
//!
//! A command is a line of words. A reply is a line `<n> <text>`: if n is positive, n more lines
//! follow; if it is negative, it is an error. Between `BATCH` and `.` there is only one reply, for
//! the whole batch. This module only handles bytes; sockets are elsewhere. It contains what a
//! client writes and reads; the server side is in [`Command`], [`Words`] and [`Reply`].
//!
//! It is *not* a protocol of `--listen` and `--to`: a file must be created before it accepts
//! updates, and every update must be answered.

use std::fmt::Write as _;

mod no_series;
mod reply;
mod request;

pub use no_series::NoSeries;
pub use reply::{Reply, scientific};
pub use request::{Command, Words, line};

/// Maximum length of a reply line; the daemon's own buffer has 4096 bytes.
pub const LINE_MAX: usize = 1 << 16;
/// Maximum number of lines in a reply: one per row of the longest sensible archive.
pub const LINES_MAX: usize = 10_000_000;

/// Appends a command: its words, with blanks and backslashes escaped.
pub fn command(into: &mut String, words: &[&str]) {
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            into.push(' ');
        }
        escape(into, word);
    }
    into.push('\n');
}

fn escape(into: &mut String, word: &str) {
    for c in word.chars() {
        // A line end cannot be escaped and would end the command.
        if c == '\n' || c == '\r' {
            continue;
        }
        if c.is_ascii_whitespace() || c == '\\' {
            into.push('\\');
        }
        into.push(c);
    }
}

/// The first line of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusLine<'a> {
    /// Negative: an error. Positive: the number of lines that follow.
    pub code: i64,
    /// The text after the number.
    pub text: &'a str,
}

impl<'a> StatusLine<'a> {
    /// Parses the first line of a reply, without its line end. `None` if it is invalid.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (code, text) = line.split_once(' ').unwrap_or((line, ""));
        Some(Self {
            code: code.parse().ok()?,
            text,
        })
    }

    /// Number of lines that follow; `None` if it exceeds [`LINES_MAX`].
    pub fn lines(&self) -> Option<usize> {
        usize::try_from(self.code.max(0))
            .ok()
            .filter(|&lines| lines <= LINES_MAX)
    }

    /// Whether it is a success.
    pub fn is_ok(&self) -> bool {
        self.code >= 0
    }
}

/// Parses a line of the reply to a batch: the number of a command, from 1, and its error.
pub fn batch_error(line: &str) -> Option<(usize, &str)> {
    let (number, what) = line.split_once(' ')?;
    Some((number.parse().ok().filter(|&number| number > 0)?, what))
}

/// Whether an update was refused because it is not later than the last one.
pub fn is_not_later(what: &str) -> bool {
    what.starts_with("illegal attempt to update")
}

/// Whether a creation failed because the file exists.
pub fn is_there(what: &str) -> bool {
    what.ends_with("File exists")
}

/// Time of a file's newest update, in seconds since the epoch, if this line of the reply to `INFO`
/// contains it. `LAST` is not used: it rounds down to a step, and includes pending updates.
pub fn last_update(line: &str) -> Option<i64> {
    let rest = line.strip_prefix("last_update ")?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// A line of the reply to `FETCH`.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetched<'a> {
    /// A row: its end, in seconds since the epoch, and the value of the first source; NaN if
    /// unknown.
    Row(i64, f64),
    /// A header line before the rows.
    Head(&'a str, &'a str),
}

/// Parses a line of the reply to `FETCH`. `None` if it is invalid.
pub fn fetched(line: &str) -> Option<Fetched<'_>> {
    let (name, rest) = line.split_once(':')?;
    let rest = rest.trim_start();
    let Ok(end_s) = name.trim_start().parse() else {
        return Some(Fetched::Head(name, rest));
    };
    let first = rest.split_ascii_whitespace().next()?;
    // C may print an unknown value with a sign.
    let value = match first {
        "nan" | "-nan" => f64::NAN,
        number => number.parse().ok()?,
    };
    Some(Fetched::Row(end_s, value))
}

/// Appends the definition of a data source without limits, as `CREATE` takes it.
pub fn source(into: &mut String, name: &str, kind: &str, heartbeat_s: u64) {
    let _ = write!(into, "DS:{name}:{kind}:{heartbeat_s}:U:U");
}

/// Appends the definition of an archive, as `CREATE` takes it.
pub fn archive(into: &mut String, consolidation: &str, xff: f64, steps: u64, rows: u64) {
    let _ = write!(into, "RRA:{consolidation}:{xff}:{steps}:{rows}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_lines_of_escaped_words() {
        let mut text = String::new();
        command(&mut text, &["FLUSH", "a b\\c.rrd"]);
        command(&mut text, &["UPDATE", "x", "1:2", "3:4\nFLUSHALL"]);
        assert_eq!(text, "FLUSH a\\ b\\\\c.rrd\nUPDATE x 1:2 3:4FLUSHALL\n");
        let mut text = String::new();
        source(&mut text, "value", "GAUGE", 600);
        archive(&mut text, "AVERAGE", 0.5, 1, 1440);
        assert_eq!(text, "DS:value:GAUGE:600:U:URRA:AVERAGE:0.5:1:1440");
    }

    // The lines are rrdcached 1.7.2's.
    #[test]
    fn replies_are_read() {
        let status = StatusLine::parse("0 errors, enqueued 1 value(s).").unwrap();
        assert!(status.is_ok() && status.lines() == Some(0));
        assert_eq!(StatusLine::parse("9 Statistics follow").unwrap().lines(), Some(9));
        let refused = StatusLine::parse("-1 No such file: /tmp/nope.rrd").unwrap();
        assert_eq!((refused.is_ok(), refused.text), (false, "No such file: /tmp/nope.rrd"));
        assert_eq!(StatusLine::parse("99999999999 x").unwrap().lines(), None);
        for line in ["", "Did you pass -R to the daemon?", "x 1", "99999999999999999999 x"] {
            assert_eq!(StatusLine::parse(line), None, "{line:?}");
        }
        let (number, what) = batch_error(
            "41 illegal attempt to update using time 1700000039.000000 when last update time is 1700000039.000000 \
             (minimum one second step)",
        )
        .unwrap();
        assert!(number == 41 && is_not_later(what) && !is_there(what));
        assert!(is_there("RRD Error: creating '/x.rrd': File exists"));
        assert_eq!(
            (batch_error("0 x"), batch_error("x y"), batch_error("7")),
            (None, None, None)
        );
    }

    #[test]
    fn the_newest_update_is_read() {
        assert_eq!(last_update("last_update 1 1700000040"), Some(1_700_000_040));
        for line in ["step 1 2", "last_update", "last_update 1", "last_update 1 x"] {
            assert_eq!(last_update(line), None, "{line:?}");
        }
    }

    #[test]
    fn fetched_rows_are_read() {
        assert_eq!(fetched("Step: 2"), Some(Fetched::Head("Step", "2")));
        assert_eq!(
            fetched("1700000020: 2.00000000000000000e+01 1.5"),
            Some(Fetched::Row(1_700_000_020, 20.0))
        );
        assert_eq!(fetched("       100: 1"), Some(Fetched::Row(100, 1.0)));
        let unknown = fetched("1700000040: -nan");
        assert!(matches!(unknown, Some(Fetched::Row(1_700_000_040, value)) if value.is_nan()));
        for line in ["", "100", "100: ", "100: x"] {
            assert_eq!(fetched(line), None, "{line:?}");
        }
    }
}
