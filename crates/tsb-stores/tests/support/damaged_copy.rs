//! Copies of the files of a store as a kill would leave them, with one of them damaged.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tsb_stores::conformance::corrupt;

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Copies a folder and damages one file of the copy, as `seed` says: what was done. `None` where
/// the file is one of those whose names end with `blind`: their format cannot show it.
pub(crate) fn copy_and_corrupt(from: &Path, to: &Path, blind: &str, seed: u64) -> io::Result<Option<String>> {
    for (file, bytes) in at_one_moment(from)? {
        let path = to.join(file);
        fs::create_dir_all(path.parent().unwrap_or(to))?;
        fs::write(path, bytes)?;
    }
    let is_blind = |file: &Path| file.to_string_lossy().ends_with(blind);
    let corruption =
        corrupt(to, seed)?.filter(|done| !is_blind(&done.file) && !done.with.as_deref().is_some_and(is_blind));
    Ok(corruption.map(|done| format!("seed {seed}, {done}")))
}

/// The files of a store whose threads may still write: read until two passes over them agree.
fn at_one_moment(folder: &Path) -> io::Result<Files> {
    let mut before = contents(folder);
    loop {
        let now = contents(folder);
        match (now, before) {
            (Ok(now), Ok(before)) if now == before => return Ok(now),
            // A file has just gone.
            (now, _) => before = now,
        }
    }
}

fn contents(folder: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
                files.insert(name, fs::read(&path)?);
            }
        }
    }
    Ok(files)
}
