//! The newest timestamps of many series: a few requests, except in Mohawk's layout.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use mongodb::bson::{RawDocument, doc};
use tsb_core::Timestamp;

use super::super::layout::{Aggregation, SAMPLES, mohawk, rows, ticks};
use super::super::options::LayoutKind;
use super::MongoClient;
use tsb_stores::error::Result;

const ACTION: &str = "ask for the newest samples";

type NewestByNumber = HashMap<u32, Timestamp, foldhash::fast::FixedState>;

impl MongoClient {
    pub(super) async fn newest_of(&self, numbers: &[u32], into: &mut [Option<Timestamp>]) -> Result<()> {
        let found = match (self.layout.newest(numbers), self.layout.kind()) {
            (Some(aggregation), _) => self.found(aggregation, named).await?,
            (None, LayoutKind::Rows) => self.newest_of_rows(numbers).await?,
            (None, LayoutKind::Ticks) => self.newest_of_columns(numbers).await?,
            (None, _) => self.newest_of_collections(numbers).await?,
        };
        for (number, slot) in numbers.iter().zip(into) {
            *slot = found.get(number).copied();
        }
        Ok(())
    }

    async fn found(
        &self,
        aggregation: Aggregation,
        of: impl Fn(&RawDocument) -> Option<u32>,
    ) -> Result<NewestByNumber> {
        let mut found = NewestByNumber::default();
        let mut cursor = self
            .connection
            .aggregate(ACTION, &aggregation.collection, aggregation.pipeline)
            .await?;
        while self.connection.advance(ACTION, &mut cursor).await? {
            let document = cursor.current();
            match (of(document), document.get_i64("n")) {
                (Some(number), Ok(at)) => found.insert(number, Timestamp(at)),
                _ => return Err(self.connection.failed(ACTION, "a row came that cannot be read")),
            };
        }
        Ok(found)
    }

    async fn newest_of_rows(&self, numbers: &[u32]) -> Result<NewestByNumber> {
        let mut found = NewestByNumber::default();
        for some in numbers.chunks(rows::NEWEST_MAX) {
            let aggregation = Aggregation {
                collection: SAMPLES.to_owned(),
                pipeline: rows::newest(some),
            };
            found.extend(self.found(aggregation, named).await?);
        }
        Ok(found)
    }

    /// One request per collection: a pipeline cannot read an arbitrary list of collections.
    async fn newest_of_collections(&self, numbers: &[u32]) -> Result<NewestByNumber> {
        let mut found = NewestByNumber::default();
        for &number in numbers {
            let aggregation = Aggregation {
                collection: self.layout.name(number),
                pipeline: mohawk::newest(),
            };
            found.extend(self.found(aggregation, |_| Some(number)).await?);
        }
        Ok(found)
    }

    /// In most groups, the last few documents hold all series; one request reads those for many
    /// groups. The other groups are searched one by one.
    async fn newest_of_columns(&self, numbers: &[u32]) -> Result<NewestByNumber> {
        let mut asked: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &number in numbers {
            asked.entry(number / self.layout.group()).or_default().push(number);
        }
        let groups: Vec<u32> = asked.keys().copied().collect();
        let (mut found, mut seen) = (NewestByNumber::default(), HashMap::<u32, GroupSummary>::new());
        for some in groups.chunks(ticks::GROUPS_MAX) {
            let mut cursor = self.connection.aggregate(ACTION, SAMPLES, ticks::last(some)).await?;
            while self.connection.advance(ACTION, &mut cursor).await? {
                let (key, numbers) = self.key_and_numbers(cursor.current())?;
                let seen = seen.entry(key.group).or_default();
                if key.is_irregular {
                    seen.is_irregular = true;
                } else {
                    seen.regular += 1;
                    numbers.for_each(|number| raise(&mut found, number, key.newest));
                }
            }
        }
        for (group, numbers) in asked {
            let seen = seen.remove(&group).unwrap_or_default();
            let is_missing = numbers.iter().any(|number| !found.contains_key(number));
            if is_missing && seen.regular == ticks::LAST_DOCUMENTS {
                self.search_regular(group, &numbers, &mut found).await?;
            }
            if seen.is_irregular {
                self.search_irregular(group, &numbers, &mut found).await?;
            }
        }
        Ok(found)
    }

    /// Decodes a document without its columns: its key, and its lowest and highest series number.
    fn key_and_numbers(&self, document: &RawDocument) -> Result<(ticks::DocumentKey, RangeInclusive<u32>)> {
        let number = |name: &str| document.get_i32(name).ok().map(|number| number as u32);
        match (ticks::DocumentKey::of(document), number("lo"), number("hi")) {
            (Some(key), Some(lo), Some(hi)) => Ok((key, lo..=hi)),
            _ => Err(self
                .connection
                .failed(ACTION, "a stretch of series came that cannot be read")),
        }
    }

    /// Searches from the newest regular document of a group backwards, until each series was
    /// found.
    async fn search_regular(&self, group: u32, numbers: &[u32], found: &mut NewestByNumber) -> Result<()> {
        let mut pipeline = ticks::newest_first(group, false);
        pipeline.push(doc! { "$project": { "lo": 1, "hi": 1 } });
        let mut cursor = self.connection.aggregate(ACTION, SAMPLES, pipeline).await?;
        while numbers.iter().any(|number| !found.contains_key(number))
            && self.connection.advance(ACTION, &mut cursor).await?
        {
            let (key, numbers) = self.key_and_numbers(cursor.current())?;
            numbers.for_each(|number| raise(found, number, key.newest));
        }
        Ok(())
    }

    /// For irregular documents the columns themselves must be read: from the newest document
    /// backwards, until no asked one can hold anything newer.
    async fn search_irregular(&self, group: u32, numbers: &[u32], found: &mut NewestByNumber) -> Result<()> {
        let pipeline = ticks::newest_first(group, true);
        let mut cursor = self.connection.aggregate(ACTION, SAMPLES, pipeline).await?;
        while self.connection.advance(ACTION, &mut cursor).await? {
            let document = cursor.current();
            let newest = ticks::DocumentKey::of(document).map_or(Timestamp::MAX, |key| key.newest);
            if numbers
                .iter()
                .all(|number| found.get(number).is_some_and(|at| *at >= newest))
            {
                break;
            }
            let seen = ticks::read(document, |sample| raise(found, sample.number, sample.at));
            seen.map_err(|what| self.connection.failed(ACTION, what))?;
        }
        Ok(())
    }
}

/// What the first request found for a group.
#[derive(Debug, Default)]
struct GroupSummary {
    regular: i64,
    is_irregular: bool,
}

/// The series number of a row `{_id: number, n}`.
fn named(row: &RawDocument) -> Option<u32> {
    row.get_i32("_id").ok().map(|number| number as u32)
}

fn raise(found: &mut NewestByNumber, number: u32, at: Timestamp) {
    let newest = found.entry(number).or_insert(at);
    *newest = (*newest).max(at);
}
