//! The options of `write-cache+`, and their conversion.

use super::super::kept::{JOURNAL_FILES, KeptFiles};
use super::super::{Kind, Values, parse_duration_ns};
use super::{Keeps, NamedBy, OptionInfo, option};
use tsb_stores::error::{Error, Result};
use tsb_stores::write_cache::{CheckpointOptions, JournalOptions, SyncPolicy, WriteCacheOptions};

/// Its journal, if it has one.
pub(super) const KEEPS: Keeps = Keeps::Files {
    find: |_, values| {
        let folder = values.word("write-cache.journal").ok().flatten()?;
        Some(KeptFiles::folder(&folder, JOURNAL_FILES))
    },
    named_by: NamedBy::Option("write-cache.journal"),
};

pub(super) static OPTIONS: [OptionInfo; 10] = [
    option(
        "write-cache.timeout",
        Kind::Duration,
        Some("300s"),
        "time from one write of a series to the next",
    ),
    option(
        "write-cache.jitter",
        Kind::Duration,
        None,
        "each series waits up to this much longer, so that not all are due at once",
    ),
    option(
        "write-cache.flush",
        Kind::Duration,
        Some("1h"),
        "how often series that get no more samples are looked for and written",
    ),
    option("write-cache.threads", Kind::Count, Some("4"), "threads that write"),
    option(
        "write-cache.max_bytes",
        Kind::Bytes,
        Some("1GiB"),
        "most bytes that wait; beyond it, samples are refused as full and everything is written at once",
    ),
    option(
        "write-cache.journal",
        Kind::Checked("a folder", |text| !text.is_empty()),
        None,
        "folder of a journal; without it, a crash loses what waits",
    ),
    option(
        "write-cache.sync",
        Kind::Checked("none, each, group, or a duration such as 1s", |text| {
            parse_sync(text).is_some()
        }),
        Some("group"),
        "when the journal is synced: at the end of a segment, before each ack, once for many acks, or at this interval",
    ),
    option(
        "write-cache.segment",
        Kind::Bytes,
        Some("64MiB"),
        "length of a segment of the journal",
    ),
    option(
        "write-cache.checkpoint",
        Kind::Checked("a file", |text| !text.is_empty()),
        None,
        "file that keeps the state of the RRD files behind rrdcached's protocol, so that updates read none of them",
    ),
    option(
        "write-cache.checkpoint_bytes",
        Kind::Bytes,
        Some("1GiB"),
        "most memory for that state; files beyond it are read",
    ),
];

pub(super) fn options(values: &Values<'_>) -> Result<WriteCacheOptions> {
    let default = WriteCacheOptions::default();
    let duration = |name: &str| Ok::<_, Error>(values.duration_ns(name)?.map(|ns| ns as u64));
    let sync = values.word("write-cache.sync")?.and_then(|text| parse_sync(&text));
    let folder = values.word("write-cache.journal")?;
    let segment_bytes = values.bytes("write-cache.segment")?;
    let checkpoint = values.word("write-cache.checkpoint")?;
    let checkpoint_bytes = values.bytes("write-cache.checkpoint_bytes")?;
    Ok(WriteCacheOptions {
        timeout_ns: duration("write-cache.timeout")?.unwrap_or(default.timeout_ns),
        jitter_ns: duration("write-cache.jitter")?.unwrap_or(default.jitter_ns),
        flush_ns: duration("write-cache.flush")?.unwrap_or(default.flush_ns),
        threads: values.usize_or("write-cache.threads", default.threads)?,
        max_bytes: values.bytes("write-cache.max_bytes")?.unwrap_or(default.max_bytes),
        journal: folder.map(|folder| {
            let journal = JournalOptions::new(folder, sync.unwrap_or(SyncPolicy::Group));
            JournalOptions {
                segment_bytes: segment_bytes.unwrap_or(journal.segment_bytes),
                ..journal
            }
        }),
        checkpoint: checkpoint.map(|path| {
            let checkpoint = CheckpointOptions::new(path);
            CheckpointOptions {
                max_bytes: checkpoint_bytes.unwrap_or(checkpoint.max_bytes),
                ..checkpoint
            }
        }),
    })
}

/// Parses the sync policy of a journal.
fn parse_sync(text: &str) -> Option<SyncPolicy> {
    match text {
        "none" => Some(SyncPolicy::None),
        "each" => Some(SyncPolicy::Each),
        "group" => Some(SyncPolicy::Group),
        _ => parse_duration_ns(text).map(|ns| SyncPolicy::Interval(ns as u64)),
    }
}
