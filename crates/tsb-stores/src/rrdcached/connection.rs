//! A connection to rrdcached: commands out, replies in, both bounded.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tsb_core::wire::rrdcached::{LINE_MAX, Status, batch_error};

/// How long the daemon may be silent before it counts as gone.
const PATIENCE: Duration = Duration::from_mins(1);
/// Commands that are under way together: their replies fit into a socket's buffer.
const UNDER_WAY: usize = 100;

/// One connection. After an error it is of no more use: nobody knows which replies are
/// still to come.
#[derive(Debug)]
pub(super) struct Connection {
    replies: BufReader<UnixStream>,
    line: String,
}

/// The reply to one command.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) is_ok: bool,
    pub(super) text: String,
    pub(super) lines: Vec<String>,
}

impl Connection {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            replies: BufReader::with_capacity(1 << 16, stream),
            line: String::new(),
        })
    }

    /// Sends commands, a line each, and reads their replies.
    pub(super) fn ask(&mut self, commands: &str) -> io::Result<Vec<Reply>> {
        let lines: Vec<&str> = commands.split_inclusive('\n').collect();
        let mut replies = Vec::with_capacity(lines.len());
        for some in lines.chunks(UNDER_WAY) {
            self.send(&some.concat())?;
            for _ in some {
                replies.push(self.reply()?);
            }
        }
        Ok(replies)
    }

    /// Sends commands as one batch: the number of each that failed, from 1, and why.
    pub(super) fn batch(&mut self, commands: &str) -> io::Result<Vec<(usize, String)>> {
        let begun = self.ask("BATCH\n")?;
        if !begun.iter().all(|reply| reply.is_ok) {
            return Err(io::Error::other(format!("it takes no batch: {begun:?}")));
        }
        // Nothing is answered before the end, so nothing fills up on the way back.
        self.send(commands)?;
        let reply = self.ask(".\n")?.pop();
        let failures = reply.map_or(Vec::new(), |reply| reply.lines);
        let read = failures.into_iter().map(|line| {
            let (number, what) = batch_error(&line).ok_or_else(|| unreadable(&line))?;
            Ok((number, what.to_owned()))
        });
        read.collect()
    }

    fn send(&self, text: &str) -> io::Result<()> {
        let mut stream = self.replies.get_ref();
        stream.write_all(text.as_bytes())
    }

    fn reply(&mut self) -> io::Result<Reply> {
        self.read_line()?;
        let status = Status::parse(&self.line).ok_or_else(|| unreadable(&self.line))?;
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
