//! Keys as lines, the same in both forms.

use tsb_core::SeriesKey;
use tsb_core::bytes::percent::{self, UNRESERVED};

/// A key as one line: the name, then `label=value` words, in the order of labels. Every byte but
/// letters, digits and `-._~` is percent-encoded, and an empty text is a lone `%`: so different
/// keys have different lines.
pub(super) fn word_of(key: &SeriesKey) -> String {
    let mut line = String::new();
    put_word(key.name(), &mut line);
    for (label, value) in key.labels() {
        line.push(' ');
        put_word(label, &mut line);
        line.push('=');
        put_word(value, &mut line);
    }
    line
}

fn put_word(text: &str, line: &mut String) {
    if text.is_empty() {
        line.push('%');
    }
    percent::encode(text, UNRESERVED, line);
}
