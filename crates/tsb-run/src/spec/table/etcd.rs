//! The table entry of etcd, and the conversion of its options.

#[cfg(feature = "etcd")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "etcd",
    what: "etcd v3, //HOST[:PORT][,HOST...]/PREFIX: a key a sample, a batch as transactions",
    durability: "synced, on more than half of the members",
    feature: Some("etcd"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[2379] },
    options: &OPTIONS,
    #[cfg(feature = "etcd")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "etcd"))]
    make: None,
    #[cfg(feature = "etcd")]
    list: Some(client::list),
    #[cfg(not(feature = "etcd"))]
    list: None,
    #[cfg(feature = "etcd")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "etcd"))]
    keeps: super::Keeps::Nothing,
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

#[cfg(feature = "hosts")]
pub(in crate::spec) use client::open_keys;

#[cfg(feature = "etcd")]
mod client {
    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::kept::{KeptAtServer, quoted};
    use crate::spec::table::{Keeps, NamedBy, address_of};
    use tsb_remote::etcd::{self, EtcdOptions};
    use tsb_remote::{Address, host_with_port};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(etcd::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        etcd::series(&address(path, values)?, &options(values)?)
    }

    /// The prefix as a store of keys, which share a request of up to 128.
    #[cfg(feature = "hosts")]
    pub(in crate::spec) fn open_keys(
        path: &str,
        values: &Values<'_>,
    ) -> Result<std::sync::Arc<dyn tsb_stores::keyed::KeyedStore>> {
        let keys = etcd::open_keyed(&address(path, values)?, &options(values)?)?;
        Ok(std::sync::Arc::new(keys))
    }

    /// The keys below the prefix.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| etcd::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Path('-'),
    };

    fn kept(path: &str, values: &Values<'_>) -> Result<KeptAtServer> {
        // Without credentials, which a command must not show.
        let address = Address::parse("etcd", "prefix", path)?;
        let options = options(values)?;
        let scheme = if options.tls { "https://" } else { "" };
        let endpoint = |host: &str| format!("{scheme}{}", host_with_port(host, etcd::DEFAULT_PORT));
        let endpoints: Vec<String> = address.hosts().split(',').map(endpoint).collect();
        let authority = options.tls_ca.filter(|_| options.tls);
        let authority = authority.map_or(String::new(), |file| {
            format!(" --cacert {}", quoted(&file.display().to_string()))
        });
        Ok(KeptAtServer {
            kind: "prefix",
            name: format!("{} at {}", address.place(), address.hosts()),
            remove: Some(format!(
                "etcdctl --endpoints {}{authority} del --prefix {}",
                quoted(&endpoints.join(",")),
                quoted(&format!("{}/", address.place()))
            )),
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("etcd", "prefix", path, values)
    }

    fn options(values: &Values<'_>) -> Result<EtcdOptions> {
        let default = EtcdOptions::default();
        let (tls, tls_ca) = values.tls()?;
        Ok(EtcdOptions {
            ttl_ns: values.duration_ns("ttl")?,
            operations: values.usize_or("operations", default.operations)?,
            parallel: values.usize_or("parallel", default.parallel)?,
            timeout: values.duration_or("timeout", default.timeout)?,
            tls,
            tls_ca,
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
