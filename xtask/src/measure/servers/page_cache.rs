//! How much of files is in the page cache, as fincore of util-linux counts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files of one call: their names fit into what a command may be given.
const FILES: usize = 1_000;

/// The bytes of all files below a folder that are in the page cache; none where fincore cannot be started.
pub(super) fn bytes(folder: &Path) -> Option<u64> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    let counts = files.chunks(FILES).map(|files| {
        let mut fincore = Command::new("fincore");
        fincore.args(["--bytes", "--noheadings", "--output", "RES"]).args(files);
        // A file that went meanwhile is an error for it, and the others are counted.
        let output = fincore.stdin(Stdio::null()).output().ok()?;
        Some(sum(&String::from_utf8_lossy(&output.stdout)))
    });
    counts.sum()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}

fn sum(lines: &str) -> u64 {
    lines.lines().filter_map(|line| line.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_written_is_in_the_page_cache() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).expect("a folder within");
        fs::write(inner.join("a"), vec![1; 10_000]).expect("a file");
        let counted = bytes(folder.path()).expect("fincore is part of the system");
        assert!((10_000..=65_536).contains(&counted), "{counted}");
        assert_eq!(sum("  4096\n8192\nnone\n"), 12_288);
    }
}
