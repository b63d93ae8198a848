//! A folder for what a command stores while it lasts.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// A temporary folder for what a command stores. It is removed when the value is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a folder in `dir`, which is there, named for a command and this process.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if it cannot be made.
    pub fn make(dir: &Path, command: &str) -> Result<Self, Error> {
        let made = dir.canonicalize().and_then(|dir| {
            let folder = dir.join(format!("tsb-{command}-{}", std::process::id()));
            std::fs::create_dir(&folder)?;
            Ok(folder)
        });
        made.map(Self).map_err(|error| {
            Error::unreachable(format!("cannot make a folder in {}", dir.display()))
                .because(&error)
                .hint("name a folder that is there and can be written")
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays is named by its folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
