//! Lines of the text format, in both directions.

use std::collections::BTreeMap;
use std::str::CharIndices;

use tsb_core::wire::number::{push_f64, push_i64};
use tsb_core::{Batch, SeriesKey, Timestamp};
use tsb_stores::store::Reason;

use super::names::key_of;
use super::times::{KeptTimes, MS_NS};

/// Samples by their indices in a batch that can be written, and those that cannot.
pub(super) fn writable(batch: &Batch<'_>, kept: KeptTimes) -> (Vec<u32>, Vec<(u32, Reason)>) {
    let (mut which, mut refused) = (Vec::with_capacity(batch.len()), Vec::new());
    for index in 0..batch.len() {
        let of_value = (!batch.values()[index].is_finite()).then_some(Reason::Unrepresentable);
        match of_value.or_else(|| kept.refusal(batch.time(index))) {
            None => which.push(index as u32),
            Some(reason) => refused.push((index as u32, reason)),
        }
    }
    (which, refused)
}

/// The lines of samples of a batch whose ids are numbers.
pub(super) fn lines(starts: &[Box<str>], batch: &Batch<'_>, which: &[u32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 * which.len());
    for &index in which {
        let index = index as usize;
        out.extend_from_slice(starts[batch.id(index).index()].as_bytes());
        push_f64(batch.values()[index], &mut out);
        out.push(b' ');
        push_i64(batch.time(index).0.div_euclid(MS_NS), &mut out);
        out.push(b'\n');
    }
    out
}

/// Series and time of a line; `None` if it is none.
pub(super) fn parsed(line: &str) -> Option<(SeriesKey, Timestamp)> {
    let (name, mut rest) = line.split_once('{')?;
    let mut labels = BTreeMap::from([("__name__".to_owned(), name.to_owned())]);
    while let Some((label, after)) = rest.split_once("=\"") {
        let (value, after) = unquoted(after)?;
        labels.insert(label.to_owned(), value);
        rest = after;
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    let numbers = rest.strip_prefix("} ")?;
    let (_, at) = numbers.split_once(' ')?;
    let at = at.trim_end().parse::<i64>().ok()?.checked_mul(MS_NS)?;
    Some((key_of(labels), Timestamp(at)))
}

/// The text up to the quote that ends it, without escapes, and what follows.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut characters = text.char_indices();
    while let Some((place, c)) = characters.next() {
        match c {
            '"' => return Some((out, &text[place + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                // The server writes a text as JSON does.
                'u' => out.push(code_point(&mut characters)?),
                other => out.push(other),
            },
            _ => out.push(c),
        }
    }
    None
}

/// The character of four hexadecimal digits; the server escapes none that needs two of them.
fn code_point(characters: &mut CharIndices<'_>) -> Option<char> {
    let mut code = 0;
    for _ in 0..4 {
        code = code * 16 + characters.next()?.1.to_digit(16)?;
    }
    char::from_u32(code)
}

#[cfg(test)]
mod tests {
    use tsb_core::SeriesId;

    use super::super::names::line_start;
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let labels = [("host", "h \"1\""), ("x", "a\\b\n{c}, d=\"")];
        let key = SeriesKey::with_labels("cpu load", labels.map(|(k, v)| (k.to_owned(), v.to_owned())));
        let starts = [line_start(&key, "p").unwrap().into_boxed_str()];
        let batch = Batch::tick(SeriesId(0), Timestamp(1_700_000_000_123_456_789), &[0.1]);
        let text = String::from_utf8(lines(&starts, &batch, &[0])).unwrap();
        assert!(text.ends_with("} 0.1 1700000000123\n"), "{text}");
        assert_eq!(parsed(&text), Some((key, Timestamp(1_700_000_000_123_000_000))));
        let escaped = parsed("a{b=\"x\\u003c\\u0027y\"} 1 2").unwrap().0;
        assert_eq!(escaped.labels()[0].1, "x<'y");
        for odd in [
            "",
            "a{b=\"\\u00\"} 1 2",
            "a 1 2",
            "a{b=\"c} 1 2",
            "a{b=\"c\"} 1",
            "a{b=\"c\"} 1 x",
            "a{b=\"c\"}1 2",
        ] {
            assert_eq!(parsed(odd), None, "{odd}");
        }
    }
}
