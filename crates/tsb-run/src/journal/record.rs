//! The records of a run's journal, and their form as lines.
//!
//! A line is `tsbj1 NONCE SEQUENCE CHECKSUM JSON`. Pure: no I/O.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tsb_core::Durability;
use tsb_core::report::RejectedStretch;

/// The start of every line: the format and its version.
pub(super) const MAGIC: &str = "tsbj1";

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// Begins a run: all records up to the next of this kind belong to it.
    Run(Box<Header>),
    /// Samples that the store refused since the last record of this kind.
    Refused {
        /// The refused samples, by series and timestamp.
        samples: Vec<RejectedStretch>,
    },
    /// What has been acknowledged so far. Supersedes the previous record of this kind of the
    /// same run.
    Reached(Reached),
    /// The report of all runs of this journal is complete. Ends the journal.
    #[serde(rename = "work_end")]
    Complete {},
}

/// The plan of a run, and the durability that its store promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// `run` or `emit`.
    pub command: String,
    /// The version of the program.
    pub tsb_version: String,
    /// Process id.
    pub pid: u32,
    /// The kernel's id of this boot: it differs after a power cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The timestamp of the start, in nanoseconds since the Unix epoch.
    pub base_ns: i64,
    /// Samples before this time, in nanoseconds since the Unix epoch, are of earlier runs; absent
    /// if the place was empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<i64>,
    /// The name of the store or server.
    pub store: String,
    /// The complete plan, with only the store of this run.
    pub plan: Value,
    /// The range of groups of each emitting thread: first, and one past the last.
    pub workers: Vec<(u32, u32)>,
    /// Durability level of every acknowledgement; `unconfirmed` for a server, whose own
    /// documentation says what its answer guarantees.
    pub acknowledges: Durability,
    /// The highest level that the store reaches.
    pub reaches: Durability,
}

/// What has been acknowledged up to one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Time since the start, in nanoseconds.
    pub at_ns: u64,
    /// Samples sent by then.
    pub sent: u64,
    /// The operations that have reached each level, lowest first.
    pub levels: Vec<Claim>,
    /// Samples that the store refused and no record names.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_unnamed: u64,
}

/// The operations that have reached one level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The level.
    pub level: Durability,
    /// Number of operations per emitting thread that have this level. They are the first of its
    /// groups, in the order of the roster.
    pub operations: Vec<u64>,
    /// Upper bound of the samples in these operations that were not acknowledged and that no
    /// record names.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nameless: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn checksum(nonce: u64, sequence: u64, json: &str) -> u32 {
    crc32fast::hash(format!("{nonce:016x} {sequence} {json}").as_bytes())
}

impl Record {
    /// The record as a line, including the line feed.
    ///
    /// # Errors
    /// If it cannot be serialized, which is a bug.
    pub fn line(&self, nonce: u64, sequence: u64) -> Result<String, serde_json::Error> {
        let json = serde_json::to_string(self)?;
        let sum = checksum(nonce, sequence, &json);
        Ok(format!("{MAGIC} {nonce:016x} {sequence} {sum:08x} {json}\n"))
    }

    /// Parses a line without its line feed into nonce, sequence number and record; `None` if it
    /// is torn or damaged.
    pub fn of_line(line: &[u8]) -> Option<(u64, u64, Self)> {
        let line = std::str::from_utf8(line).ok()?;
        let mut words = line.splitn(5, ' ');
        if words.next()? != MAGIC {
            return None;
        }
        let nonce = u64::from_str_radix(words.next()?, 16).ok()?;
        let sequence: u64 = words.next()?.parse().ok()?;
        let sum = u32::from_str_radix(words.next()?, 16).ok()?;
        let json = words.next()?;
        if sum != checksum(nonce, sequence, json) {
            return None;
        }
        Some((nonce, sequence, serde_json::from_str(json).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(operations: u64) -> Record {
        Record::Reached(Reached {
            at_ns: 1_000,
            sent: 54,
            levels: vec![Claim {
                level: Durability::Synced,
                operations: vec![operations, 0],
                nameless: 0,
            }],
            refused_unnamed: 0,
        })
    }

    #[test]
    fn a_record_comes_back_from_its_line() {
        for record in [reached(7), Record::Complete {}, Record::Refused { samples: Vec::new() }] {
            let line = record.line(0xabc, 12).unwrap();
            let (nonce, sequence, read) = Record::of_line(line.trim_end().as_bytes()).unwrap();
            assert_eq!((nonce, sequence, read), (0xabc, 12, record));
        }
    }

    #[test]
    fn a_line_that_was_changed_anywhere_or_cut_is_none() {
        let line = reached(7).line(1, 2).unwrap().trim_end().as_bytes().to_vec();
        for at in 0..line.len() {
            assert!(Record::of_line(&line[..at]).is_none(), "cut at {at}");
            let mut damaged = line.clone();
            damaged[at] ^= 1;
            // A hexadecimal digit in the other case is the same number.
            assert!(Record::of_line(&damaged).is_none(), "damaged at {at}");
        }
        assert!(Record::of_line(&line).is_some());
    }
}
