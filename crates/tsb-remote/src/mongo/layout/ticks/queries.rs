//! Queries of documents of columns: ranges of keys, which need no index, since the collection is
//! stored in key order.

use mongodb::bson::{Bson, Document, doc};
use tsb_core::Timestamp;

use super::super::{SAMPLES, restrict};
use super::key::{DocumentKey, between};
use tsb_stores::store::TimeRange;

/// Maximum number of groups per request for newest documents; MongoDB accepts a thousand stages,
/// and each group needs two.
pub(in super::super::super) const GROUPS_MAX: usize = 250;
/// Number of documents per group that are read first: usually these hold all its series.
pub(in super::super::super) const LAST_DOCUMENTS: i64 = 16;

/// The documents that may hold samples of a series in a range: regular ones, which have only one
/// timestamp, and irregular ones, which may have older ones too.
pub(in super::super) fn documents(number: u32, range: TimeRange, group: u32) -> Vec<Document> {
    let (group, number) = (number / group, number as i32);
    let first = |is_irregular, newest| DocumentKey::first(group, is_irregular, newest);
    let regular = if range.end < Timestamp::MAX {
        between(first(false, range.start), first(false, range.end))
    } else {
        between(first(false, range.start), first(true, Timestamp::MIN))
    };
    let irregular = between(first(true, range.start), after(group));
    let holds = |keys: Document| doc! { "_id": keys, "lo": { "$lte": number }, "hi": { "$gte": number } };
    let mut reaching_back = holds(irregular);
    if range.end < Timestamp::MAX {
        restrict(&mut reaching_back, "a", doc! { "$lt": range.end.0 });
    }
    let rest = doc! { "coll": SAMPLES, "pipeline": [{ "$match": reaching_back }] };
    vec![doc! { "$match": holds(regular) }, doc! { "$unionWith": rest }]
}

/// The first key after those of a group.
fn after(group: u32) -> DocumentKey {
    DocumentKey::first(group + 1, false, Timestamp::MIN)
}

/// The last documents of each group, without columns: some regular ones, newest first, and one
/// irregular one if there is any.
pub(in super::super::super) fn last(groups: &[u32]) -> Vec<Document> {
    let of = |group: u32, is_irregular: bool, limit: i64| {
        let mut stages = newest_first(group, is_irregular);
        stages.extend([doc! { "$limit": limit }, doc! { "$project": { "lo": 1, "hi": 1 } }]);
        stages
    };
    let mut pipelines = groups
        .iter()
        .flat_map(|&group| [of(group, false, LAST_DOCUMENTS), of(group, true, 1)]);
    let mut pipeline = pipelines.next().unwrap_or_default();
    pipeline.extend(pipelines.map(|rest| {
        let rest: Vec<Bson> = rest.into_iter().map(Bson::from).collect();
        doc! { "$unionWith": { "coll": SAMPLES, "pipeline": rest } }
    }));
    pipeline
}

/// All regular or all irregular documents of a group, newest first.
pub(in super::super::super) fn newest_first(group: u32, is_irregular: bool) -> Vec<Document> {
    let end = if is_irregular {
        after(group)
    } else {
        DocumentKey::first(group, true, Timestamp::MIN)
    };
    let keys = between(DocumentKey::first(group, is_irregular, Timestamp::MIN), end);
    vec![doc! { "$match": { "_id": keys } }, doc! { "$sort": { "_id": -1 } }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_asks_for_many_groups() {
        let groups: Vec<u32> = (0..GROUPS_MAX as u32).collect();
        // Two stages per group in place of four, except for the first.
        assert_eq!(last(&groups).len(), 2 * GROUPS_MAX + 3);
        assert!(last(&[]).is_empty());
    }
}
