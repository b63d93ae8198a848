//! Folders of mstore files to test: every policy, and those whose windows and files end soon.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;
use tsb_stores::conformance::{Bounded, Damaged, Fixture, Place};
use tsb_stores::mstore::{CachePolicy, MstoreOptions, MstoreStore};
use tsb_stores::{Error, Result, Store};

use crate::damaged_copy;

/// Puts something around a store.
type Wrap = fn(Box<dyn Store>) -> Result<Box<dyn Store>>;

/// A kind of folder, and what is put around the store.
#[derive(Clone)]
pub(crate) struct Folders {
    name: &'static str,
    options: MstoreOptions,
    wrap: Wrap,
    /// A store may outlive its place.
    kept: Arc<Mutex<Vec<TempDir>>>,
}

struct Folder {
    folders: Folders,
    path: PathBuf,
}

impl Folders {
    fn next(&self) -> Result<Folder> {
        // On memory where there is such a folder: what is tested here is no disk.
        let memory = Path::new("/dev/shm");
        let made = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let folder = made.map_err(|source| failed("make a temporary folder", source))?;
        let path = folder.path().join("m");
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(folder);
        Ok(Folder {
            folders: self.clone(),
            path,
        })
    }
}

fn failed(action: &str, source: std::io::Error) -> Error {
    Error::Backend {
        action: action.to_owned(),
        source: source.into(),
    }
}

impl Place for Folder {
    fn open(&self) -> Result<Box<dyn Store>> {
        let store = MstoreStore::open(&self.path, self.folders.options.clone())?;
        (self.folders.wrap)(Box::new(store))
    }

    fn address(&self) -> Option<String> {
        Some(self.path.display().to_string())
    }

    fn after_damage(&self, seed: u64) -> Result<Option<Damaged>> {
        let copy = self.folders.next()?;
        // A point has no checksum.
        let done = damaged_copy::copy_and_corrupt(&self.path, &copy.path, ".mstore", seed);
        let what = done.map_err(|source| failed("copy a folder", source))?;
        Ok(what.map(|what| Damaged {
            place: Box::new(copy),
            what,
        }))
    }
}

impl Fixture for Folders {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn place(&self) -> Result<Box<dyn Place>> {
        Ok(Box::new(self.next()?))
    }

    fn place_at(&self, address: &str) -> Result<Box<dyn Place>> {
        Ok(Box::new(Folder {
            folders: self.clone(),
            path: address.into(),
        }))
    }

    fn bounded(&self) -> Result<Option<Bounded>> {
        let mut folders = self.clone();
        folders.options.max_series = 20;
        Ok(Some(Bounded {
            store: folders.next()?.open()?,
            max_series: 20,
            fills_up: false,
        }))
    }
}

/// Every policy, bare and behind queues.
pub(crate) fn all(cached: Wrap) -> impl Iterator<Item = Folders> {
    let options = |cache, cache_points, points_per_file| MstoreOptions {
        cache,
        cache_points,
        points_per_file,
        max_files: 100_000,
        ..MstoreOptions::default()
    };
    let round2 = options(CachePolicy::Round2, 120, 4_096);
    let bare: Wrap = |store| Ok(store);
    let kinds = [
        ("mstore", round2.clone(), bare),
        ("mstore-round1", options(CachePolicy::Round1, 100, 604_800), bare),
        ("mstore-off", options(CachePolicy::Off, 1, 604_800), bare),
        ("mstore-short", options(CachePolicy::Round2, 3, 1_000), bare),
        ("mstore-round1-short", options(CachePolicy::Round1, 2, 1_000), bare),
        ("write-cache+mstore", round2, cached),
    ];
    kinds.into_iter().map(|(name, options, wrap)| Folders {
        name,
        options,
        wrap,
        kept: Arc::default(),
    })
}
