//! The table entry of PostgreSQL, and the conversion of its options.

#[cfg(feature = "postgres")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "postgres",
    what: "PostgreSQL, //HOST[:PORT][,HOST...]/DB: one row per sample, a batch as one COPY or INSERT; TimescaleDB",
    durability: "as the server's synchronous_commit and fsync say: volatile, buffered or synced; by a flush",
    feature: Some("postgres"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[5432] },
    options: &OPTIONS,
    #[cfg(feature = "postgres")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "postgres"))]
    make: None,
    #[cfg(feature = "postgres")]
    list: Some(client::list),
    #[cfg(not(feature = "postgres"))]
    list: None,
    #[cfg(feature = "postgres")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "postgres"))]
    keeps: super::Keeps::Nothing,
};

static OPTIONS: [OptionInfo; 12] = [
    option(
        "schema",
        Kind::Checked("a name", |text| !text.is_empty()),
        Some("tsb"),
        "schema of the database, made if it is not there; nothing else may be in it",
    ),
    option(
        "write",
        Kind::Word(&["copy", "insert"]),
        Some("copy"),
        "statement of a batch: binary COPY, or a prepared INSERT of three arrays",
    ),
    option(
        "synchronous_commit",
        Kind::Word(&["off", "local", "remote_write", "on", "remote_apply"]),
        None,
        "what a commit waits for, as the server's setting of this name; without it, the server's own",
    ),
    option(
        "hypertable",
        Kind::Word(&["0", "1"]),
        Some("0"),
        "1: a hypertable, for which the database needs TimescaleDB",
    ),
    option("chunk", Kind::Duration, Some("1d"), "hypertable: time of a chunk"),
    option(
        "timeout",
        Kind::Duration,
        Some("10s"),
        "how long a request may take, and connecting before it",
    ),
    option(
        "connections",
        Kind::Count,
        Some("64"),
        "connections, at the most, opened as they are needed; requests beyond them wait in the client",
    ),
    super::CREDENTIALS,
    super::TLS,
    super::TLS_CA,
    option(
        "drop",
        Kind::Word(&["0", "1"]),
        Some("0"),
        "1: remove what an earlier run has left in the schema",
    ),
    MAX_SERIES,
];

#[cfg(feature = "postgres")]
mod client {
    use tsb_core::SeriesKey;

    use crate::spec::Values;
    use crate::spec::kept::{KeptAtServer, quoted};
    use crate::spec::table::{Keeps, NamedBy, address_of};
    use tsb_remote::Address;
    use tsb_remote::postgres::{self, PostgresOptions, SynchronousCommit, WriteMethod};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(postgres::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        postgres::series(&address(path, values)?, &options(values)?)
    }

    /// The schema.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| postgres::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Option("schema"),
    };

    fn kept(path: &str, values: &Values<'_>) -> Result<KeptAtServer> {
        // Without credentials, which a command must not show.
        let address = Address::parse("postgres", "database", path)?;
        let options = options(values)?;
        let mut parameters = Vec::new();
        if options.tls {
            parameters.push("sslmode=verify-full".to_owned());
            let authority = options.tls_ca.as_ref().map(|file| file.display().to_string());
            parameters.push(format!("sslrootcert={}", authority.as_deref().unwrap_or("system")));
        }
        if address.hosts().contains(',') {
            parameters.push("target_session_attrs=read-write".to_owned());
        }
        let parameters = match parameters.join("&") {
            none if none.is_empty() => none,
            some => format!("?{some}"),
        };
        let uri = format!("postgresql://{}/{}{parameters}", address.hosts(), address.place());
        let schema = &options.schema;
        Ok(KeptAtServer {
            kind: "schema",
            name: format!("{schema} of database {} at {}", address.place(), address.hosts()),
            remove: Some(format!(
                "psql {} -c {}",
                quoted(&uri),
                quoted(&format!("DROP SCHEMA \"{schema}\" CASCADE"))
            )),
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("postgres", "database", path, values)
    }

    fn options(values: &Values<'_>) -> Result<PostgresOptions> {
        let default = PostgresOptions::default();
        let (tls, tls_ca) = values.tls()?;
        let chunk_ns = values.duration_ns("chunk")?;
        Ok(PostgresOptions {
            schema: values.word("schema")?.unwrap_or(default.schema),
            write: match values.word("write")?.as_deref() {
                Some("insert") => WriteMethod::Insert,
                _ => WriteMethod::Copy,
            },
            synchronous_commit: values
                .word("synchronous_commit")?
                .and_then(|name| SynchronousCommit::parse(&name)),
            hypertable_chunk_ns: chunk_ns.filter(|_| values.is_on("hypertable").unwrap_or_default()),
            timeout: values.duration_or("timeout", default.timeout)?,
            connections: values.usize_or("connections", default.connections)?,
            tls,
            tls_ca,
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }
}
