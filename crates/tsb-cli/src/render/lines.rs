//! Lays out lines of `name   value   meaning`, aligned and wrapped at the width of the terminal.

use std::fmt::Write;
use std::io::IsTerminal;

use tsb_run::foreign;

/// Width of the name column, with indent and gap.
const NAMES: usize = 15;

/// Narrowest width that text is wrapped to.
const LEAST: usize = 40;

/// Width of the terminal on stdout; `None` if stdout is not a terminal, so that other programs
/// read unwrapped lines.
pub fn terminal_width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stdout).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col).max(LEAST))
}

/// Collects lines, aligns their first column, and wraps them between words.
#[derive(Debug, Default)]
pub struct Lines {
    out: String,
    width: Option<usize>,
}

impl Lines {
    /// No lines yet. Without a width, lines are not wrapped.
    pub fn new(width: Option<usize>) -> Self {
        Self {
            out: String::new(),
            width,
        }
    }

    /// The width at which lines are wrapped.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// A heading after an empty line.
    pub fn heading(&mut self, text: &str) {
        self.out.push('\n');
        self.broken("", text, 2);
    }

    /// A line with `name` in the first column, then `value`.
    pub fn line(&mut self, name: &str, value: impl AsRef<str>) {
        self.broken(&format!("  {name:<12} "), value.as_ref(), NAMES);
    }

    /// An indented sentence.
    pub fn sentence(&mut self, text: impl AsRef<str>) {
        self.broken("  ", text.as_ref(), 4);
    }

    /// A sentence that belongs to the previous line, indented further.
    pub fn below(&mut self, text: impl AsRef<str>) {
        self.broken(&" ".repeat(5), text.as_ref(), 7);
    }

    /// Text without indent; continuation lines are indented.
    pub fn raw(&mut self, text: impl AsRef<str>) {
        for line in text.as_ref().split('\n') {
            self.broken("", line, 2);
        }
    }

    /// A row of a table, never wrapped: the caller has fitted it to the width.
    pub fn row(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.out, "{}", foreign::line(text.as_ref()));
    }

    /// `start` followed by `text`, wrapped to begin at `column`.
    pub fn hang(&mut self, start: &str, text: &str, column: usize) {
        self.broken(start, text, column);
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.out
    }

    /// Appends `start` and `text`, wrapped between words; continuation lines are indented by
    /// `indent`.
    fn broken(&mut self, start: &str, text: &str, indent: usize) {
        let (start, text) = (&*foreign::line(start), &*foreign::line(text));
        let Some(width) = self.width else {
            let _ = writeln!(self.out, "{start}{text}");
            return;
        };
        let mut line = start.to_owned();
        let mut used = line.chars().count();
        let (mut is_empty, mut is_first) = (true, true);
        for piece in text.split(' ') {
            let length = piece.chars().count();
            if !is_empty && used + 1 + length > width {
                let _ = writeln!(self.out, "{}", line.trim_end());
                line = " ".repeat(indent);
                used = indent;
                (is_empty, is_first) = (true, false);
            }
            // Spaces at the place of a break are not carried over.
            if is_empty && !is_first && piece.is_empty() {
                continue;
            }
            if !is_empty {
                line.push(' ');
                used += 1;
            }
            line.push_str(piece);
            used += length;
            is_empty = false;
        }
        let _ = writeln!(self.out, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(width: Option<usize>) -> String {
        let mut lines = Lines::new(width);
        lines.heading("Rate, samples per second");
        lines.line(
            "held",
            "54.0 k at durability volatile (accepted, first due to last acceptance)",
        );
        lines.sentence("others took the CPU for 9.6 % of the time (at most 2 %), which is a long sentence");
        lines.finish()
    }

    #[test]
    fn lines_are_broken_between_words_and_indented() {
        let expected = "
Rate, samples per second
  held         54.0 k at durability
               volatile (accepted, first
               due to last acceptance)
  others took the CPU for 9.6 % of the
    time (at most 2 %), which is a long
    sentence
";
        assert_eq!(fill(Some(40)), expected);
    }

    #[test]
    fn without_a_width_nothing_is_broken_and_no_word_is_lost() {
        let whole = fill(None);
        assert_eq!(whole.lines().count(), 4, "{whole}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for width in [40, 57, 80, 200] {
            let broken = fill(Some(width));
            assert_eq!(words(&broken), words(&whole), "{width}");
            assert!(broken.lines().all(|line| line.len() <= width), "{width}:\n{broken}");
        }
    }

    #[test]
    fn a_word_longer_than_the_line_stays_whole() {
        let mut lines = Lines::new(Some(40));
        let long = "x".repeat(60);
        lines.line("place", format!("at {long} and there"));
        let text = lines.finish();
        assert_eq!(
            text.lines().map(str::trim).collect::<Vec<_>>(),
            ["place        at", &long, "and there"]
        );
    }
}
