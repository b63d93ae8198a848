//! Requests of clients: a line of words, the first of which is the command.

use std::borrow::Cow;

/// The commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Updates a file.
    Update,
    /// Writes the pending values of a file, then replies.
    Flush,
    /// Starts writing all pending values, and replies at once.
    FlushAll,
    /// Lists the pending values of a file.
    Pending,
    /// Drops the pending values of a file.
    Forget,
    /// Lists the files that are due for writing.
    Queue,
    /// Counters.
    Stats,
    /// Lists the commands, or describes one.
    Help,
    /// Checks that the server responds.
    Ping,
    /// Starts a batch of commands without individual replies.
    Batch,
    /// The end of a batch.
    End,
    /// Rows of a file, as text.
    Fetch,
    /// Rows of a file, as bytes.
    FetchBin,
    /// Header of a file.
    Info,
    /// The oldest row of an archive.
    First,
    /// The newest update of a file.
    Last,
    /// Creates a file.
    Create,
    /// Changes the header of a file.
    Tune,
    /// A file as XML.
    Dump,
    /// The files below a folder.
    List,
    /// Suspends writing to a file.
    Suspend,
    /// Resumes writing to a file.
    Resume,
    /// Suspends all known files.
    SuspendAll,
    /// Resumes all suspended files.
    ResumeAll,
    /// Closes the connection.
    Quit,
    /// A line of a journal; not allowed for clients.
    Wrote,
}

impl Command {
    /// The commands that `HELP` lists, in its order.
    pub const LISTED: [Self; 24] = [
        Self::Update,
        Self::Flush,
        Self::FlushAll,
        Self::Pending,
        Self::Forget,
        Self::Queue,
        Self::Stats,
        Self::Help,
        Self::Ping,
        Self::Batch,
        Self::Fetch,
        Self::FetchBin,
        Self::Info,
        Self::First,
        Self::Last,
        Self::Create,
        Self::Tune,
        Self::Dump,
        Self::List,
        Self::Suspend,
        Self::Resume,
        Self::SuspendAll,
        Self::ResumeAll,
        Self::Quit,
    ];

    /// Its usage: the name and the arguments.
    pub const fn usage(self) -> &'static str {
        match self {
            Self::Update => "UPDATE <filename> <values> [<values> ...]",
            Self::Flush => "FLUSH <filename>",
            Self::FlushAll => "FLUSHALL",
            Self::Pending => "PENDING <filename>",
            Self::Forget => "FORGET <filename>",
            Self::Queue => "QUEUE",
            Self::Stats => "STATS",
            Self::Help => "HELP [<command>]",
            Self::Ping => "PING",
            Self::Batch => "BATCH",
            Self::End => ".",
            Self::Fetch => "FETCH <file> <CF> [<start> [<end>] [<column>...]]",
            Self::FetchBin => "FETCHBIN <file> <CF> [<start> [<end>] [<column>...]]",
            Self::Info => "INFO <filename>",
            Self::First => "FIRST <filename> <rra index>",
            Self::Last => "LAST <filename>",
            Self::Create => "CREATE <filename> [-b start] [-s step] [-O] <DS definitions> <RRA definitions>",
            Self::Tune => "TUNE <filename> [options]",
            Self::Dump => "DUMP <filename> [-h none|xsd|dtd]",
            Self::List => "LIST [RECURSIVE] /[<path>]",
            Self::Suspend => "SUSPEND <filename>",
            Self::Resume => "RESUME <filename>",
            Self::SuspendAll => "SUSPENDALL",
            Self::ResumeAll => "RESUMEALL",
            Self::Quit => "QUIT",
            Self::Wrote => "WROTE <filename>",
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.usage().split(' ').next().unwrap_or_default()
    }

    /// Parses a command, case-insensitively.
    pub fn from_word(word: &str) -> Option<Self> {
        let others = [Self::End, Self::Wrote];
        let mut all = Self::LISTED.into_iter().chain(others);
        all.find(|command| command.name().eq_ignore_ascii_case(word))
    }

    /// Whether it is allowed between `BATCH` and the dot.
    pub const fn is_in_batch(self) -> bool {
        matches!(
            self,
            Self::Update
                | Self::Flush
                | Self::Forget
                | Self::Create
                | Self::Suspend
                | Self::Resume
                | Self::SuspendAll
                | Self::ResumeAll
                | Self::Quit
                | Self::End
        )
    }

    /// Its description in `HELP`, as lines.
    pub const fn help(self) -> &'static [&'static str] {
        match self {
            Self::Update => &[
                "Takes values for a file: <time>:<value>[:<value>...], each with a value for every",
                "data source. They are written later, many at a time.",
            ],
            Self::Flush => &["Writes what waits for a file, and answers when that is done, or why it is not."],
            Self::FlushAll => &["Has everything written that waits, and answers at once."],
            Self::Pending => &["Says what waits for a file, in order."],
            Self::Forget => &["Drops what waits for a file."],
            Self::Queue => &["Says which files are due, and how many values wait for each."],
            Self::Stats => &["Says what was counted."],
            Self::Help => &["Says what a command does, or which commands there are."],
            Self::Ping => &["Is answered."],
            Self::Batch => &[
                "Commands follow that have no reply of their own. The dot on a line of its own ends",
                "them, and its reply has a line for each that failed: its number and why.",
            ],
            Self::End => &["Ends a batch."],
            Self::Fetch => &["Writes what waits for a file, then says its rows."],
            Self::FetchBin => &["Writes what waits for a file, then says its rows as bytes."],
            Self::Info => &["Says what is known of a file. What waits is not in it: FLUSH it first."],
            Self::First => &["Says when the oldest row of an archive ends."],
            Self::Last => &["Says when the newest update of a file was. What waits is not in it."],
            Self::Create => &[
                "Creates a file, in place of the one that is there; with -O only if there is none.",
                "The start is in seconds since 1970, the step in seconds (300 if it is not given, or 0).",
                "Rows are copied from each file of -r; that of -t lends its data sources and archives.",
            ],
            Self::Tune => &[
                "Changes a file as 'rrdtool tune' does. The number of option words comes before them:",
                "TUNE a.rrd 2 --minimum value:0",
            ],
            Self::Dump => &[
                "Writes the values pending for a file, then sends the file as XML, with no line",
                "before it, and closes the connection.",
            ],
            Self::List => &["Says which files and folders there are, or, recursively, all files below."],
            Self::Suspend => &["Holds back what is to be written to a file, until it is resumed."],
            Self::Resume => &["Writes to a suspended file again."],
            Self::SuspendAll => &["Suspends every file for which something waits or has waited."],
            Self::ResumeAll => &["Resumes every file that is suspended."],
            Self::Quit => &["Ends the connection."],
            Self::Wrote => &["Is for journals."],
        }
    }
}

/// The first line of `bytes` without its end, and how many bytes it has with it.
pub fn line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr::memchr(b'\n', bytes)?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
}

/// The words of a line, separated by blanks; a backslash escapes the next character.
#[derive(Clone, Debug)]
pub struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    /// Of a line without its end.
    pub fn of(line: &'a str) -> Self {
        Self(line)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Cow<'a, str>> {
        let text = self.0.trim_start_matches([' ', '\t']);
        if text.is_empty() {
            self.0 = text;
            return None;
        }
        let end = memchr::memchr3(b' ', b'\t', b'\\', text.as_bytes()).unwrap_or(text.len());
        if !text[end..].starts_with('\\') {
            self.0 = &text[end..];
            return Some(Cow::Borrowed(&text[..end]));
        }
        let mut word = text[..end].to_owned();
        let mut rest = text[end..].chars();
        loop {
            let before = rest.as_str();
            match rest.next() {
                None => break,
                Some(' ' | '\t') => {
                    self.0 = before;
                    return Some(Cow::Owned(word));
                }
                // At the end of the line, a backslash stands for itself.
                Some('\\') => word.push(rest.next().unwrap_or('\\')),
                Some(c) => word.push(c),
            }
        }
        self.0 = "";
        Some(Cow::Owned(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_and_escaped() {
        let check = |line: &str, expected: &[&str]| {
            assert_eq!(Words::of(line).collect::<Vec<_>>(), expected, "{line:?}");
        };
        check("", &[]);
        check("  \t ", &[]);
        check("PING", &["PING"]);
        check("UPDATE a.rrd 1:2  3:4 ", &["UPDATE", "a.rrd", "1:2", "3:4"]);
        check(r"FLUSH a\ b\\c.rrd", &["FLUSH", r"a b\c.rrd"]);
        check("a\\\u{fc}b\\", &["a\u{fc}b\\"]);
    }

    #[test]
    fn a_line_ends_at_the_first_line_feed() {
        assert_eq!(line(b"PING\r\nQUIT\n"), Some((&b"PING"[..], 6)));
        assert_eq!(line(b"\n"), Some((&b""[..], 1)));
        assert_eq!(line(b"PING"), None);
    }

    #[test]
    fn commands_go_by_their_names() {
        for command in Command::LISTED {
            assert_eq!(Command::from_word(&command.name().to_lowercase()), Some(command));
            assert!(!command.help().is_empty());
        }
        assert_eq!(Command::from_word("."), Some(Command::End));
        assert_eq!(Command::from_word("wrote"), Some(Command::Wrote));
        assert_eq!((Command::from_word("BOGUS"), Command::from_word("")), (None, None));
        assert!(Command::Update.is_in_batch() && !Command::Ping.is_in_batch());
    }

    proptest::proptest! {
        #[test]
        fn a_server_reads_the_samples_that_a_client_writes(words in proptest::collection::vec("[a-z \\\\\t\u{fc}:.]{1,12}", 1..5)) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let mut text = String::new();
            super::super::command(&mut text, &words);
            let (line, len) = line(text.as_bytes()).unwrap();
            assert_eq!(len, text.len());
            let read: Vec<_> = Words::of(std::str::from_utf8(line).unwrap()).collect();
            assert_eq!(read, words);
        }
    }
}
