//! The write-ahead log of an SQLite file after a kill: one that is lost, cut or damaged is said
//! at the next opening, whatever SQLite makes of it, and one that is whole is not.

#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_stores::sqlite::{Commit, Layout, SqliteOptions, Synchronous, open};
use tsb_stores::{Damage, DamageKind, Store, StoreExt as _, TimeRange};

const COMMITS: i64 = 40;
const LAYOUTS: [Layout; 2] = [Layout::Ticks, Layout::Rows];

/// What is done to a log, by its name.
type LogDamage<'a> = (&'a str, &'a dyn Fn(&Path));

/// The files of a store as a kill would leave them after some commits.
struct Killed {
    folder: tempfile::TempDir,
}

fn define(store: &dyn Store) {
    store.define(&[(SeriesId(0), SeriesKey::new("a"))]).unwrap();
}

impl Killed {
    fn new(layout: Layout, options: &SqliteOptions) -> Self {
        Self::after_each(layout, options, COMMITS..=COMMITS).pop().unwrap()
    }

    /// One life, killed after each of these commits.
    fn after_each(layout: Layout, options: &SqliteOptions, commits: RangeInclusive<i64>) -> Vec<Self> {
        let life = tempfile::tempdir().unwrap();
        let store = open(&life.path().join("x.db"), layout, options.clone()).unwrap();
        define(&*store);
        let mut killed = Vec::new();
        for tick in 1..=*commits.end() {
            let values = [tick as f64];
            let batch = Batch::tick(SeriesId(0), Timestamp(tick * 1_000_000), &values);
            assert_eq!(store.write_all(&batch).unwrap().accepted, 1);
            if commits.contains(&tick) {
                killed.push(Self::copy_of(life.path()));
            }
        }
        killed
    }

    fn copy_of(files: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(files).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        let killed = Self { folder };
        assert!(killed.wal().exists() && killed.beside("-lock").exists());
        killed
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("x.db")
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.folder.path().join(format!("x.db{suffix}"))
    }

    fn wal(&self) -> PathBuf {
        self.beside("-wal")
    }

    /// Opens what is left: the samples in it, and what the store says of damage.
    fn open(&self, layout: Layout) -> (usize, Vec<Damage>) {
        let store = open(&self.path(), layout, SqliteOptions::default()).unwrap();
        let damage = store.stats().damage;
        define(&*store);
        let rows = store.rows(SeriesId(0), TimeRange::ALL, None).unwrap();
        store.close().unwrap();
        (rows.len(), damage)
    }
}

fn is_reported(damage: &[Damage], wal: &Path) -> bool {
    let mut lost = damage.iter().filter(|damage| damage.may_lose_samples());
    lost.any(|damage| damage.kind == DamageKind::Missing && damage.path == wal)
}

#[test]
fn a_log_that_is_whole_is_no_damage() {
    let options = [
        SqliteOptions::default(),
        SqliteOptions {
            synchronous: Synchronous::Normal,
            ..SqliteOptions::default()
        },
        SqliteOptions {
            checkpoint_bytes: 4096 * 5,
            ..SqliteOptions::default()
        },
        SqliteOptions {
            commit: Commit::Every(7_000_000),
            ..SqliteOptions::default()
        },
    ];
    for layout in LAYOUTS {
        for options in &options {
            let killed = Killed::new(layout, options);
            let (rows, damage) = killed.open(layout);
            assert!(damage.is_empty(), "{layout:?} {options:?}: {damage:?}");
            assert!(rows >= COMMITS as usize - 7, "{rows}");
            // Closed, and opened once more.
            assert!(!killed.wal().exists() && !killed.beside("-lock").exists());
            assert_eq!(killed.open(layout), (rows, Vec::new()));
        }
    }
}

#[test]
fn a_missing_cut_or_damaged_log_is_reported() {
    for layout in LAYOUTS {
        let frame = 4096 + 24;
        let length = fs::metadata(Killed::new(layout, &SqliteOptions::default()).wal())
            .unwrap()
            .len() as usize;
        let damages: [LogDamage<'_>; 6] = [
            ("gone", &|wal| fs::remove_file(wal).unwrap()),
            ("empty", &|wal| fs::write(wal, "").unwrap()),
            ("cut", &|wal| cut(wal, length / 2)),
            ("cut between two pages", &|wal| {
                cut(wal, 32 + frame * ((length / frame) - 3));
            }),
            ("damaged in its header", &|wal| flip(wal, 9)),
            ("damaged in the middle", &|wal| flip(wal, length / 2)),
        ];
        for (what, damage_log) in damages {
            let killed = Killed::new(layout, &SqliteOptions::default());
            let real = fs::canonicalize(killed.wal()).unwrap();
            damage_log(&killed.wal());
            let was_there = fs::metadata(killed.wal()).is_ok_and(|wal| wal.len() > 0);
            let (rows, damage) = killed.open(layout);
            assert!(rows < COMMITS as usize, "{layout:?}: {what} loses nothing");
            assert!(
                is_reported(&damage, &real),
                "{layout:?}: a log that is {what}: {damage:?}"
            );
            // It is kept as it was found, and not said once more.
            assert_eq!(killed.beside("-wal.damaged-1").exists(), was_there, "{what}");
            assert_eq!(killed.open(layout), (rows, Vec::new()));
        }
    }
}

/// Issue 15: of a log that is in the database, SQLite used what was left before a damaged page,
/// and turned the database back to it.
#[test]
fn a_partial_log_never_reverts_the_database() {
    let options = SqliteOptions {
        checkpoint_bytes: 4096 * 8,
        ..SqliteOptions::default()
    };
    let ends = 21..=40;
    for layout in LAYOUTS {
        let (mut all_there, mut lost) = (0, 0);
        for (commits, killed) in ends.clone().zip(Killed::after_each(layout, &options, ends.clone())) {
            let length = fs::metadata(killed.wal()).unwrap().len() as usize;
            for at in [length / 5, length / 2, length - 3000] {
                let copy = Killed::copy_of(killed.folder.path());
                flip(&copy.wal(), at);
                let real = fs::canonicalize(copy.wal()).unwrap();
                let (rows, damage) = copy.open(layout);
                let what = format!("{layout:?}, {commits} commits, byte {at} of {length}: {rows}, {damage:?}");
                if rows as i64 == commits {
                    // A log that is left alone was written over, or is put aside and said.
                    assert!(!damage.iter().any(Damage::may_lose_samples), "{what}");
                    all_there += 1;
                } else {
                    assert!(is_reported(&damage, &real), "{what}");
                    lost += 1;
                }
                assert_eq!(copy.open(layout), (rows, Vec::new()), "{what}");
            }
        }
        assert!(all_there > 0 && lost > 0, "{layout:?}: {all_there}, {lost}");
    }
}

fn cut(wal: &Path, length: usize) {
    let bytes = fs::read(wal).unwrap();
    fs::write(wal, &bytes[..length]).unwrap();
}

fn flip(wal: &Path, at: usize) {
    let mut bytes = fs::read(wal).unwrap();
    bytes[at] ^= 1;
    fs::write(wal, bytes).unwrap();
}

#[test]
fn a_missing_database_with_a_log_is_reported() {
    for layout in LAYOUTS {
        let killed = Killed::new(layout, &SqliteOptions::default());
        fs::remove_file(killed.path()).unwrap();
        let (rows, damage) = killed.open(layout);
        assert_eq!(rows, 0);
        assert!(
            is_reported(&damage, &fs::canonicalize(killed.path()).unwrap()),
            "{damage:?}"
        );
        assert!(killed.beside("-wal.damaged-1").exists());
        assert_eq!(killed.open(layout), (0, Vec::new()));
    }
}

#[test]
fn a_log_that_another_program_has_copied_into_the_file_is_not_lost() {
    for layout in LAYOUTS {
        let killed = Killed::new(layout, &SqliteOptions::default());
        let other = rusqlite::Connection::open(killed.path()).unwrap();
        let tables: i64 = other
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert!(tables > 1);
        other.close().unwrap();
        assert!(!killed.wal().exists());
        assert_eq!(killed.open(layout), (COMMITS as usize, Vec::new()));
    }
}

#[test]
fn a_damaged_log_without_a_count_is_reported_if_commits_follow_the_damage() {
    let killed = Killed::new(Layout::Ticks, &SqliteOptions::default());
    fs::remove_file(killed.beside("-lock")).unwrap();
    let length = fs::metadata(killed.wal()).unwrap().len() as usize;
    flip(&killed.wal(), length / 2);
    let real = fs::canonicalize(killed.wal()).unwrap();
    let (rows, damage) = killed.open(Layout::Ticks);
    assert!(rows < COMMITS as usize && is_reported(&damage, &real), "{damage:?}");
}

/// Two files had changed places: of the count it was said that no sample was lost by it, and of
/// the log nothing.
#[test]
fn a_file_that_is_no_log_is_reported_even_if_the_count_is_damaged() {
    for layout in LAYOUTS {
        let killed = Killed::new(layout, &SqliteOptions::default());
        let (wal, count) = (killed.wal(), killed.beside("-lock"));
        let (log, counted) = (fs::read(&wal).unwrap(), fs::read(&count).unwrap());
        fs::write(&wal, &counted).unwrap();
        fs::write(&count, &log).unwrap();
        let real = fs::canonicalize(&wal).unwrap();
        let (rows, damage) = killed.open(layout);
        assert!(
            rows < COMMITS as usize && is_reported(&damage, &real),
            "{rows}, {damage:?}"
        );
        assert_eq!(fs::read(killed.beside("-wal.damaged-1")).unwrap(), counted);
    }
}

#[test]
fn a_damaged_count_is_reported_and_loses_nothing() {
    let killed = Killed::new(Layout::Ticks, &SqliteOptions::default());
    flip(&killed.beside("-lock"), 20);
    let (rows, damage) = killed.open(Layout::Ticks);
    assert_eq!(rows, COMMITS as usize);
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert!(!damage[0].may_lose_samples(), "{damage:?}");
}

#[test]
fn one_file_is_one_store_under_all_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(at("x.db"), at("early")).unwrap();
    let opened = |name: &str| open(&at(name), Layout::Ticks, SqliteOptions::default());
    let store = opened("early").unwrap();
    define(&*store);
    std::os::unix::fs::symlink(at("x.db"), at("late")).unwrap();
    fs::hard_link(at("x.db"), at("hard")).unwrap();
    for name in ["x.db", "early", "late"] {
        let refused = opened(name).unwrap_err();
        let words = std::error::Error::source(&refused).unwrap().to_string();
        assert!(words.contains("has it open"), "{name}: {words}");
    }
    let refused = opened("hard").unwrap_err();
    let words = std::error::Error::source(&refused).unwrap().to_string();
    assert!(words.contains("2 names"), "{words}");
    // What is refused leaves the store as it was.
    let batch = Batch::tick(SeriesId(0), Timestamp(1), &[1.0]);
    assert_eq!(store.write_all(&batch).unwrap().accepted, 1);
    store.close().unwrap();
    fs::remove_file(at("hard")).unwrap();
    let store = opened("late").unwrap();
    define(&*store);
    assert_eq!(store.rows(SeriesId(0), TimeRange::ALL, None).unwrap().len(), 1);
    store.close().unwrap();
}
