//! The conformance of every store of keys: one line each.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use tsb_stores::keyed::conformance::{KeyedFresh, trials};
use tsb_stores::keyed::{KeyedMemory, KeyedMemoryOptions};

fn memory() -> KeyedFresh {
    KeyedFresh::new("memory", |clock| {
        Ok(KeyedMemory::new(KeyedMemoryOptions::default(), clock))
    })
    .bounded(20, |clock| {
        Ok(KeyedMemory::new(KeyedMemoryOptions { max_keys: 20 }, clock))
    })
}

#[cfg(feature = "sqlite")]
mod sqlite {
    //! Persistent: the place is opened again, with its clock.

    use std::sync::Arc;

    use tsb_core::time::{Clock, ManualClock, SECOND_NS};
    use tsb_stores::Result;
    use tsb_stores::keyed::conformance::{KeyedFixture, KeyedPlace};
    use tsb_stores::keyed::KeyedStore;
    use tsb_stores::sqlite::{KeyedFile, KeyedFileOptions, Synchronous};

    pub(crate) struct Files {
        pub(crate) synchronous: Synchronous,
    }

    struct Folder {
        options: KeyedFileOptions,
        clock: Arc<ManualClock>,
        folder: tempfile::TempDir,
    }

    impl Files {
        fn folder(&self, max_keys: usize) -> Box<dyn KeyedPlace> {
            Box::new(Folder {
                options: KeyedFileOptions {
                    synchronous: self.synchronous,
                    max_keys,
                },
                clock: Arc::default(),
                folder: tempfile::tempdir().unwrap(),
            })
        }
    }

    impl KeyedFixture for Files {
        fn name(&self) -> String {
            format!("sqlite-{}", self.synchronous)
        }

        fn place(&self) -> Result<Box<dyn KeyedPlace>> {
            Ok(self.folder(KeyedFileOptions::default().max_keys))
        }

        fn ttl_ns(&self) -> u64 {
            SECOND_NS
        }

        fn bounded(&self) -> Result<Option<(Box<dyn KeyedPlace>, usize)>> {
            Ok(Some((self.folder(20), 20)))
        }
    }

    impl KeyedPlace for Folder {
        fn open(&self) -> Result<Box<dyn KeyedStore>> {
            let path = self.folder.path().join("keys.db");
            Ok(Box::new(KeyedFile::open(&path, self.options, self.clock())?))
        }

        fn clock(&self) -> Arc<dyn Clock> {
            Arc::<ManualClock>::clone(&self.clock)
        }
    }
}

fn main() -> ExitCode {
    let mut all: Vec<Trial> = trials(memory());
    #[cfg(feature = "sqlite")]
    {
        use tsb_stores::sqlite::Synchronous;
        for synchronous in [Synchronous::Full, Synchronous::Normal] {
            all.extend(trials(sqlite::Files { synchronous }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), all).exit_code()
}
