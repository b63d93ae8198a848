//! Measures the disk space of files: blocks of the file system, not lengths.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// `st_blocks` counts in units of this many bytes, whatever the file system's own blocks are.
const UNIT: u64 = 512;

/// Bytes of the blocks of one file; `None` if there is no such file.
pub(crate) fn of_file(path: &Path) -> Option<u64> {
    Some(fs::metadata(path).ok()?.blocks() * UNIT)
}

/// Bytes of the blocks of those files that exist; `None` if none does.
pub(crate) fn of_files<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Option<u64> {
    paths.into_iter().filter_map(of_file).reduce(|sum, bytes| sum + bytes)
}

/// Bytes of the blocks of all files below a folder whose names end with `extension`; `None` if
/// the folder cannot be read.
pub(crate) fn of_folder(folder: &Path, extension: &str) -> Option<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            bytes += of_folder(&path, extension).unwrap_or(0);
        } else if path.extension().is_some_and(|end| end == extension) {
            bytes += of_file(&path).unwrap_or(0);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn blocks_are_counted_and_not_lengths() {
        let folder = tempfile::tempdir().unwrap();
        let (sparse, full) = (folder.path().join("sparse.rrd"), folder.path().join("full.rrd"));
        let file = File::create(&sparse).unwrap();
        file.set_len(1 << 20).unwrap();
        file.sync_all().unwrap();
        let file = File::create(&full).unwrap();
        file.write_all_at(&vec![1; 1 << 16], 0).unwrap();
        file.sync_all().unwrap();
        fs::create_dir(folder.path().join("deeper")).unwrap();
        fs::copy(&full, folder.path().join("deeper/one.rrd")).unwrap();
        fs::write(folder.path().join("other.txt"), vec![1; 1 << 16]).unwrap();
        // The length of a sparse file is a mebibyte, and it occupies next to nothing.
        assert!(of_file(&sparse).unwrap() < 1 << 16);
        let one = of_file(&full).unwrap();
        assert!(one >= 1 << 16);
        assert!(of_folder(folder.path(), "rrd").unwrap() >= 2 * one);
        assert!(of_folder(folder.path(), "rrd").unwrap() < 3 * one);
        assert_eq!(of_files([full.as_path(), &folder.path().join("absent")]), Some(one));
        assert_eq!(of_file(&folder.path().join("absent")), None);
        assert_eq!(of_folder(&folder.path().join("absent"), "rrd"), None);
    }
}
