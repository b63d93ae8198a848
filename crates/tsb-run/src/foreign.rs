//! Makes untrusted text safe to show: series names, server messages and reports of others, on
//! their way to a terminal, a web page or a table.
//!
//! A terminal executes escape sequences (clear the screen, change the title, type into the
//! shell), a line break can forge a line of our output, and a bidirectional mark can reorder
//! text. A spreadsheet evaluates a cell that begins with an equals sign. All text in report
//! sentences and all output of `tsb` that quotes others passes through here.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal would act on a character instead of showing it.
fn is_obeyed(character: char) -> bool {
    // C0, DEL and C1 controls; bidirectional marks; line and paragraph separators.
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces such characters by their JSON escape, `\u001b`, so that JSON text stays valid JSON.
fn shown(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_replaced = |character: char| is_obeyed(character) && !is_kept(character);
    if !text.contains(is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_replaced(character) {
            // Writing to a string cannot fail. Every such character has a four-digit code.
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Escapes text that must stay on one line.
pub fn line(text: &str) -> Cow<'_, str> {
    shown(text, |_| false)
}

/// Escapes text that may have several lines: line feeds and tabs are kept, as they are our own.
pub fn lines(text: &str) -> Cow<'_, str> {
    shown(text, |character| matches!(character, '\n' | '\t'))
}

/// A CSV cell, quoted if it contains a comma, a semicolon or a quote. A value that a spreadsheet
/// would read as a formula is prefixed with an apostrophe, which spreadsheets do not display.
pub fn cell(text: &str) -> String {
    let text = guarded(text);
    if text.contains([',', '"', ';']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into_owned()
    }
}

/// The same, always quoted.
pub fn quoted_cell(text: &str) -> String {
    format!("\"{}\"", guarded(text).replace('"', "\"\""))
}

fn guarded(text: &str) -> Cow<'_, str> {
    let shown = line(text);
    // Spreadsheets ignore leading blanks when they look for a formula.
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
