//! The table entry of QuestDB, and the conversion of its options.

#[cfg(feature = "questdb")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "questdb",
    what: "QuestDB over HTTP, //HOST[:PORT]/PREFIX: one request per batch by its ingest protocol, one row per sample",
    durability: "buffered, and visible a moment later: the server syncs no file of samples",
    feature: Some("questdb"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[9000] },
    options: &OPTIONS,
    #[cfg(feature = "questdb")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "questdb"))]
    make: None,
    #[cfg(feature = "questdb")]
    list: Some(client::list),
    #[cfg(not(feature = "questdb"))]
    list: None,
    #[cfg(feature = "questdb")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "questdb"))]
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
        "1: remove what an earlier run has left in tables with the prefix",
    ),
    MAX_SERIES,
];

#[cfg(feature = "questdb")]
mod client {
    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::kept::{KeptAtServer, quoted};
    use crate::spec::table::{Keeps, NamedBy, address_of, http};
    use tsb_remote::questdb::{self, QuestDbOptions};
    use tsb_remote::{Address, host_with_port};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(questdb::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        questdb::series(&address(path, values)?, &options(values)?)
    }

    /// The tables.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| questdb::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Path('-'),
    };

    fn kept(path: &str, values: &Values<'_>) -> Result<KeptAtServer> {
        // Without credentials, which a command must not show.
        let address = Address::parse("questdb", "prefix", path)?;
        let host = host_with_port(address.hosts(), questdb::DEFAULT_PORT);
        let (curl, server) = http::curl(values, &host)?;
        let url = quoted(&format!("{server}/exec"));
        let drops = questdb::drop_statements(address.place());
        let asked = drops.map(|drop| {
            format!(
                "{curl} --fail -G {url} --data-urlencode {}",
                quoted(&format!("query={drop}"))
            )
        });
        Ok(KeptAtServer {
            kind: "tables",
            name: format!("{}_* at {}", address.place(), address.hosts()),
            remove: Some(asked.join(" && ")),
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("questdb", "prefix", path, values)
    }

    fn options(values: &Values<'_>) -> Result<QuestDbOptions> {
        let default = QuestDbOptions::default();
        Ok(QuestDbOptions {
            tls: http::tls(values)?,
            timeout: values.duration_or("timeout", default.timeout)?,
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
