//! One connection of rrdcached's protocol: executes a client's commands on a cache of files.
//!
//! It has no socket: a listener passes in bytes, and takes replies away. Replies leave after the
//! updates that they acknowledge are journaled, so one sync serves all commands that arrived
//! together.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use tsb_core::wire::rrdcached::{Command, Reply, Words, line};
use tsb_core::wire::{Decoder, Fatal, MAX_RECORD, Malformed, Next, Peer, Sequence, Sink};
use tsb_rrd::Session;

use super::FileCache;
use super::accept::{PREFETCH_MAX, PlainUpdate};
use background_command::BackgroundCommand;

mod background_command;
mod execute;
mod fetch;

/// Number of bytes of pending replies from which on no further command is read.
const REPLIES_MAX: usize = 64 << 10;
/// Upper bound, in bytes, of a batch's errors; further errors are only counted.
const ERRORS_MAX: usize = 4 << 20;

/// One connection, on the server's side.
pub struct Conversation {
    cache: Arc<FileCache>,
    session: Session,
    batch: Option<CommandBatch>,
    /// Complete replies that have not been sent.
    replies: Vec<u8>,
    /// The reply that is being built.
    reply: Vec<u8>,
    /// Scratch space for one line of it.
    line: String,
    /// The journal record that must be confirmed before the replies are sent.
    record: Option<u64>,
    /// When the last commands arrived.
    now_ns: u64,
    has_more: bool,
    is_over: bool,
    /// A file that is being created on another thread: until that is done no command is read.
    background: BackgroundCommand,
}

/// One command.
#[derive(Clone, Copy, Debug, Default)]
struct Line<'a> {
    text: &'a [u8],
    /// Length in bytes, with the line end.
    len: usize,
    /// The command as an update of the common form, if it is one.
    update: Option<PlainUpdate<'a>>,
}

/// The commands since `BATCH`.
#[derive(Debug, Default)]
struct CommandBatch {
    commands: usize,
    errors: Vec<String>,
    bytes: usize,
    errors_dropped: usize,
}

impl Conversation {
    /// A connection to `cache`.
    pub fn new(cache: Arc<FileCache>) -> Self {
        Self {
            cache,
            session: Session::default(),
            batch: None,
            replies: Vec::new(),
            reply: Vec::new(),
            line: String::new(),
            record: None,
            now_ns: 0,
            has_more: false,
            is_over: false,
            background: BackgroundCommand::default(),
        }
    }

    /// Replies to the creation of a file if it has finished. Returns false while it is running.
    fn finish_background(&mut self) -> bool {
        let Some(created) = self.background.poll() else {
            return !self.background.is_busy();
        };
        self.reply_created(created);
        true
    }

    fn reply_created(&mut self, created: Result<(), String>) {
        match created {
            Ok(()) => {
                self.append_reply(Reply::Created);
                self.finish_reply();
            }
            Err(error) => self.reply_error(&error),
        }
    }

    /// Splits off lines that arrived together, and prefetches the entries of their updates.
    /// Returns the number of lines.
    fn split_lines<'a>(&self, bytes: &'a [u8], lines: &mut [Line<'a>; PREFETCH_MAX]) -> usize {
        let (mut at, mut count) = (0, 0);
        while count < PREFETCH_MAX
            && let Some((text, len)) = line(&bytes[at..])
        {
            at += len;
            let update = plain_update(text).and_then(|(file, values)| self.cache.plain_update(file, values));
            lines[count] = Line { text, len, update };
            count += 1;
        }
        if count > 1 {
            self.cache
                .prefetch(lines[..count].iter().filter_map(|line| line.update));
        }
        count
    }

    /// Executes one line.
    fn execute_line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) {
        if let Some(update) = line.update
            && let Some(accepted) = self.cache.accept_plain(update, self.now_ns)
        {
            self.record = self.record.max(accepted.record);
            self.append_reply(Reply::Enqueued(1));
            return self.finish_reply();
        }
        let bytes = line.text;
        let Ok(text) = std::str::from_utf8(bytes) else {
            let what = "a command is not UTF-8";
            sink.malformed(&Malformed { what, bytes });
            return self.reply_error("a command is not UTF-8");
        };
        let mut words = Words::of(text);
        let word = words.next().unwrap_or_default();
        let Some(command) = Command::from_word(&word) else {
            let what = "no known command";
            sink.malformed(&Malformed { what, bytes });
            return self.reply_error(&format!("Unknown command: {word}"));
        };
        let is_allowed = match &self.batch {
            Some(_) => command.is_in_batch(),
            None => !matches!(command, Command::End | Command::Wrote),
        };
        if !is_allowed {
            return self.reply_error(&format!("Can't use '{}' here.", command.name()));
        }
        match command {
            Command::Quit => self.is_over = true,
            Command::Batch => {
                self.append_reply(Reply::GoAhead);
                self.finish_reply();
                self.batch = Some(CommandBatch::default());
            }
            Command::End => self.end_batch(),
            _ => match self.execute(command, words) {
                Ok(()) if self.background.is_busy() => {}
                Ok(()) => self.finish_reply(),
                Err(error) => self.reply_error(&error),
            },
        }
    }

    /// Appends a line to the reply. Within a batch there is no reply.
    fn append_reply(&mut self, reply: Reply<'_>) {
        if self.batch.is_none() {
            self.line.clear();
            reply.put(&mut self.line);
            self.reply.extend_from_slice(self.line.as_bytes());
        }
    }

    /// Completes a reply.
    fn finish_reply(&mut self) {
        match &mut self.batch {
            None => self.replies.append(&mut self.reply),
            Some(batch) => batch.commands += 1,
        }
        self.reply.clear();
    }

    fn reply_error(&mut self, what: &str) {
        self.reply.clear();
        match &mut self.batch {
            None => {
                self.append_reply(Reply::Error(what));
                self.finish_reply();
            }
            Some(batch) => batch.note(what),
        }
    }

    fn end_batch(&mut self) {
        let Some(mut batch) = self.batch.take() else { return };
        if batch.errors_dropped > 0 {
            let line = format!("{} and {} further errors", batch.commands, batch.errors_dropped);
            batch.errors.push(line);
        }
        self.append_reply(Reply::Lines(batch.errors.len(), "errors"));
        for error in &batch.errors {
            self.reply.extend_from_slice(error.as_bytes());
            self.reply.push(b'\n');
        }
        self.finish_reply();
    }
}

/// The file and the value of an update in its common form: one blank after each word, and no
/// quoting or escapes.
fn plain_update(line: &[u8]) -> Option<(&str, &str)> {
    let rest = line.strip_prefix(b"UPDATE ")?;
    let is_of_name = |byte: &u8| byte.is_ascii_graphic() && *byte != b'\\';
    let end = rest.iter().position(|byte| !is_of_name(byte)).filter(|&end| end > 0)?;
    let (file, values) = std::str::from_utf8(rest).ok()?.split_at_checked(end)?;
    Some((file, values.strip_prefix(' ')?))
}

impl CommandBatch {
    /// Notes that the next command has failed.
    fn note(&mut self, what: &str) {
        self.commands += 1;
        if self.bytes + what.len() > ERRORS_MAX {
            self.errors_dropped += 1;
            return;
        }
        let line = format!("{} {}", self.commands, what.replace(['\n', '\r'], "?"));
        self.bytes += line.len();
        self.errors.push(line);
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("batch", &self.batch)
            .field("waiting", &self.replies.len())
            .finish_non_exhaustive()
    }
}

impl Decoder for Conversation {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        let mut lines = [Line::default(); PREFETCH_MAX];
        let mut at = 0;
        self.has_more = false;
        while !self.is_over && self.finish_background() {
            let count = self.split_lines(&bytes[at..], &mut lines);
            if count == 0 {
                break;
            }
            self.now_ns = self.cache.now_ns();
            for line in &lines[..count] {
                if self.replies.len() > REPLIES_MAX {
                    self.has_more = true;
                    return Ok(at);
                }
                at += line.len;
                self.execute_line(line, sink);
                if self.is_over || self.background.is_busy() {
                    break;
                }
            }
        }
        if self.background.is_busy() {
            return Ok(at);
        }
        let unended = &bytes[at..];
        if unended.len() >= MAX_RECORD && !self.is_over {
            let what = "a command is longer than 65535 bytes";
            sink.malformed(&Malformed { what, bytes: unended });
            return Err(Fatal { what });
        }
        Ok(at)
    }

    fn answer(&mut self, _peer: Peer, out: &mut Vec<u8>) -> Next {
        if let Some(record) = self.record.take()
            && self.cache.confirm(record).is_err()
        {
            // The updates could not be confirmed: drop their replies, so that the client does not
            // take them for acknowledged.
            self.replies.clear();
            self.is_over = true;
        }
        out.append(&mut self.replies);
        self.replies.shrink_to(REPLIES_MAX);
        match (self.is_over, self.has_more) {
            (true, _) => Next::Over,
            _ if self.background.is_busy() => Next::Later,
            (_, true) => Next::Again,
            _ => Next::More,
        }
    }

    fn wake_with(&mut self, waker: &Waker) {
        self.background.wake_with(waker);
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        if let Some(created) = self.background.wait() {
            self.reply_created(created);
        }
        if !rest.is_empty() {
            let what = "the last command has no end";
            sink.malformed(&Malformed { what, bytes: rest });
        }
    }
}
