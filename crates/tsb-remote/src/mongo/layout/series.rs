//! A time-series collection: one document `{t, s, v}` per sample, which the server packs into
//! buckets by series (`s`, the metadata) and time. Its index has one entry per bucket. Samples of
//! one timestamp have no order there, so every sample that may share a timestamp with an earlier
//! one also has `i`, which increases with each sample that a client writes.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{RwLock, RwLockReadGuard};

use mongodb::bson::{DateTime, Document, doc};
use tsb_core::{Batch, Timestamp};

use super::super::bson::Writer;
use super::super::command::{Command, CommandBuilder};
use super::super::options::Granularity;
use super::{MILLI_NS, SAMPLES, bounds, insertion, millis, millis_from, restrict};
use tsb_stores::error::Result;
use tsb_stores::parts::{read, write};
use tsb_stores::store::{Refusals, TimeRange};

/// The server's collection of buckets.
const BUCKETS: &str = "system.buckets.samples";

/// The newest timestamp that was written, or tried, for each series, in milliseconds.
///
/// It saves the column `i`, which would cost the server a fifth of its rate, in the usual case
/// that no series has two samples of one timestamp.
#[derive(Debug, Default)]
pub(super) struct NewestTimestamps {
    of: RwLock<Vec<AtomicI64>>,
}

impl NewestTimestamps {
    /// Makes room for series that have no samples yet.
    pub(super) fn grow(&self, count: usize) {
        let mut of = write(&self.of);
        if of.len() < count {
            of.resize_with(count, || AtomicI64::new(i64::MIN));
        }
    }

    /// The state for the samples of one write.
    fn known(&self) -> RwLockReadGuard<'_, Vec<AtomicI64>> {
        read(&self.of)
    }
}

/// Whether a sample is later than all written before of its series. Of two samples of one
/// timestamp only one is, even with concurrent calls.
fn is_later(newest: &[AtomicI64], number: u32, millis: i64) -> bool {
    let newest = newest.get(number as usize);
    newest.is_some_and(|newest| newest.fetch_max(millis, Ordering::Relaxed) < millis)
}

pub(super) fn preparations(granularity: Granularity) -> Vec<Vec<Document>> {
    let shape = doc! { "timeField": "t", "metaField": "s", "granularity": granularity.name() };
    let index = |collection: &str, key: Document| {
        doc! { "createIndexes": collection, "indexes": [{ "key": key, "name": "series" }] }
    };
    vec![
        vec![doc! { "create": SAMPLES, "timeseries": shape }],
        // Without an index, a query of one series reads the buckets of all. An index on `{s, t}`
        // contains the oldest and the newest time of each bucket. The newest changes with each
        // write, so an append would cost a removal and an insertion of an index entry. The oldest
        // never changes, and is sufficient, since a bucket's span is bounded. Users without
        // rights on the server's own collections get the index on `{s, t}`.
        vec![
            index(BUCKETS, doc! { "meta": 1, "control.min.t": 1 }),
            index(SAMPLES, doc! { "s": 1, "t": 1 }),
        ],
    ]
}

pub(super) fn commands(
    batch: &Batch<'_>,
    which: &[u32],
    concern: &dyn Fn(&mut Writer),
    first: u64,
    newest: Option<&NewestTimestamps>,
    refused: &mut Refusals,
) -> Result<Vec<Command>> {
    let newest = newest.map(NewestTimestamps::known);
    let head = insertion(concern);
    let mut commands = CommandBuilder::new(&head);
    for &index in which {
        let (at, value) = (batch.time(index as usize), batch.values()[index as usize]);
        match millis(at) {
            Ok(millis) => commands.push([index], |writer| {
                let number = batch.id(index as usize).0;
                writer.date("t", millis).int("s", number as i32).double("v", value);
                if !newest.as_ref().is_some_and(|newest| is_later(newest, number, millis)) {
                    writer.long("i", (first + u64::from(index)) as i64);
                }
            })?,
            Err(reason) => refused.push(index as usize, reason),
        }
    }
    commands.finish()
}

pub(super) fn samples(number: u32, range: TimeRange) -> Vec<Document> {
    let (mut filter, mut exact) = (doc! { "s": number as i32 }, doc! {});
    if is_indexed(range) {
        let dates = bounds(range, |at| DateTime::from_millis(millis_from(at)));
        restrict(&mut filter, "t", dates);
    } else {
        restrict(&mut exact, "n", bounds(range, |at| at.0));
    }
    vec![
        doc! { "$match": filter },
        // A missing `i` sorts before every number.
        doc! { "$sort": { "t": 1, "i": 1 } },
        doc! { "$project": { "_id": 0, "n": nanos("$t"), "v": 1 } },
        doc! { "$match": exact },
    ]
}

/// Whether the server finds all samples of a range by their dates. MongoDB 6.0.5 does not if the
/// range less the span of a bucket begins before 1970, and dates after 2038 do not fit the key of
/// a bucket. Such ranges are filtered after the samples are unpacked.
fn is_indexed(range: TimeRange) -> bool {
    const LATE_ENOUGH: Timestamp = Timestamp::from_secs(366 * 86_400);
    const TOO_LATE: Timestamp = Timestamp::from_secs(i32::MAX as i64);
    range == TimeRange::ALL || (range.start >= LATE_ENOUGH && range.end <= TOO_LATE)
}

pub(super) fn newest(numbers: &[u32]) -> Vec<Document> {
    let numbers: Vec<i32> = numbers.iter().map(|number| *number as i32).collect();
    vec![
        doc! { "$match": { "s": { "$in": numbers } } },
        doc! { "$group": { "_id": "$s", "t": { "$max": "$t" } } },
        doc! { "$project": { "n": nanos("$t") } },
    ]
}

/// The nanoseconds of a date field.
pub(super) fn nanos(field: &str) -> Document {
    doc! { "$multiply": [{ "$toLong": field }, MILLI_NS] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sample_of_a_timestamp_is_the_first() {
        let newest = NewestTimestamps::default();
        newest.grow(2);
        assert!(is_later(&newest.known(), 1, -5));
        assert!(!is_later(&newest.known(), 1, -5), "a second one of its timestamp");
        assert!(is_later(&newest.known(), 1, 7));
        assert!(!is_later(&newest.known(), 1, 3), "a late one");
        assert!(is_later(&newest.known(), 0, 3), "another series");
        newest.grow(1);
        assert!(!is_later(&newest.known(), 1, 7));
        assert!(!is_later(&newest.known(), 2, 7), "a series that nobody knows");
    }
}
