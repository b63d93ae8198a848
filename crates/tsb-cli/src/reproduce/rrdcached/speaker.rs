//! A client of rrdcached's protocol, used for the real daemon and for tsb's write cache.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::wire::rrdcached::{Status, command};

/// Timeout of reads and writes; no server is silent for that long.
const PATIENCE: Duration = Duration::from_mins(2);
/// Interval between two queries of the counters during a drain.
const POLL_NS: u64 = 2_000_000;

/// A connection.
#[derive(Debug)]
pub(super) struct Speaker {
    replies: BufReader<UnixStream>,
    text: String,
    line: String,
}

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) queued: u64,
    /// Writes to files, each of one or more values.
    pub(super) passes: u64,
    pub(super) values: u64,
}

impl Speaker {
    /// Connects, retrying for 10 s while the server starts.
    pub(super) fn connect(socket: &Path) -> io::Result<Self> {
        let clock = MonotonicClock::new();
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) if clock.now() > 10 * SECOND_NS => return Err(error),
                Err(_) => clock.wait_until(clock.now() + 10_000_000),
            }
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            replies: BufReader::with_capacity(1 << 16, stream),
            text: String::new(),
            line: String::new(),
        })
    }

    /// Sends a command that must succeed. Returns the lines of its reply.
    pub(super) fn ask(&mut self, words: &[&str]) -> io::Result<Vec<String>> {
        self.text.clear();
        command(&mut self.text, words);
        self.replies.get_mut().write_all(self.text.as_bytes())?;
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Vec<String>> {
        self.read_line()?;
        let status = Status::parse(self.line.trim_end()).filter(Status::is_ok);
        let count = status.and_then(|status| status.lines());
        let count = count.ok_or_else(|| io::Error::other(format!("it answers {:?}", self.line.trim_end())))?;
        let mut lines = Vec::with_capacity(count);
        for _ in 0..count {
            self.read_line()?;
            lines.push(self.line.trim_end().to_owned());
        }
        Ok(lines)
    }

    fn read_line(&mut self) -> io::Result<()> {
        self.line.clear();
        match self.replies.read_line(&mut self.line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Sends updates as one batch, all of which must succeed.
    pub(super) fn batch(&mut self, updates: &[(String, String)]) -> io::Result<()> {
        self.ask(&["BATCH"])?;
        self.text.clear();
        for (file, readings) in updates {
            self.text.push_str("UPDATE ");
            self.text.push_str(file);
            self.text.push(' ');
            self.text.push_str(readings);
            self.text.push('\n');
        }
        self.text.push_str(".\n");
        self.replies.get_mut().write_all(self.text.as_bytes())?;
        match self.reply()?.first() {
            None => Ok(()),
            Some(error) => Err(io::Error::other(format!("a batch has errors, such as {error}"))),
        }
    }

    pub(super) fn counters(&mut self) -> io::Result<Counters> {
        let lines = self.ask(&["STATS"])?;
        let count = |name: &str| {
            let values = lines
                .iter()
                .filter_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
            values.sum()
        };
        Ok(Counters {
            queued: count("QueueLength:"),
            passes: count("UpdatesWritten:"),
            values: count("DataSetsWritten:"),
        })
    }

    /// Waits until `values` values were written in total and none is queued.
    pub(super) fn await_written(&mut self, values: u64) -> io::Result<Counters> {
        let clock = MonotonicClock::new();
        loop {
            let counters = self.counters()?;
            if counters.queued == 0 && counters.values >= values {
                return Ok(counters);
            }
            if clock.now() > PATIENCE.as_nanos() as u64 {
                let what = format!("{} of {values} values are written, and no more", counters.values);
                return Err(io::Error::other(what));
            }
            clock.wait_until(clock.now() + POLL_NS);
        }
    }
}
