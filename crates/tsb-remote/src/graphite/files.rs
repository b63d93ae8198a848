//! Whisper's files of a place, if they are on this machine: their size, and their removal.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::options::GraphiteOptions;
use crate::Address;
use tsb_stores::error::{Error, Result};

/// `st_blocks` counts in units of this many bytes.
const BLOCK: u64 = 512;

/// Files below a folder.
#[derive(Debug, Default)]
pub(super) struct WhisperFiles {
    /// Their lengths, added up.
    pub(super) bytes: u64,
    /// Bytes of the blocks that they have on the file system.
    pub(super) disk_bytes: u64,
    /// The first file that is not Whisper's.
    foreign: Option<PathBuf>,
}

impl WhisperFiles {
    /// Files in and below a folder; none if it does not exist.
    pub(super) fn below(folder: &Path) -> io::Result<Self> {
        let mut files = Self::default();
        match files.add(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(files),
            added => added.map(|()| files),
        }
    }

    fn add(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                self.add(&path)?;
            } else if path.extension().is_some_and(|end| end == "wsp") {
                let metadata = entry.metadata()?;
                self.bytes += metadata.len();
                self.disk_bytes += metadata.blocks() * BLOCK;
            } else {
                self.foreign.get_or_insert(path);
            }
        }
        Ok(())
    }
}

/// Removes the files of everything below a prefix. Without any, it does nothing.
///
/// # Errors
/// [`Error::Unsupported`] if the options do not name Whisper's folder, and [`Error::Backend`] if a
/// file there is not Whisper's, or cannot be removed.
pub fn remove(address: &Address, options: &GraphiteOptions) -> Result<()> {
    let Some(folder) = &options.folder else {
        return Err(Error::Unsupported {
            store: "graphite".to_owned(),
            what: "removing series without ?folder=",
        });
    };
    let folder = folder.join(address.place());
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Backend {
        action: format!("remove {}", folder.display()),
        source,
    };
    let files = WhisperFiles::below(&folder).map_err(|error| failed(error.into()))?;
    if let Some(foreign) = files.foreign {
        return Err(failed(format!("{} is no file of Whisper's", foreign.display()).into()));
    }
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error.into())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_whisper_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("runs/cpu");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("user.wsp"), [0; 100]).unwrap();
        let address = Address::parse("graphite", "prefix", "//h/runs").unwrap();
        let mut options = GraphiteOptions::default();
        assert!(matches!(remove(&address, &options), Err(Error::Unsupported { .. })));
        options.folder = Some(folder.path().to_owned());
        fs::write(place.join("notes.txt"), "mine").unwrap();
        let error = remove(&address, &options).unwrap_err();
        assert!(format!("{error:?}").contains("notes.txt"), "{error:?}");
        assert_eq!(WhisperFiles::below(&place).unwrap().bytes, 100);
        fs::remove_file(place.join("notes.txt")).unwrap();
        remove(&address, &options).unwrap();
        remove(&address, &options).unwrap();
        assert!(!folder.path().join("runs").exists() && folder.path().exists());
    }
}
