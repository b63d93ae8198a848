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

/// How the part of a request about a series begins, up to its first sample. Tags are for those who
/// look at the server by other means: one that KairosDB does not take is encoded, and an empty one is
/// left out.
pub(super) fn beginning(prefix: &str, number: u32, key: &SeriesKey) -> String {
    let mut tags = serde_json::Map::new();
    for (name, value) in key.labels() {
        if !name.is_empty() && !value.is_empty() {
            tags.insert(encoded(name), encoded(value).into());
        }
    }
    tags.insert(NUMBER_TAG.to_owned(), number.to_string().into());
    format!(
        "{{\"name\":{},\"type\":\"double\",\"tags\":{},\"datapoints\":[",
        serde_json::Value::from(metric(prefix, key)),
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
            beginning("runs", 7, &key),
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
