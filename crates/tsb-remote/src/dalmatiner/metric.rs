//! The metric of a series, and back. Pure.
//!
//! `cpu.user{host=h1}` has the elements `cpu`, `user` and `host=h1`: the parts of the name, then an
//! element for each label. `=` and `%` are written as `%3D` and `%25`.

use tsb_core::SeriesKey;
use tsb_core::bytes::percent;
use tsb_core::wire::dalmatiner::elements;

/// The name by which the wire knows a series: its own, and its labels.
pub(super) fn name_of(key: &SeriesKey) -> String {
    let mut name = encoded(key.name());
    for (label, value) in key.labels() {
        name.push('.');
        name.push_str(&one_element(&encoded(label)));
        name.push('=');
        name.push_str(&one_element(&encoded(value)));
    }
    name
}

/// The series of a metric; `None` if no series has it.
pub(super) fn key_of(metric: &[u8]) -> Option<SeriesKey> {
    let (mut name, mut labels) = (Vec::new(), Vec::new());
    let mut rest = metric;
    while let Some((length, behind)) = rest.split_first() {
        let (element, behind) = behind.split_at_checked(usize::from(*length))?;
        let element = std::str::from_utf8(element).ok()?;
        match element.split_once('=') {
            Some((label, value)) => labels.push((decoded(label)?, decoded(value)?)),
            None if labels.is_empty() => name.push(one_element(&decoded(element)?)),
            None => return None,
        }
        rest = behind;
    }
    let key = SeriesKey::with_labels(name.join("."), labels);
    (metric_of(&key).ok()? == metric).then_some(key)
}

/// The metric of a series.
///
/// # Errors
/// What in the key cannot be carried.
fn metric_of(key: &SeriesKey) -> Result<Vec<u8>, &'static str> {
    elements(&SeriesKey::new(name_of(key)))
}

fn encoded(text: &str) -> String {
    text.replace('%', "%25").replace('=', "%3D")
}

fn decoded(text: &str) -> Option<String> {
    String::from_utf8(percent::decoded(text)).ok()
}

/// A text in which dots separate nothing.
fn one_element(text: &str) -> String {
    text.replace('\\', r"\\").replace('.', r"\.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_leads_back_to_its_series() {
        let labelled = |name: &str, labels: &[(&str, &str)]| SeriesKey::with_labels(name, labels.iter().copied());
        for (key, metric) in [
            (SeriesKey::new("load"), &b"\x04load"[..]),
            (SeriesKey::new("cpu.user"), b"\x03cpu\x04user"),
            (SeriesKey::new(r"a\.b\\..c"), b"\x04a.b\\\x00\x01c"),
            (
                labelled("cpu", &[("dc", r"x.\y"), ("host", "h 1")]),
                b"\x03cpu\x07dc=x.\\y\x08host=h 1",
            ),
            (labelled("a=b%", &[("l", "")]), b"\x08a%3Db%25\x02l="),
            (labelled("\u{e4}", &[("q.", "=")]), b"\x02\xc3\xa4\x06q.=%3D"),
        ] {
            assert_eq!(metric_of(&key).as_deref(), Ok(metric), "{key}");
            assert_eq!(key_of(metric), Some(key));
        }
    }

    #[test]
    fn what_is_no_metric_of_a_series_is_told() {
        let others: [&[u8]; 7] = [
            b"\x05load",
            b"\x01\xff",
            b"\x03a=b\x01c",
            b"\x03%ff",
            // Their series have other metrics, under which nothing would be found.
            b"\x03%41",
            b"\x01m\x03b=1\x03a=2",
            b"",
        ];
        for metric in others {
            assert_eq!(key_of(metric), None, "{metric:?}");
        }
    }
}
