//! Journals in a folder, damaged: what is said, what comes back, and what stays as it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;
use crate::damage::{Damage, DamageKind};

/// A folder with a journal of three series and nine ticks that nobody had time to settle.
struct JournalFixture {
    folder: tempfile::TempDir,
    segment_bytes: u64,
    sync: SyncPolicy,
}

impl JournalFixture {
    fn new(segment_bytes: u64) -> Self {
        Self::with(segment_bytes, SyncPolicy::Group)
    }

    fn with(segment_bytes: u64, sync: SyncPolicy) -> Self {
        let fixture = Self {
            folder: tempfile::tempdir().unwrap(),
            segment_bytes,
            sync,
        };
        let cache = fixture.open().unwrap();
        define(&cache, 3);
        ticks(&cache, 3, 9);
        fixture
    }

    fn open(&self) -> Result<WriteCache<RrdStore>> {
        let options = WriteCacheOptions {
            journal: Some(JournalOptions {
                segment_bytes: self.segment_bytes,
                ..JournalOptions::new(self.journal(), self.sync)
            }),
            ..WriteCacheOptions::default()
        };
        let inner = files(&self.folder.path().join("files"));
        WriteCache::new(inner, &options, Arc::new(ManualClock::new()))
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn segment(&self, number: u32) -> PathBuf {
        self.journal().join(format!("tsb.journal.{number:010}"))
    }

    fn count(&self) -> PathBuf {
        self.journal().join("tsb.journal.count")
    }

    /// The number of the newest segment.
    fn newest(&self) -> u32 {
        (1..1_000)
            .take_while(|&number| self.segment(number).exists())
            .last()
            .unwrap()
    }

    fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = std::fs::read_dir(self.journal()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    }

    /// Opens it and defines the series: how many samples come back, and what is said.
    fn replayed(&self) -> (u64, Vec<Damage>) {
        let cache = self.open().unwrap();
        define(&cache, 3);
        assert!(cache.account().balances());
        (cache.account().replayed, cache.stats().damage)
    }
}

/// Bytes of a record with one tick.
const TICK: usize = 17 + 5 + 4 + 8 + 3 * 8;

/// The power went: the count is of an earlier boot.
fn reboot(bytes: &mut [u8]) {
    bytes[8] ^= 1;
    let sum = crc32fast::hash(&bytes[..24]);
    bytes[24..28].copy_from_slice(&sum.to_le_bytes());
}

fn alter(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_torn_end_is_reported_until_its_segment_is_removed() {
    let fixture = JournalFixture::new(1 << 20);
    // Of a record that was never acknowledged.
    alter(&fixture.segment(1), |bytes| {
        bytes.extend_from_within(bytes.len() - TICK..bytes.len() - 3);
    });
    let torn = std::fs::read(fixture.segment(1)).unwrap();
    for _ in 0..2 {
        let (replayed, damage) = fixture.replayed();
        assert_eq!((replayed, damage.len(), damage[0].kind), (27, 1, DamageKind::Torn));
        assert!(damage[0].bytes > Some(20) && !damage[0].may_lose_samples());
        assert_eq!(std::fs::read(fixture.segment(1)).unwrap(), torn);
    }
    let cache = fixture.open().unwrap();
    assert!(cache.torn_bytes() > 20);
    define(&cache, 3);
    cache.close().unwrap();
    drop(cache);
    let cache = fixture.open().unwrap();
    assert_eq!((cache.torn_bytes(), cache.stats().damage), (0, Vec::new()));
}

/// Issue 15: one flipped bit in the newest segment took all that stood behind it.
#[test]
fn a_flipped_bit_in_the_newest_segment_loses_at_most_its_record_and_is_reported() {
    let whole = std::fs::read(JournalFixture::new(1 << 20).segment(1)).unwrap();
    for bit in (0..whole.len() * 8).step_by(211) {
        let fixture = JournalFixture::new(1 << 20);
        alter(&fixture.segment(1), |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        let (replayed, damage) = fixture.replayed();
        assert_eq!(damage.len(), 1, "bit {bit}: {damage:?}");
        assert_eq!(
            damage[0].samples_at_most,
            Some(27 - replayed),
            "bit {bit}: {replayed}, {damage:?}"
        );
        // Names stand before all, and a record of samples is a tick of three.
        let least = if bit / 8 < 32 {
            27
        } else if bit / 8 < 110 {
            0
        } else {
            24
        };
        assert!(replayed >= least, "bit {bit}: {replayed}, {damage:?}");
    }
}

/// Issue 15: damage of the first 16 bytes truncated the file to nothing.
#[test]
fn a_damaged_head_costs_nothing_and_nothing_is_truncated() {
    let fixture = JournalFixture::new(1 << 20);
    alter(&fixture.segment(1), |bytes| bytes[..16].fill(0xff));
    let before = std::fs::read(fixture.segment(1)).unwrap();
    let (replayed, damage) = fixture.replayed();
    assert_eq!(replayed, 27, "{damage:?}");
    assert_eq!((damage.len(), damage[0].samples_at_most), (1, Some(0)), "{damage:?}");
    assert!(
        damage[0].what.contains("does not begin as a segment does"),
        "{damage:?}"
    );
    assert_eq!(std::fs::read(fixture.segment(1)).unwrap(), before);
}

#[test]
fn a_damaged_segment_is_kept_aside_when_its_samples_are_settled() {
    let fixture = JournalFixture::new(200);
    alter(&fixture.segment(2), |bytes| bytes[120] ^= 1);
    let before = std::fs::read(fixture.segment(2)).unwrap();
    let cache = fixture.open().unwrap();
    define(&cache, 3);
    let replayed = cache.account().replayed;
    assert!((20..27).contains(&replayed), "{replayed}");
    cache.close().unwrap();
    assert_eq!(cache.account().written, replayed);
    drop(cache);
    assert!(!fixture.segment(1).exists() && !fixture.segment(2).exists());
    let kept = fixture.segment(2).with_extension("0000000002.damaged");
    assert_eq!(std::fs::read(&kept).unwrap(), before);
    for _ in 0..2 {
        let (replayed, damage) = fixture.replayed();
        assert_eq!((replayed, damage.len()), (0, 1), "{damage:?}");
        assert_eq!((damage[0].kind, &damage[0].path), (DamageKind::KeptAside, &kept));
    }
    std::fs::remove_file(kept).unwrap();
    assert_eq!(fixture.replayed().1, Vec::new());
}

#[test]
fn a_missing_segment_is_noticed_wherever_it_was() {
    let last = JournalFixture::new(200).newest();
    assert!(last > 3);
    for number in 1..=last {
        let fixture = JournalFixture::new(200);
        std::fs::remove_file(fixture.segment(number)).unwrap();
        let (replayed, damage) = fixture.replayed();
        assert_eq!(
            (damage.len(), damage[0].kind),
            (1, DamageKind::Missing),
            "{number}: {damage:?}"
        );
        assert!(
            damage[0].what.contains(&format!("segment {number} is missing")),
            "{damage:?}"
        );
        assert!(damage[0].may_lose_samples());
        // The newest segment has an unknown number of samples; those of the others are known.
        let expected = (number < last).then_some(27 - replayed);
        assert_eq!(damage[0].samples_at_most, expected, "{number}");
    }
    let fixture = JournalFixture::new(200);
    (1..=last).for_each(|number| std::fs::remove_file(fixture.segment(number)).unwrap());
    let (replayed, damage) = fixture.replayed();
    assert_eq!((replayed, damage.len()), (0, 1));
    assert!(
        damage[0].what.contains(&format!("segments 1 to {last} are missing")),
        "{damage:?}"
    );
}

#[test]
fn a_segment_under_another_name_is_read_in_its_place() {
    for (from, to) in [(2, 9), (3, 0), (1, 30)] {
        let fixture = JournalFixture::new(200);
        std::fs::rename(fixture.segment(from), fixture.segment(to)).unwrap();
        let (replayed, damage) = fixture.replayed();
        assert_eq!((replayed, damage.len()), (27, 1), "{damage:?}");
        let what = format!("it is segment {from} under another name");
        assert!(
            damage[0].what.contains(&what) && damage[0].samples_at_most == Some(0),
            "{damage:?}"
        );
    }
}

#[test]
fn a_copy_of_a_segment_is_read_once() {
    let fixture = JournalFixture::new(200);
    std::fs::copy(fixture.segment(2), fixture.segment(9)).unwrap();
    let (replayed, damage) = fixture.replayed();
    assert_eq!((replayed, damage.len()), (27, 1), "{damage:?}");
    assert_eq!(damage[0].path, fixture.segment(9));
    assert!(
        damage[0].what.contains("came before") && !damage[0].may_lose_samples(),
        "{damage:?}"
    );
}

#[test]
fn a_segment_that_was_cut_between_two_records_is_noticed_by_the_next_one() {
    let fixture = JournalFixture::new(200);
    // The tick before the last: the first of the next segment says that it is missing.
    let whole = std::fs::read(fixture.segment(1)).unwrap();
    alter(&fixture.segment(1), |bytes| bytes.truncate(whole.len() - TICK));
    let (replayed, damage) = fixture.replayed();
    assert_eq!((replayed, damage.len()), (24, 1), "{damage:?}");
    assert_eq!(
        (damage[0].kind, damage[0].samples_at_most),
        (DamageKind::Missing, Some(3)),
        "{damage:?}"
    );
}

/// Issue 15: the newest segment was cut between two records, and nothing was said.
#[test]
fn the_newest_segment_that_was_cut_is_noticed_by_the_count() {
    for sync in [
        SyncPolicy::None,
        SyncPolicy::Interval(1_000_000_000),
        SyncPolicy::Group,
        SyncPolicy::Each,
    ] {
        for ticks in 1..=9 {
            for beside in [0, 3] {
                let fixture = JournalFixture::with(1 << 20, sync);
                alter(&fixture.segment(1), |bytes| {
                    bytes.truncate(bytes.len() - ticks * TICK + beside);
                });
                let lost = 3 * ticks as u64;
                for _ in 0..2 {
                    let (replayed, damage) = fixture.replayed();
                    assert_eq!((replayed, damage.len()), (27 - lost, 1), "{sync:?}: {damage:?}");
                    assert_eq!(damage[0].samples_at_most, Some(lost), "{sync:?}: {damage:?}");
                    assert_eq!(damage[0].path, fixture.segment(1));
                }
            }
        }
        // To its head.
        let fixture = JournalFixture::with(1 << 20, sync);
        alter(&fixture.segment(1), |bytes| bytes.truncate(32));
        let (replayed, damage) = fixture.replayed();
        assert_eq!((replayed, damage.len()), (0, 1), "{damage:?}");
        assert_eq!(damage[0].samples_at_most, Some(27), "{damage:?}");
    }
}

#[test]
fn after_a_power_cut_only_the_synced_count_is_used() {
    for sync in [
        SyncPolicy::None,
        SyncPolicy::Interval(1_000_000_000),
        SyncPolicy::Group,
        SyncPolicy::Each,
    ] {
        let fixture = JournalFixture::with(1 << 20, sync);
        alter(&fixture.count(), |bytes| reboot(bytes));
        assert_eq!(fixture.replayed(), (27, Vec::new()));
        let fixture = JournalFixture::with(1 << 20, sync);
        alter(&fixture.count(), |bytes| reboot(bytes));
        alter(&fixture.segment(1), |bytes| bytes.truncate(bytes.len() - TICK));
        let (replayed, damage) = fixture.replayed();
        let lost: Vec<_> = damage.iter().map(|damage| damage.samples_at_most).collect();
        let expected: &[_] = if sync.is_before_ack() { &[Some(3)] } else { &[] };
        assert_eq!((replayed, &*lost), (24, expected), "{sync:?}: {damage:?}");
    }
}

#[test]
fn an_outdated_or_missing_count_is_no_damage_and_a_damaged_one_is_reported() {
    let older = |bytes: &mut Vec<u8>| {
        let check = u64::from(crc32fast::hash(&7_u64.to_le_bytes()) as u16);
        for at in [32, 40] {
            bytes[at..at + 8].copy_from_slice(&(check << 48 | 7).to_le_bytes());
        }
    };
    let changes: [fn(&mut Vec<u8>); 3] = [older, Vec::clear, |bytes| bytes.fill(0)];
    for change in changes {
        let fixture = JournalFixture::new(1 << 20);
        alter(&fixture.count(), change);
        assert_eq!(fixture.replayed(), (27, Vec::new()));
    }
    let fixture = JournalFixture::new(1 << 20);
    std::fs::remove_file(fixture.count()).unwrap();
    assert_eq!(fixture.replayed(), (27, Vec::new()));
    let fixture = JournalFixture::new(1 << 20);
    alter(&fixture.count(), |bytes| bytes[34] ^= 1);
    let (_, damage) = fixture.replayed();
    assert_eq!((damage.len(), damage[0].samples_at_most), (1, Some(0)), "{damage:?}");
    assert_eq!(damage[0].path, fixture.count());
    assert_eq!(fixture.replayed().1, Vec::new());
}

#[test]
fn names_that_are_damaged_are_taken_from_another_segment_of_that_opening() {
    let fixture = JournalFixture::new(200);
    alter(&fixture.segment(2), |bytes| bytes[60] ^= 1);
    let (replayed, damage) = fixture.replayed();
    assert_eq!((replayed, damage.len()), (27, 1), "{damage:?}");
    assert_eq!(damage[0].samples_at_most, Some(0), "{damage:?}");
}

#[test]
fn a_later_format_is_an_error_and_nothing_is_touched() {
    let fixture = JournalFixture::new(200);
    alter(&fixture.segment(2), |bytes| {
        bytes[7] = b'3';
        let sum = crc32fast::hash(&bytes[..12]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    });
    let before = fixture.contents();
    let error = fixture.open().unwrap_err();
    assert!(
        matches!(&error, Error::LaterFormat { path, found, .. } if *path == fixture.segment(2) && found == "3"),
        "{error:?}"
    );
    assert_eq!(fixture.contents(), before);
}

#[test]
fn a_missing_or_damaged_marker_is_reported_once_and_written_again() {
    let fixture = JournalFixture::new(200);
    let marker = fixture.journal().join("tsb.journal.marker");
    std::fs::remove_file(&marker).unwrap();
    let (replayed, damage) = fixture.replayed();
    assert_eq!(
        (replayed, damage.len(), damage[0].kind),
        (27, 1, DamageKind::Missing),
        "{damage:?}"
    );
    assert_eq!(fixture.replayed(), (27, Vec::new()));
    alter(&marker, |bytes| bytes[9] ^= 4);
    let (replayed, damage) = fixture.replayed();
    assert_eq!(
        (replayed, damage.len(), damage[0].kind),
        (27, 1, DamageKind::Unreadable),
        "{damage:?}"
    );
    let (replayed, damage) = fixture.replayed();
    assert_eq!(
        (replayed, damage.len(), damage[0].kind),
        (27, 1, DamageKind::KeptAside),
        "{damage:?}"
    );
}
