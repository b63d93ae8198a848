//! The conformance suite of tsb on the store: closed, dropped and killed, and opened again.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

use own_database::RedbStore;
use tsb_stores::conformance::{self, Fixture, Place};
use tsb_stores::{Result, Store};

/// Files in a folder that is removed at the end.
struct Files {
    folder: tempfile::TempDir,
    made: AtomicU32,
}

struct AtPath(PathBuf);

impl Place for AtPath {
    fn open(&self) -> Result<Box<dyn Store>> {
        Ok(Box::new(RedbStore::open(&self.0)?))
    }

    fn address(&self) -> Option<String> {
        Some(self.0.display().to_string())
    }
}

impl Fixture for Files {
    fn name(&self) -> String {
        "redb".to_owned()
    }

    fn place(&self) -> Result<Box<dyn Place>> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(AtPath(self.folder.path().join(format!("{number}.redb")))))
    }

    fn place_at(&self, address: &str) -> Result<Box<dyn Place>> {
        Ok(Box::new(AtPath(address.into())))
    }
}

fn main() -> io::Result<ExitCode> {
    let files = Files {
        folder: tempfile::tempdir()?,
        made: AtomicU32::new(0),
    };
    Ok(conformance::main([files]))
}
