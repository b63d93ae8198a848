//! The table entry of Prometheus, and the conversion of its options.

#[cfg(feature = "prometheus")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "prometheus",
    what: "Prometheus, //HOST[:PORT]/PLACE: remote write, read back by remote read; a place is a label",
    durability: "buffered",
    feature: Some("prometheus"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[9090] },
    options: &OPTIONS,
    #[cfg(feature = "prometheus")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "prometheus"))]
    make: None,
    #[cfg(feature = "prometheus")]
    list: Some(client::list),
    #[cfg(not(feature = "prometheus"))]
    list: None,
    #[cfg(feature = "prometheus")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "prometheus"))]
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
        "1: remove what an earlier run has left in the place",
    ),
    MAX_SERIES,
];

#[cfg(feature = "prometheus")]
mod client {
    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::kept::{KeptAtServer, quoted};
    use crate::spec::table::{Keeps, NamedBy, address_of, http};
    use tsb_remote::prometheus::{self, DEFAULT_PORT, PLACE_LABEL, PrometheusOptions};
    use tsb_remote::{Address, host_with_port};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(prometheus::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        prometheus::series(&address(path, values)?, &options(values)?)
    }

    /// The series with the label of the place.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| prometheus::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Path('-'),
    };

    fn kept(path: &str, values: &Values<'_>) -> Result<KeptAtServer> {
        // Without credentials, which a command must not show.
        let address = Address::parse("prometheus", "place", path)?;
        let host = address.hosts();
        let (curl, server) = http::curl(values, &host_with_port(host, DEFAULT_PORT))?;
        let url = format!(
            "{server}/api/v1/admin/tsdb/delete_series?match[]={{{PLACE_LABEL}=\"{}\"}}",
            address.place()
        );
        Ok(KeptAtServer {
            kind: "label",
            name: format!("{PLACE_LABEL}={} at {host}", address.place()),
            remove: Some(format!("{curl} -g --fail-with-body -X POST {}", quoted(&url))),
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("prometheus", "place", path, values)
    }

    fn options(values: &Values<'_>) -> Result<PrometheusOptions> {
        let default = PrometheusOptions::default();
        Ok(PrometheusOptions {
            tls: http::tls(values)?,
            timeout: values.duration_or("timeout", default.timeout)?,
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
