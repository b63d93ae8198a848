//! Every store, every wrapper over every store, boxed and shared: one line each.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::Arguments;
use tsb_core::time::{ManualClock, MonotonicClock};
use tsb_stores::conformance::{self, Bounded, Damaged, Fixture, Fresh, Place, was_writer};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::null::NullStore;
use tsb_stores::ring::{RingOptions, RingStore};
use tsb_stores::rrd::{EngineKind, RrdOptions, RrdStore};
use tsb_stores::throttle::{Throttle, ThrottleOptions};
use tsb_stores::write_cache::{JournalOptions, SyncPolicy, WriteCache, WriteCacheOptions};
use tsb_stores::{ArchiveRule, Consolidation, Result, Store};

const SECOND: i64 = 1_000_000_000;

/// A store to test: how to open it, and one that is soon full.
#[derive(Clone, Copy)]
struct Subject {
    name: &'static str,
    open: fn() -> Result<Box<dyn Store>>,
    bounded: Option<fn() -> Result<Bounded>>,
}

/// The conformance list: a new store adds a line here.
const SUBJECTS: [Subject; 5] = [
    Subject {
        name: "null",
        open: || Ok(Box::new(NullStore::new())),
        bounded: None,
    },
    Subject {
        name: "memory",
        open: || Ok(Box::new(MemoryStore::new(MemoryOptions::default()))),
        bounded: Some(bounded_memory),
    },
    Subject {
        name: "memory-retention",
        open: || Ok(Box::new(MemoryStore::new(kept_for_an_hour()))),
        bounded: None,
    },
    Subject {
        name: "ring",
        open: || Ok(Box::new(RingStore::new(RingOptions::default())?)),
        bounded: Some(bounded_ring),
    },
    Subject {
        name: "ring-small",
        open: || Ok(Box::new(RingStore::new(small_ring())?)),
        bounded: None,
    },
];

fn small_ring() -> RingOptions {
    RingOptions {
        slot_ns: 100_000_000,
        retention_ns: 301 * SECOND,
        ..RingOptions::default()
    }
}

fn kept_for_an_hour() -> MemoryOptions {
    MemoryOptions {
        retention_ns: Some(3_600 * SECOND),
        ..MemoryOptions::default()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the list holds functions that may fail")]
fn bounded_memory() -> Result<Bounded> {
    let options = MemoryOptions {
        max_bytes: Some(1 << 20),
        max_series: Some(20),
        ..MemoryOptions::default()
    };
    Ok(Bounded {
        store: Box::new(MemoryStore::new(options)),
        max_series: 20,
        fills_up: true,
    })
}

fn bounded_ring() -> Result<Bounded> {
    let options = RingOptions {
        max_series: 20,
        max_bytes: 10 * 322_560,
        ..RingOptions::default()
    };
    Ok(Bounded {
        store: Box::new(RingStore::new(options)?),
        max_series: 20,
        fills_up: true,
    })
}

impl Subject {
    fn fixture<S: Store>(self, wrapper: &str, wrap: fn(Box<dyn Store>) -> Result<S>) -> Fresh {
        let name = match wrapper {
            "" => self.name.to_owned(),
            wrapper => format!("{wrapper}+{}", self.name),
        };
        let fixture = Fresh::new(name, move || wrap((self.open)()?));
        match self.bounded {
            None => fixture,
            Some(open) => fixture.bounded(move || {
                let bounded = open()?;
                Ok(Bounded {
                    store: Box::new(wrap(bounded.store)?),
                    ..bounded
                })
            }),
        }
    }

    /// The store itself, as an `Arc`, behind a throttle, and behind queues.
    fn fixtures(self) -> [Fresh; 4] {
        [
            self.fixture("", Ok),
            self.fixture("arc", |store| Ok(Arc::new(store))),
            self.fixture("throttle", throttled),
            // It refuses as full by the bound of its own, which is another fixture's.
            Self { bounded: None, ..self }.fixture("write-cache", cached),
        ]
    }
}

/// Slow and stalling in virtual time, but without faults: it must be as good as what it wraps.
fn throttled(inner: Box<dyn Store>) -> Result<Throttle<Box<dyn Store>>> {
    let options = ThrottleOptions {
        rate_per_second: Some(1_000_000),
        stall_every_ns: Some(1_000_000),
        stall_for_ns: Some(100_000),
        ..ThrottleOptions::default()
    };
    Throttle::new(inner, options, Arc::new(ManualClock::new()))
}

/// Series are due now and then while a check runs, and by themselves in between.
fn cache_options(journal: Option<JournalOptions>) -> WriteCacheOptions {
    WriteCacheOptions {
        timeout_ns: 20_000_000,
        jitter_ns: 5_000_000,
        flush_ns: 50_000_000,
        threads: 2,
        journal,
        ..WriteCacheOptions::default()
    }
}

fn cached(inner: Box<dyn Store>) -> Result<WriteCache<Box<dyn Store>>> {
    WriteCache::new(inner, &cache_options(None), Arc::new(MonotonicClock::new()))
}

/// A cache that is soon full, before a store that nothing gets into.
fn bounded_cache() -> Result<Bounded> {
    let inner = MemoryStore::new(MemoryOptions {
        max_series: Some(20),
        ..MemoryOptions::default()
    });
    let options = WriteCacheOptions {
        max_bytes: 1 << 16,
        ..WriteCacheOptions::default()
    };
    Ok(Bounded {
        store: Box::new(WriteCache::new(inner, &options, Arc::new(ManualClock::new()))?),
        max_series: 20,
        fills_up: false,
    })
}

#[path = "support/damaged_copy.rs"]
mod damaged_copy;

#[path = "support/mstore_place.rs"]
mod mstore_place;

#[cfg(feature = "sqlite")]
#[path = "crash/medium.rs"]
#[expect(dead_code, reason = "power cuts are another test's")]
mod medium;

#[cfg(feature = "sqlite")]
mod sqlite {
    //! Files in folders of their own, which can be opened again.

    #![expect(clippy::expect_used, reason = "a test that cannot set up has failed")]

    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex};

    use tempfile::TempDir;
    use tsb_stores::conformance::{Bounded, Damaged, Faulty, Fixture, LossyPlace, Place};
    use tsb_stores::sqlite::{self, Commit, Layout, SqliteOptions, Synchronous};
    use tsb_stores::{Result, Store};

    use crate::damaged_copy;
    use crate::medium::{Fault, Medium};

    /// Puts something around a store, which may have the folder beside it.
    type Wrap = fn(Box<dyn Store>, &Path) -> Result<Box<dyn Store>>;

    /// A kind of file, and what is put around the store.
    #[derive(Clone)]
    pub(super) struct Files {
        name: String,
        layout: Layout,
        options: SqliteOptions,
        wrap: Wrap,
        is_bare: bool,
        /// A store may outlive its place.
        folders: Arc<Mutex<Vec<TempDir>>>,
    }

    struct Folder {
        files: Files,
        path: PathBuf,
    }

    fn folder() -> TempDir {
        // On memory where there is such a folder: what is tested here is no disk.
        let memory = PathBuf::from("/dev/shm");
        let made = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        made.expect("a folder for a test")
    }

    impl Place for Folder {
        fn open(&self) -> Result<Box<dyn Store>> {
            let store = sqlite::open(&self.path, self.files.layout, self.files.options.clone())?;
            (self.files.wrap)(store, &self.path.with_file_name("journal"))
        }

        fn address(&self) -> Option<String> {
            Some(self.path.display().to_string())
        }

        fn after_damage(&self, seed: u64) -> Result<Option<Damaged>> {
            let path = self.files.next_path();
            let parent = |path: &Path| path.parent().expect("a file in a folder").to_owned();
            // A page of the database has no checksum.
            let done = damaged_copy::copy_and_corrupt(&parent(&self.path), &parent(&path), "store.db", seed);
            let files = self.files.clone();
            let place = Box::new(Self { files, path });
            Ok(done.expect("a copy").map(|what| Damaged { place, what }))
        }
    }

    /// Of this process: each has a VFS of its own name.
    static LOSSY_PLACES: AtomicU32 = AtomicU32::new(0);

    /// A file under a VFS that knows what of it was synced.
    struct Unsure {
        folder: Folder,
        medium: Medium,
    }

    impl Place for Unsure {
        fn open(&self) -> Result<Box<dyn Store>> {
            self.folder.open()
        }
    }

    impl LossyPlace for Unsure {
        fn after_power_cut(&self, seed: u64) -> Result<Box<dyn Place>> {
            let mut files = self.folder.files.clone();
            files.options.vfs = None;
            let path = files.next_path();
            self.medium
                .cut_now(seed)
                .put_into(path.parent().expect("a file in a folder"));
            Ok(Box::new(Folder { files, path }))
        }
    }

    impl Files {
        /// The path of a file in a folder of its own.
        fn next_path(&self) -> PathBuf {
            let folder = folder();
            let path = folder.path().join("store.db");
            self.folders.lock().expect("no test holds it").push(folder);
            path
        }
    }

    impl Fixture for Files {
        fn name(&self) -> String {
            self.name.clone()
        }

        fn place(&self) -> Result<Box<dyn Place>> {
            Ok(Box::new(Folder {
                files: self.clone(),
                path: self.next_path(),
            }))
        }

        fn place_at(&self, address: &str) -> Result<Box<dyn Place>> {
            Ok(Box::new(Folder {
                files: self.clone(),
                path: address.into(),
            }))
        }

        fn lossy(&self) -> Result<Option<Box<dyn LossyPlace>>> {
            // What a wrapper keeps in a journal beside the file is on no such medium.
            if !self.is_bare {
                return Ok(None);
            }
            let number = LOSSY_PLACES.fetch_add(1, Ordering::Relaxed);
            let medium = Medium::register(&format!("lossy-{}-{number}", self.name), 0);
            let mut files = self.clone();
            files.options.vfs = Some(medium.name().to_owned());
            let path = files.next_path();
            let folder = Folder { files, path };
            Ok(Some(Box::new(Unsure { folder, medium })))
        }

        fn faulty(&self) -> Result<Option<Faulty>> {
            // Where every write is committed, none is left for a flush to fail with.
            let waits = self.options.commit != Commit::Each;
            waits.then(|| faulty(self)).transpose()
        }

        fn bounded(&self) -> Result<Option<Bounded>> {
            let mut files = self.clone();
            files.options.max_series = 20;
            Ok(Some(Bounded {
                store: files.place()?.open()?,
                max_series: 20,
                fills_up: false,
            }))
        }
    }

    /// A store on a medium whose syncs can be made to fail, with a commit when asked for.
    fn faulty(files: &Files) -> Result<Faulty> {
        let mut files = files.clone();
        let medium = Medium::register(&format!("faulty-{}", files.name), 0);
        files.options.vfs = Some(medium.name().to_owned());
        files.options.commit = Commit::Every(7_200_000_000_000);
        Ok(Faulty {
            store: files.place()?.open()?,
            fail: Box::new(move |fails| medium.set_fault(fails.then_some(Fault::Sync))),
        })
    }

    /// Every layout, with the policies that differ in kind.
    pub(super) fn all(throttled: Wrap, cached: Wrap, journaled: Wrap) -> Vec<Files> {
        let each = SqliteOptions::default();
        let every = SqliteOptions {
            commit: Commit::Every(1_000_000_000),
            ..each.clone()
        };
        let normal = SqliteOptions {
            synchronous: Synchronous::Normal,
            ..each.clone()
        };
        // A tail so short that the head is rotated many times, and generations age and end.
        let short = SqliteOptions {
            tail: 3,
            checkpoint_bytes: 64 << 10,
            ..each.clone()
        };
        let short_every = SqliteOptions {
            tail: 7,
            commit: Commit::Every(3_000_000_000),
            ..each.clone()
        };
        let kept = SqliteOptions {
            retention_ns: Some(3_600_000_000_000),
            tail: 10,
            ..each.clone()
        };
        let kinds = [
            ("sqlite", Layout::Ticks, &each),
            ("sqlite-1s", Layout::Ticks, &every),
            ("sqlite-normal", Layout::Ticks, &normal),
            ("sqlite-short-tail", Layout::Ticks, &short),
            ("sqlite-short-tail-3s", Layout::Ticks, &short_every),
            ("sqlite-retention", Layout::Ticks, &kept),
            ("sqlite-rows", Layout::Rows, &each),
            ("sqlite-rows-1s", Layout::Rows, &every),
            ("sqlite-mohawk", Layout::Mohawk, &each),
        ];
        let files = kinds.into_iter().flat_map(|(name, layout, options)| {
            let bare: Wrap = |store, _| Ok(store);
            // Around each layout once: what a wrapper does not know cannot matter to it.
            let is_wrapped = ["sqlite", "sqlite-rows", "sqlite-mohawk"].contains(&name);
            let wrappers = [
                ("", Some(bare)),
                ("throttle+", is_wrapped.then_some(throttled)),
                ("write-cache+", is_wrapped.then_some(cached)),
                ("write-cache-group+", (name == "sqlite").then_some(journaled)),
            ];
            let wrappers = wrappers
                .into_iter()
                .filter_map(|(wrapper, wrap)| Some((wrapper, wrap?)));
            wrappers.map(move |(wrapper, wrap)| Files {
                name: format!("{wrapper}{name}"),
                layout,
                options: options.clone(),
                wrap,
                is_bare: wrapper.is_empty(),
                folders: Arc::default(),
            })
        });
        files.collect()
    }
}

/// RRD files in a folder of their own; opening the place again finds them.
#[derive(Clone)]
struct RrdFixture {
    name: &'static str,
    engine: EngineKind,
    is_exclusive: bool,
    around: Around,
    /// A store may outlive its place.
    folders: Arc<Mutex<Vec<tempfile::TempDir>>>,
}

/// What stands before a store that comes back.
#[derive(Clone, Copy)]
enum Around {
    Nothing,
    Queues,
    Journal(SyncPolicy),
}

impl Around {
    fn open(self, inner: Box<dyn Store>, journal: &std::path::Path) -> Result<Box<dyn Store>> {
        let journal = match self {
            Self::Nothing => return Ok(inner),
            Self::Queues => None,
            // So short segments that they end and go all the time.
            Self::Journal(sync) => Some(JournalOptions {
                segment_bytes: 2_000,
                ..JournalOptions::new(journal, sync)
            }),
        };
        let clock = Arc::new(MonotonicClock::new());
        Ok(Box::new(WriteCache::new(inner, &cache_options(journal), clock)?))
    }
}

impl RrdFixture {
    fn options(&self) -> RrdOptions {
        RrdOptions {
            engine: self.engine,
            is_exclusive: self.is_exclusive,
            step_s: 2,
            heartbeat_s: 10,
            archives: vec![
                ArchiveRule::new(Consolidation::Average, 1, 100),
                ArchiveRule::new(Consolidation::Max, 5, 50),
            ],
            // Fewer than the checks define: some files stay open, others do not.
            max_open: 20,
            ..RrdOptions::default()
        }
    }
}

struct Folder {
    path: PathBuf,
    options: RrdOptions,
    around: Around,
    folders: Arc<Mutex<Vec<tempfile::TempDir>>>,
}

impl Folder {
    fn new(fixture: &RrdFixture, path: PathBuf) -> Self {
        Self {
            path,
            options: fixture.options(),
            around: fixture.around,
            folders: Arc::clone(&fixture.folders),
        }
    }
}

impl Place for Folder {
    fn open(&self) -> Result<Box<dyn Store>> {
        let files = RrdStore::open(&self.path.join("files"), self.options.clone())?;
        self.around.open(Box::new(files), &self.path.join("journal"))
    }

    fn address(&self) -> Option<String> {
        Some(self.path.display().to_string())
    }

    fn after_damage(&self, seed: u64) -> Result<Option<Damaged>> {
        let path = kept(&self.folders)?;
        // A file of rrdtool's format has no checksums.
        let done = damaged_copy::copy_and_corrupt(&self.path, &path, ".rrd", seed);
        let what = done.map_err(|source| tsb_stores::Error::Backend {
            action: "copy a folder".to_owned(),
            source: source.into(),
        })?;
        let place = Box::new(Self {
            path,
            options: self.options.clone(),
            folders: Arc::clone(&self.folders),
            around: self.around,
        });
        Ok(what.map(|what| Damaged { place, what }))
    }
}

/// A folder that lasts as long as the list.
fn kept(folders: &Mutex<Vec<tempfile::TempDir>>) -> Result<PathBuf> {
    let folder = folder()?;
    let path = folder.path().to_owned();
    folders.lock().unwrap_or_else(PoisonError::into_inner).push(folder);
    Ok(path)
}

fn folder() -> Result<tempfile::TempDir> {
    tempfile::tempdir().map_err(|source| tsb_stores::Error::Backend {
        action: "make a temporary folder".to_owned(),
        source: source.into(),
    })
}

impl Fixture for RrdFixture {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn unavailable(&self) -> Option<String> {
        let is_missing = self.engine == EngineKind::Librrd && !cfg!(feature = "librrd");
        is_missing.then(|| "the feature librrd is not built; it needs the package librrd-dev".to_owned())
    }

    fn place(&self) -> Result<Box<dyn Place>> {
        Ok(Box::new(Folder::new(self, kept(&self.folders)?)))
    }

    fn place_at(&self, address: &str) -> Result<Box<dyn Place>> {
        Ok(Box::new(Folder::new(self, address.into())))
    }

    fn bounded(&self) -> Result<Option<Bounded>> {
        let options = RrdOptions {
            max_series: 20,
            ..self.options()
        };
        // The folder stays: the store outlives this call, and the system empties its place.
        let folder = folder()?.keep();
        Ok(Some(Bounded {
            store: Box::new(RrdStore::open(&folder, options)?),
            max_series: 20,
            fills_up: false,
        }))
    }
}

/// Both engines, by themselves and behind queues.
fn rrd() -> impl Iterator<Item = RrdFixture> {
    use EngineKind::{Librrd, Native};
    let kinds = [
        ("rrd", Native, false, Around::Nothing),
        ("rrd-exclusive", Native, true, Around::Nothing),
        ("rrd-librrd", Librrd, false, Around::Nothing),
        ("write-cache+rrd", Native, false, Around::Queues),
        ("write-cache+rrd-exclusive", Native, true, Around::Queues),
        ("write-cache+rrd-librrd", Librrd, false, Around::Queues),
        (
            "write-cache-group+rrd-librrd",
            Librrd,
            false,
            Around::Journal(SyncPolicy::Group),
        ),
        (
            "write-cache-interval+rrd",
            Native,
            false,
            Around::Journal(SyncPolicy::Interval(10_000_000)),
        ),
        ("write-cache-none+rrd", Native, false, Around::Journal(SyncPolicy::None)),
        (
            "write-cache-group+rrd",
            Native,
            false,
            Around::Journal(SyncPolicy::Group),
        ),
        ("write-cache-each+rrd", Native, false, Around::Journal(SyncPolicy::Each)),
    ];
    kinds
        .into_iter()
        .map(|(name, engine, is_exclusive, around)| RrdFixture {
            name,
            engine,
            is_exclusive,
            around,
            folders: Arc::default(),
        })
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let persistent = persistent();
    if was_writer(&arguments, &persistent) {
        return ExitCode::SUCCESS;
    }
    let full = Fresh::new("write-cache-bounded+memory", || {
        cached(Box::new(MemoryStore::new(MemoryOptions::default())))
    })
    .bounded(bounded_cache);
    let fixtures = SUBJECTS.into_iter().flat_map(Subject::fixtures).chain([full]);
    let fixtures = fixtures.map(|fixture| Box::new(fixture) as Box<dyn Fixture>);
    let trials = fixtures.chain(persistent).flat_map(conformance::trials).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Those that keep files: a process that a check kills opens them too.
fn persistent() -> Vec<Box<dyn Fixture>> {
    let files = rrd().map(|fixture| Box::new(fixture) as Box<dyn Fixture>);
    let mstore = mstore_place::all(|store| Ok(Box::new(cached(store)?)));
    let files = files.chain(mstore.map(|fixture| Box::new(fixture) as Box<dyn Fixture>));
    #[cfg(feature = "sqlite")]
    let files = files.chain(
        sqlite::all(
            |store, _| Ok(Box::new(throttled(store)?)),
            |store, _| Ok(Box::new(cached(store)?)),
            |store, journal| Around::Journal(SyncPolicy::Group).open(store, journal),
        )
        .into_iter()
        .map(|files| Box::new(files) as Box<dyn Fixture>),
    );
    files.collect()
}
