//! The client of rrdcached's protocol. It sends commands and reads replies; every wait has a
//! deadline, and the length of a reply is bounded.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tsb_core::wire::rrdcached::{LINE_MAX, StatusLine, batch_error};

/// Time without a reply after which the daemon counts as gone.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Number of commands sent before their replies are read: few enough that all replies fit into a
/// socket's buffer.
const IN_FLIGHT_MAX: usize = 100;

/// One connection. Do not use it after an error: it is unknown which replies are still to come.
#[derive(Debug)]
pub struct Connection {
    replies: BufReader<UnixStream>,
    line: String,
}

/// The reply to one command.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reply {
    /// Whether the command succeeded: its status is not negative.
    pub is_ok: bool,
    /// The rest of the first line, after the status.
    pub text: String,
    /// The lines that the status announces, without line ends.
    pub lines: Vec<String>,
}

/// Counters of a server, from `STATS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Number of files queued for writing.
    pub queued: u64,
    /// Number of times that a file was opened and written to.
    pub passes: u64,
    /// Number of values written.
    pub values: u64,
}

impl Connection {
    /// Connects to a socket.
    ///
    /// # Errors
    /// If nothing listens, or the socket does not support timeouts.
    pub fn open(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self {
            replies: BufReader::with_capacity(1 << 16, stream),
            line: String::new(),
        })
    }

    /// Sends commands, one per line, and reads their replies, a hundred at a time.
    ///
    /// # Errors
    /// If the server is gone, silent for a minute, or sends something that is not a reply.
    pub fn ask(&mut self, commands: &str) -> io::Result<Vec<Reply>> {
        let lines: Vec<&str> = commands.split_inclusive('\n').collect();
        let mut replies = Vec::with_capacity(lines.len());
        for some in lines.chunks(IN_FLIGHT_MAX) {
            self.send(&some.concat())?;
            for _ in some {
                replies.push(self.reply()?);
            }
        }
        Ok(replies)
    }

    /// Sends commands as one batch. Returns the number of each failed command, from 1, with its
    /// error.
    ///
    /// # Errors
    /// As [`Connection::ask`], and if the server refuses the batch.
    pub fn batch(&mut self, commands: &str) -> io::Result<Vec<(usize, String)>> {
        let begun = self.ask("BATCH\n")?;
        if !begun.iter().all(|reply| reply.is_ok) {
            return Err(io::Error::other(format!("it takes no batch: {begun:?}")));
        }
        // The server answers only at the end of the batch, so its replies cannot fill the socket
        // meanwhile.
        self.send(commands)?;
        let reply = self.ask(".\n")?.pop();
        let failures = reply.map_or(Vec::new(), |reply| reply.lines);
        let read = failures.into_iter().map(|line| {
            let (number, what) = batch_error(&line).ok_or_else(|| unreadable(&line))?;
            Ok((number, what.to_owned()))
        });
        read.collect()
    }

    /// The counters of the server; a counter that it does not have is 0.
    ///
    /// # Errors
    /// As [`Connection::ask`].
    pub fn counters(&mut self) -> io::Result<Counters> {
        let lines = self.ask("STATS\n")?.pop().map_or(Vec::new(), |reply| reply.lines);
        let count = |name: &str| {
            let values = lines
                .iter()
                .filter_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
            values.sum::<u64>()
        };
        Ok(Counters {
            queued: count("QueueLength:"),
            passes: count("UpdatesWritten:"),
            values: count("DataSetsWritten:"),
        })
    }

    /// Sends text unchanged: whole commands. [`Connection::reply`] reads the replies.
    ///
    /// # Errors
    /// If the server is gone, or reads nothing for a minute.
    pub fn send(&self, text: &str) -> io::Result<()> {
        let mut stream = self.replies.get_ref();
        stream.write_all(text.as_bytes())
    }

    /// Reads the reply to one command.
    ///
    /// # Errors
    /// As [`Connection::ask`].
    pub fn reply(&mut self) -> io::Result<Reply> {
        self.read_line()?;
        let status = StatusLine::parse(&self.line).ok_or_else(|| unreadable(&self.line))?;
        let count = status.lines().ok_or_else(|| unreadable(&self.line))?;
        let mut reply = Reply {
            is_ok: status.is_ok(),
            text: status.text.to_owned(),
            lines: Vec::new(),
        };
        for _ in 0..count {
            self.read_line()?;
            reply.lines.push(self.line.clone());
        }
        Ok(reply)
    }

    fn read_line(&mut self) -> io::Result<()> {
        self.line.clear();
        let mut bounded = self.replies.by_ref().take(LINE_MAX as u64);
        bounded.read_line(&mut self.line)?;
        if self.line.pop() != Some('\n') {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the reply ends too soon"));
        }
        Ok(())
    }
}

fn unreadable(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it answers {line:?}"))
}
