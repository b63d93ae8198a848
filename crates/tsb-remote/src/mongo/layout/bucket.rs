//! One document per series and span of time: `{_id: {s, b}, n, m, t: [...], v: [...]}`. Each
//! write appends by one update; `m` is the newest timestamp. All times are in nanoseconds.

use std::collections::HashMap;

use mongodb::bson::{Document, doc};
use tsb_core::Batch;

use super::super::bson::Writer;
use super::super::command::{Command, CommandBuilder};
use super::{SAMPLES, bounds, restrict};
use tsb_stores::error::Result;
use tsb_stores::store::TimeRange;

pub(super) fn commands(
    batch: &Batch<'_>,
    which: &[u32],
    span_ns: i64,
    concern: &dyn Fn(&mut Writer),
) -> Result<Vec<Command>> {
    let head = |writer: &mut Writer| {
        writer.text("update", SAMPLES).flag("ordered", false);
        concern(writer);
        writer.array("updates");
    };
    let mut commands = CommandBuilder::new(&head);
    for ((number, bucket), indices) in buckets(batch, which, span_ns) {
        commands.push(indices.iter().copied(), |writer| {
            writer
                .document("q")
                .document("_id")
                .int("s", number as i32)
                .long("b", bucket)
                .end()
                .end();
            append(writer.document("u"), batch, &indices);
            writer.end().flag("upsert", true);
        })?;
    }
    commands.finish()
}

/// Groups samples by document, in the order in which the documents first occur.
fn buckets(batch: &Batch<'_>, which: &[u32], span_ns: i64) -> Vec<((u32, i64), Vec<u32>)> {
    let mut places: HashMap<(u32, i64), usize, foldhash::fast::FixedState> = HashMap::default();
    let mut buckets: Vec<((u32, i64), Vec<u32>)> = Vec::with_capacity(which.len());
    for &index in which {
        let key = (
            batch.id(index as usize).0,
            batch.time(index as usize).0.div_euclid(span_ns),
        );
        let place = *places.entry(key).or_insert(buckets.len());
        match buckets.get_mut(place) {
            Some((_, indices)) => indices.push(index),
            None => buckets.push((key, vec![index])),
        }
    }
    buckets
}

/// Writes the update that appends samples, in batch order.
fn append(writer: &mut Writer, batch: &Batch<'_>, indices: &[u32]) {
    let times = || indices.iter().map(|&index| batch.time(index as usize).0);
    writer.document("$push").document("t").array("$each");
    for (place, at) in times().enumerate() {
        writer.long(place, at);
    }
    writer.end().end().document("v").array("$each");
    for (place, &index) in indices.iter().enumerate() {
        writer.double(place, batch.values()[index as usize]);
    }
    writer.end().end().end();
    writer.document("$inc").long("n", indices.len() as i64).end();
    writer
        .document("$max")
        .long("m", times().max().unwrap_or_default())
        .end();
}

pub(super) fn samples(number: u32, range: TimeRange, span_ns: i64) -> Vec<Document> {
    let id = |bucket: i64| doc! { "s": number as i32, "b": bucket };
    let (first, last) = (range.start.0.div_euclid(span_ns), range.end.0.div_euclid(span_ns));
    let mut exact = doc! {};
    restrict(&mut exact, "n", bounds(range, |at| at.0));
    vec![
        doc! { "$match": { "_id": { "$gte": id(first), "$lte": id(last) } } },
        doc! { "$project": { "p": { "$zip": { "inputs": ["$t", "$v"] } } } },
        doc! { "$unwind": { "path": "$p", "includeArrayIndex": "i" } },
        doc! { "$project": {
            "_id": 0, "i": 1, "n": { "$arrayElemAt": ["$p", 0] }, "v": { "$arrayElemAt": ["$p", 1] },
        } },
        doc! { "$match": exact },
        // Samples of one timestamp are in one document, where their index is the order of
        // writing.
        doc! { "$sort": { "n": 1, "i": 1 } },
    ]
}

pub(super) fn newest(numbers: &[u32]) -> Vec<Document> {
    let id = |number: Option<&u32>, bucket: i64| doc! { "s": number.map_or(0, |number| *number as i32), "b": bucket };
    let asked: Vec<i32> = numbers.iter().map(|number| *number as i32).collect();
    let (first, last) = (id(numbers.iter().min(), i64::MIN), id(numbers.iter().max(), i64::MAX));
    vec![
        doc! { "$match": { "_id": { "$gte": first, "$lte": last } } },
        doc! { "$match": { "_id.s": { "$in": asked } } },
        doc! { "$group": { "_id": "$_id.s", "n": { "$max": "$m" } } },
    ]
}
