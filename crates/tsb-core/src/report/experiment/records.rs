//! What only the experiment of records measures: a batch of records by requests in flight, size and
//! number of nodes, and a heartbeat by number of apps.

mod figures;

use serde::{Deserialize, Serialize};

pub use figures::{BatchFigures, SHORT_SECONDS, Spread};

/// Everything that `tsb reproduce records` reports.
pub type Reproduction = super::Reproduction<RecordsPlan, RecordsDetails>;

/// What the experiment of records can be asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordsPlan {
    /// Seed of the records, of the identifiers of apps, and of the order of the rounds.
    pub seed: u64,
    /// The stores of keys.
    pub stores: Vec<String>,
    /// Numbers of requests in flight, in ascending order.
    pub in_flight: Vec<usize>,
    /// Sizes of a record in bytes, in ascending order.
    pub sizes: Vec<usize>,
    /// Records of a batch.
    pub records: usize,
    /// Numbers of apps of a heartbeat, in ascending order.
    pub apps: Vec<usize>,
    /// Requests in flight while a heartbeat is written.
    pub apps_in_flight: usize,
    /// Samples of each cell: one per round.
    pub samples: u32,
    /// A sample that would probably end later than this many seconds after the start is left out;
    /// absent where there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_seconds: Option<u64>,
}

/// The measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordsDetails {
    /// The stores that could be opened.
    pub stores: Vec<TestedStore>,
    /// Each batch of records, in the order in which they were written.
    pub samples: Vec<RecordSample>,
    /// The samples of each store, number of requests in flight and size together.
    pub cells: Vec<RecordCell>,
    /// Each heartbeat, in the order in which they were written.
    pub app_samples: Vec<AppSample>,
    /// The samples of each store and number of apps together.
    pub app_cells: Vec<AppCell>,
    /// What did not take part, and why, as sentences.
    pub absent: Vec<String>,
    /// Samples that could not be taken, as sentences.
    pub failures: Vec<String>,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

impl RecordsDetails {
    /// Whether every read returned what was written, and nothing was left by a deletion.
    pub fn is_right(&self) -> bool {
        self.samples.iter().all(|sample| sample.read.is_right()) && self.app_samples.iter().all(AppSample::is_right)
    }

    /// What was wrong, as sentences.
    pub fn wrong(&self) -> impl Iterator<Item = String> {
        let records = self.samples.iter().filter(|sample| !sample.read.is_right());
        let records = records.map(|sample| {
            format!(
                "{}, {} in flight, {} bytes, round {}: {}",
                sample.store,
                sample.in_flight,
                sample.size,
                sample.round + 1,
                sample.read.about()
            )
        });
        let apps = self.app_samples.iter().filter(|sample| !sample.is_right());
        let apps = apps.map(|sample| {
            format!(
                "{}, {} apps, round {}: {}; {} keys left by the deletion",
                sample.store,
                sample.apps,
                sample.round + 1,
                sample.read.about(),
                sample.left
            )
        });
        records.chain(apps)
    }
}

/// A store that took part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedStore {
    /// Its name in the plan.
    pub store: String,
    /// Number of nodes: of the hosts in its address, or 1 for a store in this process.
    pub nodes: usize,
    /// The level that every acknowledged key has.
    pub durability: String,
    /// Number of machines on which it has that level.
    pub copies: u32,
    /// Whether it shares this machine with the client.
    pub is_local: bool,
    /// How a batch becomes requests, as a sentence.
    pub requests: String,
}

/// What a read returned, held against what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedRead {
    /// Keys that were written.
    pub expected: usize,
    /// Keys that were returned: what the original counts.
    pub found: usize,
    /// Written keys that were not returned.
    pub missing: usize,
    /// Keys that were returned with another value than the written one.
    pub wrong: usize,
    /// Keys that were returned and not written, or returned a second time.
    pub foreign: usize,
}

impl CheckedRead {
    /// Whether each key was returned once with its value, and no other key was.
    pub const fn is_right(&self) -> bool {
        self.found == self.expected && self.missing + self.wrong + self.foreign == 0
    }

    fn about(&self) -> String {
        format!(
            "{} keys of {} returned, {} missing, {} with a wrong value, {} not written",
            self.found, self.expected, self.missing, self.wrong, self.foreign
        )
    }
}

/// One batch of records in a fresh place, and the read after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordSample {
    /// The store.
    pub store: String,
    /// Requests in flight.
    pub in_flight: usize,
    /// Size of a record in bytes.
    pub size: usize,
    /// The round, from 0.
    pub round: u32,
    /// From the first request to the last acknowledgement, in seconds.
    pub write_seconds: f64,
    /// Duration of the read of all records, in seconds.
    pub read_seconds: f64,
    /// What the read returned.
    pub read: CheckedRead,
}

/// One heartbeat in a fresh place, the read after it, and its deletion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppSample {
    /// The store.
    pub store: String,
    /// Number of apps, of two instances each.
    pub apps: usize,
    /// The round, from 0.
    pub round: u32,
    /// From the first request to the last acknowledgement, in seconds.
    pub write_seconds: f64,
    /// Duration of the read of all instances, in seconds.
    pub read_seconds: f64,
    /// Duration of the deletion of all instances, in seconds.
    pub delete_seconds: f64,
    /// What the read returned.
    pub read: CheckedRead,
    /// Instances that were there after the deletion.
    pub left: usize,
}

impl AppSample {
    /// Whether every instance was read with its value, and none was left by the deletion.
    pub const fn is_right(&self) -> bool {
        self.read.is_right() && self.left == 0
    }
}

/// The samples of one store, number of requests in flight and size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordCell {
    /// The store.
    pub store: String,
    /// Requests in flight.
    pub in_flight: usize,
    /// Size of a record in bytes.
    pub size: usize,
    /// The writes; absent without a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<BatchFigures>,
    /// The reads; absent without a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<BatchFigures>,
    /// Number of samples.
    pub samples: usize,
    /// Samples of which the read returned exactly what was written.
    pub samples_right: usize,
}

/// The samples of one store and number of apps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppCell {
    /// The store.
    pub store: String,
    /// Number of apps, of two instances each.
    pub apps: usize,
    /// Duration of the write, in seconds; absent without a sample, as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_seconds: Option<Spread>,
    /// Duration of the read, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_seconds: Option<Spread>,
    /// Duration of the deletion, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_seconds: Option<Spread>,
    /// Number of samples.
    pub samples: usize,
    /// Samples of which the read returned exactly what was written, and the deletion left nothing.
    pub samples_right: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_wrong_is_said_and_a_count_alone_is_not_enough() {
        let read = CheckedRead {
            expected: 512,
            found: 512,
            ..CheckedRead::default()
        };
        let sample = |read| RecordSample {
            store: "memory:".to_owned(),
            in_flight: 5,
            size: 128,
            read,
            ..RecordSample::default()
        };
        let mut details = RecordsDetails {
            samples: vec![sample(read)],
            ..RecordsDetails::default()
        };
        assert!(details.is_right() && details.wrong().next().is_none());
        details.samples.push(sample(CheckedRead { wrong: 1, ..read }));
        details.app_samples.push(AppSample {
            store: "sqlite:".to_owned(),
            apps: 30,
            left: 2,
            ..AppSample::default()
        });
        assert!(!details.is_right());
        let wrong: Vec<String> = details.wrong().collect();
        assert_eq!(
            wrong,
            [
                "memory:, 5 in flight, 128 bytes, round 1: 512 keys of 512 returned, 0 missing, 1 with a wrong value, \
                 0 not written",
                "sqlite:, 30 apps, round 1: 0 keys of 0 returned, 0 missing, 0 with a wrong value, 0 not written; 2 keys \
                 left by the deletion"
            ]
        );
    }
}
