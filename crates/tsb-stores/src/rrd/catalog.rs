//! Lists the series in a folder of RRD files, by file name only.

use std::path::{Path, PathBuf};

use tsb_core::SeriesKey;

use super::names::{key_of, path_of};
use crate::error::{Error, Result};

/// The series of a folder and of the folders below it, sorted.
///
/// A file that was not named by this store is the series of that name: `host/cpu.rrd` is
/// `host/cpu`.
///
/// # Errors
/// [`Error::Backend`] for a folder that cannot be read.
pub fn series(folder: &Path) -> Result<Vec<SeriesKey>> {
    let mut keys = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        let failed = |source: std::io::Error| Error::Backend {
            action: format!("read folder {}", next.display()),
            source: source.into(),
        };
        for entry in std::fs::read_dir(&next).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            if entry.file_type().map_err(failed)?.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rrd") {
                keys.extend(path.strip_prefix(folder).ok().and_then(key_of));
            }
        }
    }
    keys.sort_unstable();
    Ok(keys)
}

/// The file of a series, if it exists.
pub fn file_of(folder: &Path, key: &SeriesKey) -> Option<PathBuf> {
    let own = folder.join(path_of(key));
    if own.is_file() {
        return Some(own);
    }
    let other = PathBuf::from(format!("{}.rrd", key.name()));
    let is_below = other
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    let other = folder.join(other);
    (key.labels().is_empty() && is_below && other.is_file()).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_store_and_of_others_are_listed_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let keys = [
            SeriesKey::new("host/cpu"),
            SeriesKey::with_labels("cpu", [("host", "a b"), ("id", "\u{e9},=")]),
            SeriesKey::new("x".repeat(700)),
        ];
        let foreign = dir.path().join("host/cpu.rrd");
        std::fs::create_dir_all(dir.path().join("host")).unwrap();
        std::fs::write(&foreign, "").unwrap();
        for key in &keys[1..] {
            let path = dir.path().join(path_of(key));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::write(dir.path().join("notes.txt"), "").unwrap();
        let mut expected = keys.to_vec();
        expected.sort_unstable();
        assert_eq!(series(dir.path()).unwrap(), expected);
        assert_eq!(file_of(dir.path(), &keys[0]), Some(foreign));
        assert!(file_of(dir.path(), &keys[1]).is_some());
        for absent in ["cpu", "../host/cpu", "/etc/passwd"] {
            assert_eq!(file_of(dir.path(), &SeriesKey::new(absent)), None, "{absent}");
        }
        assert!(series(&dir.path().join("nowhere")).is_err());
    }
}
