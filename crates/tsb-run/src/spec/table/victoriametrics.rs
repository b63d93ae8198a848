//! The table entry of VictoriaMetrics, and the conversion of its options.

#[cfg(feature = "victoriametrics")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "victoriametrics",
    what: "VictoriaMetrics (one node) over HTTP, //HOST[:PORT]/LABEL: the text format, one line per sample",
    durability: "volatile; a flush makes it synced, by a snapshot; with put= nothing is acknowledged",
    feature: Some("victoriametrics"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[8428] },
    options: &OPTIONS,
    #[cfg(feature = "victoriametrics")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "victoriametrics"))]
    make: None,
    #[cfg(feature = "victoriametrics")]
    list: Some(client::list),
    #[cfg(not(feature = "victoriametrics"))]
    list: None,
    #[cfg(feature = "victoriametrics")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "victoriametrics"))]
    keeps: super::Keeps::Nothing,
};

static OPTIONS: [OptionInfo; 8] = [
    option("lines", Kind::Count, Some("10000"), "most samples per request"),
    super::PUT,
    option("timeout", Kind::Duration, Some("10s"), "how long a request may take"),
    super::CREDENTIALS,
    super::TLS,
    super::TLS_CA,
    option(
        "drop",
        Kind::Word(&["0", "1"]),
        Some("0"),
        "1: delete what an earlier run has left under the label",
    ),
    MAX_SERIES,
];

#[cfg(feature = "victoriametrics")]
mod client {
    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::kept::{KeptAtServer, quoted};
    use crate::spec::table::{Keeps, NamedBy, address_of, http};
    use tsb_remote::victoriametrics::{self, VictoriaOptions};
    use tsb_remote::{Address, host_with_port};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(victoriametrics::open(
            &address(path, values)?,
            &options(values)?,
        )?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        victoriametrics::series(&address(path, values)?, &options(values)?)
    }

    /// The series under the label.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| victoriametrics::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Path('-'),
    };

    fn kept(path: &str, values: &Values<'_>) -> Result<KeptAtServer> {
        // Without credentials, which a command must not show.
        let address = Address::parse("victoriametrics", "label", path)?;
        let host = host_with_port(address.hosts(), victoriametrics::DEFAULT_PORT);
        let (curl, server) = http::curl(values, &host)?;
        let url = |path: &str| quoted(&format!("{server}{path}"));
        let selector = quoted(&format!("match[]={{tsb=\"{}\"}}", address.place()));
        // What was written last is not deleted before it is visible.
        let (flush, delete) = (url("/internal/force_flush"), url("/api/v1/admin/tsdb/delete_series"));
        Ok(KeptAtServer {
            kind: "label",
            name: format!("{} at {}", address.place(), address.hosts()),
            remove: Some(format!("{curl} {flush} && {curl} {delete} --data-urlencode {selector}")),
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("victoriametrics", "label", path, values)
    }

    fn options(values: &Values<'_>) -> Result<VictoriaOptions> {
        let default = VictoriaOptions::default();
        Ok(VictoriaOptions {
            lines: values.usize_or("lines", default.lines)?,
            put: values.word("put")?,
            tls: http::tls(values)?,
            timeout: values.duration_or("timeout", default.timeout)?,
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
