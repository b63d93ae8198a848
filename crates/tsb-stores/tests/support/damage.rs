//! Journals with anything in them: opening one is an error, or gives a cache whose account
//! balances, and the same again when it is opened again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tsb_core::time::ManualClock;
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_rrd::{Archive, Cf, DataSource, DsKind, Layout, Session};
use tsb_stores::rrd::{RrdOptions, RrdStore};
use tsb_stores::write_cache::files::{FileBounds, FileCache, FileSystem};
use tsb_stores::write_cache::{JournalOptions, Sync, WriteCache, WriteCacheOptions};
use tsb_stores::{Store, StoreExt};

use crate::lossy::Lossy;

/// The first bytes of a segment, and the lengths of its head and of what precedes a body.
const MAGIC: &[u8] = b"tsbjrnl1";
const HEAD_LEN: usize = 16;
const PREFIX_LEN: usize = 17;

/// The journals of caches that took samples, readings, marks and names, in segments of any
/// length, one after the other.
pub(crate) fn corpus(folder: &Path) -> Vec<Vec<u8>> {
    let layout = Layout::new(
        10,
        vec![DataSource::new("a", DsKind::Gauge, 20)],
        vec![Archive::new(Cf::Average, 0.5, 1, 10)],
    );
    let layout = Arc::new(layout.unwrap());
    std::fs::create_dir_all(folder.join("base")).unwrap();
    for name in ["a.rrd", "b.rrd"] {
        tsb_rrd::create(&folder.join("base").join(name), &layout, 1_699_999_999, 1).unwrap();
    }
    [200, 1 << 20]
        .into_iter()
        .flat_map(|bytes| [readings(folder, bytes), samples(folder, bytes)])
        .collect()
}

/// Nothing here has to outlive a power cut.
#[derive(Debug)]
struct Never;

impl FileSystem for Never {
    fn sync(&self, _folder: &Path) -> std::io::Result<()> {
        Ok(())
    }
}

fn options(segment_bytes: u64) -> WriteCacheOptions {
    WriteCacheOptions {
        threads: 1,
        journal: Some(JournalOptions {
            segment_bytes,
            ..JournalOptions::new("unused", Sync::None)
        }),
        ..WriteCacheOptions::default()
    }
}

fn files(folder: &Path, segment_bytes: u64, medium: Lossy) -> tsb_stores::Result<FileCache> {
    let clock = Arc::new(ManualClock::new());
    FileCache::on_medium(
        &folder.join("base"),
        FileBounds::of_files(100),
        &options(segment_bytes),
        clock,
        Box::new(medium),
        Box::new(Never),
    )
}

fn series(folder: &Path, segment_bytes: u64, medium: Lossy) -> tsb_stores::Result<WriteCache<RrdStore>> {
    let inner = RrdStore::open(&folder.join("series"), RrdOptions::default())?;
    WriteCache::on_medium(
        inner,
        &options(segment_bytes),
        Arc::new(ManualClock::new()),
        Box::new(medium),
    )
}

fn keys() -> Vec<(SeriesId, SeriesKey)> {
    (0..3)
        .map(|id| (SeriesId(id), SeriesKey::new(format!("s.{id}"))))
        .collect()
}

fn readings(folder: &Path, segment_bytes: u64) -> Vec<u8> {
    let medium = Lossy::default();
    let cache = files(folder, segment_bytes, medium.clone()).unwrap();
    let mut session = Session::default();
    for second in 0..12 {
        for name in ["a.rrd", "b.rrd"] {
            let words = [0, 1].map(|later| format!("{}:{second}.5", 1_800_000_000 + second * 2 + later));
            let taken = cache.update(name, words.into_iter().map(Into::into), &mut session);
            cache.confirm(taken.unwrap().record.unwrap()).unwrap();
        }
    }
    cache.forget("b.rrd").unwrap();
    drop(cache);
    medium.bytes().concat()
}

fn samples(folder: &Path, segment_bytes: u64) -> Vec<u8> {
    let medium = Lossy::default();
    let cache = series(folder, segment_bytes, medium.clone()).unwrap();
    cache.define(&keys()).unwrap();
    for second in 0..12 {
        let at = Timestamp::from_secs(1_700_000_000 + second);
        let ack = cache.write_all(&Batch::tick(SeriesId(0), at, &[1.5, 2.5, 3.5]));
        assert_eq!(ack.unwrap().accepted, 3);
    }
    cache.forget(SeriesId(1)).unwrap();
    drop(cache);
    medium.bytes().concat()
}

/// Opens a journal of these bytes, as they are and with right checksums; whether each was
/// taken for sound.
pub(crate) fn check(folder: &Path, bytes: &[u8]) -> usize {
    let segments = segments(bytes);
    let mended = segments
        .iter()
        .map(|(number, bytes)| (*number, mended(*number, bytes)))
        .collect();
    [segments, mended]
        .iter()
        .filter(|segments| is_sound(folder, segments))
        .count()
}

/// The segments that these bytes begin, each with the number that its head says.
fn segments(bytes: &[u8]) -> BTreeMap<u32, Vec<u8>> {
    let starts = (1..bytes.len()).filter(|&at| bytes[at..].starts_with(MAGIC));
    let mut bounds: Vec<usize> = std::iter::once(0).chain(starts).collect();
    bounds.push(bytes.len());
    let parts = bounds.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
    let numbered = parts.map(|part| {
        let number = part.get(8..12).and_then(|number| number.try_into().ok());
        (number.map_or(1, u32::from_le_bytes), part.to_vec())
    });
    numbered.collect()
}

/// The same with the checksums that its head and its records should have.
fn mended(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= HEAD_LEN {
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&number.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..12]);
        bytes[12..HEAD_LEN].copy_from_slice(&sum.to_le_bytes());
    }
    let mut at = HEAD_LEN;
    while let Some(len) = bytes.get(at..at + 4).and_then(|len| len.try_into().ok()) {
        let end = at + PREFIX_LEN + u32::from_le_bytes(len) as usize;
        let Some(record) = bytes.get_mut(at..end) else { break };
        let sum = crc32fast::hash(&record[8..]);
        record[4..8].copy_from_slice(&sum.to_le_bytes());
        at = end;
    }
    bytes
}

fn is_sound(folder: &Path, segments: &BTreeMap<u32, Vec<u8>>) -> bool {
    let medium = Lossy::with(segments);
    let opened = files(folder, 1 << 20, medium.clone()).map(|cache| cache.stats().account);
    if let Ok(account) = &opened {
        assert!(account.balances(), "{account:?}");
        let again = files(folder, 1 << 20, medium.clone()).unwrap().stats().account;
        assert_eq!(again.replayed, account.replayed);
    }
    // Nothing is overwritten: the last segment may be cut.
    for (found, given) in medium.bytes().iter().zip(segments.values()) {
        assert!(given.starts_with(found));
    }
    let cache = series(folder, 1 << 20, Lossy::with(segments));
    let is_sound = opened.is_ok() || cache.is_ok();
    if let Ok(cache) = cache {
        cache.define(&keys()).unwrap();
        assert!(cache.account().balances(), "{:?}", cache.account());
    }
    is_sound
}
