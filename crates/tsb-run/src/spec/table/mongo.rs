//! The table entry of MongoDB, and the conversion of its options.

#[cfg(feature = "mongo")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "mongo",
    what: "MongoDB, //HOST[:PORT][,HOST...]/DB: a time-series collection, or other layouts",
    durability: "volatile; synced by j=1 or w=majority; any of them by a flush",
    feature: Some("mongo"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[27_017] },
    options: &OPTIONS,
    #[cfg(feature = "mongo")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "mongo"))]
    make: None,
    #[cfg(feature = "mongo")]
    list: Some(client::list),
    #[cfg(not(feature = "mongo"))]
    list: None,
    #[cfg(feature = "mongo")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "mongo"))]
    keeps: super::Keeps::Nothing,
};

static OPTIONS: [OptionInfo; 15] = [
    option(
        "layout",
        Kind::Word(&["series", "rows", "bucket", "ticks", "mohawk"]),
        Some("series"),
        "time-series collection; a document a sample; a document a series and span; whole ticks as columns; Mohawk's",
    ),
    option(
        "granularity",
        Kind::Word(&["seconds", "minutes", "hours"]),
        Some("seconds"),
        "layout series: a bucket of the server's holds an hour, a day or a month at the most",
    ),
    option("span", Kind::Duration, Some("60s"), "layout bucket: time of a document"),
    option(
        "group",
        Kind::Count,
        Some("256"),
        "layout ticks: series of a document, at the most",
    ),
    option(
        "w",
        Kind::Checked("1 to 50, or majority", |text| {
            let number = text.parse::<u32>().ok();
            text == "majority" || number.is_some_and(|members| (1..=50).contains(&members))
        }),
        Some("1"),
        "members that have a sample before it is acknowledged",
    ),
    option(
        "j",
        Kind::Word(&["0", "1"]),
        Some("0"),
        "1: their journals are synced first, as with w=majority in any case",
    ),
    option(
        "replica_set",
        Kind::Checked("a name", |text| !text.is_empty()),
        None,
        "its name; without it one host is asked alone",
    ),
    option(
        "timeout",
        Kind::Duration,
        Some("10s"),
        "how long a request may take, and a server be looked for",
    ),
    option(
        "pool",
        Kind::Count,
        Some("64"),
        "connections to each server, at the most",
    ),
    super::CREDENTIALS,
    option(
        "auth_db",
        Kind::Checked("a name", |text| !text.is_empty()),
        Some("admin"),
        "database that knows the user",
    ),
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

#[cfg(feature = "mongo")]
mod client {
    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::kept::{KeptAtServer, quoted};
    use crate::spec::table::{Keeps, NamedBy, address_of};
    use tsb_remote::Address;
    use tsb_remote::mongo::{self, Granularity, LayoutKind, Members, MongoOptions, WriteConcern};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(mongo::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        mongo::series(&address(path, values)?, &options(values)?)
    }

    /// The whole database.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| mongo::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Path('-'),
    };

    fn kept(path: &str, values: &Values<'_>) -> Result<KeptAtServer> {
        // Without credentials, which a command must not show.
        let address = Address::parse("mongo", "database", path)?;
        let options = options(values)?;
        let set = options
            .replica_set
            .map_or(String::new(), |name| format!("?replicaSet={name}"));
        let uri = format!("mongodb://{}/{}{set}", address.hosts(), address.place());
        let tls = if options.tls { " --tls" } else { "" };
        let authority = options.tls_ca.filter(|_| options.tls);
        let authority = authority.map_or(String::new(), |file| {
            format!(" --tlsCAFile {}", quoted(&file.display().to_string()))
        });
        Ok(KeptAtServer {
            kind: "database",
            name: format!("{} at {}", address.place(), address.hosts()),
            remove: Some(format!(
                "mongosh {}{tls}{authority} --eval {}",
                quoted(&uri),
                quoted("db.dropDatabase()")
            )),
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("mongo", "database", path, values)
    }

    fn options(values: &Values<'_>) -> Result<MongoOptions> {
        let default = MongoOptions::default();
        let (tls, tls_ca) = values.tls()?;
        let count = |name: &str| {
            values
                .count(name)
                .map(|count| count.map(|count| count.min(u64::from(u32::MAX)) as u32))
        };
        Ok(MongoOptions {
            layout: match values.word("layout")?.as_deref() {
                Some("rows") => LayoutKind::Rows,
                Some("bucket") => LayoutKind::Bucket,
                Some("ticks") => LayoutKind::Ticks,
                Some("mohawk") => LayoutKind::Mohawk,
                _ => LayoutKind::Series,
            },
            granularity: match values.word("granularity")?.as_deref() {
                Some("minutes") => Granularity::Minutes,
                Some("hours") => Granularity::Hours,
                _ => Granularity::Seconds,
            },
            span_ns: values.duration_ns("span")?.unwrap_or(default.span_ns),
            group: count("group")?.unwrap_or(default.group),
            write_concern: WriteConcern {
                members: values
                    .word("w")?
                    .and_then(|text| Members::parse(&text))
                    .unwrap_or(default.write_concern.members),
                journal: values.is_on("j")?,
            },
            timeout: values.duration_or("timeout", default.timeout)?,
            pool: count("pool")?.unwrap_or(default.pool),
            replica_set: values.word("replica_set")?,
            auth_database: values.word("auth_db")?,
            tls,
            tls_ca,
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
