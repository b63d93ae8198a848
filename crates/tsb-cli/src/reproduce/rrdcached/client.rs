//! A client of rrdcached's protocol for which every command must succeed: the same for the real
//! daemon and for ours.

use std::io;
use std::path::Path;
use std::time::Duration;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::wire::rrdcached::command;
use tsb_rrdcached::{Connection, Counters};

/// Longest wait for a drain; the published ones took up to 282 s.
const WRITTEN_TIMEOUT: Duration = Duration::from_mins(15);
/// Interval between two queries of the counters during a drain.
const POLL_NS: u64 = 500_000;

/// A connection.
#[derive(Debug)]
pub(super) struct Client {
    connection: Connection,
    text: String,
}

impl Client {
    /// Connects, retrying for 10 s while the server starts.
    pub(super) fn connect(socket: &Path) -> io::Result<Self> {
        let clock = MonotonicClock::new();
        let connection = loop {
            match Connection::open(socket) {
                Ok(connection) => break connection,
                Err(error) if clock.now() > 10 * SECOND_NS => return Err(error),
                Err(_) => clock.wait_until(clock.now() + 10_000_000),
            }
        };
        Ok(Self {
            connection,
            text: String::new(),
        })
    }

    /// Sends a command that must succeed. Returns the lines of its reply.
    pub(super) fn ask(&mut self, words: &[&str]) -> io::Result<Vec<String>> {
        self.text.clear();
        command(&mut self.text, words);
        self.connection.send(&self.text)?;
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Vec<String>> {
        let reply = self.connection.reply()?;
        if reply.is_ok {
            return Ok(reply.lines);
        }
        Err(io::Error::other(format!("it answers {:?}", reply.text)))
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
        self.connection.send(&self.text)?;
        match self.reply()?.first() {
            None => Ok(()),
            Some(error) => Err(io::Error::other(format!("a batch has errors, such as {error}"))),
        }
    }

    pub(super) fn counters(&mut self) -> io::Result<Counters> {
        self.connection.counters()
    }

    /// Waits until `values` values were written in all and nothing is queued.
    pub(super) fn await_written(&mut self, values: u64) -> io::Result<Counters> {
        let clock = MonotonicClock::new();
        loop {
            let counters = self.counters()?;
            if counters.queued == 0 && counters.values >= values {
                return Ok(counters);
            }
            if clock.now() > WRITTEN_TIMEOUT.as_nanos() as u64 {
                let waited_s = WRITTEN_TIMEOUT.as_secs();
                let what = format!(
                    "{} of {values} values were written within {waited_s} s",
                    counters.values
                );
                return Err(io::Error::other(what));
            }
            clock.wait_until(clock.now() + POLL_NS);
        }
    }
}
