//! Lines of `name   value   what it means`, aligned.

use std::fmt::Write;

/// Collects lines and aligns their first column.
#[derive(Debug, Default)]
pub struct Lines {
    out: String,
}

impl Lines {
    /// No lines yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A heading after an empty line.
    pub fn heading(&mut self, text: &str) {
        let _ = writeln!(self.out, "\n{text}");
    }

    /// `name` in a column of its own, then `value`.
    pub fn line(&mut self, name: &str, value: impl AsRef<str>) {
        let _ = writeln!(self.out, "  {name:<12} {}", value.as_ref());
    }

    /// A whole sentence.
    pub fn sentence(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.out, "  {}", text.as_ref());
    }

    /// Text as it is.
    pub fn raw(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.out, "{}", text.as_ref());
    }

    /// Everything.
    pub fn finish(self) -> String {
        self.out
    }
}
