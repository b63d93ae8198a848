//! The table entry of ClickHouse, and the conversion of its options.

#[cfg(feature = "clickhouse")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "clickhouse",
    what: "ClickHouse over HTTP, //HOST[:PORT]/DATABASE: one INSERT per batch into a MergeTree, one row per sample",
    durability: "buffered: the server syncs no file of samples",
    feature: Some("clickhouse"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[8123] },
    options: &OPTIONS,
    #[cfg(feature = "clickhouse")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "clickhouse"))]
    make: None,
    #[cfg(feature = "clickhouse")]
    list: Some(client::list),
    #[cfg(not(feature = "clickhouse"))]
    list: None,
    #[cfg(feature = "clickhouse")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "clickhouse"))]
    keeps: super::Keeps::Nothing,
};

static OPTIONS: [OptionInfo; 6] = [
    option("timeout", Kind::Duration, Some("10s"), "how long a request may take"),
    super::CREDENTIALS,
    super::TLS,
    super::TLS_CA,
    option(
        "drop",
        Kind::Word(&["0", "1"]),
        Some("0"),
        "1: remove what an earlier run has left in the database",
    ),
    MAX_SERIES,
];

#[cfg(feature = "clickhouse")]
mod client {
    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::kept::{KeptAtServer, quoted};
    use crate::spec::table::{Keeps, NamedBy, address_of, http};
    use tsb_remote::clickhouse::{self, ClickHouseOptions};
    use tsb_remote::{Address, host_with_port};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(clickhouse::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        clickhouse::series(&address(path, values)?, &options(values)?)
    }

    /// The database.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| clickhouse::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Path('-'),
    };

    fn kept(path: &str, values: &Values<'_>) -> Result<KeptAtServer> {
        // Without credentials, which a command must not show.
        let address = Address::parse("clickhouse", "database", path)?;
        let host = host_with_port(address.hosts(), clickhouse::DEFAULT_PORT);
        let (curl, server) = http::curl(values, &host)?;
        let url = quoted(&format!("{server}/"));
        let statement = quoted(&format!("DROP DATABASE `{}`", address.place()));
        Ok(KeptAtServer {
            kind: "database",
            name: format!("{} at {}", address.place(), address.hosts()),
            remove: Some(format!("{curl} --fail {url} --data-binary {statement}")),
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("clickhouse", "database", path, values)
    }

    fn options(values: &Values<'_>) -> Result<ClickHouseOptions> {
        let default = ClickHouseOptions::default();
        Ok(ClickHouseOptions {
            tls: http::tls(values)?,
            timeout: values.duration_or("timeout", default.timeout)?,
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
