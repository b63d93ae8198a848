//! Lists the series of a folder from its indexes, without opening it as a store.

use std::collections::BTreeSet;
use std::path::Path;

use tsb_core::SeriesKey;

use super::geometry::{Geometry, key_of};
use super::{MstoreOptions, index, list};
use crate::error::Result;

/// The options that a folder's files were made with: their step and their points; `None` if it
/// has no list of files.
///
/// # Errors
/// [`Error::Backend`](crate::Error::Backend) for a list that cannot be read,
/// [`Error::Corrupt`](crate::Error::Corrupt) for a damaged one.
pub fn made_with(folder: &Path) -> Result<Option<MstoreOptions>> {
    let list = folder.join(list::LIST);
    if std::fs::metadata(&list).map_or(true, |there| there.len() == 0) {
        return Ok(None);
    }
    let (geometry, _) = list::read(folder)?;
    Ok(Some(options_of(geometry)))
}

fn options_of(geometry: Geometry) -> MstoreOptions {
    MstoreOptions {
        step_ns: geometry.step_ns,
        points_per_file: geometry.points_per_file,
        ..MstoreOptions::default()
    }
}

/// The options that a folder's files were made with, and their series, sorted. The folder may be
/// open as a store; a series none of whose points is written yet is not listed.
///
/// # Errors
/// [`Error::Backend`](crate::Error::Backend) for a folder that cannot be read,
/// [`Error::Corrupt`](crate::Error::Corrupt) for damage.
pub fn catalog(folder: &Path) -> Result<(MstoreOptions, Vec<SeriesKey>)> {
    let (geometry, listing) = list::read(folder)?;
    let mut keys = BTreeSet::new();
    for (offset, listed) in listing.files {
        let path = folder.join(format!("{offset}.idx"));
        let bytes = std::fs::read(&path).map_err(|source| list::failed("read", &path, source))?;
        for name in index::names(&path, &bytes, listed)? {
            let key = key_of(name);
            keys.insert(key.ok_or_else(|| list::corrupt(&path, 0, "a name is not that of a series"))?);
        }
    }
    Ok((options_of(geometry), keys.into_iter().collect()))
}
