//! Writes progress and failures to stderr.
//!
//! A closed or full stderr is never an error, a panic or something that a thread waits for: a
//! line that a pipe or terminal has no room for is dropped. Only a failure message waits, for at
//! most 0.5 s.

use std::fmt;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes per write: a pipe with any room accepts this many at once (POSIX's `PIPE_BUF` is at
/// least 512, on Linux 4096).
const PIECE: usize = 4096;

/// How long a failure message waits for room.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

const NO_PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Writes one line to stderr, or drops it if there is no room now.
pub fn line(text: impl fmt::Display) {
    write(&mut io::stderr().lock(), &format!("{text}\n"), &NO_PATIENCE);
}

/// Writes a warning, such as damage that a store has found.
pub fn warning(text: &str) {
    line(format_args!("tsb: {text}"));
}

/// Writes a failure message, and waits up to 0.5 s for room.
pub fn failure(text: impl fmt::Display) {
    write(&mut io::stderr().lock(), &format!("{text}\n"), &PATIENCE);
}

/// Writes as much as fits, piece by piece.
fn write(to: &mut (impl Write + AsFd), text: &str, patience: &Timespec) {
    for piece in text.as_bytes().chunks(PIECE) {
        if !has_room(to, patience) || to.write_all(piece).is_err() {
            return;
        }
    }
}

/// Whether a write would return at once, even if only with an error.
fn has_room(to: &impl AsFd, patience: &Timespec) -> bool {
    let mut descriptors = [PollFd::new(to, PollFlags::OUT)];
    match poll(&mut descriptors, Some(patience)) {
        Ok(ready) => ready > 0,
        // What cannot be asked is tried.
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn lines_that_a_full_pipe_cannot_take_are_dropped_and_later_ones_written() {
        let (mut reader, mut writer) = io::pipe().unwrap();
        let line = "x".repeat(999) + "\n";
        for _ in 0..1_000 {
            write(&mut writer, &line, &NO_PATIENCE);
        }
        let mut taken = vec![0; 1 << 20];
        let length = reader.read(&mut taken).unwrap();
        assert!((4_000..1_000_000).contains(&length), "{length}");
        assert!(taken[..length].ends_with(b"x\n"), "no line is cut");
        write(&mut writer, "and now\n", &NO_PATIENCE);
        drop(writer);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("and now\n"), "{rest}");
    }

    #[test]
    fn a_reader_that_has_gone_costs_nothing() {
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        assert!(has_room(&writer, &NO_PATIENCE), "its error comes at once");
        write(&mut writer, "lost\n", &PATIENCE);
    }
}
