//! One document per sample in a plain collection: `{_id: {s, t, i}, v}`.
//!
//! The collection is clustered: it is stored in key order, so one tree both holds the samples and
//! finds them by series and time. An ordinary collection needs three trees (documents, ids, and
//! series with time), and every sample goes into each. `i` increases with each sample that a
//! client writes; it orders samples of one timestamp, and makes keys unique.

use mongodb::bson::{Document, doc};
use tsb_core::{Batch, Timestamp};

use super::super::bson::Writer;
use super::super::command::{Command, CommandBuilder};
use super::{SAMPLES, insertion};
use tsb_stores::error::Result;
use tsb_stores::store::TimeRange;

/// Maximum number of series per request for newest samples; MongoDB accepts a thousand stages.
pub(in super::super) const NEWEST_MAX: usize = 500;

/// Needs MongoDB 5.3 or later.
pub(super) fn preparations() -> Vec<Document> {
    vec![doc! { "create": SAMPLES, "clusteredIndex": { "key": { "_id": 1 }, "unique": true } }]
}

pub(super) fn commands(
    batch: &Batch<'_>,
    which: &[u32],
    concern: &dyn Fn(&mut Writer),
    first: u64,
) -> Result<Vec<Command>> {
    let head = insertion(concern);
    let mut commands = CommandBuilder::new(&head);
    for &index in which {
        commands.push([index], |writer| {
            writer
                .document("_id")
                .int("s", batch.id(index as usize).0 as i32)
                .long("t", batch.time(index as usize).0)
                .long("i", (first + u64::from(index)) as i64)
                .end()
                .double("v", batch.values()[index as usize]);
        })?;
    }
    commands.finish()
}

pub(super) fn samples(number: u32, range: TimeRange) -> Vec<Document> {
    vec![
        doc! { "$match": keys(number, range) },
        doc! { "$sort": { "_id": 1 } },
        doc! { "$project": { "_id": 0, "n": "$_id.t", "v": 1 } },
    ]
}

/// The newest sample of each series, read from the end of its keys: `{_id, n}`.
pub(in super::super) fn newest(numbers: &[u32]) -> Vec<Document> {
    let last = |number: u32| {
        [
            doc! { "$match": keys(number, TimeRange::ALL) },
            doc! { "$sort": { "_id": -1 } },
            doc! { "$limit": 1 },
        ]
    };
    let mut numbers = numbers.iter().copied();
    let mut pipeline: Vec<Document> = numbers.next().into_iter().flat_map(last).collect();
    pipeline
        .extend(numbers.map(|number| doc! { "$unionWith": { "coll": SAMPLES, "pipeline": last(number).to_vec() } }));
    pipeline.push(doc! { "$project": { "_id": "$_id.s", "n": "$_id.t" } });
    pipeline
}

/// The keys of a series in a range. A shortened key sorts before all keys that begin with it.
fn keys(number: u32, range: TimeRange) -> Document {
    let number = number as i32;
    let end = if range.end < Timestamp::MAX {
        doc! { "s": number, "t": range.end.0 }
    } else {
        doc! { "s": number + 1 }
    };
    doc! { "_id": { "$gte": { "s": number, "t": range.start.0 }, "$lt": end } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_asks_for_many_series() {
        let numbers: Vec<u32> = (0..NEWEST_MAX as u32).collect();
        let pipeline = newest(&numbers);
        assert_eq!(pipeline.len(), NEWEST_MAX + 3);
        let lengths: Vec<usize> = [&[7][..], &[7, 8]].map(|numbers| newest(numbers).len()).into();
        assert_eq!(lengths, [4, 5]);
    }

    #[test]
    fn a_range_without_an_end_takes_the_last_timestamp_too() {
        let all = keys(7, TimeRange::ALL);
        assert_eq!(
            all,
            doc! { "_id": { "$gte": { "s": 7, "t": i64::MIN }, "$lt": { "s": 8 } } }
        );
        let range = TimeRange {
            start: Timestamp(3),
            end: Timestamp(5),
        };
        assert_eq!(
            keys(7, range),
            doc! { "_id": { "$gte": { "s": 7, "t": 3_i64 }, "$lt": { "s": 7, "t": 5_i64 } } }
        );
    }
}
