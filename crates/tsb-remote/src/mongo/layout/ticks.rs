//! Whole ticks as binary columns: a write is one document per group of series, and the server
//! stores its bytes without interpreting them.
//!
//! A document is `{_id, lo, hi, a, n, v}`: a [`DocumentKey`] with group and newest timestamp,
//! lowest and highest series number, oldest timestamp, number of samples, and values as doubles.
//! If the numbers are not neighbours, `s` lists them, and if timestamps differ, `t` lists them;
//! the key marks such documents as irregular. All columns are little-endian. The collection is
//! stored in key order: an additional index took the server as long as the documents themselves.
//! The server cannot read columns, so the client consolidates.

use mongodb::bson::{Document, RawDocument, doc};
use tsb_core::{Batch, Timestamp};

use super::super::bson::Writer;
use super::super::command::{Command, CommandBuilder};
use super::{SAMPLES, insertion};
use tsb_stores::error::Result;

mod key;
mod queries;

pub(in super::super) use key::DocumentKey;
pub(super) use queries::documents;
pub(in super::super) use queries::{GROUPS_MAX, LAST_DOCUMENTS, last, newest_first};

/// Needs MongoDB 5.3 or later.
pub(super) fn preparations() -> Vec<Document> {
    vec![doc! { "create": SAMPLES, "clusteredIndex": { "key": { "_id": 1 }, "unique": true } }]
}

/// The writer's part of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriterKey {
    /// Maximum number of series per document.
    pub(super) group: u32,
    /// Number of samples written before.
    pub(super) first: u64,
    pub(super) client: [u8; 4],
}

pub(super) fn commands(
    batch: &Batch<'_>,
    which: &[u32],
    writer_key: WriterKey,
    concern: &dyn Fn(&mut Writer),
) -> Result<Vec<Command>> {
    let head = insertion(concern);
    let mut commands = CommandBuilder::new(&head);
    let group_of = |index: &u32| batch.id(*index as usize).0 / writer_key.group;
    let mut sorted: Vec<u32>;
    let mut rest = which;
    if !rest.is_sorted_by_key(group_of) {
        sorted = rest.to_vec();
        // The sort must be stable, to keep the batch's order within a series.
        sorted.sort_by_key(group_of);
        rest = &sorted;
    }
    while let Some(first) = rest.first() {
        let number = group_of(first);
        let length = rest.partition_point(|index| group_of(index) == number);
        let (indices, after) = rest.split_at(length);
        rest = after;
        commands.push(indices.iter().copied(), |writer| {
            columns(writer, batch, number, writer_key, indices);
        })?;
    }
    commands.finish()
}

fn columns(writer: &mut Writer, batch: &Batch<'_>, group: u32, writer_key: WriterKey, indices: &[u32]) {
    let numbers = || indices.iter().map(|&index| batch.id(index as usize).0);
    let times = || indices.iter().map(|&index| batch.time(index as usize).0);
    let (lo, hi) = (numbers().min().unwrap_or_default(), numbers().max().unwrap_or_default());
    let (oldest, newest) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
    let are_neighbours = numbers().zip(lo..).all(|(number, expected)| number == expected);
    let key = DocumentKey {
        group,
        is_irregular: !are_neighbours || oldest != newest,
        newest: Timestamp(newest),
        order: writer_key.first + u64::from(indices.first().copied().unwrap_or_default()),
        client: writer_key.client,
    };
    writer.binary("_id", std::iter::once(key.bytes()));
    writer.int("lo", lo as i32).int("hi", hi as i32);
    writer.long("a", oldest).long("n", indices.len() as i64);
    if !are_neighbours {
        writer.binary("s", numbers().map(u32::to_le_bytes));
    }
    if oldest != newest {
        writer.binary("t", times().map(i64::to_le_bytes));
    }
    let values = indices
        .iter()
        .map(|&index| batch.values()[index as usize].to_le_bytes());
    writer.binary("v", values);
}

/// One sample of a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct ColumnSample {
    pub(in super::super) number: u32,
    pub(in super::super) at: Timestamp,
    pub(in super::super) value: f64,
}

/// Calls `see` for each sample of a document, in the order of writing. An error says what is
/// wrong with the document.
pub(in super::super) fn read(
    document: &RawDocument,
    mut see: impl FnMut(ColumnSample),
) -> std::result::Result<(), String> {
    let column = |name: &'static str| match document.get(name) {
        Ok(Some(value)) => value.as_binary().map(|binary| Some(binary.bytes)).ok_or(name),
        _ => Ok(None),
    };
    let bad = |name: &str| format!("column {name} of a document cannot be read");
    let lo = document.get_i32("lo").map_err(|_| bad("lo"))? as u32;
    let oldest = document.get_i64("a").map_err(|_| bad("a"))?;
    let values = column("v").map_err(bad)?.ok_or_else(|| bad("v"))?;
    let (numbers, times) = (column("s").map_err(bad)?, column("t").map_err(bad)?);
    let count = values.len() / 8;
    if values.len() % 8 != 0 {
        return Err(bad("v"));
    }
    if numbers.is_some_and(|numbers| numbers.len() != 4 * count) {
        return Err(bad("s"));
    }
    if times.is_some_and(|times| times.len() != 8 * count) {
        return Err(bad("t"));
    }
    let (values, _) = values.as_chunks::<8>();
    let numbers = numbers.map(|numbers| numbers.as_chunks::<4>().0);
    let times = times.map(|times| times.as_chunks::<8>().0);
    for (place, value) in values.iter().enumerate() {
        see(ColumnSample {
            number: numbers.map_or(lo + place as u32, |numbers| u32::from_le_bytes(numbers[place])),
            at: Timestamp(times.map_or(oldest, |times| i64::from_le_bytes(times[place]))),
            value: f64::from_le_bytes(*value),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use mongodb::bson::RawDocumentBuf;
    use tsb_core::{Ids, SeriesId, Times};

    use super::*;

    fn written(batch: &Batch<'_>) -> Vec<RawDocumentBuf> {
        let which: Vec<u32> = (0..batch.len() as u32).collect();
        let writer_key = WriterKey {
            group: 4,
            first: 100,
            client: [7; 4],
        };
        let commands = commands(batch, &which, writer_key, &|_| {}).unwrap();
        let bodies = commands.iter().flat_map(|command| {
            let documents: Vec<_> = command.body.get_array("documents").unwrap().into_iter().collect();
            documents
        });
        bodies
            .map(|document| document.unwrap().as_document().unwrap().to_owned())
            .collect()
    }

    fn samples(documents: &[RawDocumentBuf]) -> Vec<(u32, i64, f64)> {
        let mut samples = Vec::new();
        for document in documents {
            read(document, |sample| {
                samples.push((sample.number, sample.at.0, sample.value));
            })
            .unwrap();
        }
        samples
    }

    #[test]
    fn a_tick_is_one_document_per_group_without_numbers_and_times() {
        let documents = written(&Batch::tick(SeriesId(2), Timestamp(5), &[0.0, 1.0, 2.0, 3.0]));
        assert_eq!(documents.len(), 2);
        let keys: Vec<DocumentKey> = documents
            .iter()
            .filter_map(|document| DocumentKey::of(document))
            .collect();
        let regular = |group, order| DocumentKey {
            order,
            client: [7; 4],
            ..DocumentKey::first(group, false, Timestamp(5))
        };
        assert_eq!(keys, [regular(0, 100), regular(1, 102)]);
        assert_eq!(
            samples(&documents),
            [(2, 5, 0.0), (3, 5, 1.0), (4, 5, 2.0), (5, 5, 3.0)]
        );
    }

    #[test]
    fn any_other_batch_is_read_back_in_its_order() {
        let ids = [7, 1, 6, 7, 0].map(SeriesId);
        let times = [9, 8, 9, 7, 8].map(Timestamp);
        let values = [0.5, 1.5, 2.5, f64::NEG_INFINITY, -0.0];
        let documents = written(&Batch::new(Ids::Each(&ids), Times::Each(&times), &values));
        assert_eq!(
            samples(&documents),
            [
                (1, 8, 1.5),
                (0, 8, -0.0),
                (7, 9, 0.5),
                (6, 9, 2.5),
                (7, 7, f64::NEG_INFINITY),
            ]
        );
    }

    #[test]
    fn a_column_that_was_cut_is_an_error() {
        let bytes = |length: usize| mongodb::bson::Binary {
            subtype: mongodb::bson::spec::BinarySubtype::Generic,
            bytes: vec![0; length],
        };
        for (document, what) in [
            (doc! { "lo": 0, "a": 0_i64, "v": bytes(12) }, "column v"),
            (doc! { "lo": 0, "a": 0_i64, "v": bytes(16), "s": bytes(4) }, "column s"),
            (doc! { "lo": 0, "a": 0_i64, "v": bytes(16), "t": bytes(8) }, "column t"),
            (doc! { "lo": 0, "a": 0_i64 }, "column v"),
            (doc! { "lo": 0, "v": bytes(8) }, "column a"),
            (doc! { "a": 0_i64, "v": "text" }, "column lo"),
        ] {
            let document = RawDocumentBuf::try_from(&document).unwrap();
            let error = read(&document, |_| {}).unwrap_err();
            assert!(error.starts_with(what), "{document:?}: {error}");
        }
    }
}
