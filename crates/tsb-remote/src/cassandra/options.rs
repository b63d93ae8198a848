//! The options of a Cassandra client.

use std::time::Duration;

use scylla::statement::Consistency as Level;
use tsb_core::time::SECOND_NS;

/// The length of a bucket that nobody has chosen.
const DAY_NS: i64 = 86_400 * SECOND_NS as i64;

/// How many replicas answer before a request has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Consistency {
    /// One.
    One,
    /// Two.
    Two,
    /// Three.
    Three,
    /// More than half of them.
    Quorum,
    /// All.
    All,
}

impl Consistency {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::One, Self::Two, Self::Three, Self::Quorum, Self::All];

    /// Cassandra's name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
            Self::Three => "three",
            Self::Quorum => "quorum",
            Self::All => "all",
        }
    }

    /// From that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// The number of nodes that have answered, of `replicas` that hold each row.
    pub const fn copies(self, replicas: u32) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
            Self::Quorum => replicas / 2 + 1,
            Self::All => replicas,
        }
    }

    pub(super) const fn level(self) -> Level {
        match self {
            Self::One => Level::One,
            Self::Two => Level::Two,
            Self::Three => Level::Three,
            Self::Quorum => Level::Quorum,
            Self::All => Level::All,
        }
    }
}

/// What one request of a write holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestShape {
    /// One row.
    Row,
    /// Rows of one partition, as an unlogged batch.
    Partition,
    /// Rows of any partitions, as an unlogged batch.
    Batch,
}

impl RequestShape {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Row, Self::Partition, Self::Batch];

    /// The word for it in a spec.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::Partition => "partition",
            Self::Batch => "batch",
        }
    }

    /// From that word.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.name() == name)
    }
}

/// All options except the address, whose place is a keyspace.
#[derive(Clone, Debug)]
pub struct CassandraOptions {
    /// Time in one partition of a series, in nanoseconds; at least 1.
    pub bucket_ns: i64,
    /// What one request of a write holds.
    pub write: RequestShape,
    /// Maximum number of rows per request; 1 to 65,535.
    pub rows: usize,
    /// How many replicas acknowledge a write.
    pub consistency: Consistency,
    /// How many replicas answer a query.
    pub read_consistency: Consistency,
    /// Number of replicas of each row, if the client makes the keyspace.
    pub replicas: usize,
    /// Deadline of a write or of a page of a query, and of connecting.
    pub timeout: Duration,
    /// Maximum number of requests that one write has in flight; at least 1.
    pub requests: usize,
    /// Whether to remove what an earlier run left in the keyspace.
    pub drop: bool,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for CassandraOptions {
    fn default() -> Self {
        Self {
            bucket_ns: DAY_NS,
            write: RequestShape::Batch,
            rows: 100,
            consistency: Consistency::Quorum,
            read_consistency: Consistency::Quorum,
            replicas: 1,
            timeout: Duration::from_secs(10),
            requests: 128,
            drop: false,
            max_series: 1_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_says_how_many_nodes_have_a_row() {
        let copies = |name| Consistency::parse(name).map(|level| level.copies(3));
        assert_eq!(
            ["one", "two", "three", "quorum", "all", "any"].map(copies),
            [Some(1), Some(2), Some(3), Some(2), Some(3), None]
        );
    }
}
