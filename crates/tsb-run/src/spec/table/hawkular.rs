//! The table entry of Hawkular and Mohawk, and the conversion of its options.

#[cfg(feature = "hawkular")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "hawkular",
    what: "Hawkular Metrics or Mohawk over HTTP, //HOST[:PORT]/TENANT: one request in JSON per batch, one gauge per series",
    durability: "Hawkular: volatile; Mohawk: unconfirmed, from 0.33 on volatile, or synced in SQLite",
    feature: Some("hawkular"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[8080] },
    options: &OPTIONS,
    #[cfg(feature = "hawkular")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "hawkular"))]
    make: None,
    #[cfg(feature = "hawkular")]
    list: Some(client::list),
    #[cfg(not(feature = "hawkular"))]
    list: None,
    #[cfg(feature = "hawkular")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "hawkular"))]
    keeps: super::Keeps::Nothing,
};

static OPTIONS: [OptionInfo; 11] = [
    option(
        "api",
        Kind::Word(&["raw", "data"]),
        Some("raw"),
        "paths: gauges/raw, and one request for many series when reading; or gauges/data of older servers, one per series",
    ),
    option(
        "kept",
        Kind::Word(&["exact", "last-of-slot", "first-of-slot", "decimals", "copies"]),
        None,
        "what the server keeps of samples (docs/formats/hawkular-client.md); without it, what its status says",
    ),
    option(
        "slot",
        Kind::Duration,
        Some("30s"),
        "length of a slot of Mohawk's memory",
    ),
    option(
        "retention",
        Kind::Duration,
        None,
        "how long the server keeps samples; without it, 7d for Hawkular and memory of Mohawk 0.15, 1d for later memory, else for ever",
    ),
    option("samples", Kind::Count, Some("10000"), "most samples per request"),
    option("timeout", Kind::Duration, Some("10s"), "how long a request may take"),
    super::CREDENTIALS,
    super::TLS,
    super::TLS_CA,
    option(
        "drop",
        Kind::Word(&["0", "1"]),
        Some("0"),
        "1: delete what an earlier run has left in the tenant",
    ),
    MAX_SERIES,
];

#[cfg(feature = "hawkular")]
mod client {
    use std::time::Duration;

    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::kept::KeptAtServer;
    use crate::spec::table::{Keeps, NamedBy, address_of, http};
    use tsb_remote::Address;
    use tsb_remote::hawkular::{self, HawkularApi, HawkularOptions, KeptSamples};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(hawkular::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        hawkular::series(&address(path, values)?, &options(values)?)
    }

    /// The tenant.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| hawkular::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Path('-'),
    };

    fn kept(path: &str, _: &Values<'_>) -> Result<KeptAtServer> {
        // Without credentials, which a command must not show.
        let address = Address::parse("hawkular", "tenant", path)?;
        Ok(KeptAtServer {
            kind: "tenant",
            name: format!("{} at {}", address.place(), address.hosts()),
            // A request for each gauge, and another way for each server.
            remove: None,
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("hawkular", "tenant", path, values)
    }

    fn options(values: &Values<'_>) -> Result<HawkularOptions> {
        let default = HawkularOptions::default();
        let retention_ns = values.duration_ns("retention")?;
        Ok(HawkularOptions {
            api: match values.word("api")?.as_deref() {
                Some("data") => HawkularApi::Data,
                _ => HawkularApi::Raw,
            },
            kept: match values.word("kept")?.as_deref() {
                Some("exact") => Some(KeptSamples::Exact),
                Some("last-of-slot") => Some(KeptSamples::LastOfSlot),
                Some("first-of-slot") => Some(KeptSamples::FirstOfSlot),
                Some("decimals") => Some(KeptSamples::Decimals),
                Some("copies") => Some(KeptSamples::Copies),
                _ => None,
            },
            slot: values.duration_or("slot", default.slot)?,
            retention: retention_ns.map(|ns| Duration::from_nanos(ns as u64)),
            samples: values.usize_or("samples", default.samples)?,
            tls: http::tls(values)?,
            timeout: values.duration_or("timeout", default.timeout)?,
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
