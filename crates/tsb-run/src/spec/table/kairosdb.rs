//! The table entry of KairosDB, and the conversion of its options.

#[cfg(feature = "kairosdb")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "kairosdb",
    what: "KairosDB over HTTP, //HOST[:PORT]/PREFIX: a batch as one request in JSON, a metric per name; on H2 or Cassandra",
    durability: "volatile, and visible a moment later: the server answers when samples are in its queue; with put= nothing is acknowledged",
    feature: Some("kairosdb"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[8080] },
    options: &OPTIONS,
    #[cfg(feature = "kairosdb")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "kairosdb"))]
    make: None,
    #[cfg(feature = "kairosdb")]
    list: Some(client::list),
    #[cfg(not(feature = "kairosdb"))]
    list: None,
    #[cfg(feature = "kairosdb")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "kairosdb"))]
    keeps: super::Keeps::Nothing,
};

static OPTIONS: [OptionInfo; 7] = [
    super::PUT,
    option("timeout", Kind::Duration, Some("10s"), "how long a request may take"),
    super::CREDENTIALS,
    super::TLS,
    super::TLS_CA,
    option(
        "drop",
        Kind::Word(&["0", "1"]),
        Some("0"),
        "1: delete what an earlier run has left in metrics with the prefix",
    ),
    MAX_SERIES,
];

#[cfg(feature = "kairosdb")]
mod client {
    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::kept::KeptAtServer;
    use crate::spec::table::{Keeps, NamedBy, address_of, http};
    use tsb_remote::Address;
    use tsb_remote::kairosdb::{self, KairosDbOptions};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(kairosdb::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        kairosdb::series(&address(path, values)?, &options(values)?)
    }

    /// The metrics.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| kairosdb::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Path('-'),
    };

    fn kept(path: &str, _: &Values<'_>) -> Result<KeptAtServer> {
        // Without credentials, which a command must not show.
        let address = Address::parse("kairosdb", "prefix", path)?;
        Ok(KeptAtServer {
            kind: "metrics",
            name: format!("{}.* at {}", address.place(), address.hosts()),
            // A request for each metric.
            remove: None,
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("kairosdb", "prefix", path, values)
    }

    fn options(values: &Values<'_>) -> Result<KairosDbOptions> {
        let default = KairosDbOptions::default();
        Ok(KairosDbOptions {
            put: values.word("put")?,
            tls: http::tls(values)?,
            timeout: values.duration_or("timeout", default.timeout)?,
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
