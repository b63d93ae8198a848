//! Keys of series as labels, and back.

use std::collections::BTreeMap;

use super::NAME_LABEL;
use super::name::{NameOf, escape, unescape};
use crate::series::SeriesKey;

/// The labels of a series on the wire, sorted by name: the name as `__name__`, and names
/// outside of Prometheus' set in its own escaped form.
///
/// # Errors
/// What in the key cannot be carried.
pub fn labels_of(key: &SeriesKey) -> Result<Vec<(String, String)>, &'static str> {
    if key.name().is_empty() {
        return Err("its name is empty");
    }
    let name = escape(key.name(), NameOf::Metric);
    let mut labels = vec![(NAME_LABEL.to_owned(), name.into_owned())];
    for (label, value) in key.labels() {
        if label.is_empty() || value.is_empty() {
            return Err("a label or its value is empty");
        }
        if label == NAME_LABEL {
            return Err("the label __name__ is that of the name");
        }
        labels.push((escape(label, NameOf::Label).into_owned(), value.clone()));
    }
    labels.sort_unstable();
    Ok(labels)
}

/// The series of its labels on the wire, in any order.
///
/// # Errors
/// What is wrong with them.
pub fn series_key<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<SeriesKey, &'static str> {
    let (mut name, mut found) = (None, BTreeMap::new());
    for (label, value) in labels {
        if label.is_empty() || value.is_empty() {
            return Err("a label or its value is empty");
        }
        let is_second = if label == NAME_LABEL {
            name.replace(unescape(value, NameOf::Metric)).is_some()
        } else {
            let label = unescape(label, NameOf::Label).into_owned();
            found.insert(label, value.to_owned()).is_some()
        };
        if is_second {
            return Err("a label occurs twice");
        }
    }
    let name = name.ok_or("a series has no label __name__")?;
    Ok(SeriesKey::with_labels(name, found))
}
