//! Text of others on its way to a terminal, a page or a table: names of series, words of
//! servers, reports of strangers.
//!
//! A terminal obeys what it is sent: an escape sequence can clear the screen, change the
//! title, or type into the shell; a line end can forge a line of ours, and a mark of direction
//! can turn a text around. A spreadsheet runs a cell that begins with an equals sign. Whatever
//! quotes such text goes through here: the sentences of reports, and all that `tsb` prints.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal does something else with a character than to show it.
fn is_obeyed(character: char) -> bool {
    // C0, DEL and C1; marks of direction; separators of lines and paragraphs.
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Shows such characters as JSON writes them, `\u001b`, so that JSON stays JSON.
fn shown(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_shown = |character: char| is_obeyed(character) && !is_kept(character);
    if !text.contains(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_shown(character) {
            // Writing to a string cannot fail; all of them have four digits.
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// A text that belongs on one line.
pub fn line(text: &str) -> Cow<'_, str> {
    shown(text, |_| false)
}

/// A text of several lines, which are ours.
pub fn lines(text: &str) -> Cow<'_, str> {
    shown(text, |character| matches!(character, '\n' | '\t'))
}

/// A cell of a CSV table, quoted where CSV wants it. What a spreadsheet would take for a
/// formula gets an apostrophe before it, which spreadsheets do not show.
pub fn cell(text: &str) -> String {
    let text = guarded(text);
    if text.contains([',', '"', ';']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into_owned()
    }
}

/// The same, in quotes in any case.
pub fn quoted_cell(text: &str) -> String {
    format!("\"{}\"", guarded(text).replace('"', "\"\""))
}

fn guarded(text: &str) -> Cow<'_, str> {
    let shown = line(text);
    // Spreadsheets skip blanks before they look.
    if shown.trim_start().starts_with(['=', '+', '-', '@']) {
        Cow::Owned(format!("'{shown}"))
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        for (text, expected) in [
            ("cpu.user{host=h1}", "cpu.user{host=h1}"),
            ("\u{1b}[31mred\u{1b}[0m", "\\u001b[31mred\\u001b[0m"),
            ("a\u{9b}2Jb\u{7f}", "a\\u009b2Jb\\u007f"),
            ("held 1\r\nVerdict: VALID", "held 1\\u000d\\u000aVerdict: VALID"),
            ("\u{202e}DILAV", "\\u202eDILAV"),
            ("stra\u{df}e \u{4f60}\u{597d}", "stra\u{df}e \u{4f60}\u{597d}"),
        ] {
            assert_eq!(line(text), expected);
            assert_eq!(line(&line(text)), expected, "stable");
        }
        assert_eq!(lines("a\n\tb\u{7}\n"), "a\n\tb\\u0007\n");
    }

    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({ "name": "a\u{1b}\u{9b}\u{202e}\u{7f}\"b\\" });
        let text = value.to_string();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&lines(&text)).unwrap(), value);
        assert!(!lines(&text).chars().any(is_obeyed));
    }

    #[test]
    fn a_cell_is_no_formula() {
        for (text, expected) in [
            ("cpu", "cpu"),
            ("x{a=1,b=2}", "\"x{a=1,b=2}\""),
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("+1", "'+1"),
            ("-x", "'-x"),
            ("@SUM(A1,A2)", "\"'@SUM(A1,A2)\""),
            (" =1", "' =1"),
            ("a\"b", "\"a\"\"b\""),
            ("a\r\n=1", "a\\u000d\\u000a=1"),
            ("", ""),
        ] {
            assert_eq!(cell(text), expected);
        }
        assert_eq!(quoted_cell("=\"x\""), "\"'=\"\"x\"\"\"");
    }
}
