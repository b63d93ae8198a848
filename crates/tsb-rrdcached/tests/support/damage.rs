//! Damaged journals: whatever is in one, opening it is an error, or says what is lost.
//!
//! Journals of both kinds (samples of series, updates of files) are made by caches that are
//! dropped, as a kill leaves them. [`check`] gives any bytes to a cache; [`check_loss`] damages
//! a journal whose samples are known, and holds what comes back and what is said against them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tsb_core::time::ManualClock;
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_rrd::{Archive, Cf, DataSource, DsKind, Layout, Session};
use tsb_rrdcached::{FileBounds, FileCache, FileSystem};
use tsb_stores::rrd::{RrdOptions, RrdStore};
use tsb_stores::write_cache::{JournalOptions, SyncPolicy, WriteCache, WriteCacheOptions};
use tsb_stores::{Damage, Store, StoreExt};

use crate::lossy::LossyMedium;

/// The first bytes of a segment, and the lengths of its head and of what precedes a body.
const MAGIC: &[u8] = b"tsbjrnl2";
const HEAD_LEN: usize = 32;
const PREFIX_LEN: usize = 17;
const SEGMENT: &str = "tsb.journal.0";
const NAMES: [&str; 2] = ["a.rrd", "b.rrd"];
const SERIES: u32 = 3;
const SECONDS: i64 = 12;

type Files = BTreeMap<String, Vec<u8>>;

/// The journals of caches that took samples, updates, marks and names, in segments of any
/// length, one after the other.
pub(crate) fn corpus(folder: &Path) -> Vec<Vec<u8>> {
    prepare(folder);
    let journals = [300, 1 << 20]
        .into_iter()
        .flat_map(|bytes| [JournalKind::Updates, JournalKind::Samples].map(|kind| kind.journal(folder, bytes, true)));
    journals.map(|files| segments_of(&files).concat()).collect()
}

/// Makes the files that updates are for.
fn prepare(folder: &Path) {
    let layout = Layout::new(
        10,
        vec![DataSource::new("a", DsKind::Gauge, 20)],
        vec![Archive::new(Cf::Average, 0.5, 1, 10)],
    );
    let layout = Arc::new(layout.unwrap());
    std::fs::create_dir_all(folder.join("base")).unwrap();
    for name in NAMES {
        tsb_rrd::replace(&folder.join("base").join(name), &layout, 1_699_999_999, 1).unwrap();
    }
}

fn segments_of(files: &Files) -> Vec<Vec<u8>> {
    let segments = files.iter().filter(|(name, _)| name.starts_with(SEGMENT));
    segments.map(|(_, bytes)| bytes.clone()).collect()
}

/// Nothing here has to outlive a power cut.
#[derive(Debug)]
struct NoSync;

impl FileSystem for NoSync {
    fn sync(&self, _folder: &Path) -> std::io::Result<()> {
        Ok(())
    }
}

fn options(segment_bytes: u64) -> WriteCacheOptions {
    WriteCacheOptions {
        threads: 1,
        journal: Some(JournalOptions {
            segment_bytes,
            ..JournalOptions::new("unused", SyncPolicy::None)
        }),
        ..WriteCacheOptions::default()
    }
}

fn files(folder: &Path, segment_bytes: u64, medium: LossyMedium) -> tsb_stores::Result<FileCache> {
    let clock = Arc::new(ManualClock::new());
    FileCache::on_medium(
        &folder.join("base"),
        FileBounds::of_files(100),
        &options(segment_bytes),
        clock,
        Box::new(medium),
        Box::new(NoSync),
    )
}

fn series(folder: &Path, segment_bytes: u64, medium: LossyMedium) -> tsb_stores::Result<WriteCache<RrdStore>> {
    let inner = RrdStore::open(&folder.join("series"), RrdOptions::default())?;
    WriteCache::on_medium(
        inner,
        &options(segment_bytes),
        Arc::new(ManualClock::new()),
        Box::new(medium),
    )
}

fn keys() -> Vec<(SeriesId, SeriesKey)> {
    (0..SERIES)
        .map(|id| (SeriesId(id), SeriesKey::new(format!("s.{id}"))))
        .collect()
}

/// What a journal holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JournalKind {
    Samples,
    Updates,
}

impl JournalKind {
    /// The journal of a cache that was dropped, with a series or file forgotten at the end.
    fn journal(self, folder: &Path, segment_bytes: u64, forgets: bool) -> Files {
        let medium = LossyMedium::default();
        match self {
            Self::Samples => {
                let cache = series(folder, segment_bytes, medium.clone()).unwrap();
                cache.define(&keys()).unwrap();
                for second in 0..SECONDS {
                    let at = Timestamp::from_secs(1_700_000_000 + second);
                    let ack = cache.write_all(&Batch::tick(SeriesId(0), at, &[1.5, 2.5, 3.5]));
                    assert_eq!(ack.unwrap().accepted, 3);
                }
                if forgets {
                    cache.forget(SeriesId(1)).unwrap();
                }
            }
            Self::Updates => {
                let cache = files(folder, segment_bytes, medium.clone()).unwrap();
                let mut session = Session::default();
                for second in 0..SECONDS {
                    for name in NAMES {
                        let words = [0, 1].map(|later| format!("{}:{second}.5", 1_800_000_000 + second * 2 + later));
                        let taken = cache.update(name, words.into_iter().map(Into::into), &mut session);
                        cache.confirm(taken.unwrap().record.unwrap()).unwrap();
                    }
                }
                if forgets {
                    cache.forget(NAMES[1]).unwrap();
                }
            }
        }
        medium.files()
    }

    /// Opens a journal: how many samples wait in it, and what is said of damage.
    fn open(self, folder: &Path, medium: LossyMedium) -> tsb_stores::Result<(u64, Vec<Damage>)> {
        match self {
            Self::Samples => {
                let cache = series(folder, 1 << 20, medium)?;
                cache.define(&keys())?;
                let account = cache.account();
                assert!(account.balances(), "{account:?}");
                Ok((account.replayed, cache.stats().damage))
            }
            Self::Updates => {
                let cache = files(folder, 1 << 20, medium)?;
                let account = cache.stats().account;
                assert!(account.balances(), "{account:?}");
                Ok((account.replayed, cache.damage()))
            }
        }
    }

    fn written(self) -> u64 {
        match self {
            Self::Samples => u64::from(SERIES) * SECONDS as u64,
            Self::Updates => 2 * NAMES.len() as u64 * SECONDS as u64,
        }
    }
}

/// Opens a journal of these bytes, as they are and with right checksums; how many of them
/// were taken for sound.
pub(crate) fn check(folder: &Path, bytes: &[u8]) -> usize {
    let segments = segments(bytes);
    let valid = segments
        .iter()
        .map(|(number, bytes)| (*number, with_valid_checksums(*number, bytes)))
        .collect();
    [segments, valid]
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
fn with_valid_checksums(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= HEAD_LEN {
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&number.to_le_bytes());
        for (end, sum) in [(12, 12..16), (28, 28..32)] {
            let value = crc32fast::hash(&bytes[..end]);
            bytes[sum].copy_from_slice(&value.to_le_bytes());
        }
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
    let given = segments.iter();
    let given: Files = given
        .map(|(number, bytes)| (format!("tsb.journal.{number:010}"), bytes.clone()))
        .collect();
    [JournalKind::Updates, JournalKind::Samples].into_iter().any(|kind| {
        let medium = LossyMedium::with(&given);
        let opened = kind.open(folder, medium.clone());
        assert_untouched(&given, &medium);
        let Ok((replayed, damage)) = opened else { return false };
        let (again, _) = kind.open(folder, medium).unwrap();
        assert_eq!(again, replayed);
        // A marker cannot be made of bytes that may be anything.
        damage.iter().all(|one| one.what.contains("marker"))
    })
}

/// No segment that was found is changed by opening it.
fn assert_untouched(given: &Files, medium: &LossyMedium) {
    let found = medium.files();
    for (name, bytes) in given.iter().filter(|(name, _)| name.starts_with(SEGMENT)) {
        assert_eq!(found.get(name), Some(bytes), "{name}");
    }
}

/// Damages a journal whose samples are known: opening it is an error, or every sample that
/// does not come back is spoken of. What it says, in a word for each outcome.
pub(crate) fn check_loss(
    folder: &Path,
    kind: JournalKind,
    segment_bytes: u64,
    random: &mut impl FnMut(usize) -> usize,
) -> &'static str {
    prepare(folder);
    let whole = kind.journal(folder, segment_bytes, false);
    let (given, done) = damaged(&whole, random);
    let medium = LossyMedium::with(&given);
    let Ok((replayed, damage)) = kind.open(folder, medium.clone()) else {
        assert_untouched(&given, &medium);
        return "refused";
    };
    assert_untouched(&given, &medium);
    let lost = kind.written().checked_sub(replayed);
    let lost = lost.unwrap_or_else(|| panic!("{kind:?}, {done}: {replayed} came back"));
    let known = damage.iter().filter(|one| one.may_lose_samples());
    let at_most = known.clone().try_fold(0, |sum, one| Some(sum + one.samples_at_most?));
    let is_said = at_most.is_none_or(|at_most| lost <= at_most);
    assert!(is_said, "{kind:?}, {done}: {lost} lost, said: {damage:?}");
    // Whoever opens it next hears of the loss too: nothing is settled yet. A marker is made anew.
    let (again, said) = kind.open(folder, medium).unwrap();
    assert_eq!(again, replayed, "{kind:?}, {done}");
    let is_said_again = lost == 0 || said.len() >= damage.len();
    assert!(is_said_again, "{kind:?}, {done}: {damage:?}, then {said:?}");
    if lost == 0 { "nothing lost" } else { "said" }
}

/// One damage of one file at a random place, and what was done.
fn damaged(whole: &Files, random: &mut impl FnMut(usize) -> usize) -> (Files, String) {
    let mut files = whole.clone();
    let names: Vec<&String> = whole.keys().collect();
    let name = names[random(names.len())];
    let bytes = files.get_mut(name).unwrap();
    let at = random(bytes.len());
    let what = match random(6) {
        0 | 1 => {
            bytes[at] ^= 1 << random(8);
            format!("a bit flipped at {at}")
        }
        2 => {
            let end = bytes.len().min(at + 1 + random(200));
            bytes[at..end].fill(0);
            format!("zeros from {at} to {end}")
        }
        3 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        4 => {
            files.remove(name);
            "removed".to_owned()
        }
        _ => {
            let other = format!("tsb.journal.{:010}", random(12));
            let bytes = files.remove(name).unwrap();
            files.entry(other.clone()).or_insert(bytes);
            format!("renamed to {other}")
        }
    };
    let done = format!("{name} of {} files: {what}", whole.len());
    (files, done)
}

/// Damages journals of both kinds, with long segments and with short ones; how often each
/// outcome was seen.
pub(crate) fn losses(
    folder: &Path,
    rounds: u64,
    random: &mut impl FnMut(usize) -> usize,
) -> BTreeMap<&'static str, u64> {
    let mut outcomes = BTreeMap::new();
    for round in 0..rounds {
        let kind = [JournalKind::Samples, JournalKind::Updates][round as usize % 2];
        let segment_bytes = [200, 400, 1 << 20][random(3)];
        let outcome = check_loss(folder, kind, segment_bytes, random);
        *outcomes.entry(outcome).or_default() += 1;
    }
    outcomes
}
