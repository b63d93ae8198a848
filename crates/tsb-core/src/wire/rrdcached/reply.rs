//! Replies of the server: the first line, and the lines that follow.

use std::fmt::{self, Write};

/// The first line of a reply without its end, as rrdcached 1.7.2 writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// To `UPDATE`: number of values pending now.
    Enqueued(usize),
    /// To `FLUSH`: the pending values of the file were written.
    Flushed(&'a str),
    /// To `FLUSH`: the file exists, but has no pending values.
    NothingToFlush(&'a str),
    /// To `FLUSHALL`.
    FlushStarted,
    /// To `FORGET`.
    Gone,
    /// To `PING`.
    Pong,
    /// To `BATCH`.
    GoAhead,
    /// To `CREATE`.
    Created,
    /// To `TUNE`.
    Success,
    /// To `SUSPEND`.
    Suspended(&'a str),
    /// To `SUSPEND`: the file was suspended already.
    AlreadySuspended(&'a str),
    /// To `RESUME`.
    Resumed(&'a str),
    /// To `RESUME`: the file was not suspended.
    NotSuspended(&'a str),
    /// To `SUSPENDALL`: number of files.
    AllSuspended(usize),
    /// To `RESUMEALL`: number of files.
    AllResumed(usize),
    /// To `FIRST` and `LAST`: seconds since the epoch.
    Time(i64),
    /// This number of lines follows, with a title.
    Lines(usize, &'a str),
    /// An error.
    Error(&'a str),
}

impl fmt::Display for Reply<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Enqueued(count) => write!(f, "0 errors, enqueued {count} value(s)."),
            Self::Flushed(file) => write!(f, "0 Successfully flushed {file}."),
            Self::NothingToFlush(file) => write!(f, "0 Nothing to flush: {file}."),
            Self::FlushStarted => f.write_str("0 Started flush."),
            Self::Gone => f.write_str("0 Gone!"),
            Self::Pong => f.write_str("0 PONG"),
            Self::GoAhead => f.write_str("0 Go ahead.  End with dot '.' on its own line."),
            Self::Created => f.write_str("0 RRD created OK"),
            Self::Success => f.write_str("0 Success"),
            Self::Suspended(file) => write!(f, "0 {file} suspended"),
            Self::AlreadySuspended(file) => write!(f, "0 {file} already suspended"),
            Self::Resumed(file) => write!(f, "0 {file} resumed"),
            Self::NotSuspended(file) => write!(f, "0 {file} not suspended"),
            Self::AllSuspended(count) => write!(f, "0 {count} rrds suspend"),
            Self::AllResumed(count) => write!(f, "0 {count} rrds resumed"),
            Self::Time(seconds) => write!(f, "0 {seconds}"),
            Self::Lines(count, what) => write!(f, "{count} {what}"),
            Self::Error(what) => write!(f, "-1 {what}"),
        }
    }
}

impl Reply<'_> {
    /// Appends the line.
    pub fn put(&self, into: &mut String) {
        // A line end within a name would split the line in two.
        let start = into.len();
        let _ = write!(into, "{self}");
        if into[start..].contains(['\n', '\r']) {
            let clean = into[start..].replace(['\n', '\r'], "?");
            into.truncate(start);
            into.push_str(&clean);
        }
        into.push('\n');
    }
}

/// Appends a number as C's `%.*e` prints it.
pub fn scientific(into: &mut String, value: f64, decimals: usize) {
    if value.is_nan() {
        into.push_str(if value.is_sign_negative() { "-nan" } else { "nan" });
        return;
    }
    let start = into.len();
    let _ = write!(into, "{value:.decimals$e}");
    // Rust's exponent has as few digits as possible; C's has a sign and at least two digits.
    if let Some(at) = into[start..].find('e').map(|at| start + at) {
        let exponent: i32 = into[at + 1..].parse().unwrap_or(0);
        into.truncate(at);
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(into, "e{sign}{:02}", exponent.unsigned_abs());
    }
}

#[cfg(test)]
mod tests {
    use super::super::StatusLine;
    use super::*;

    #[test]
    fn numbers_are_those_of_c() {
        let check = |value: f64, decimals: usize, expected: &str| {
            let mut text = String::new();
            scientific(&mut text, value, decimals);
            assert_eq!(text, expected);
        };
        check(2.0, 17, "2.00000000000000000e+00");
        check(2.0 / 15.0, 17, "1.33333333333333331e-01");
        check(0.0, 10, "0.0000000000e+00");
        check(-1.5e-300, 2, "-1.50e-300");
        check(f64::INFINITY, 10, "inf");
        check(f64::NEG_INFINITY, 10, "-inf");
        check(f64::from_bits(0xfff8_0000_0000_0000), 10, "-nan");
        check(f64::from_bits(0x7ff8_0000_0000_0000), 10, "nan");
    }

    #[test]
    fn a_reply_is_one_line_and_is_read_again() {
        let check = |reply: Reply<'_>, code: i64, line: &str| {
            let mut text = String::new();
            reply.put(&mut text);
            assert_eq!(text, format!("{line}\n"));
            assert_eq!(StatusLine::parse(line).unwrap().code, code);
        };
        check(Reply::Enqueued(2), 0, "0 errors, enqueued 2 value(s).");
        check(Reply::Flushed("/a.rrd"), 0, "0 Successfully flushed /a.rrd.");
        check(Reply::Lines(9, "Statistics follow"), 9, "9 Statistics follow");
        check(Reply::Error("No such file: a\nb"), -1, "-1 No such file: a?b");
    }
}
