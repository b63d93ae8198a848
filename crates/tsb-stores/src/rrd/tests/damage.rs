//! Files that are damaged or gone: each costs its own series, and is named.

use super::*;
use crate::damage::DamageKind;

const SERIES: u32 = 5;
/// The series whose file is damaged, and its file.
const HURT: SeriesId = SeriesId(2);
const FILE: &str = "s2.rrd";

fn keys() -> Vec<(SeriesId, SeriesKey)> {
    let keys = (0..SERIES).map(|id| (SeriesId(id), SeriesKey::new(format!("s{id}"))));
    keys.collect()
}

fn fleet(folder: &Path, options: RrdOptions) -> RrdStore {
    let store = RrdStore::open(folder, options).unwrap();
    store.define(&keys()).unwrap();
    store
}

/// A tick of all series: how many samples were taken, and why the others were not.
fn tick(store: &RrdStore, tick: i64) -> (usize, Vec<(u32, Reason)>) {
    let mut refused = Refusals::new();
    let at = Timestamp::from_secs(START + tick * 10);
    let values = [tick as f64; SERIES as usize];
    let ack = store
        .write(&Batch::tick(SeriesId(0), at, &values), &mut refused)
        .unwrap();
    let refused = refused.as_slice().iter().map(|one| (one.index, one.reason));
    (ack.accepted, refused.collect())
}

/// What it is called, and how it is made.
type DamageCase = (&'static str, fn(&Path));

/// Ways to damage a file that is there.
const DAMAGES: [DamageCase; 6] = [
    ("cut short", |path| cut(path, 700)),
    ("empty", |path| cut(path, 0)),
    ("another cookie", |path| flip(path, 1)),
    ("another version", |path| flip(path, 5)),
    ("another heartbeat", |path| flip(path, 168)),
    ("an impossible row", |path| {
        // The number of the newest row of the last archive stands before the rows.
        let bytes = std::fs::read(path).unwrap();
        let header = options().layout().unwrap().header_len();
        let mut bytes = bytes;
        bytes[header - 8..header].fill(0x7f);
        std::fs::write(path, bytes).unwrap();
    }),
];

fn cut(path: &Path, length: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(length).unwrap();
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 4;
    std::fs::write(path, bytes).unwrap();
}

fn lost(store: &RrdStore) -> Vec<(DamageKind, PathBuf)> {
    let damage = store.stats().damage;
    damage.into_iter().map(|damage| (damage.kind, damage.path)).collect()
}

#[test]
fn a_file_that_is_damaged_when_it_is_opened_costs_its_own_series_only() {
    for (what, damage) in DAMAGES {
        let folder = tempfile::tempdir().unwrap();
        let store = fleet(folder.path(), options());
        for number in 0..4 {
            assert_eq!(tick(&store, number).0, SERIES as usize);
        }
        store.close().unwrap();
        let path = folder.path().join(FILE);
        damage(&path);
        let wounded = std::fs::read(&path).unwrap();

        let store = fleet(folder.path(), options());
        assert_eq!(lost(&store), [(DamageKind::Unreadable, path.clone())], "{what}");
        assert_eq!(tick(&store, 4), (4, vec![(2, Reason::Damaged)]), "{what}");
        assert_eq!(store.stats().footprint.sealed_bytes, 4 * store.file_len, "{what}");
        let ids: Vec<SeriesId> = (0..SERIES).map(SeriesId).collect();
        let mut newest = vec![None; ids.len()];
        store.newest(&ids, &mut newest).unwrap();
        for id in ids {
            let rows = store.samples(id, TimeRange::ALL).unwrap();
            let expected = if id == HURT { 0 } else { 4 };
            assert_eq!(rows.len(), expected, "{what}, {id}");
            assert_eq!(newest[id.index()].is_some(), id != HURT, "{what}, {id}");
        }
        assert!(std::fs::read(&path).unwrap() == wounded, "{what}: it was changed");
        assert_eq!(store.stats().damage.len(), 1, "{what}");
        store.close().unwrap();
    }
}

#[test]
fn a_file_that_is_damaged_or_gone_while_it_is_written_costs_its_own_series_only() {
    let gone: (&str, fn(&Path)) = ("gone", |path| std::fs::remove_file(path).unwrap());
    for (is_exclusive, max_open) in [(false, 0), (false, 100), (true, 100)] {
        for (what, damage) in DAMAGES.into_iter().chain([gone]) {
            if is_exclusive && what != "empty" {
                // Nobody else touches the files: only a page that is gone is noticed.
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let options = RrdOptions {
                is_exclusive,
                max_open,
                ..options()
            };
            let store = fleet(folder.path(), options);
            for number in 0..4 {
                assert_eq!(tick(&store, number).0, SERIES as usize);
            }
            damage(&folder.path().join(FILE));
            for number in 4..7 {
                let refused = vec![(2, Reason::Damaged)];
                assert_eq!(tick(&store, number), (4, refused), "{what}, {is_exclusive} {max_open}");
            }
            let kind = if what == "gone" {
                DamageKind::Missing
            } else {
                DamageKind::Unreadable
            };
            assert_eq!(lost(&store), [(kind, folder.path().join(FILE))], "{what}");
            assert!(store.samples(HURT, TimeRange::ALL).unwrap().is_empty());
            assert_eq!(store.samples(SeriesId(4), TimeRange::ALL).unwrap().len(), 6, "{what}");
            assert_eq!(folder.path().join(FILE).exists(), what != "gone", "{what}");
            store.close().unwrap();
        }
    }
}

#[test]
fn a_damaged_file_read_only_by_a_query_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = fleet(folder.path(), options());
    for number in 0..4 {
        tick(&store, number);
    }
    std::fs::remove_file(folder.path().join(FILE)).unwrap();
    let ids: Vec<SeriesId> = (0..SERIES).map(SeriesId).collect();
    let query = Query {
        series: &ids,
        range: TimeRange::ALL,
        resample: None,
    };
    let mut found = Vec::new();
    let mut visit = |id, _: &[Timestamp], _: &[f64]| {
        found.push(id);
        ControlFlow::Continue(())
    };
    store.query(&query, &mut visit).unwrap();
    assert_eq!(found, [0, 1, 3, 4].map(SeriesId));
    assert_eq!(lost(&store), [(DamageKind::Missing, folder.path().join(FILE))]);
}

#[test]
fn a_repaired_file_accepts_samples_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = fleet(folder.path(), options());
    for number in 0..4 {
        tick(&store, number);
    }
    let path = folder.path().join(FILE);
    let sound = std::fs::read(&path).unwrap();
    cut(&path, 100);
    assert_eq!(tick(&store, 4).0, 4);
    std::fs::write(&path, sound).unwrap();
    assert_eq!(tick(&store, 5), (5, vec![]));
    let rows = store.samples(HURT, TimeRange::ALL).unwrap();
    // The step of the refused sample is that of the next one: the heartbeat is three steps.
    assert_eq!(rows.last(), Some(&(Timestamp::from_secs(START + 50), 5.0)));
    assert_eq!(store.stats().damage.len(), 1, "that it was damaged stays on record");
}

/// Before, the id of the key that failed stayed bound, and the next key was in conflict with
/// it: a listener that met one such file admitted no further series.
#[test]
fn a_failed_define_leaves_the_id_free() {
    let folder = tempfile::tempdir().unwrap();
    let other = RrdOptions {
        step_s: 20,
        ..options()
    };
    let store = one_series(folder.path(), other);
    assert_eq!(put(&store, START, 1.0), None);
    store.close().unwrap();
    let store = RrdStore::open(folder.path(), options()).unwrap();
    let long = SeriesKey::new("x".repeat(5_000));
    for refused in [SeriesKey::new("a"), long] {
        assert!(store.define(&[(SeriesId(0), refused)]).is_err());
    }
    store.define(&[(SeriesId(0), SeriesKey::new("b"))]).unwrap();
    assert_eq!(put(&store, START, 1.0), None);
}

/// Of a store whose options are wrong, nothing is called damaged.
#[test]
fn a_wrong_layout_in_every_file_is_an_error_and_not_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = fleet(folder.path(), options());
    tick(&store, 0);
    store.close().unwrap();
    let other = RrdOptions {
        heartbeat_s: 31,
        ..options()
    };
    let store = RrdStore::open(folder.path(), other).unwrap();
    let error = store.define(&keys()).unwrap_err();
    assert!(error.to_string().contains("cannot read "), "{error}");
    assert!(store.stats().damage.is_empty());
}
