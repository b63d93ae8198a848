//! The records of a journal, and the lines that they are written as.
//!
//! A line is `tsbj1 NONCE SEQUENCE CHECKSUM JSON`. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tsb_core::Durability;
use tsb_core::report::RejectedStretch;

/// What every line begins with: the format and its version.
pub(super) const MAGIC: &str = "tsbj1";

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// A run begins: everything that follows is of it, up to the next.
    Run(Box<Header>),
    /// Samples that the store refused since the last record of this kind.
    Refused {
        /// By name.
        samples: Vec<RejectedStretch>,
    },
    /// What has been acknowledged by now. It replaces the one before.
    Reached(Reached),
    /// The run is over, and its report is whole.
    Over {},
}

/// What a run was to do, and what its store promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// `run` or `emit`.
    pub command: String,
    /// The version of the program.
    pub tsb_version: String,
    /// The process.
    pub pid: u32,
    /// The boot of the machine, as the kernel names it: after a power cut it has another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The timestamp of the start, in nanoseconds since the Unix epoch.
    pub base_ns: i64,
    /// The store or the server, as it names itself.
    pub store: String,
    /// The whole plan, with the one store of this run.
    pub plan: Value,
    /// The groups of each emitting thread: the first, and the one behind the last.
    pub workers: Vec<(u32, u32)>,
    /// The level of every acknowledgement; `unconfirmed` of a server, whose own documents say
    /// what its answer is worth.
    pub acknowledges: Durability,
    /// The highest level that the store reaches.
    pub reaches: Durability,
}

/// What has been acknowledged by some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Time since the start, in nanoseconds.
    pub at_ns: u64,
    /// Samples sent by then.
    pub sent: u64,
    /// What has reached each level, the lowest first.
    pub levels: Vec<Claim>,
    /// Samples that the store refused and that no record names.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_unnamed: u64,
}

/// What has reached one level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The level.
    pub level: Durability,
    /// For each emitting thread, the number of operations that have this level: the first ones
    /// of its groups, in the order of the roster.
    pub operations: Vec<u64>,
    /// Samples in these that were not acknowledged, at the most, and that no record names.
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
    /// The record as a line, with its end.
    ///
    /// # Errors
    /// When it has no JSON form, which is a bug.
    pub fn line(&self, nonce: u64, sequence: u64) -> Result<String, serde_json::Error> {
        let json = serde_json::to_string(self)?;
        let sum = checksum(nonce, sequence, &json);
        Ok(format!("{MAGIC} {nonce:016x} {sequence} {sum:08x} {json}\n"))
    }

    /// The record in a line without its end, with nonce and sequence number; `None`: it is
    /// torn or damaged.
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
        for record in [reached(7), Record::Over {}, Record::Refused { samples: Vec::new() }] {
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
