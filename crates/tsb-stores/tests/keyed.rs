//! The conformance of every store of keys: one line each.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use tsb_stores::keyed::conformance::{KeyedFresh, trials};
use tsb_stores::keyed::{KeyedMemory, KeyedMemoryOptions, KeyedSeries, KeyedSeriesOptions};
use tsb_stores::memory::{MemoryOptions, MemoryStore};

fn memory() -> KeyedFresh {
    KeyedFresh::new("memory", |clock| {
        Ok(KeyedMemory::new(KeyedMemoryOptions::default(), clock))
    })
    .bounded(20, |clock| {
        Ok(KeyedMemory::new(KeyedMemoryOptions { max_keys: 20 }, clock))
    })
}

fn series() -> KeyedFresh {
    let store = || MemoryStore::new(MemoryOptions::default());
    let small = KeyedSeriesOptions {
        max_keys: 20,
        ..KeyedSeriesOptions::default()
    };
    KeyedFresh::new("series+memory", move |clock| {
        KeyedSeries::new(store(), KeyedSeriesOptions::default(), clock)
    })
    .bounded(20, move |clock| KeyedSeries::new(store(), small, clock))
}

#[cfg(feature = "sqlite")]
mod sqlite {
    //! Persistent: the place is opened again, with its clock.

    use std::sync::{Arc, Mutex};

    use tsb_core::time::{Clock, ManualClock, SECOND_NS};
    use tsb_stores::Result;
    use tsb_stores::keyed::conformance::{KeyedFixture, KeyedFresh, KeyedPlace};
    use tsb_stores::keyed::{KeyedSeries, KeyedSeriesOptions, KeyedStore};
    use tsb_stores::parts::lock;
    use tsb_stores::sqlite::{KeyedFile, KeyedFileOptions, SqliteOptions, Synchronous, TickStore};

    pub(crate) struct Files {
        pub(crate) synchronous: Synchronous,
    }

    struct Folder {
        options: KeyedFileOptions,
        clock: Arc<ManualClock>,
        files: tempfile::TempDir,
    }

    impl Files {
        fn folder(&self, max_keys: usize) -> Result<Box<dyn KeyedPlace>> {
            Ok(Box::new(Folder {
                options: KeyedFileOptions {
                    synchronous: self.synchronous,
                    max_keys,
                },
                clock: Arc::default(),
                files: folder()?,
            }))
        }
    }

    impl KeyedFixture for Files {
        fn name(&self) -> String {
            format!("sqlite-{}", self.synchronous)
        }

        fn place(&self) -> Result<Box<dyn KeyedPlace>> {
            self.folder(KeyedFileOptions::default().max_keys)
        }

        fn ttl_ns(&self) -> u64 {
            SECOND_NS
        }

        fn bounded(&self) -> Result<Option<(Box<dyn KeyedPlace>, usize)>> {
            Ok(Some((self.folder(20)?, 20)))
        }
    }

    impl KeyedPlace for Folder {
        fn open(&self) -> Result<Box<dyn KeyedStore>> {
            let path = self.files.path().join("keys.db");
            Ok(Box::new(KeyedFile::open(&path, self.options, self.clock())?))
        }

        fn clock(&self) -> Arc<dyn Clock> {
            Arc::<ManualClock>::clone(&self.clock)
        }
    }

    pub(crate) fn series() -> KeyedFresh {
        let folders = Mutex::new(Vec::new());
        KeyedFresh::new("series+sqlite", move |clock| {
            let files = folder()?;
            let store = TickStore::open(&files.path().join("samples.db"), SqliteOptions::default())?;
            lock(&folders).push(files);
            KeyedSeries::new(store, KeyedSeriesOptions::default(), clock)
        })
    }

    fn folder() -> Result<tempfile::TempDir> {
        tempfile::tempdir().map_err(|source| tsb_stores::Error::Backend {
            action: "make a temporary folder".to_owned(),
            source: source.into(),
        })
    }
}

fn main() -> ExitCode {
    let mut all: Vec<Trial> = [memory(), series()].into_iter().flat_map(trials).collect();
    #[cfg(feature = "sqlite")]
    {
        use tsb_stores::sqlite::Synchronous;
        for synchronous in [Synchronous::Full, Synchronous::Normal] {
            all.extend(trials(sqlite::Files { synchronous }));
        }
        all.extend(trials(sqlite::series()));
    }
    libtest_mimic::run(&Arguments::from_args(), all).exit_code()
}
