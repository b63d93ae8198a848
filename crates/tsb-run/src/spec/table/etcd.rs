//! The table entry of etcd, and the conversion of its options.

#[cfg(feature = "etcd")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, Place, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "etcd",
    what: "etcd v3, //HOST[:PORT][,HOST...]/PREFIX: a key a sample, a batch as transactions",
    durability: "synced, on more than half of the members",
    feature: Some("etcd"),
    is_wrapper: false,
    place: Place::Address,
    options: &OPTIONS,
    #[cfg(feature = "etcd")]
    make: Some(Make::Store(client::open)),
    #[cfg(not(feature = "etcd"))]
    make: None,
    #[cfg(feature = "etcd")]
    list: Some(client::list),
    #[cfg(not(feature = "etcd"))]
    list: None,
};

static OPTIONS: [OptionInfo; 9] = [
    option(
        "ttl",
        Kind::Duration,
        None,
        "how long samples are kept at least, by leases; without it for ever",
    ),
    option(
        "operations",
        Kind::Count,
        Some("128"),
        "samples of a transaction, at the most; more than 128 if the server was told so",
    ),
    option(
        "parallel",
        Kind::Count,
        Some("16"),
        "transactions of one write that are under way at once",
    ),
    option(
        "timeout",
        Kind::Duration,
        Some("10s"),
        "how long a request may take, with all members that are tried",
    ),
    super::CREDENTIALS,
    super::TLS,
    super::TLS_CA,
    option(
        "drop",
        Kind::Word(&["0", "1"]),
        Some("0"),
        "1: remove what an earlier run has left below the prefix",
    ),
    MAX_SERIES,
];

#[cfg(feature = "etcd")]
mod client {
    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::table::address_of;
    use tsb_remote::Address;
    use tsb_remote::etcd::{self, EtcdOptions};
    use tsb_stores::error::Result;
    use tsb_stores::store::Store;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn Store>> {
        Ok(Box::new(etcd::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        etcd::series(&address(path, values)?, &options(values)?)
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("etcd", "prefix", path, values)
    }

    fn options(values: &Values<'_>) -> Result<EtcdOptions> {
        let default = EtcdOptions::default();
        Ok(EtcdOptions {
            ttl_ns: values.duration_ns("ttl")?,
            operations: values.usize_or("operations", default.operations)?,
            parallel: values.usize_or("parallel", default.parallel)?,
            timeout: values.duration_or("timeout", default.timeout)?,
            tls: values.is_on("tls")?,
            tls_ca: values.word("tls_ca")?.map(Into::into),
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
