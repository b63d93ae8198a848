//! The options of `rrd:` and `rrdcached:`, and of a cache of RRD files by name, with their
//! conversion.

use std::path::Path;
use std::sync::Arc;

use tsb_core::SeriesKey;
use tsb_core::time::Clock;

use super::super::kept::KeptAtServer;
use super::super::{Kind, Values};
use super::{Keeps, MAX_SERIES, NamedBy, OptionInfo, option, write_cache};
use tsb_rrdcached::RrdcachedStore;
use tsb_rrdcached::{FileBounds, FileCache};
use tsb_stores::error::{Error, Result};
use tsb_stores::rrd::{EngineKind, RrdOptions, RrdStore};
use tsb_stores::store::Store;

mod words;

use words::{parse_archives, parse_derivation};

const STEP: OptionInfo = option("step", Kind::Duration, Some("300s"), "length of a step, whole seconds");
const HEARTBEAT: OptionInfo = option(
    "heartbeat",
    Kind::Duration,
    None,
    "longest time between samples; beyond it, values are unknown; without it, two steps",
);
const DERIVATION: OptionInfo = option(
    "ds",
    Kind::Checked("gauge, counter, derive or absolute", |text| {
        parse_derivation(text).is_some()
    }),
    Some("gauge"),
    "how values become rates",
);
const ARCHIVES: OptionInfo = option(
    "archives",
    Kind::Checked("archives such as average:1:1440,max:6:1008", |text| {
        parse_archives(text).is_some()
    }),
    None,
    "consolidation:steps:rows[:xff],...; without it, those of the published benchmark",
);
/// The daemon's files of one prefix. Its protocol has no command that removes files, and it does
/// not say in which folder they are.
pub(super) const RRDCACHED_KEEPS: Keeps = Keeps::AtServer {
    find: |path, values| {
        let prefix = values.word("prefix")?.unwrap_or_default();
        Ok(KeptAtServer {
            kind: "files",
            name: format!("{prefix}*.rrd of the daemon at {}", path.trim_start_matches("unix:")),
            remove: None,
        })
    },
    remove: None,
    named_by: NamedBy::Prefix("prefix"),
};

pub(super) static RRDCACHED_OPTIONS: [OptionInfo; 6] = [
    option(
        "prefix",
        Kind::Checked("letters, digits, _ and -", |text| {
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        }),
        Some(""),
        "start of each file's name",
    ),
    STEP,
    HEARTBEAT,
    DERIVATION,
    ARCHIVES,
    MAX_SERIES,
];

pub(super) static RRD_OPTIONS: [OptionInfo; 9] = [
    option(
        "engine",
        Kind::Word(&["native", "librrd"]),
        Some("native"),
        "which code reads and writes the files",
    ),
    STEP,
    HEARTBEAT,
    DERIVATION,
    ARCHIVES,
    option(
        "exclusive",
        Kind::Number,
        Some("0"),
        "1: no other process writes the files, so they are not locked and stay mapped",
    ),
    option(
        "max_open",
        Kind::Number,
        Some("512"),
        "files that stay open between writes",
    ),
    option(
        "max_file_bytes",
        Kind::Bytes,
        Some("1GiB"),
        "bound of one file's size; a layout that needs more is refused",
    ),
    MAX_SERIES,
];

/// Opens a folder of files.
pub(super) fn open_rrd(path: &str, values: &Values<'_>) -> Result<Box<dyn Store>> {
    Ok(Box::new(RrdStore::open(Path::new(path), rrd_options(values)?)?))
}

/// Opens a cache of files of any layout, by file name, behind a write cache.
pub(in super::super) fn open_files(
    path: &str,
    cache: &Values<'_>,
    rrd: &Values<'_>,
    clock: &Arc<dyn Clock>,
) -> Result<FileCache> {
    if path.is_empty() {
        return Err(Error::Spec {
            spec: "rrd:".to_owned(),
            what: "a folder is needed".to_owned(),
        });
    }
    let layout = rrd_layout(rrd)?;
    let bounds = FileBounds {
        files: layout.max_series,
        file_bytes: rrd.bytes("max_file_bytes")?.unwrap_or(layout.max_file_bytes),
    };
    FileCache::open(
        Path::new(path),
        bounds,
        &write_cache::options(cache)?,
        Arc::clone(clock),
    )
}

/// Opens a client of rrdcached. The socket's path follows `unix:`, as rrdtool writes it.
pub(super) fn open_rrdcached(path: &str, values: &Values<'_>) -> Result<Box<dyn Store>> {
    let socket = socket(path)?;
    let prefix = values.word("prefix")?.unwrap_or_default();
    let options = rrd_layout(values)?;
    Ok(Box::new(RrdcachedStore::open(socket, &prefix, options)?))
}

pub(super) fn list_rrdcached(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
    tsb_rrdcached::series(socket(path)?, &values.word("prefix")?.unwrap_or_default())
}

fn socket(path: &str) -> Result<&Path> {
    let socket = path.strip_prefix("unix:").map(Path::new);
    socket.ok_or_else(|| Error::Spec {
        spec: "rrdcached:".to_owned(),
        what: format!("{path:?} is not unix:PATH"),
    })
}

fn rrd_options(values: &Values<'_>) -> Result<RrdOptions> {
    let layout = rrd_layout(values)?;
    Ok(RrdOptions {
        engine: match values.word("engine")?.as_deref() {
            Some("librrd") => EngineKind::Librrd,
            _ => EngineKind::Native,
        },
        is_exclusive: values.count("exclusive")?.unwrap_or(0) != 0,
        max_open: values.usize_or("max_open", layout.max_open)?,
        max_file_bytes: values.bytes("max_file_bytes")?.unwrap_or(layout.max_file_bytes),
        ..layout
    })
}

/// The layout of files, for every engine and client that writes them.
fn rrd_layout(values: &Values<'_>) -> Result<RrdOptions> {
    let default = RrdOptions::default();
    let seconds = |name: &str| {
        let nanos = values.duration_ns(name)?;
        match nanos {
            Some(nanos) if nanos % 1_000_000_000 != 0 => Err(Error::Spec {
                spec: "rrd:".to_owned(),
                what: format!("option {name}: whole seconds are needed"),
            }),
            nanos => Ok(nanos.map(|nanos| nanos as u64 / 1_000_000_000)),
        }
    };
    let step_s = seconds("step")?.unwrap_or(default.step_s);
    let word = |name: &str| values.word(name).map(Option::unwrap_or_default);
    Ok(RrdOptions {
        step_s,
        heartbeat_s: seconds("heartbeat")?.unwrap_or(2 * step_s),
        derivation: parse_derivation(&word("ds")?).unwrap_or(default.derivation),
        archives: parse_archives(&word("archives")?).unwrap_or(default.archives),
        max_series: values.usize_or("max_series", default.max_series)?,
        ..RrdOptions::default()
    })
}
