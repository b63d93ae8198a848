//! Executes commands and builds their replies.

use std::fmt::Write;
use std::sync::Arc;

use tsb_core::wire::rrdcached::{Command, Reply, Words, scientific};
use tsb_rrd::InfoValue;

use super::super::FileCache;
use super::super::create::CreateOptions;
use super::super::error::FileError;
use super::Conversation;

/// A result whose error is the text sent to the client.
pub(super) type CommandResult<T = ()> = Result<T, String>;

impl From<FileError> for String {
    fn from(error: FileError) -> Self {
        error.to_string()
    }
}

/// The next word of the command; a usage error if there is none.
pub(super) fn needed<'a>(command: Command, words: &mut Words<'a>) -> CommandResult<std::borrow::Cow<'a, str>> {
    words.next().ok_or_else(|| usage(command))
}

pub(super) fn usage(command: Command) -> String {
    format!("Usage: {}", command.usage())
}

impl Conversation {
    /// Executes a command, and builds the reply.
    pub(super) fn execute(&mut self, command: Command, mut words: Words<'_>) -> CommandResult {
        match command {
            Command::Update => return self.update(words),
            Command::Flush => {
                let file = needed(command, &mut words)?;
                self.flush(&file)?;
            }
            Command::FlushAll => {
                self.cache.start_drain();
                self.append_reply(Reply::FlushStarted);
            }
            Command::Pending => {
                let lines = self.cache.pending(&needed(command, &mut words)?)?;
                self.reply_lines("updates pending", &lines);
            }
            Command::Forget => {
                self.cache.forget(&needed(command, &mut words)?)?;
                self.append_reply(Reply::Gone);
            }
            Command::Queue => {
                let queue = self.cache.queue();
                let lines: Vec<String> = queue.iter().map(|(count, file)| format!("{count} {file}")).collect();
                self.reply_lines("in queue.", &lines);
            }
            Command::Stats => self.stats(),
            Command::Help => self.help(words.next().as_deref().and_then(Command::from_word)),
            Command::Ping => self.append_reply(Reply::Pong),
            Command::Fetch | Command::FetchBin => return self.fetch(command, words),
            Command::Info => return self.info(&needed(command, &mut words)?),
            Command::First => {
                let (file, archive) = (needed(command, &mut words)?, needed(command, &mut words)?);
                let archive = leading_integer(&archive);
                let wrong = |_| format!("Invalid index specified ({archive})");
                let archive = usize::try_from(archive).map_err(wrong)?;
                let first = self.cache.first(&file, archive, &mut self.session);
                self.append_reply(Reply::Time(first.map_err(|error| open_error(&error))?));
            }
            Command::Last => {
                let last = self.cache.last(&needed(command, &mut words)?, &mut self.session);
                self.append_reply(Reply::Time(last.map_err(|error| open_error(&error))?));
            }
            Command::Create => return self.create(words),
            Command::Tune => return self.tune(words),
            Command::Dump => return self.dump(&needed(command, &mut words)?),
            Command::List => return self.list(words),
            Command::Suspend | Command::Resume => {
                let file = needed(command, &mut words)?;
                self.suspend_or_resume(command, &file)?;
            }
            Command::SuspendAll => {
                let count = self.cache.suspend_all();
                self.append_reply(Reply::AllSuspended(count));
            }
            Command::ResumeAll => {
                let count = self.cache.resume_all();
                self.append_reply(Reply::AllResumed(count));
            }
            // The caller (`execute_line`) has handled these.
            Command::Batch | Command::End | Command::Quit | Command::Wrote => {}
        }
        Ok(())
    }

    fn update(&mut self, mut words: Words<'_>) -> CommandResult {
        let file = needed(Command::Update, &mut words)?;
        let outcome = self.cache.update(&file, words, &mut self.session)?;
        self.record = self.record.max(outcome.record);
        match outcome.refused {
            Some(error) => Err(error.to_string()),
            None if outcome.values == 0 => Err("No values updated.".to_owned()),
            None => {
                self.append_reply(Reply::Enqueued(outcome.values));
                Ok(())
            }
        }
    }

    fn flush(&mut self, file: &str) -> CommandResult {
        let shown = self.display_path_of(file)?;
        match self.cache.flush(file, &mut self.session) {
            Ok(true) => self.append_reply(Reply::Flushed(&shown)),
            Ok(false) => self.append_reply(Reply::NothingToFlush(&shown)),
            Err(FileError::Missing(_) | FileError::NotRegular(_)) => return Err(format!("No such file: {shown}.")),
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }

    fn display_path_of(&self, file: &str) -> CommandResult<String> {
        let base = &self.cache.shared.base;
        Ok(base.display_path(&base.name(file)?))
    }

    fn suspend_or_resume(&mut self, command: Command, file: &str) -> CommandResult {
        let shown = self.display_path_of(file)?;
        let is_suspending = command == Command::Suspend;
        let changed = if is_suspending {
            self.cache.suspend(file)
        } else {
            self.cache.resume(file)
        };
        let changed = changed.map_err(|error| format!("{shown} - {error}"))?;
        self.append_reply(match (is_suspending, changed) {
            (true, true) => Reply::Suspended(&shown),
            (true, false) => Reply::AlreadySuspended(&shown),
            (false, true) => Reply::Resumed(&shown),
            (false, false) => Reply::NotSuspended(&shown),
        });
        Ok(())
    }

    pub(super) fn reply_lines(&mut self, what: &str, lines: &[String]) {
        self.append_reply(Reply::Lines(lines.len(), what));
        for line in lines {
            self.reply.extend_from_slice(line.as_bytes());
            self.reply.push(b'\n');
        }
    }

    fn stats(&mut self) {
        let stats = self.cache.stats();
        let account = stats.account;
        let lines = [
            ("QueueLength", stats.queued),
            ("UpdatesReceived", stats.updates_received),
            ("FlushesReceived", stats.flushes_received),
            ("UpdatesWritten", stats.updates_written),
            ("DataSetsWritten", account.written),
            ("TreeNodesNumber", stats.files),
            // We use a hash table; rrdcached reports the depth of its tree.
            ("TreeDepth", u64::from(stats.files > 0)),
            ("JournalBytes", stats.journal_bytes),
            ("JournalRotate", 0),
            ("ValuesAccepted", account.accepted),
            ("ValuesReplayed", account.replayed),
            ("ValuesRejected", stats.values_rejected),
            ("ValuesPending", account.pending),
            ("ValuesForgotten", account.forgotten),
            ("ValuesFailed", account.failed),
            ("WriteFailures", stats.write_failures),
        ];
        let lines: Vec<String> = lines.iter().map(|(name, count)| format!("{name}: {count}")).collect();
        self.reply_lines("Statistics follow", &lines);
    }

    fn help(&mut self, command: Option<Command>) {
        let Some(command) = command else {
            let lines = Command::LISTED.map(|command| command.usage().to_owned());
            return self.reply_lines("Command overview", &lines);
        };
        let mut lines = vec![usage(command), String::new()];
        lines.extend(command.help().iter().map(|&line| line.to_owned()));
        lines.push(String::new());
        self.reply_lines(&format!("Help for {}", command.name()), &lines);
    }

    fn info(&mut self, file: &str) -> CommandResult {
        let shown = self.display_path_of(file)?;
        let facts = self.cache.info(file, &mut self.session);
        let facts = facts.map_err(|error| open_error(&error))?;
        let lines: Vec<String> = facts.iter().map(|(key, fact)| fact_line(key, fact)).collect();
        self.reply_lines(&format!("Info for {shown} follows"), &lines);
        Ok(())
    }

    fn create(&mut self, mut words: Words<'_>) -> CommandResult {
        let wrong = || usage(Command::Create);
        let file = needed(Command::Create, &mut words)?;
        let (mut options, mut definitions) = (CreateOptions::default(), Vec::new());
        while let Some(word) = words.next() {
            match &*word {
                "-O" => options.keeps_old = true,
                "-b" => {
                    let start_s = leading_integer(&words.next().ok_or_else(wrong)?);
                    // As in rrdcached, -1 (also in `-1d`) counts as no start.
                    options.start_s = Some(start_s).filter(|&start_s| start_s != -1);
                }
                "-s" => {
                    let step = leading_integer(&words.next().ok_or_else(wrong)?);
                    options.step_s = u64::try_from(step).map_err(|_| wrong())?;
                }
                "-r" => options.sources.push(words.next().ok_or_else(wrong)?.into_owned()),
                "-t" => options.template = Some(words.next().ok_or_else(wrong)?.into_owned()),
                text if text.starts_with("DS:") || text.starts_with("RRA:") => definitions.push(word.into_owned()),
                _ => return Err(wrong()),
            }
        }
        if self.batch.is_none() && FileCache::is_slow_to_create(&options, &definitions) {
            return self.create_in_background(file.into_owned(), options, definitions);
        }
        self.cache.create(&file, &options, &definitions, &mut self.session)?;
        self.append_reply(Reply::Created);
        Ok(())
    }

    /// Creates a file on a thread of its own, since other clients share the connection's thread.
    fn create_in_background(
        &mut self,
        file: String,
        options: CreateOptions,
        definitions: Vec<String>,
    ) -> CommandResult {
        let cache = Arc::clone(&self.cache);
        self.background.start(move || {
            let created = cache.create_exclusively(&file, &options, &definitions);
            created.map_err(String::from)
        })?;
        if !self.background.is_busy() {
            self.append_reply(Reply::Created);
        }
        Ok(())
    }

    fn tune(&mut self, mut words: Words<'_>) -> CommandResult {
        let file = needed(Command::Tune, &mut words)?;
        let count = leading_integer(&needed(Command::Tune, &mut words)?);
        if count < 0 {
            return Err(format!("Invalid argument count specified ({count})"));
        }
        let options: Vec<String> = words.map(std::borrow::Cow::into_owned).collect();
        let tuned = self.cache.tune(&file, &options, &mut self.session);
        tuned.map_err(|error| match error {
            FileError::Create(what) => format!("Got error {what}"),
            error => open_error(&error),
        })?;
        self.append_reply(Reply::Success);
        Ok(())
    }

    /// The reply is the file, followed by the end of the connection.
    fn dump(&mut self, file: &str) -> CommandResult {
        let dumped = self.cache.dump(file, &mut self.session);
        let xml = dumped.map_err(|error| match error {
            FileError::Create(what) => format!("{file}: failed to relay dump: {what}"),
            FileError::Missing(_) => format!("{file}: failed to stat: No such file or directory"),
            error => open_error(&error),
        })?;
        self.reply.extend_from_slice(&xml);
        self.is_over = true;
        Ok(())
    }

    fn list(&mut self, mut words: Words<'_>) -> CommandResult {
        let wrong = || usage(Command::List);
        let first = words.next().ok_or_else(wrong)?;
        let is_recursive = first.eq_ignore_ascii_case("RECURSIVE");
        let folder = if is_recursive {
            words.next().ok_or_else(wrong)?
        } else {
            first
        };
        if !is_recursive && !folder.starts_with('/') {
            return Err(wrong());
        }
        let names = self.cache.list(&folder, is_recursive);
        let names = names.map_err(|error| match error {
            FileError::Missing(path) => format!("List {path}: No such file or directory"),
            FileError::Outside(path) => format!("List {path}: Permission denied"),
            error => error.to_string(),
        })?;
        self.reply_lines("RRDs", &names);
        Ok(())
    }
}

/// The number at the start of a word, as C's `atol` reads it; 0 if there is none.
fn leading_integer(word: &str) -> i64 {
    let text = word.trim_start();
    let digits = text.trim_start_matches(['-', '+']);
    let sign = &text[..text.len() - digits.len()];
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number = digits[..end].bytes().fold(0i64, |number, digit| {
        number.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    match sign {
        "" | "+" => number,
        "-" => -number,
        _ => 0,
    }
}

/// The error text for a file that cannot be read.
pub(super) fn open_error(error: &FileError) -> String {
    match error {
        FileError::Missing(path) => format!("RRD Error: opening '{path}': No such file or directory"),
        FileError::Outside(_) | FileError::Create(_) => error.to_string(),
        error => format!("RRD Error: {error}"),
    }
}

fn fact_line(key: &str, fact: &InfoValue) -> String {
    let mut line = String::new();
    let _ = match fact {
        InfoValue::Value(value) if value.is_nan() => write!(line, "{key} 0 NaN"),
        InfoValue::Value(value) => {
            let _ = write!(line, "{key} 0 ");
            scientific(&mut line, *value, 10);
            Ok(())
        }
        InfoValue::Count(count) => write!(line, "{key} 1 {count}"),
        InfoValue::Text(text) => write!(line, "{key} 2 {}", text.replace(['\n', '\r'], "?")),
    };
    line
}
