//! The newest timestamp of many series: one request, but in Mohawk's layout.

use std::collections::HashMap;

use mongodb::bson::RawDocument;
use tsb_core::Timestamp;

use super::super::layout::{Reading, SAMPLES, mohawk, rows, ticks};
use super::super::options::LayoutKind;
use super::MongoClient;
use crate::error::Result;

const ACTION: &str = "ask for the newest samples";

type Found = HashMap<u32, Timestamp, foldhash::fast::FixedState>;

impl MongoClient {
    pub(super) async fn newest_of(&self, numbers: &[u32], into: &mut [Option<Timestamp>]) -> Result<()> {
        let found = match (self.layout.newest(numbers), self.layout.kind()) {
            (Some(reading), _) => self.found(reading, named).await?,
            (None, LayoutKind::Rows) => self.newest_of_rows(numbers).await?,
            (None, LayoutKind::Ticks) => self.newest_of_columns(numbers).await?,
            (None, _) => self.newest_of_collections(numbers).await?,
        };
        for (number, slot) in numbers.iter().zip(into) {
            *slot = found.get(number).copied();
        }
        Ok(())
    }

    async fn found(&self, reading: Reading, of: impl Fn(&RawDocument) -> Option<u32>) -> Result<Found> {
        let mut found = Found::default();
        let mut cursor = self
            .connection
            .aggregate(ACTION, &reading.collection, reading.pipeline)
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

    async fn newest_of_rows(&self, numbers: &[u32]) -> Result<Found> {
        let mut found = Found::default();
        for some in numbers.chunks(rows::NEWEST_MAX) {
            let reading = Reading {
                collection: SAMPLES.to_owned(),
                pipeline: rows::newest(some),
            };
            found.extend(self.found(reading, named).await?);
        }
        Ok(found)
    }

    /// One after the other: no pipeline reads collections whose number is not known before.
    async fn newest_of_collections(&self, numbers: &[u32]) -> Result<Found> {
        let mut found = Found::default();
        for &number in numbers {
            let reading = Reading {
                collection: self.layout.name(number),
                pipeline: mohawk::newest(),
            };
            found.extend(self.found(reading, |_| Some(number)).await?);
        }
        Ok(found)
    }

    async fn newest_of_columns(&self, numbers: &[u32]) -> Result<Found> {
        let mut groups: Vec<i32> = numbers
            .iter()
            .map(|number| (number / self.layout.group()) as i32)
            .collect();
        groups.sort_unstable();
        groups.dedup();
        let mut found = Found::default();
        let unreadable = |_| {
            self.connection
                .failed(ACTION, "a stretch of series came that cannot be read")
        };
        let mut cursor = self
            .connection
            .aggregate(ACTION, SAMPLES, ticks::newest_of_stretches(&groups))
            .await?;
        while self.connection.advance(ACTION, &mut cursor).await? {
            let document = cursor.current();
            let stretch = document.get_document("_id").map_err(unreadable)?;
            let (lo, hi) = (
                stretch.get_i32("lo").map_err(unreadable)?,
                stretch.get_i32("hi").map_err(unreadable)?,
            );
            let newest = Timestamp(document.get_i64("b").map_err(unreadable)?);
            for number in lo as u32..=hi as u32 {
                raise(&mut found, number, newest);
            }
        }
        self.look_into_irregular(&groups, numbers, &mut found).await?;
        Ok(found)
    }

    /// Only the columns themselves know: from the newest document on, until none that is
    /// left can say anything new.
    async fn look_into_irregular(&self, groups: &[i32], numbers: &[u32], found: &mut Found) -> Result<()> {
        let mut cursor = self
            .connection
            .aggregate(ACTION, SAMPLES, ticks::irregular(groups))
            .await?;
        while self.connection.advance(ACTION, &mut cursor).await? {
            let document = cursor.current();
            let newest = Timestamp(document.get_i64("b").unwrap_or(i64::MAX));
            if numbers
                .iter()
                .all(|number| found.get(number).is_some_and(|at| *at >= newest))
            {
                break;
            }
            let seen = ticks::read(document, |cell| raise(found, cell.number, cell.at));
            seen.map_err(|what| self.connection.failed(ACTION, what))?;
        }
        Ok(())
    }
}

/// The number of a row `{_id: number, n}`.
fn named(row: &RawDocument) -> Option<u32> {
    row.get_i32("_id").ok().map(|number| number as u32)
}

fn raise(found: &mut Found, number: u32, at: Timestamp) {
    let newest = found.entry(number).or_insert(at);
    *newest = (*newest).max(at);
}
