//! Mohawk's layout: one collection per metric with `{timestamp, value}` in milliseconds, without
//! an index on time or a unique key; every sample is preceded by a lookup in `ids`.
//!
//! Mohawk named collections like metrics. Here they get the prefix `metric.`, so that no metric
//! collides with a collection of ours. Text that MongoDB does not allow in names is written as
//! `%XX`: `$`, NUL, and `system` as a part of its own, which MongoDB reserves.

use mongodb::bson::{Document, doc};
use tsb_core::{SeriesKey, Timestamp};

use super::super::bson::Writer;
use super::{MILLI_NS, bounds, millis, millis_from, restrict};
use tsb_stores::store::{Reason, TimeRange};

/// The list of metrics.
pub(in super::super) const IDS: &str = "ids";

/// The collection of a series.
pub(super) fn collection(key: &SeriesKey) -> String {
    let mut name = String::from("metric.");
    for c in key.to_string().chars() {
        match c {
            '$' => name.push_str("%24"),
            '%' => name.push_str("%25"),
            '\0' => name.push_str("%00"),
            c => name.push(c),
        }
    }
    // One by one, since two neighbours share a dot.
    while let Some(at) = name.rfind(".system.") {
        name.replace_range(at + 1..at + 2, "%73");
    }
    name
}

/// The document of a metric in `ids`, as an element of a command.
pub(in super::super) fn registration(writer: &mut Writer, collection: &str) {
    writer.text("_id", collection).text("type", "gauge");
    writer.document("tags").end().array("data").end();
}

/// The document of a sample.
pub(in super::super) fn sample(
    collection: &str,
    at: Timestamp,
    value: f64,
    concern: &dyn Fn(&mut Writer),
) -> Result<Writer, Reason> {
    let millis = millis(at)?;
    let mut writer = Writer::new();
    writer.text("insert", collection);
    concern(&mut writer);
    writer.array("documents").document(0);
    writer.long("timestamp", millis).double("value", value);
    Ok(writer)
}

pub(super) fn samples(range: TimeRange) -> Vec<Document> {
    let mut filter = doc! {};
    restrict(&mut filter, "timestamp", bounds(range, millis_from));
    vec![
        doc! { "$match": filter },
        // The keys that one client makes grow in the order of creation.
        doc! { "$sort": { "timestamp": 1, "_id": 1 } },
        doc! { "$project": { "_id": 0, "n": { "$multiply": ["$timestamp", MILLI_NS] }, "v": "$value" } },
    ]
}

/// The newest timestamp in the collection.
pub(in super::super) fn newest() -> Vec<Document> {
    vec![
        doc! { "$group": { "_id": null, "t": { "$max": "$timestamp" } } },
        doc! {
            "$project": { "n": { "$multiply": ["$t", MILLI_NS] } }
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_collections_are_valid_in_mongodb() {
        for (key, expected) in [
            ("cpu.user", "metric.cpu.user"),
            ("a$b%\0", "metric.a%24b%25%00"),
            ("system.cpu", "metric.%73ystem.cpu"),
            ("host.system.system.x", "metric.host.%73ystem.%73ystem.x"),
            ("host.systems.system", "metric.host.systems.system"),
        ] {
            assert_eq!(collection(&SeriesKey::new(key)), expected);
        }
    }
}
