//! The table entry of InfluxDB, and the conversion of its options.

#[cfg(feature = "influx")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "influx",
    what: "InfluxDB 1.x over HTTP, //HOST[:PORT]/DATABASE: a series keeps its name, one line per sample",
    durability: "synced, in the write-ahead log",
    feature: Some("influx"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[8086] },
    options: &OPTIONS,
    #[cfg(feature = "influx")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "influx"))]
    make: None,
    #[cfg(feature = "influx")]
    list: Some(client::list),
    #[cfg(not(feature = "influx"))]
    list: None,
    #[cfg(feature = "influx")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "influx"))]
    keeps: super::Keeps::Nothing,
};

static OPTIONS: [OptionInfo; 8] = [
    option("lines", Kind::Count, Some("10000"), "most samples per request"),
    option(
        "measurement",
        Kind::Checked("a name such as all", |name| !name.is_empty()),
        None,
        "one measurement for all series, whose names are its tag name",
    ),
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

#[cfg(feature = "influx")]
mod client {
    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::kept::{KeptAtServer, quoted};
    use crate::spec::table::{Keeps, NamedBy, address_of, http};
    use tsb_remote::influx::{self, InfluxOptions};
    use tsb_remote::{Address, host_with_port};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(influx::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        influx::series(&address(path, values)?, &options(values)?)
    }

    /// The database.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| influx::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Path('-'),
    };

    fn kept(path: &str, values: &Values<'_>) -> Result<KeptAtServer> {
        // Without credentials, which a command must not show.
        let address = Address::parse("influx", "database", path)?;
        let (curl, server) = http::curl(values, &host_with_port(address.hosts(), influx::DEFAULT_PORT))?;
        let url = format!("{server}/query");
        let statement = format!("q=DROP DATABASE \"{}\"", address.place());
        Ok(KeptAtServer {
            kind: "database",
            name: format!("{} at {}", address.place(), address.hosts()),
            remove: Some(format!(
                "{curl} {} --data-urlencode {}",
                quoted(&url),
                quoted(&statement)
            )),
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("influx", "database", path, values)
    }

    fn options(values: &Values<'_>) -> Result<InfluxOptions> {
        let default = InfluxOptions::default();
        Ok(InfluxOptions {
            lines: values.usize_or("lines", default.lines)?,
            measurement: values.word("measurement")?,
            tls: http::tls(values)?,
            timeout: values.duration_or("timeout", default.timeout)?,
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
