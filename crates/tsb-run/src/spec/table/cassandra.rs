//! The table entry of Cassandra, and the conversion of its options.

#[cfg(feature = "cassandra")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "cassandra",
    what: "Cassandra by CQL, //HOST[:PORT][,HOST...]/KEYSPACE: one row per sample in partitions of a series and a day",
    durability: "as the server's commitlog_sync says: volatile (periodic), or synced (batch, group)",
    feature: Some("cassandra"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[9042] },
    options: &OPTIONS,
    #[cfg(feature = "cassandra")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "cassandra"))]
    make: None,
    #[cfg(feature = "cassandra")]
    list: Some(client::list),
    #[cfg(not(feature = "cassandra"))]
    list: None,
    #[cfg(feature = "cassandra")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "cassandra"))]
    keeps: super::Keeps::Nothing,
};

static OPTIONS: [OptionInfo; 11] = [
    option(
        "bucket",
        Kind::Duration,
        Some("1d"),
        "time in one partition of a series",
    ),
    option(
        "write",
        Kind::Word(&["row", "partition", "batch"]),
        Some("batch"),
        "what a request holds: one row, an unlogged batch of one partition, or of any",
    ),
    option("rows", Kind::Count, Some("100"), "rows per request, at the most"),
    option(
        "consistency",
        Kind::Word(&["one", "two", "three", "quorum", "all"]),
        Some("quorum"),
        "how many replicas acknowledge a write",
    ),
    option(
        "read_consistency",
        Kind::Word(&["one", "two", "three", "quorum", "all"]),
        Some("quorum"),
        "how many replicas answer a query",
    ),
    option(
        "replicas",
        Kind::Count,
        Some("1"),
        "replicas of each row, in a keyspace that the run makes",
    ),
    option(
        "timeout",
        Kind::Duration,
        Some("10s"),
        "how long a write or a page of a query may take",
    ),
    option(
        "requests",
        Kind::Count,
        Some("128"),
        "requests in flight of one write, at the most",
    ),
    super::CREDENTIALS,
    option(
        "drop",
        Kind::Word(&["0", "1"]),
        Some("0"),
        "1: remove what an earlier run has left in the keyspace",
    ),
    MAX_SERIES,
];

#[cfg(feature = "cassandra")]
mod client {
    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::kept::{KeptAtServer, quoted};
    use crate::spec::table::{Keeps, NamedBy, address_of};
    use tsb_remote::cassandra::{self, CassandraOptions, Consistency, RequestShape};
    use tsb_remote::{Address, host_with_port};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(cassandra::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        cassandra::series(&address(path, values)?, &options(values)?)
    }

    /// The keyspace.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| cassandra::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Path('_'),
    };

    fn kept(path: &str, _: &Values<'_>) -> Result<KeptAtServer> {
        // Without credentials, which a command must not show.
        let address = Address::parse("cassandra", "keyspace", path)?;
        let first = address.hosts().split(',').next().unwrap_or_default();
        let host = host_with_port(first, cassandra::DEFAULT_PORT);
        let (host, port) = host.rsplit_once(':').unwrap_or((&host, ""));
        Ok(KeptAtServer {
            kind: "keyspace",
            name: format!("{} at {}", address.place(), address.hosts()),
            remove: Some(format!(
                "cqlsh {} {port} -e {}",
                quoted(host),
                quoted(&cassandra::drop_statement(address.place()))
            )),
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("cassandra", "keyspace", path, values)
    }

    fn options(values: &Values<'_>) -> Result<CassandraOptions> {
        let default = CassandraOptions::default();
        let level = |name, default| -> Result<Consistency> {
            let level = values.word(name)?.and_then(|level| Consistency::parse(&level));
            Ok(level.unwrap_or(default))
        };
        Ok(CassandraOptions {
            bucket_ns: values.duration_ns("bucket")?.unwrap_or(default.bucket_ns),
            write: values
                .word("write")?
                .and_then(|shape| RequestShape::parse(&shape))
                .unwrap_or(default.write),
            rows: values.usize_or("rows", default.rows)?,
            consistency: level("consistency", default.consistency)?,
            read_consistency: level("read_consistency", default.read_consistency)?,
            replicas: values.usize_or("replicas", default.replicas)?,
            timeout: values.duration_or("timeout", default.timeout)?,
            requests: values.usize_or("requests", default.requests)?,
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
