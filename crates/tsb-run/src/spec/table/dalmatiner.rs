//! The table entry of DalmatinerDB, and the conversion of its options.

#[cfg(feature = "dalmatiner")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "dalmatiner",
    what: "DalmatinerDB, or tsb ingest --listen dalmatiner-stream+tcp://, //HOST[:PORT]/BUCKET: one point per second",
    durability: "unconfirmed: a write is not answered",
    feature: Some("dalmatiner"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[5_555] },
    options: &OPTIONS,
    #[cfg(feature = "dalmatiner")]
    make: Some(Make::Store(client::open)),
    #[cfg(not(feature = "dalmatiner"))]
    make: None,
    #[cfg(feature = "dalmatiner")]
    list: Some(client::list),
    #[cfg(not(feature = "dalmatiner"))]
    list: None,
    #[cfg(feature = "dalmatiner")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "dalmatiner"))]
    keeps: super::Keeps::Nothing,
};

static OPTIONS: [OptionInfo; 4] = [
    option(
        "back",
        Kind::Duration,
        Some("1h"),
        "how far back a read without a start looks for what others wrote; the server does not tell where points begin",
    ),
    option(
        "delay",
        Kind::Duration,
        Some("1s"),
        "how long a sample may take until it is visible; beyond it, it counts as lost",
    ),
    option(
        "timeout",
        Kind::Duration,
        Some("10s"),
        "how long a write or a request may take",
    ),
    MAX_SERIES,
];

#[cfg(feature = "dalmatiner")]
mod client {
    use tsb_core::SeriesKey;
    use tsb_remote::Address;
    use tsb_remote::dalmatiner::{self, DalmatinerOptions};
    use tsb_stores::Store;
    use tsb_stores::error::Result;

    use crate::spec::Values;
    use crate::spec::kept::KeptAtServer;
    use crate::spec::table::{Keeps, NamedBy};

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn Store>> {
        Ok(Box::new(dalmatiner::open(&address(path)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        dalmatiner::series(&address(path)?, &options(values)?)
    }

    /// The bucket, which nothing removes.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: None,
        named_by: NamedBy::Path('-'),
    };

    fn kept(path: &str, _: &Values<'_>) -> Result<KeptAtServer> {
        let address = address(path)?;
        Ok(KeptAtServer {
            kind: "bucket",
            name: format!("{} at {}", address.place(), address.hosts()),
            remove: None,
        })
    }

    fn address(path: &str) -> Result<Address> {
        Address::parse("dalmatiner", "bucket", path)
    }

    fn options(values: &Values<'_>) -> Result<DalmatinerOptions> {
        let default = DalmatinerOptions::default();
        Ok(DalmatinerOptions {
            back: values.duration_or("back", default.back)?,
            visibility_delay: values.duration_or("delay", default.visibility_delay)?,
            timeout: values.duration_or("timeout", default.timeout)?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
