//! A series in line protocol and in InfluxQL, and which series a row of an answer belongs to.

use std::collections::BTreeMap;
use std::fmt::Write;

use tsb_core::SeriesKey;
use tsb_core::wire::influx::{DEFAULT_FIELD, FIELD_LABEL, wire_name};

/// The measurement of this client's own: the marker of a database and the names of its series.
pub(super) const OWN: &str = "tsb_series";

/// The tag that holds the name of a series where all have one measurement.
const NAME_TAG: &str = "name";

/// A series as this server knows it.
#[derive(Clone, Debug)]
pub(super) struct InfluxSeries {
    /// Measurement, tags, a space, the field and an equal sign, as a line begins.
    pub(super) start: Box<str>,
    measurement: Box<str>,
    field: Box<str>,
    tags: BTreeMap<String, String>,
}

impl InfluxSeries {
    /// In the measurement of its name, or in one for all series, where its name is a tag.
    ///
    /// # Errors
    /// What in the key cannot be carried.
    pub(super) fn new(key: &SeriesKey, measurement: Option<&str>) -> Result<Self, &'static str> {
        let tagged = measurement.map(|measurement| tagged(key, measurement)).transpose()?;
        let key = tagged.as_ref().unwrap_or(key);
        let wire = wire_name(key)?;
        if key.name() == OWN {
            return Err("the measurement tsb_series holds the names of all series");
        }
        let labels = key.labels().iter();
        let (fields, tags): (Vec<_>, Vec<_>) = labels.cloned().partition(|(label, _)| label == FIELD_LABEL);
        let field = fields.first().map_or(DEFAULT_FIELD, |(_, field)| field);
        Ok(Self {
            start: format!("{} {}=", wire.head, wire.field).into(),
            measurement: key.name().into(),
            field: field.into(),
            tags: tags.into_iter().collect(),
        })
    }

    /// The field, as an InfluxQL identifier.
    pub(super) fn field(&self) -> String {
        identifier(&self.field)
    }

    /// What `FROM` names.
    pub(super) fn measurement(&self) -> String {
        identifier(&self.measurement)
    }

    /// Conditions on all of its tags, each after `AND`. Series with more tags meet them, too.
    pub(super) fn conditions(&self) -> String {
        let mut out = String::new();
        for (tag, value) in &self.tags {
            // Writing to a string cannot fail.
            let _ = write!(out, " AND {} = {}", identifier(tag), literal(value));
        }
        out
    }

    /// Its tags.
    pub(super) const fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }

    /// Whether rows with these tags are its own; a tag without a value is one that a series does
    /// not have.
    pub(super) fn has_tags(&self, tags: &BTreeMap<String, String>) -> bool {
        let given = tags.iter().filter(|(_, value)| !value.is_empty());
        given.eq(self.tags.iter())
    }
}

/// The key of a series in a measurement for all.
fn tagged(key: &SeriesKey, measurement: &str) -> Result<SeriesKey, &'static str> {
    if key.name().is_empty() {
        return Err("its name is empty");
    }
    let labels = key.labels().iter();
    // A field of that key would hide the tag in conditions.
    if labels
        .clone()
        .any(|(label, value)| label == NAME_TAG || (label == FIELD_LABEL && value == NAME_TAG))
    {
        return Err("the tag 'name' holds the name of a series where all have one measurement");
    }
    let labels = labels.map(|(label, value)| (label.as_str(), value.as_str()));
    Ok(SeriesKey::with_labels(
        measurement,
        labels.chain([(NAME_TAG, key.name())]),
    ))
}

/// A quoted identifier of InfluxQL.
pub(super) fn identifier(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A string of InfluxQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_found_by_all_of_its_tags_and_no_others() {
        let labels = [("host", "h 1"), ("o'k", "it's"), (FIELD_LABEL, "us\"age")];
        let key = SeriesKey::with_labels("cpu load", labels.map(|(k, v)| (k.to_owned(), v.to_owned())));
        let series = InfluxSeries::new(&key, None).unwrap();
        assert_eq!(&*series.start, "cpu\\ load,host=h\\ 1,o'k=it's us\"age=");
        assert_eq!(series.conditions(), " AND \"host\" = 'h 1' AND \"o'k\" = 'it\\'s'");
        assert_eq!(
            (series.measurement().as_str(), series.field().as_str()),
            ("\"cpu load\"", "\"us\\\"age\"")
        );
        let tags = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert!(series.has_tags(&tags(&[("host", "h 1"), ("o'k", "it's"), ("rack", "")])));
        assert!(!series.has_tags(&tags(&[("host", "h 1"), ("o'k", "it's"), ("rack", "r")])));
        assert!(!series.has_tags(&tags(&[("host", "h 1")])));
        assert!(InfluxSeries::new(&SeriesKey::new(OWN), None).is_err());
    }

    #[test]
    fn in_one_measurement_for_all_a_name_is_a_tag() {
        let key = SeriesKey::with_labels("cpu.idle", [("host", "h1")]);
        let series = InfluxSeries::new(&key, Some("all")).unwrap();
        assert_eq!(&*series.start, "all,host=h1,name=cpu.idle value=");
        assert_eq!(series.measurement(), "\"all\"");
        assert_eq!(series.conditions(), " AND \"host\" = 'h1' AND \"name\" = 'cpu.idle'");
        assert!(InfluxSeries::new(&SeriesKey::new(OWN), Some("all")).is_ok());
        assert!(InfluxSeries::new(&key, Some(OWN)).is_err());
        let named = SeriesKey::with_labels("a", [(NAME_TAG, "b")]);
        assert!(InfluxSeries::new(&named, Some("all")).is_err() && InfluxSeries::new(&named, None).is_ok());
        let field = SeriesKey::with_labels("a", [(FIELD_LABEL, NAME_TAG)]);
        assert!(InfluxSeries::new(&field, Some("all")).is_err() && InfluxSeries::new(&field, None).is_ok());
        assert!(InfluxSeries::new(&SeriesKey::new(""), Some("all")).is_err());
    }
}
