//! What is needed to start a program.

use std::path::PathBuf;
use std::time::Duration;

use tsb_stores::error::{Error, Result};

/// A program, and how a conversation with it is held.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// The program and its arguments. A program without a slash is looked up in `PATH`.
    pub command: Vec<String>,
    /// The folder that the program may use, created if it is absent. It is in the program's
    /// environment as `TSB_PLACE`; `None`: the variable is not set.
    pub place: Option<PathBuf>,
    /// Longest wait for the greeting, for each answer and for the end of the program.
    pub timeout: Duration,
    /// Maximum number of series.
    pub max_series: usize,
}

impl ExecOptions {
    /// The options of a command line, with 30 s for each answer and at most a million series.
    ///
    /// # Errors
    /// [`Error::Spec`] if it names no program, or a quote is not closed.
    pub fn new(command_line: &str) -> Result<Self> {
        let wrong = |what: &str| Error::Spec {
            spec: format!("exec:{command_line}"),
            what: what.to_owned(),
        };
        let command = words(command_line).ok_or_else(|| wrong("a quote is not closed"))?;
        if command.first().is_none_or(String::is_empty) {
            return Err(wrong("no program is named; write 'exec:PROGRAM ARGUMENTS'"));
        }
        Ok(Self {
            command,
            place: None,
            timeout: Duration::from_secs(30),
            max_series: 1_000_000,
        })
    }
}

/// Divides a command line at blanks. Text between single or double quotes is taken as it is;
/// nothing else is special. `None` if a quote is not closed.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            (_, _) => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_divided_at_blanks_outside_of_quotes() {
        for (line, expected) in [
            ("python3 my.py", &["python3", "my.py"][..]),
            ("  sh  -c 'cat; exit 1' ", &["sh", "-c", "cat; exit 1"]),
            ("a\"b 'c\"d \"\"", &["ab 'cd", ""]),
        ] {
            assert_eq!(ExecOptions::new(line).unwrap().command, expected, "{line}");
        }
        for (line, says) in [
            ("", "no program"),
            ("  ", "no program"),
            ("'' x", "no program"),
            ("a 'b", "not closed"),
        ] {
            let why = ExecOptions::new(line).unwrap_err().to_string();
            assert!(why.contains(says), "{why}");
        }
    }
}
