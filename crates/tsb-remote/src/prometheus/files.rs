//! The files of a server on this machine: how large its blocks, open chunks and logs are.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tsb_stores::store::Footprint;

/// Bytes of one unit of `st_blocks`.
const UNIT: u64 = 512;

/// Bytes of what a server stores of all places together, and of the blocks of the file system;
/// `None` if the folder cannot be read.
pub(super) fn sizes(folder: &Path) -> Option<(Footprint, u64)> {
    let (mut footprint, mut disk_bytes) = (Footprint::default(), 0);
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let (bytes, blocks) = below(&entry.path());
        disk_bytes += blocks;
        match entry.file_name().to_string_lossy().as_ref() {
            "wal" | "wbl" => footprint.journal_bytes += bytes,
            "chunks_head" => footprint.head_bytes += bytes,
            // A block has a folder, whose name is its number.
            name if name.len() == 26 => footprint.sealed_bytes += bytes,
            _ => {}
        }
    }
    Some((footprint, disk_bytes))
}

/// Lengths and blocks of all files below a path. What disappears meanwhile counts nothing.
fn below(path: &Path) -> (u64, u64) {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return (0, 0);
    };
    if !metadata.is_dir() {
        return (metadata.len(), metadata.blocks() * UNIT);
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let all = entries.map(|entry| below(&entry.path()));
    all.fold((0, 0), |(bytes, blocks), (more, others)| {
        (bytes + more, blocks + others)
    })
}
