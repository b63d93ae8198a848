//! Decodes the keys of the live view from the bytes that a terminal in raw mode sends.
//!
//! Only the view reads the terminal: with two readers of one input, one edge-triggered and one
//! level-triggered, keys are lost and one reader spins. Escape sequences (arrows, function keys)
//! are skipped as a whole, so that their letters are not taken for keys.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// A pressed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A printable ASCII character.
    Char(char),
    /// The escape key alone.
    Escape,
    /// Ctrl-C, which raw mode delivers as a byte instead of a signal.
    Interrupt,
}

/// The parser's position in an escape sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ParserState {
    #[default]
    Ground,
    Escape,
    /// After `ESC [`: parameters until a final byte (ECMA-48, 5.4).
    Control,
    /// After `ESC O`: one more byte.
    Single,
}

/// The parser.
#[derive(Debug, Default)]
pub(super) struct KeyParser {
    state: ParserState,
}

impl KeyParser {
    /// The keys in the bytes of one read. An escape byte at the end is the escape key: terminals
    /// send a whole sequence at once.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut keys: Vec<Key> = bytes.iter().filter_map(|&byte| self.next(byte)).collect();
        if self.state == ParserState::Escape {
            self.state = ParserState::Ground;
            keys.push(Key::Escape);
        }
        keys
    }

    fn next(&mut self, byte: u8) -> Option<Key> {
        let (at, key) = match (self.state, byte) {
            (_, 0x03) => (ParserState::Ground, Some(Key::Interrupt)),
            (ParserState::Escape, 0x1b) => (ParserState::Escape, Some(Key::Escape)),
            (_, 0x1b) => (ParserState::Escape, None),
            (ParserState::Escape, b'[') | (ParserState::Control, 0x20..=0x3f) => (ParserState::Control, None),
            (ParserState::Escape, b'O') => (ParserState::Single, None),
            (ParserState::Ground, 0x20..=0x7e) => (ParserState::Ground, Some(Key::Char(char::from(byte)))),
            // The end of a sequence, a character that was pressed with Alt, another key.
            _ => (ParserState::Ground, None),
        };
        self.state = at;
        key
    }
}

/// The terminal as a source of keys.
#[derive(Debug)]
pub(super) struct Keyboard {
    terminal: OwnedFd,
    parser: KeyParser,
}

impl Keyboard {
    /// Opens standard input if it is a terminal, else the controlling terminal.
    pub(super) fn open() -> io::Result<Self> {
        if io::stdin().is_terminal() {
            io::stdin().as_fd().try_clone_to_owned().map(Self::of)
        } else {
            File::open("/dev/tty").map(|tty| Self::of(tty.into()))
        }
    }

    fn of(terminal: OwnedFd) -> Self {
        Self {
            terminal,
            parser: KeyParser::default(),
        }
    }

    /// Waits up to `within` for keys, and returns as soon as one is pressed.
    ///
    /// # Errors
    /// If the terminal was closed.
    pub(super) fn pressed(&mut self, within: Duration) -> io::Result<Vec<Key>> {
        let within = Timespec::try_from(within).map_err(io::Error::other)?;
        let mut watched = [PollFd::new(&self.terminal, PollFlags::IN)];
        match poll(&mut watched, Some(&within)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let seen = watched[0].revents();
        if seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut bytes = [0; 256];
        match rustix::io::read(&self.terminal, &mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => Ok(self.parser.take(&bytes[..length])),
            Err(Errno::INTR | Errno::AGAIN) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn every_key_of_one_read_is_taken_and_sequences_are_none() {
        let mut keys = KeyParser::default();
        let pressed = keys.take(b"x\x1b[A\x1bOPq\x1b[1;5C?\x1bq");
        assert_eq!(pressed, [Key::Char('x'), Key::Char('q'), Key::Char('?')]);
        assert_eq!(keys.take(b"\x1b"), [Key::Escape]);
        assert_eq!(keys.take(b"\x1b\x1b"), [Key::Escape, Key::Escape]);
        // A sequence that arrives in two parts is still one.
        assert_eq!(keys.take(b"\x1b[1;"), []);
        assert_eq!(keys.take(b"5Aq"), [Key::Char('q')]);
        assert_eq!(keys.take("\u{e9}\t\u{7f}".as_bytes()), []);
    }

    #[test]
    fn control_c_is_a_key_even_within_a_sequence() {
        let mut keys = KeyParser::default();
        assert_eq!(keys.take(b"\x03"), [Key::Interrupt]);
        assert_eq!(keys.take(b"\x1b[\x03q"), [Key::Interrupt, Key::Char('q')]);
    }

    #[test]
    fn a_terminal_that_has_gone_away_is_an_error() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut keyboard = Keyboard::of(reader.into());
        assert_eq!(keyboard.pressed(Duration::ZERO).unwrap(), []);
        writer.write_all(b"p").unwrap();
        assert_eq!(keyboard.pressed(Duration::ZERO).unwrap(), [Key::Char('p')]);
        drop(writer);
        let error = keyboard.pressed(Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
