//! What is in the files, what waits, and what is said of damage.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt as _;

use super::*;
use crate::damage::DamageKind;
use crate::store::{Reason, StoreExt, TimeRange};

const START: i64 = 1_404_770_400;
const WEEK: i64 = 604_800;

fn options(cache: CachePolicy) -> MstoreOptions {
    MstoreOptions {
        cache,
        ..MstoreOptions::default()
    }
}

fn keys(count: u32) -> Vec<(SeriesId, SeriesKey)> {
    let keys = (0..count).map(|id| (SeriesId(id), SeriesKey::new(format!("cloud.zones.cpu.{id}"))));
    keys.collect()
}

fn open(folder: &Path, options: MstoreOptions, series: u32) -> MstoreStore {
    let store = MstoreStore::open(folder, options).unwrap();
    store.define(&keys(series)).unwrap();
    store
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_secs(START + second)
}

fn tick(store: &MstoreStore, second: i64, values: &[f64]) {
    let _ = store.write_all(&Batch::tick(SeriesId(0), at(second), values)).unwrap();
}

/// The path of a file of the week of `START`.
fn file(folder: &Path, extension: &str) -> PathBuf {
    folder.join(format!("{}.{extension}", START / WEEK * WEEK))
}

fn word(folder: &Path, metric: u64, second: i64) -> u64 {
    let mut bytes = [0; 8];
    let position = metric * 4_838_400 + ((START + second) % WEEK) as u64 * 8;
    let points = std::fs::File::open(file(folder, "mstore")).unwrap();
    points.read_exact_at(&mut bytes, position).unwrap();
    u64::from_be_bytes(bytes)
}

#[test]
fn points_are_where_the_arithmetic_of_mstore_puts_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), options(CachePolicy::Off), 3);
    tick(&store, 0, &[42.0, -10.0, 1.5]);
    tick(&store, 1, &[0.0, 0.1, 1.0 / 3.0]);
    assert_eq!(word(folder.path(), 0, 0), 0x0100_0000_0000_002a);
    assert_eq!(word(folder.path(), 1, 0), 0x01ff_ffff_ffff_fff6);
    assert_eq!(word(folder.path(), 2, 0), 0x02ff_0000_0000_000f);
    assert_eq!(word(folder.path(), 2, 1), (1.0_f64 / 3.0).to_bits() >> 1 | 1 << 63);
    assert_eq!((word(folder.path(), 0, 2), word(folder.path(), 1, -1)), (0, 0));
    // The address space of three metrics, and hardly anything on disk.
    assert_eq!(
        std::fs::metadata(file(folder.path(), "mstore")).unwrap().len(),
        3 * 4_838_400
    );
    let mut index = (START / WEEK * WEEK).to_be_bytes().to_vec();
    index.extend_from_slice(&WEEK.to_be_bytes());
    for id in 0..3 {
        index.extend_from_slice(&[0, 17]);
        index.extend_from_slice(format!("cloud.zones.cpu.{id}").as_bytes());
    }
    assert_eq!(std::fs::read(file(folder.path(), "idx")).unwrap(), index);
    let disk_bytes = store.stats().disk_bytes.unwrap();
    assert!(disk_bytes < 1 << 20, "{disk_bytes}");
}

#[test]
fn a_query_writes_what_waits_and_nothing_else_does() {
    for cache in [CachePolicy::Round1, CachePolicy::Round2] {
        let folder = tempfile::tempdir().unwrap();
        let options = MstoreOptions {
            cache_points: 1_000_000,
            ..options(cache)
        };
        let store = open(folder.path(), options, 2);
        for second in 0..50 {
            tick(&store, second, &[second as f64, 7.0]);
        }
        assert!(!file(folder.path(), "mstore").exists(), "{cache:?}");
        assert_eq!(store.durable(Durability::Buffered), Position(0));
        assert_eq!(store.stats().samples, 100);
        let mut newest = [None];
        store.newest(&[SeriesId(1)], &mut newest).unwrap();
        assert_eq!(newest, [Some(at(49))]);
        assert_eq!(store.samples(SeriesId(1), TimeRange::ALL).unwrap().len(), 50);
        assert_eq!(
            (word(folder.path(), 0, 0), word(folder.path(), 1, 49)),
            (0, 0x0100_0000_0000_0007)
        );
        store.flush(Scope::All, Durability::Buffered).unwrap();
        assert_eq!(word(folder.path(), 0, 49), 0x0100_0000_0000_0031);
        assert_eq!(store.durable(Durability::Buffered), Position(100));
    }
}

#[test]
fn a_repeat_and_a_late_point_are_counted_wherever_the_first_one_is() {
    for cache in [CachePolicy::Off, CachePolicy::Round1, CachePolicy::Round2] {
        let folder = tempfile::tempdir().unwrap();
        let options = MstoreOptions {
            cache_points: 3,
            ..options(cache)
        };
        let store = open(folder.path(), options, 1);
        let feed = [0, 1, 2, 3, 4, 5, 6, 1, 6, 3, 3, 9, 8, 0, 12, 7];
        for (value, &second) in feed.iter().enumerate() {
            tick(&store, second, &[value as f64]);
        }
        let distinct = feed.iter().collect::<BTreeSet<_>>();
        let stats = store.stats();
        assert_eq!(
            (stats.samples, stats.superseded),
            (distinct.len() as u64, 5),
            "{cache:?}"
        );
        let rows = store.samples(SeriesId(0), TimeRange::ALL).unwrap();
        let last = |second: i64| feed.iter().rposition(|other| *other == second).unwrap() as f64;
        let expected: Vec<_> = distinct.iter().map(|second| (at(**second), last(**second))).collect();
        assert_eq!(rows, expected, "{cache:?}");
    }
}

#[test]
fn the_defect_loses_samples_and_the_counts_show_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = MstoreOptions {
        has_defect: true,
        ..options(CachePolicy::Round2)
    };
    let store = open(folder.path(), options, 1);
    // Past the first window, the length of which is drawn.
    for second in (0..400).chain([390]) {
        tick(&store, second, &[1.0]);
    }
    store.flush(Scope::All, Durability::Buffered).unwrap();
    let rows = store.samples(SeriesId(0), TimeRange::ALL).unwrap();
    assert_eq!(rows.last(), Some(&(at(390), 1.0)));
    let stats = store.stats();
    assert_eq!((stats.samples, stats.accepted, stats.superseded), (391, 401, 1));
}

#[test]
fn a_value_is_exact_or_loses_its_last_bit_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), options(CachePolicy::Round2), 5);
    let values = [1.0 / 3.0, f64::NAN, f64::INFINITY, -0.0, 1e300];
    let mut refused = Refusals::new();
    let ack = store
        .write(&Batch::tick(SeriesId(0), at(0), &values), &mut refused)
        .unwrap();
    assert_eq!(
        (ack.accepted, ack.rejected, ack.durability),
        (3, 2, Durability::Volatile)
    );
    assert!(
        refused
            .as_slice()
            .iter()
            .all(|one| one.reason == Reason::Unrepresentable)
    );
    for (id, value) in [(0, f64::from_bits(values[0].to_bits() & !1)), (3, -0.0), (4, 1e300)] {
        let rows = store.samples(SeriesId(id), TimeRange::ALL).unwrap();
        assert_eq!(rows[0].1.to_bits(), value.to_bits(), "{id}");
    }
}

#[test]
fn files_are_bounded_and_a_block_may_cross_them() {
    let folder = tempfile::tempdir().unwrap();
    let options = MstoreOptions {
        points_per_file: 10,
        max_files: 3,
        ..options(CachePolicy::Round1)
    };
    let store = open(folder.path(), options, 1);
    for second in 0..30 {
        tick(&store, second, &[second as f64]);
    }
    let mut refused = Refusals::new();
    let _ = store
        .write(&Batch::tick(SeriesId(0), at(30), &[1.0]), &mut refused)
        .unwrap();
    assert_eq!(refused.as_slice()[0].reason, Reason::Full);
    let rows = store.samples(SeriesId(0), TimeRange::ALL).unwrap();
    let expected: Vec<_> = (0..30).map(|second| (at(second), second as f64)).collect();
    assert_eq!(rows, expected);
    store.close().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 7);
}

#[test]
fn another_life_counts_what_is_there_and_keeps_the_folder_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), options(CachePolicy::Round2), 2);
    let why = MstoreStore::open(folder.path(), options(CachePolicy::Round2)).unwrap_err();
    assert!(crate::error::chain(&why).contains("has it open as a store"), "{why:?}");
    tick(&first, 0, &[1.0, 2.0]);
    tick(&first, 1, &[3.0, 4.0]);
    first.close().unwrap();
    let other = MstoreOptions {
        step_ns: 2_000_000_000,
        ..options(CachePolicy::Off)
    };
    let why = MstoreStore::open(folder.path(), other).unwrap_err().to_string();
    assert!(
        why.contains("step=1000000000ns") && why.contains("2000000000ns"),
        "{why}"
    );
    assert_eq!(made_with(folder.path()).unwrap(), Some(MstoreOptions::default()));
    let (_, listed) = catalog(folder.path()).unwrap();
    assert_eq!(listed, keys(2).into_iter().map(|(_, key)| key).collect::<Vec<_>>());
    let again = MstoreStore::open(folder.path(), options(CachePolicy::Off)).unwrap();
    again.define(&[(SeriesId(0), keys(2)[1].1.clone())]).unwrap();
    assert_eq!((again.stats().samples, again.stats().series), (4, 1));
    tick(&again, 1, &[5.0]);
    assert_eq!((again.stats().samples, again.stats().superseded), (4, 1));
    assert_eq!(
        again.samples(SeriesId(0), TimeRange::ALL).unwrap(),
        [(at(0), 2.0), (at(1), 5.0)]
    );
}

/// What is damaged, how, and what opening says.
type DamageCase = (&'static str, fn(&Path), &'static str);

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

fn set_len(path: &Path, len: u64) {
    std::fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(len)
        .unwrap();
}

const DAMAGES: [DamageCase; 11] = [
    (
        "a letter of a name",
        |d| edit(&file(d, "idx"), |bytes| bytes[25] ^= 4),
        "its checksum",
    ),
    (
        "the head of an index",
        |d| edit(&file(d, "idx"), |bytes| bytes[7] ^= 1),
        "its checksum",
    ),
    (
        "an index cut short",
        |d| set_len(&file(d, "idx"), 40),
        "it is cut short",
    ),
    (
        "an index gone",
        |d| std::fs::remove_file(file(d, "idx")).unwrap(),
        "cannot read",
    ),
    (
        "points cut short",
        |d| set_len(&file(d, "mstore"), 4_838_400),
        "it is cut short",
    ),
    (
        "points gone",
        |d| std::fs::remove_file(file(d, "mstore")).unwrap(),
        "cannot open",
    ),
    (
        "points behind the last series",
        |d| edit(&file(d, "mstore"), |bytes| bytes.extend_from_slice(&[1; 16])),
        "behind those of the metrics",
    ),
    (
        "a list gone",
        |d| std::fs::remove_file(d.join("mstore.list")).unwrap(),
        "it does not list",
    ),
    (
        "a list without its last line",
        |d| edit(&d.join("mstore.list"), cut_last_line),
        "it does not list",
    ),
    (
        "a line of a list",
        |d| edit(&d.join("mstore.list"), |bytes| bytes[20] ^= 1),
        "does not begin as a list",
    ),
    (
        "a list of a later version",
        |d| edit(&d.join("mstore.list"), later),
        "is of format 2",
    ),
];

fn cut_last_line(bytes: &mut Vec<u8>) {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let last = lines.next_back().unwrap().len();
    bytes.truncate(bytes.len() - last);
}

fn later(bytes: &mut Vec<u8>) {
    let record = "mstore 2 anything";
    *bytes = format!("{record} {:08x}\n", crc32fast::hash(record.as_bytes())).into_bytes();
}

fn two_ticks(folder: &Path) {
    let store = open(folder, options(CachePolicy::Off), 2);
    tick(&store, 0, &[1.0, 2.0]);
    tick(&store, 1, &[3.0, 4.0]);
    store.close().unwrap();
}

#[test]
fn damage_to_what_has_a_checksum_or_a_length_is_an_error() {
    for (what, damage, said) in DAMAGES {
        let folder = tempfile::tempdir().unwrap();
        two_ticks(folder.path());
        damage(folder.path());
        // Opening it does not mend it.
        for _ in 0..2 {
            let why = MstoreStore::open(folder.path(), options(CachePolicy::Off)).unwrap_err();
            assert!(why.to_string().contains(said), "{what}: {why}");
        }
    }
}

#[test]
fn what_a_crash_leaves_is_no_damage_and_an_invalid_point_is_said() {
    let folder = tempfile::tempdir().unwrap();
    two_ticks(folder.path());
    // A line of the list that was not finished, and a pair of files that was not yet listed.
    edit(&folder.path().join("mstore.list"), |bytes| {
        bytes.extend_from_slice(b"file 12 met");
    });
    std::fs::write(folder.path().join("0.idx"), [0; 9]).unwrap();
    std::fs::write(folder.path().join("0.mstore"), [0; 4_096]).unwrap();
    edit(&file(folder.path(), "idx"), |bytes| {
        bytes.extend_from_slice(&[0, 3, b'x']);
    });
    let position = 4_838_400 + (START % WEEK) as u64 * 8;
    let points = std::fs::File::options()
        .write(true)
        .open(file(folder.path(), "mstore"))
        .unwrap();
    points.write_all_at(&[3], position).unwrap();
    let store = open(folder.path(), options(CachePolicy::Off), 3);
    assert!(!folder.path().join("0.idx").exists());
    let said = store.stats().damage;
    assert_eq!(
        said.iter().map(|one| one.kind).collect::<Vec<_>>(),
        [DamageKind::Torn, DamageKind::Unreadable]
    );
    let what = said[1].to_string();
    assert!(
        what.contains("cloud.zones.cpu.1") && what.contains(&position.to_string()),
        "{what}"
    );
    assert_eq!(
        store.samples(SeriesId(0), TimeRange::ALL).unwrap(),
        [(at(0), 1.0), (at(1), 3.0)]
    );
    assert_eq!(store.samples(SeriesId(1), TimeRange::ALL).unwrap(), [(at(1), 4.0)]);
    assert_eq!(store.stats().damage, said, "reading finds the same");
    // The interrupted entry gives way to the next series.
    tick(&store, 2, &[5.0, 6.0, 7.0]);
    store.close().unwrap();
    let again = open(folder.path(), options(CachePolicy::Off), 3);
    assert_eq!(again.samples(SeriesId(2), TimeRange::ALL).unwrap(), [(at(2), 7.0)]);
}

#[test]
fn any_bytes_in_place_of_a_list_or_an_index_end_in_an_answer() {
    let mut random: u64 = 1;
    for round in 0..300 {
        let folder = tempfile::tempdir().unwrap();
        two_ticks(folder.path());
        let victim = match round % 2 {
            0 => folder.path().join("mstore.list"),
            _ => file(folder.path(), "idx"),
        };
        edit(&victim, |bytes| {
            for _ in 0..=round % 5 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let place = (random >> 33) as usize % bytes.len();
                bytes[place] = (random >> 20) as u8;
                if random >> 60 == 0 {
                    bytes.truncate(place);
                    break;
                }
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        });
        let Ok(store) = MstoreStore::open(folder.path(), options(CachePolicy::Off)) else {
            continue;
        };
        store.define(&keys(2)).unwrap();
        let is_whole = store.samples(SeriesId(0), TimeRange::ALL).unwrap() == [(at(0), 1.0), (at(1), 3.0)]
            && store.samples(SeriesId(1), TimeRange::ALL).unwrap() == [(at(0), 2.0), (at(1), 4.0)];
        assert!(is_whole || !store.stats().damage.is_empty(), "round {round}");
    }
}

#[test]
fn options_that_no_file_can_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let base = MstoreOptions::default();
    let bad = [
        MstoreOptions {
            step_ns: 999,
            ..base.clone()
        },
        MstoreOptions {
            points_per_file: 0,
            ..base.clone()
        },
        MstoreOptions {
            cache_points: 0,
            ..base.clone()
        },
        MstoreOptions {
            max_series: usize::MAX,
            ..base.clone()
        },
        MstoreOptions {
            has_defect: true,
            cache: CachePolicy::Round1,
            ..base
        },
    ];
    for options in bad {
        let error = MstoreStore::open(&folder.path().join("x"), options.clone()).unwrap_err();
        assert!(matches!(error, Error::Spec { .. }), "{options:?}: {error}");
    }
    assert!(!folder.path().join("x").exists());
    let store = open(folder.path(), MstoreOptions::default(), 1);
    let long = SeriesKey::new("x".repeat(65_536));
    assert!(matches!(
        store.define(&[(SeriesId(1), long)]),
        Err(Error::Unsupported { .. })
    ));
}
