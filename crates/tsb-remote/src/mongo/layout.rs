//! The five ways to lay samples out, behind one face.
//!
//! Where a layout can, its pipeline gives samples as `{n, v}`, nanoseconds and value, in the
//! order of time and, within one timestamp, of writing.

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

/// Where samples are, but for Mohawk's layout.
pub(super) const SAMPLES: &str = "samples";

const MILLI_NS: i64 = 1_000_000;

/// A layout with what it was told.
#[derive(Debug)]
pub(super) struct Layout {
    options: MongoOptions,
    /// Mohawk's collections, by number.
    names: RwLock<Vec<String>>,
    /// What tells the keys of this client from those of others.
    client: [u8; 4],
    /// Of a time-series collection that was empty when it was opened.
    newest: Option<series::Newest>,
}

/// What a pipeline reads.
#[derive(Debug)]
pub(super) struct Reading {
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

    /// The database was empty: what its series hold is what is written from now on.
    pub(super) fn begin(&mut self) {
        self.newest = (self.kind() == LayoutKind::Series).then(series::Newest::default);
    }

    pub(super) fn kind(&self) -> LayoutKind {
        self.options.layout
    }

    /// Timestamps finer than this are refused.
    pub(super) fn resolution_ns(&self) -> i64 {
        match self.kind() {
            LayoutKind::Series | LayoutKind::Mohawk => MILLI_NS,
            LayoutKind::Rows | LayoutKind::Bucket | LayoutKind::Ticks => 1,
        }
    }

    /// What has to stay the same for a database to be read as it was written.
    pub(super) fn marker(&self) -> Document {
        match self.kind() {
            LayoutKind::Bucket => doc! { "layout": "bucket", "span_ns": self.options.span_ns },
            LayoutKind::Ticks => doc! { "layout": "ticks", "group": i64::from(self.options.group), "clustered": true },
            kind => doc! { "layout": kind.name() },
        }
    }

    /// Commands that make an empty database ready, one after the other; of several ways to the
    /// same end the first that the server takes.
    pub(super) fn preparations(&self) -> Vec<Vec<Document>> {
        match self.kind() {
            LayoutKind::Series => series::preparations(self.options.granularity),
            LayoutKind::Rows => vec![rows::preparations()],
            LayoutKind::Ticks => vec![ticks::preparations()],
            LayoutKind::Bucket | LayoutKind::Mohawk => Vec::new(),
        }
    }

    /// Learns what the database calls series.
    pub(super) fn learn(&self, series: &[(u32, SeriesKey)]) {
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

    /// How many collections Mohawk's layout has.
    pub(super) fn names(&self) -> Vec<String> {
        read(&self.names).clone()
    }

    /// The commands for some samples of a batch, whose ids are numbers. The client has
    /// written `first` samples before, or tried to. What cannot be written is refused.
    /// Mohawk's layout has none.
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
                ticks::commands(batch, which, ticks::Writing { group, first, client }, concern)
            }
            LayoutKind::Mohawk => Ok(Vec::new()),
        }
    }

    /// The samples of one series.
    pub(super) fn samples(&self, number: u32, range: TimeRange) -> Reading {
        let (collection, pipeline) = match self.kind() {
            LayoutKind::Series => (SAMPLES.to_owned(), series::samples(number, range)),
            LayoutKind::Rows => (SAMPLES.to_owned(), rows::samples(number, range)),
            LayoutKind::Bucket => (SAMPLES.to_owned(), bucket::samples(number, range, self.options.span_ns)),
            LayoutKind::Ticks => (SAMPLES.to_owned(), ticks::documents(number, range, self.options.group)),
            LayoutKind::Mohawk => (self.name(number), mohawk::samples(range)),
        };
        Reading { collection, pipeline }
    }

    /// The newest timestamps of series as `{_id, n}`; `None` where there is no one pipeline.
    pub(super) fn newest(&self, numbers: &[u32]) -> Option<Reading> {
        let pipeline = match self.kind() {
            LayoutKind::Series => series::newest(numbers),
            LayoutKind::Bucket => bucket::newest(numbers),
            LayoutKind::Rows | LayoutKind::Ticks | LayoutKind::Mohawk => return None,
        };
        Some(Reading {
            collection: SAMPLES.to_owned(),
            pipeline,
        })
    }

    /// How many samples there are as `{n}`; `None` for Mohawk's layout.
    pub(super) fn count(&self) -> Option<Reading> {
        let each = match self.kind() {
            LayoutKind::Series | LayoutKind::Rows => 1.into(),
            LayoutKind::Bucket | LayoutKind::Ticks => mongodb::bson::Bson::from("$n"),
            LayoutKind::Mohawk => return None,
        };
        Some(Reading {
            collection: SAMPLES.to_owned(),
            pipeline: vec![doc! { "$group": { "_id": null, "n": { "$sum": each } } }],
        })
    }

    pub(super) fn group(&self) -> u32 {
        self.options.group
    }
}

/// Four bytes that no other client of now is likely to have: the ends of what the driver
/// draws for its process, and of what it counts in it.
fn client() -> [u8; 4] {
    let bytes = ObjectId::new().bytes();
    [bytes[7], bytes[8], bytes[10], bytes[11]]
}

/// How a command begins that inserts documents of samples.
fn insertion(concern: &dyn Fn(&mut Writer)) -> impl Fn(&mut Writer) {
    move |writer| {
        writer.text("insert", SAMPLES).flag("ordered", false);
        concern(writer);
        writer.array("documents");
    }
}

/// Milliseconds of a timestamp that has no finer part.
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

/// Bounds of a range as conditions; a range without an end has none there.
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

/// Puts a condition of a field into a filter, if there is one.
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
