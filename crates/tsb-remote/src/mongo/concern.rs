//! Write concerns: what an ack waits for, and which durability it has.

use std::time::Duration;

use mongodb::bson::{Document, doc};
use tsb_core::Durability;

use super::bson::Writer;

/// The members that must have a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Members {
    /// This many, in [1, 50].
    Count(u32),
    /// More than half of them.
    Majority,
}

impl Members {
    /// From the value of the option `w`: a number, or `majority`.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "majority" {
            return Some(Self::Majority);
        }
        let members = text.parse().ok().filter(|members| (1..=50).contains(members));
        members.map(Self::Count)
    }
}

/// A write concern. `w=0` is not offered: without an answer it is unknown what arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteConcern {
    /// The members that must have it.
    pub members: Members,
    /// Whether their journals must be synced.
    pub journal: bool,
}

impl Default for WriteConcern {
    /// `w=1` without `j`: what a driver of the time of the four experiments asked for.
    fn default() -> Self {
        Self {
            members: Members::Count(1),
            journal: false,
        }
    }
}

impl WriteConcern {
    /// The durability level of an ack.
    pub(super) fn durability(self) -> Durability {
        if self.journal || self.members == Members::Majority {
            Durability::Synced
        } else {
            Durability::Volatile
        }
    }

    /// The number of copies, in a replica set of `members` members.
    pub(super) fn copies(self, members: u32) -> u32 {
        match self.members {
            Members::Count(count) => count,
            Members::Majority => members / 2 + 1,
        }
    }

    /// The same members, with synced journals.
    pub(super) fn journaled(self) -> Self {
        Self { journal: true, ..self }
    }

    /// Writes it as the element `writeConcern` of a command.
    pub(super) fn write(self, into: &mut Writer, timeout: Duration) {
        into.document("writeConcern");
        match self.members {
            Members::Count(members) => into.int("w", members as i32),
            Members::Majority => into.text("w", "majority"),
        };
        into.flag("j", self.durability() == Durability::Synced)
            .long("wtimeout", timeout.as_millis() as i64)
            .end();
    }

    /// The write concern as a document, for commands built with `doc!`.
    pub(super) fn document(self, timeout: Duration) -> Document {
        let (wtimeout, j) = (timeout.as_millis() as i64, self.durability() == Durability::Synced);
        match self.members {
            Members::Count(members) => doc! { "w": members as i32, "j": j, "wtimeout": wtimeout },
            Members::Majority => doc! { "w": "majority", "j": j, "wtimeout": wtimeout },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_copies_follow_from_w_and_j() {
        let of = |w: &str, journal| WriteConcern {
            members: Members::parse(w).unwrap(),
            journal,
        };
        let cases = [
            (of("1", false), Durability::Volatile, 1),
            (of("1", true), Durability::Synced, 1),
            (of("3", false), Durability::Volatile, 3),
            (of("majority", false), Durability::Synced, 2),
        ];
        for (write_concern, level, copies) in cases {
            assert_eq!(
                (write_concern.durability(), write_concern.copies(3)),
                (level, copies),
                "{write_concern:?}"
            );
        }
        for wrong in ["0", "51", "-1", "most", ""] {
            assert_eq!(Members::parse(wrong), None, "{wrong}");
        }
    }
}
