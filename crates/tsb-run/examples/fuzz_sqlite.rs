//! Fuzzes the SQLite store's files, catalog and chunks of each layout from a seed, for a given
//! number of rounds.
//!
//! `cargo run --release -p tsb-run --features sqlite --example fuzz_sqlite -- 1000 1`. A database, with or
//! without its log, is damaged in a few places, then opened, read, written and closed as a
//! program would: an error is allowed, a panic is not. A failing file is kept in a temporary
//! folder.
#![expect(clippy::print_stdout, reason = "an example prints its result")]
#![expect(clippy::unwrap_used, reason = "an example may stop with a message")]

use std::ops::ControlFlow;
use std::panic::catch_unwind;
use std::path::Path;

use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_run::spec;
use tsb_stores::sqlite::check;
use tsb_stores::{Query, Refusals, Store, TimeRange};

const SERIES: u32 = 6;
const TICKS: i64 = 300;
const START_S: i64 = 1_700_000_000;
/// The layouts, as options of the spec.
const LAYOUTS: [&str; 3] = ["", "?layout=rows", "?layout=mohawk"];
/// File name endings of a database, its log, and its rollback journal.
const ENDINGS: [&str; 3] = ["", "-wal", "-journal"];

type Image = Vec<(&'static str, Vec<u8>)>;

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().unwrap());
    let (rounds, seed) = (words.next().unwrap_or(200), words.next().unwrap_or(1));
    let folder = std::env::temp_dir().join(format!("tsb-sqlite-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let corpus: Vec<(&str, Image)> = LAYOUTS.iter().flat_map(|layout| images(&folder, layout)).collect();
    let mut random = Random(seed);
    let mut sound = 0_u64;
    for round in 0..rounds {
        let (layout, image) = &corpus[random.below(corpus.len())];
        let path = folder.join("damaged.db");
        for end in ENDINGS {
            let _ = std::fs::remove_file(beside(&path, end));
        }
        let _ = std::fs::remove_file(beside(&path, "-shm"));
        for (end, bytes) in image {
            let mut bytes = bytes.clone();
            damage(&mut bytes, &mut random);
            std::fs::write(beside(&path, end), bytes).unwrap();
        }
        let used = catch_unwind(|| use_it(&path, layout));
        sound += u64::from(used.unwrap_or_else(|_| panic!("round {round} of seed {seed}: {}", path.display())));
    }
    println!("{rounds} databases from seed {seed}, {sound} of them read to the end: no failure");
    std::fs::remove_dir_all(&folder).unwrap();
}

fn beside(path: &Path, end: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn open(path: &Path, layout: &str) -> tsb_stores::Result<Box<dyn Store>> {
    spec::open(&format!("sqlite:{}{layout}", path.display()))
}

/// The files of a store that is still open, and of the same store after it was closed.
fn images(folder: &Path, layout: &'static str) -> [(&'static str, Image); 2] {
    let path = folder.join(format!("sound{}.db", layout.len()));
    let store = open(&path, layout).unwrap();
    store.define(&keys()).unwrap();
    for tick in 0..TICKS {
        write(&*store, tick).unwrap();
    }
    let read = || -> Image {
        let files = ENDINGS.into_iter().map(|end| (end, std::fs::read(beside(&path, end))));
        files.filter_map(|(end, bytes)| Some((end, bytes.ok()?))).collect()
    };
    let left = read();
    store.close().unwrap();
    [(layout, left), (layout, read())]
}

fn keys() -> Vec<(SeriesId, SeriesKey)> {
    let keys = (0..SERIES).map(|id| (SeriesId(id), SeriesKey::with_labels("s", [("id", id.to_string())])));
    keys.collect()
}

fn write(store: &dyn Store, tick: i64) -> tsb_stores::Result<()> {
    let values: Vec<f64> = (0..SERIES).map(|id| (tick * 7 + i64::from(id)) as f64 / 4.0).collect();
    let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(START_S + tick * 10), &values);
    store.write(&batch, &mut Refusals::new()).map(drop)
}

/// Reads everything, writes more, and closes. Returns whether all of it succeeded.
fn use_it(path: &Path, layout: &str) -> bool {
    let checked = check(path);
    let used = open(path, layout).and_then(|store| {
        store.define(&keys())?;
        let series: Vec<SeriesId> = (0..SERIES).map(SeriesId).collect();
        let mut samples = 0_usize;
        let query = Query {
            series: &series,
            range: TimeRange::ALL,
            resample: None,
        };
        store.query(&query, &mut |_, times, values| {
            assert_eq!(times.len(), values.len());
            samples += times.len();
            ControlFlow::Continue(())
        })?;
        assert!(samples < 1 << 24, "{samples} samples came out of a small file");
        store.newest(&series, &mut vec![None; series.len()])?;
        write(&*store, TICKS + 10)?;
        let _ = store.stats();
        store.close()
    });
    checked.is_ok() && used.is_ok()
}

/// Random numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}

/// Flips bits, overwrites, moves and truncates; sometimes does nothing.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(6) {
        let at = random.below(bytes.len());
        let most = 1 << random.below(13);
        let length = random.below((bytes.len() - at).min(most) + 1);
        match random.below(6) {
            0 | 1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            2 => bytes[at..at + length].fill(0),
            3 => bytes[at..at + length].fill(0xff),
            4 => {
                let from = random.below(bytes.len() - length + 1);
                bytes.copy_within(from..from + length, at);
            }
            _ if random.below(4) == 0 => bytes.truncate(at),
            _ => {}
        }
    }
}
