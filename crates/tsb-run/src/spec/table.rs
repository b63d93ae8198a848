//! The table of all stores, printed by `tsb stores` and searched when a spec is parsed. One entry per
//! store or wrapper.

use std::path::Path;
use std::sync::Arc;

use tsb_core::SeriesKey;
use tsb_core::time::Clock;

use super::kept::{KeptFiles, RRD_FILES, SQLITE_FILES};
use super::{Kind, Values};
use tsb_stores::AsyncStore;
use tsb_stores::error::Result;
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::null::NullStore;
use tsb_stores::ring::{RingOptions, RingStore};
#[cfg(feature = "sqlite")]
use tsb_stores::sqlite::{self, Commit, Layout, SqliteOptions, Synchronous};
use tsb_stores::store::Store;
use tsb_stores::throttle::{Throttle, ThrottleOptions};
use tsb_stores::write_cache::WriteCache;

mod cassandra;
mod clickhouse;
mod dalmatiner;
mod etcd;
#[cfg(feature = "hosts")]
pub(super) use etcd::open_keys;
mod exec;
mod graphite;
mod hawkular;
#[cfg(feature = "http")]
mod http;
mod influx;
mod kairosdb;
mod keeps;
mod mongo;
mod mstore;
mod postgres;
mod prometheus;
mod questdb;
mod rrd;
mod victoriametrics;
mod write_cache;

pub(super) use keeps::{Keeps, NamedBy};
pub(super) use rrd::open_files;

/// The kind of a store's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// None: there must be no text between the colon and the options.
    Nowhere,
    /// A file, folder or socket of this machine, printed as it was written.
    Path,
    /// A server's address; credentials in it are never printed.
    Address {
        /// Where the server listens if the address has no port.
        ports: &'static [u16],
    },
}

impl PathKind {
    /// Whether it is a server's address.
    pub fn is_address(self) -> bool {
        matches!(self, Self::Address { .. })
    }
}

/// A store or wrapper, as explained to users.
#[derive(Debug)]
pub struct StoreInfo {
    /// The word before the colon or the plus sign.
    pub scheme: &'static str,
    /// A short description.
    pub what: &'static str,
    /// The level of its acks, and the highest level that a flush can reach.
    pub durability: &'static str,
    /// The feature that includes it; `None` if every build has it.
    pub feature: Option<&'static str>,
    /// Whether it wraps another store.
    pub is_wrapper: bool,
    /// The kind of text between the colon and the options.
    pub path: PathKind,
    /// Its options.
    pub options: &'static [OptionInfo],
    /// Opens it; `None` if this build does not include it.
    pub(super) make: Option<Make>,
    /// Lists its series; `None` if it cannot, or is not built in.
    pub(super) list: Option<ListFn>,
    /// What it keeps beyond its process.
    pub(super) keeps: Keeps,
}

impl StoreInfo {
    /// Whether this build includes it.
    pub fn is_built(&self) -> bool {
        self.make.is_some()
    }
}

// Each entry has its own scheme, so comparing schemes is enough.
impl PartialEq for StoreInfo {
    fn eq(&self, other: &Self) -> bool {
        self.scheme == other.scheme
    }
}

/// An option of a store, as explained to users.
#[derive(Debug)]
#[non_exhaustive]
pub struct OptionInfo {
    /// The word before the equals sign.
    pub name: &'static str,
    /// The form and unit of its value.
    pub kind: Kind,
    /// The value used if it is not given; `None`: there is no fixed one, and `what` says what happens
    /// without it.
    pub default: Option<&'static str>,
    /// What it does.
    pub what: &'static str,
}

/// Opens a store from a path and options.
type OpenFn = fn(&str, &Values<'_>) -> Result<Box<dyn Store>>;

/// Opens a client that takes many writes at a time from a path and options.
type OpenClientFn = fn(&str, &Values<'_>) -> Result<Box<dyn AsyncStore>>;

/// Lists the existing series from a path and options, without creating or changing anything.
type ListFn = fn(&str, &Values<'_>) -> Result<Vec<SeriesKey>>;

/// Wraps a store, from options and a clock.
type WrapFn = fn(Box<dyn Store>, &Values<'_>, &Arc<dyn Clock>) -> Result<Box<dyn Store>>;

/// How an entry is opened.
#[derive(Clone, Copy, Debug)]
pub(super) enum Make {
    Store(OpenFn),
    #[cfg_attr(
        not(any(feature = "client", feature = "exec")),
        expect(dead_code, reason = "only features bring clients")
    )]
    Client(OpenClientFn),
    Wrapper(WrapFn),
}

/// All entries, in the order in which they are explained.
pub fn known() -> &'static [StoreInfo] {
    KNOWN
}

static KNOWN: &[StoreInfo] = &[
    StoreInfo {
        scheme: "null",
        what: "accepts and forgets; calibrates the generator",
        durability: "unconfirmed",
        feature: None,
        is_wrapper: false,
        path: PathKind::Nowhere,
        options: &[],
        make: Some(Make::Store(|_, _| Ok(Box::new(NullStore::new())))),
        list: None,
        keeps: Keeps::Nothing,
    },
    StoreInfo {
        scheme: "memory",
        what: "in memory, sealed into compressed blocks; takes late and irregular samples too",
        durability: "volatile",
        feature: None,
        is_wrapper: false,
        path: PathKind::Nowhere,
        options: &[
            option(
                "retention",
                Kind::Duration,
                None,
                "how far back samples are kept; without it, for ever",
            ),
            option(
                "max_bytes",
                Kind::Bytes,
                None,
                "most memory for samples and names; beyond it, samples are refused as full, and series not defined",
            ),
            option(
                "max_series",
                Kind::Count,
                None,
                "most series; beyond it, a run cannot define more",
            ),
        ],
        make: Some(Make::Store(|_, values| {
            Ok(Box::new(MemoryStore::new(memory_options(values)?)))
        })),
        list: None,
        keeps: Keeps::Nothing,
    },
    StoreInfo {
        scheme: "ring",
        what: "Mohawk's memory backend: fixed slots of time for each series, overwritten in turn; shows what that loses",
        durability: "volatile",
        feature: None,
        is_wrapper: false,
        path: PathKind::Nowhere,
        options: &[
            option("slot", Kind::Duration, Some("30s"), "length of a slot"),
            option("retention", Kind::Duration, Some("7d"), "span of all slots of a series"),
            option(
                "max_bytes",
                Kind::Bytes,
                Some("32GiB"),
                "most memory for all slots; beyond it, samples are refused as full",
            ),
            option(
                "max_series",
                Kind::Count,
                Some("1000000"),
                "most series; beyond it, a run cannot define more",
            ),
        ],
        make: Some(Make::Store(|_, values| {
            Ok(Box::new(RingStore::new(ring_options(values)?)?))
        })),
        list: None,
        keeps: Keeps::Nothing,
    },
    StoreInfo {
        scheme: "throttle",
        what: "wraps a store: adds stalls, a known service rate, and faults; tests the instrument",
        durability: "that of the store it wraps",
        feature: None,
        is_wrapper: true,
        path: PathKind::Nowhere,
        options: &[
            option("throttle.rate", Kind::Count, None, "service rate, samples per second"),
            option(
                "throttle.slower_percent",
                Kind::Count,
                None,
                "how much longer each write takes than the store needs for it",
            ),
            option(
                "throttle.stall_every",
                Kind::Duration,
                None,
                "from the start of one stall to the next",
            ),
            option(
                "throttle.stall_for",
                Kind::Duration,
                None,
                "length of a stall; less than stall_every",
            ),
            option(
                "throttle.error_one_in",
                Kind::Count,
                None,
                "refuses one sample in N, with the reason injected",
            ),
            option(
                "throttle.lose_one_in",
                Kind::Count,
                None,
                "accepts one sample in N and forgets it",
            ),
            option("throttle.alter_one_in", Kind::Count, None, "alters one value in N"),
            option(
                "throttle.duplicate_one_in",
                Kind::Count,
                None,
                "returns one sample in N twice",
            ),
            option(
                "throttle.wrong_one_in",
                Kind::Count,
                None,
                "alters a value in one answer in N",
            ),
            option(
                "throttle.seed",
                Kind::Number,
                Some("1"),
                "which samples and answers the faults hit",
            ),
        ],
        make: Some(Make::Wrapper(|inner, values, clock| {
            Ok(Box::new(Throttle::new(
                inner,
                throttle_options(values)?,
                Arc::clone(clock),
            )?))
        })),
        list: None,
        keeps: Keeps::Nothing,
    },
    StoreInfo {
        scheme: "rrd",
        what: "one RRD file per series in a folder, byte for byte as librrd writes them; keeps consolidated rows",
        durability: "buffered; a flush makes it synced",
        feature: None,
        is_wrapper: false,
        path: PathKind::Path,
        options: &rrd::RRD_OPTIONS,
        make: Some(Make::Store(rrd::open_rrd)),
        list: Some(|path, _| tsb_stores::rrd::series(Path::new(path))),
        keeps: Keeps::Files {
            find: |path, _| Some(KeptFiles::folder(path, RRD_FILES)),
            named_by: NamedBy::Path('-'),
        },
    },
    StoreInfo {
        scheme: "write-cache",
        what: "wraps a store: rrdcached's design, one queue per series, written many samples at a time",
        durability: "volatile; with a journal, buffered or synced",
        feature: None,
        is_wrapper: true,
        path: PathKind::Nowhere,
        options: &write_cache::OPTIONS,
        make: Some(Make::Wrapper(|inner, values, clock| {
            let options = write_cache::options(values)?;
            Ok(Box::new(WriteCache::new(inner, &options, Arc::clone(clock))?))
        })),
        list: None,
        keeps: write_cache::KEEPS,
    },
    sqlite_info(),
    mstore::INFO,
    mongo::INFO,
    etcd::INFO,
    prometheus::INFO,
    postgres::INFO,
    exec::INFO,
    influx::INFO,
    victoriametrics::INFO,
    graphite::INFO,
    clickhouse::INFO,
    questdb::INFO,
    cassandra::INFO,
    kairosdb::INFO,
    hawkular::INFO,
    dalmatiner::INFO,
    StoreInfo {
        scheme: "rrdcached",
        what: "client of rrdcached over its socket, unix:PATH; one write per batch, one file per series",
        durability: "volatile; a flush makes it buffered (as the daemon reports; not checked)",
        feature: None,
        is_wrapper: false,
        path: PathKind::Path,
        options: &rrd::RRDCACHED_OPTIONS,
        make: Some(Make::Store(rrd::open_rrdcached)),
        list: Some(rrd::list_rrdcached),
        keeps: rrd::RRDCACHED_KEEPS,
    },
];

const SQLITE_OPTIONS: &[OptionInfo] = &[
    option(
        "layout",
        Kind::Word(&["ticks", "rows", "mohawk"]),
        Some("ticks"),
        "ticks: made for ingest; rows: one row per sample; mohawk: Mohawk's schema, one commit per row",
    ),
    option(
        "commit",
        Kind::Interval,
        Some("each"),
        "after each write, or once timestamps have advanced by this much since the last commit",
    ),
    option(
        "synchronous",
        Kind::Word(&["normal", "full"]),
        Some("full"),
        "what a commit waits for: the operating system, or the medium",
    ),
    option(
        "tail",
        Kind::Count,
        Some("3600"),
        "samples per series, on average, that stay in memory before they move into rows of their series",
    ),
    option(
        "checkpoint",
        Kind::Bytes,
        Some("4MiB"),
        "length of the write-ahead log that begins a checkpoint: the bound of its length",
    ),
    option(
        "retention",
        Kind::Duration,
        None,
        "how far back samples are kept at least; without it, for ever",
    ),
    option(
        "max_bytes",
        Kind::Bytes,
        None,
        "most bytes of the file; beyond it, commits fail as on a full disk",
    ),
    option(
        "max_series",
        Kind::Count,
        Some("1000000"),
        "most series; beyond it, a run cannot define more",
    ),
];

const MAX_SERIES: OptionInfo = option(
    "max_series",
    Kind::Count,
    Some("1000000"),
    "most series; beyond it, a run cannot define more",
);

const CREDENTIALS: OptionInfo = option(
    "credentials",
    Kind::Checked("a file", |text| !text.is_empty()),
    None,
    "file that holds user:password, and that others cannot read; without it, the variable of docs/formats/plan.md",
);
/// Of servers that listen for `put` lines as well.
const PUT: OptionInfo = option(
    "put",
    Kind::Checked("HOST[:PORT]", |text| !text.is_empty()),
    None,
    "send put lines to this port, which answers nothing, and read back over HTTP; the port is 4242 if not named",
);
const TLS: OptionInfo = option("tls", Kind::Word(&["0", "1"]), Some("0"), "1: speak TLS");
const TLS_CA: OptionInfo = option(
    "tls_ca",
    Kind::Checked("a file", |text| !text.is_empty()),
    None,
    "file of certificates to trust, in PEM, for tls=1; without it, Mozilla's list",
);

const fn sqlite_info() -> StoreInfo {
    StoreInfo {
        scheme: "sqlite",
        what: "embedded SQLite, in one file: a log of ticks with rows of series behind it, or one row per sample",
        durability: "synced; by option, buffered, or volatile until the next commit",
        feature: Some("sqlite"),
        is_wrapper: false,
        path: PathKind::Path,
        options: SQLITE_OPTIONS,
        #[cfg(feature = "sqlite")]
        make: Some(Make::Store(open_sqlite)),
        #[cfg(not(feature = "sqlite"))]
        make: None,
        #[cfg(feature = "sqlite")]
        list: Some(|path, _| sqlite::catalog(Path::new(path)).map(|(_, keys)| keys)),
        #[cfg(not(feature = "sqlite"))]
        list: None,
        keeps: Keeps::Files {
            find: |path, _| Some(KeptFiles::file(path, SQLITE_FILES)),
            named_by: NamedBy::Path('-'),
        },
    }
}

#[cfg(feature = "sqlite")]
fn open_sqlite(path: &str, values: &Values<'_>) -> Result<Box<dyn Store>> {
    let default = SqliteOptions::default();
    let layout = match values.word("layout")?.as_deref() {
        Some("rows") => Layout::Rows,
        Some("mohawk") => Layout::Mohawk,
        _ => Layout::Ticks,
    };
    let options = SqliteOptions {
        commit: match values.interval_ns("commit")? {
            None | Some(0) => Commit::Each,
            Some(interval_ns) => Commit::Every(interval_ns),
        },
        synchronous: match values.word("synchronous")?.as_deref() {
            Some("normal") => Synchronous::Normal,
            _ => Synchronous::Full,
        },
        tail: values.count("tail")?.unwrap_or(default.tail),
        checkpoint_bytes: values.bytes("checkpoint")?.unwrap_or(default.checkpoint_bytes),
        retention_ns: values.duration_ns("retention")?,
        max_bytes: values.bytes("max_bytes")?,
        max_series: values.usize_or("max_series", default.max_series)?,
        vfs: None,
    };
    sqlite::open(std::path::Path::new(path), layout, options)
}

/// The address of a server, with the credentials that the options name.
#[cfg(feature = "client")]
fn address_of(scheme: &str, place: &str, path: &str, values: &Values<'_>) -> Result<tsb_remote::Address> {
    let address = tsb_remote::Address::parse(scheme, place, path)?;
    Ok(match values.credentials()? {
        Some(credentials) => address.with_credentials(credentials),
        None => address,
    })
}

const fn option(name: &'static str, kind: Kind, default: Option<&'static str>, what: &'static str) -> OptionInfo {
    OptionInfo {
        name,
        kind,
        default,
        what,
    }
}

fn memory_options(values: &Values<'_>) -> Result<MemoryOptions> {
    Ok(MemoryOptions {
        retention_ns: values.duration_ns("retention")?,
        max_bytes: values.bytes("max_bytes")?,
        max_series: values.count("max_series")?.map(|count| count as usize),
    })
}

fn ring_options(values: &Values<'_>) -> Result<RingOptions> {
    let default = RingOptions::default();
    Ok(RingOptions {
        slot_ns: values.duration_ns("slot")?.unwrap_or(default.slot_ns),
        retention_ns: values.duration_ns("retention")?.unwrap_or(default.retention_ns),
        max_bytes: values.bytes("max_bytes")?.unwrap_or(default.max_bytes),
        max_series: values.usize_or("max_series", default.max_series)?,
    })
}

fn throttle_options(values: &Values<'_>) -> Result<ThrottleOptions> {
    Ok(ThrottleOptions {
        rate_per_second: values.count("throttle.rate")?,
        slower_percent: values.count("throttle.slower_percent")?,
        stall_every_ns: values.duration_ns("throttle.stall_every")?.map(|ns| ns as u64),
        stall_first_ns: None,
        stall_for_ns: values.duration_ns("throttle.stall_for")?.map(|ns| ns as u64),
        error_one_in: values.count("throttle.error_one_in")?,
        lose_one_in: values.count("throttle.lose_one_in")?,
        alter_one_in: values.count("throttle.alter_one_in")?,
        duplicate_one_in: values.count("throttle.duplicate_one_in")?,
        wrong_one_in: values.count("throttle.wrong_one_in")?,
        seed: values.count("throttle.seed")?.unwrap_or(1),
    })
}
