//! The metric and the tags of a series.

use tsb_core::SeriesKey;
use tsb_core::bytes::percent::encoded;

/// The tag whose value is the number of the series: with it, a query finds one series and no other.
pub(super) const NUMBER_TAG: &str = "tsb_series";
/// The tag of the metric that lists the series, whose value is the version of what is stored.
pub(super) const MARK_TAG: &str = "tsb";
/// That version.
pub(super) const VERSION: &str = "1";

/// The metric of a series: what KairosDB's interfaces do not take in a name is percent-encoded.
pub(super) fn metric(prefix: &str, key: &SeriesKey) -> String {
    format!("{prefix}.{}", encoded(key.name()))
}

/// Whether a metric is one of a prefix.
pub(super) fn is_of(prefix: &str, metric: &str) -> bool {
    metric
        .strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The metric and the tags of a series. Tags are for those who look at the server by other means: one
/// that KairosDB does not take is encoded, and an empty one is left out.
pub(super) fn tagged(prefix: &str, number: u32, key: &SeriesKey) -> SeriesKey {
    let labels = key
        .labels()
        .iter()
        .filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let tags = labels.map(|(name, value)| (encoded(name), encoded(value)));
    let number = (NUMBER_TAG.to_owned(), number.to_string());
    SeriesKey::with_labels(metric(prefix, key), tags.chain([number]))
}

/// How the part of a request about a series begins, up to its first sample.
pub(super) fn beginning(tagged: &SeriesKey) -> String {
    let tags = tagged.labels().iter();
    let tags: serde_json::Map<_, _> = tags.map(|(name, value)| (name.clone(), value.clone().into())).collect();
    format!(
        "{{\"name\":{},\"type\":\"double\",\"tags\":{},\"datapoints\":[",
        serde_json::Value::from(tagged.name()),
        serde_json::Value::Object(tags)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_has_a_metric_and_tags() {
        let key = SeriesKey::with_labels("cpu:user", [("zone", "a=b"), ("empty", "")]);
        assert_eq!(
            beginning(&tagged("runs", 7, &key)),
            "{\"name\":\"runs.cpu%3Auser\",\"type\":\"double\",\"tags\":{\"tsb_series\":\"7\",\"zone\":\"a%3Db\"},\
             \"datapoints\":["
        );
    }

    #[test]
    fn a_prefix_has_itself_and_what_follows_a_full_stop() {
        for (metric, expected) in [("a", true), ("a.b", true), ("ab", false), ("b", false)] {
            assert_eq!(is_of("a", metric), expected, "{metric}");
        }
    }
}
