//! The five layouts of samples, behind one interface.
//!
//! Pipelines return samples as `{n, v}` (nanoseconds and value), in time order and, within one
//! timestamp, in the order of writing; except those of the ticks layout, which return documents
//! of columns.

use std::sync::RwLock;

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};
use tsb_core::{Batch, SeriesKey, Timestamp};

use super::bson::Writer;
use super::command::Command;
use super::options::{LayoutKind, MongoOptions};
use tsb_stores::error::Result;
use tsb_stores::parts::{read, write};
use tsb_stores::store::{Reason, Refusals, TimeRange};

mod bucket;
pub(super) mod mohawk;
pub(super) mod rows;
mod series;
pub(super) mod ticks;

/// The collection of samples, except in Mohawk's layout.
pub(super) const SAMPLES: &str = "samples";

const MILLI_NS: i64 = 1_000_000;

/// A layout with its state.
#[derive(Debug)]
pub(super) struct Layout {
    options: MongoOptions,
    /// The collections of Mohawk's layout, by series number.
    names: RwLock<Vec<String>>,
    /// Distinguishes the keys of this client from those of others.
    client: [u8; 4],
    /// For a time-series collection that was empty when it was opened.
    newest: Option<series::NewestTimestamps>,
}

/// A collection and the pipeline to run on it.
#[derive(Debug)]
pub(super) struct Aggregation {
    pub(super) collection: String,
    pub(super) pipeline: Vec<Document>,
}

impl Layout {
    pub(super) fn new(options: &MongoOptions) -> Self {
        Self {
            options: options.clone(),
            names: RwLock::default(),
            client: client(),
            newest: None,
        }
    }

    /// Called if the database was empty: then all of its samples will be written by this client.
    pub(super) fn begin(&mut self) {
        self.newest = (self.kind() == LayoutKind::Series).then(series::NewestTimestamps::default);
    }

    pub(super) fn kind(&self) -> LayoutKind {
        self.options.layout
    }

    /// Timestamps that are not multiples of this are refused.
    pub(super) fn resolution_ns(&self) -> i64 {
        match self.kind() {
            LayoutKind::Series | LayoutKind::Mohawk => MILLI_NS,
            LayoutKind::Rows | LayoutKind::Bucket | LayoutKind::Ticks => 1,
        }
    }

    /// The marker: the settings that must not change between runs on one database.
    pub(super) fn marker(&self) -> Document {
        match self.kind() {
            LayoutKind::Bucket => doc! { "layout": "bucket", "span_ns": self.options.span_ns },
            LayoutKind::Ticks => doc! { "layout": "ticks", "group": i64::from(self.options.group), "clustered": true },
            kind => doc! { "layout": kind.name() },
        }
    }

    /// Commands that prepare an empty database. Of each inner list, only the first command that
    /// the server accepts is needed.
    pub(super) fn preparations(&self) -> Vec<Vec<Document>> {
        match self.kind() {
            LayoutKind::Series => series::preparations(self.options.granularity),
            LayoutKind::Rows => vec![rows::preparations()],
            LayoutKind::Ticks => vec![ticks::preparations()],
            LayoutKind::Bucket | LayoutKind::Mohawk => Vec::new(),
        }
    }

    /// Notes the numbers of series.
    pub(super) fn add_series(&self, series: &[(u32, SeriesKey)]) {
        if let (Some(newest), Some(count)) = (&self.newest, series.iter().map(|(number, _)| number + 1).max()) {
            newest.grow(count as usize);
        }
        if self.kind() != LayoutKind::Mohawk {
            return;
        }
        let mut names = write(&self.names);
        for (number, key) in series {
            let number = *number as usize;
            if names.len() <= number {
                names.resize(number + 1, String::new());
            }
            names[number] = mohawk::collection(key);
        }
    }

    /// The collection of a series in Mohawk's layout.
    pub(super) fn name(&self, number: u32) -> String {
        read(&self.names).get(number as usize).cloned().unwrap_or_default()
    }

    /// The names of all collections of Mohawk's layout.
    pub(super) fn names(&self) -> Vec<String> {
        read(&self.names).clone()
    }

    /// The commands for some samples of a batch whose ids are numbers. `first` is the number of
    /// samples that the client has tried to write before. Samples that cannot be written are
    /// refused. Mohawk's layout has no commands.
    pub(super) fn commands(
        &self,
        batch: &Batch<'_>,
        which: &[u32],
        concern: &dyn Fn(&mut Writer),
        first: u64,
        refused: &mut Refusals,
    ) -> Result<Vec<Command>> {
        match self.kind() {
            LayoutKind::Series => series::commands(batch, which, concern, first, self.newest.as_ref(), refused),
            LayoutKind::Rows => rows::commands(batch, which, concern, first),
            LayoutKind::Bucket => bucket::commands(batch, which, self.options.span_ns, concern),
            LayoutKind::Ticks => {
                let (group, client) = (self.options.group, self.client);
                ticks::commands(batch, which, ticks::WriterKey { group, first, client }, concern)
            }
            LayoutKind::Mohawk => Ok(Vec::new()),
        }
    }

    /// A query for the samples of one series.
    pub(super) fn samples(&self, number: u32, range: TimeRange) -> Aggregation {
        let (collection, pipeline) = match self.kind() {
            LayoutKind::Series => (SAMPLES.to_owned(), series::samples(number, range)),
            LayoutKind::Rows => (SAMPLES.to_owned(), rows::samples(number, range)),
            LayoutKind::Bucket => (SAMPLES.to_owned(), bucket::samples(number, range, self.options.span_ns)),
            LayoutKind::Ticks => (SAMPLES.to_owned(), ticks::documents(number, range, self.options.group)),
            LayoutKind::Mohawk => (self.name(number), mohawk::samples(range)),
        };
        Aggregation { collection, pipeline }
    }

    /// A query for the newest timestamps of series, as `{_id, n}`; `None` if one pipeline cannot
    /// answer it.
    pub(super) fn newest(&self, numbers: &[u32]) -> Option<Aggregation> {
        let pipeline = match self.kind() {
            LayoutKind::Series => series::newest(numbers),
            LayoutKind::Bucket => bucket::newest(numbers),
            LayoutKind::Rows | LayoutKind::Ticks | LayoutKind::Mohawk => return None,
        };
        Some(Aggregation {
            collection: SAMPLES.to_owned(),
            pipeline,
        })
    }

    /// A query for the number of samples, as `{n}`; `None` for Mohawk's layout.
    pub(super) fn count(&self) -> Option<Aggregation> {
        let each = match self.kind() {
            LayoutKind::Series | LayoutKind::Rows => 1.into(),
            LayoutKind::Bucket | LayoutKind::Ticks => mongodb::bson::Bson::from("$n"),
            LayoutKind::Mohawk => return None,
        };
        Some(Aggregation {
            collection: SAMPLES.to_owned(),
            pipeline: vec![doc! { "$group": { "_id": null, "n": { "$sum": each } } }],
        })
    }

    pub(super) fn group(&self) -> u32 {
        self.options.group
    }
}

/// Four bytes that most likely no other current client has: the last bytes of the driver's
/// process id and of its counter.
fn client() -> [u8; 4] {
    let bytes = ObjectId::new().bytes();
    [bytes[7], bytes[8], bytes[10], bytes[11]]
}

/// Writes the beginning of a command that inserts documents of samples.
fn insertion(concern: &dyn Fn(&mut Writer)) -> impl Fn(&mut Writer) {
    move |writer| {
        writer.text("insert", SAMPLES).flag("ordered", false);
        concern(writer);
        writer.array("documents");
    }
}

/// The milliseconds of a timestamp; refused if it has a finer part.
fn millis(at: Timestamp) -> std::result::Result<i64, Reason> {
    if at.0 % MILLI_NS == 0 {
        Ok(at.0 / MILLI_NS)
    } else {
        Err(Reason::Unrepresentable)
    }
}

/// The first millisecond that is not before a timestamp.
fn millis_from(at: Timestamp) -> i64 {
    at.0.div_euclid(MILLI_NS) + i64::from(at.0.rem_euclid(MILLI_NS) != 0)
}

/// The bounds of a range as conditions; an open end has none.
fn bounds<T: Into<mongodb::bson::Bson>>(range: TimeRange, bound: impl Fn(Timestamp) -> T) -> Document {
    let mut conditions = Document::new();
    if range.start > Timestamp::MIN {
        conditions.insert("$gte", bound(range.start));
    }
    if range.end < Timestamp::MAX {
        conditions.insert("$lt", bound(range.end));
    }
    conditions
}

/// Adds the conditions for a field to a filter, if there are any.
fn restrict(filter: &mut Document, field: &str, conditions: Document) {
    if !conditions.is_empty() {
        filter.insert(field, conditions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_millisecond_is_whole_or_refused() {
        assert_eq!(millis(Timestamp(-3_000_000)), Ok(-3));
        assert_eq!(millis(Timestamp(1_000_001)), Err(Reason::Unrepresentable));
        for (at, from) in [
            (0, 0),
            (1, 1),
            (1_000_000, 1),
            (-1, 0),
            (-1_000_000, -1),
            (-1_000_001, -1),
        ] {
            assert_eq!(millis_from(Timestamp(at)), from, "{at}");
        }
    }

    #[test]
    fn a_range_without_ends_has_no_conditions() {
        assert!(bounds(TimeRange::ALL, |at| at.0).is_empty());
        let range = TimeRange {
            start: Timestamp(5),
            ..TimeRange::ALL
        };
        let mut filter = doc! {};
        restrict(&mut filter, "t", bounds(range, |at| at.0));
        assert_eq!(filter, doc! { "t": { "$gte": 5_i64 } });
    }
}
