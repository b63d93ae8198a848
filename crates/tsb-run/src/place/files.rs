//! Finds, measures and removes the files of a place, and writes the shell command that removes
//! them.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::spec::{FileName, KeptFiles, beside, quoted};

/// `st_blocks` counts in units of this many bytes, whatever the file system's own blocks are.
const BLOCK_UNIT: u64 = 512;

/// The files that exist. A folder that cannot be read counts as empty.
pub(super) fn find(files: &KeptFiles) -> Vec<PathBuf> {
    let path = files.real_path();
    let mut found = Vec::new();
    if is_in_folder(files) {
        walk(&path, is_deep(files), &mut |file, depth| {
            if files.names.iter().any(|name| is_called(&file, *name, depth)) {
                found.push(file);
            }
        });
        return found;
    }
    for name in files.names {
        match *name {
            FileName::Beside(ending) => found.push(beside(&path, ending)),
            FileName::BesideFrom(ending) => {
                let start = beside(&path, ending);
                let (Some(folder), Some(start)) = (start.parent(), start.file_name()) else {
                    continue;
                };
                walk(folder, false, &mut |file, _| {
                    if begins_with(&file, start) {
                        found.push(file);
                    }
                });
            }
            FileName::In(_) | FileName::InFrom(_) | FileName::Below(_) => {}
        }
    }
    found.retain(|file| file.is_file());
    found
}

/// Whether the names are in a folder, and not beside a file.
fn is_in_folder(files: &KeptFiles) -> bool {
    let is_beside = |name: &FileName| matches!(name, FileName::Beside(_) | FileName::BesideFrom(_));
    !files.names.iter().any(is_beside)
}

fn is_called(file: &Path, name: FileName, depth: usize) -> bool {
    match name {
        FileName::In(whole) => depth == 0 && file.file_name() == Some(OsStr::new(whole)),
        FileName::InFrom(start) => depth == 0 && begins_with(file, OsStr::new(start)),
        FileName::Below(end) => file
            .file_name()
            .is_some_and(|name| name.as_bytes().ends_with(end.as_bytes())),
        FileName::Beside(_) | FileName::BesideFrom(_) => false,
    }
}

fn begins_with(file: &Path, start: &OsStr) -> bool {
    file.file_name()
        .is_some_and(|name| name.as_bytes().starts_with(start.as_bytes()))
}

/// Whether some of the names are also those of files in folders below.
fn is_deep(files: &KeptFiles) -> bool {
    files.names.iter().any(|name| matches!(name, FileName::Below(_)))
}

/// Shows each file of a folder to `visit`, with the number of folders between them. Symbolic
/// links are not followed.
fn walk(folder: &Path, is_deep: bool, visit: &mut dyn FnMut(PathBuf, usize)) {
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && is_deep => open.push((entry.path(), depth + 1)),
                Ok(kind) if kind.is_file() => visit(entry.path(), depth),
                _ => {}
            }
        }
    }
}

/// Bytes of the file-system blocks of these files, without the mark of a run.
pub(super) fn disk_bytes(files: &KeptFiles) -> u64 {
    let run_mark = files.run_mark();
    let counted = find(files).into_iter().filter(|file| run_mark.as_ref() != Some(file));
    let blocks = counted.map(|file| fs::metadata(file).map_or(0, |metadata| metadata.blocks()));
    blocks.sum::<u64>() * BLOCK_UNIT
}

/// Removes these files, and the folders that are empty then.
pub(super) fn remove(files: &KeptFiles) -> Result<(), Error> {
    let found = find(files);
    let mut folders: Vec<PathBuf> = Vec::new();
    for file in &found {
        match fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(unremoved(file, &error)),
            _ => {}
        }
        folders.extend(file.parent().map(Path::to_owned));
    }
    if !is_in_folder(files) {
        return Ok(());
    }
    let root = files.real_path();
    folders.push(root.clone());
    // The longest path first, so that a folder is empty when its turn comes.
    folders.sort_unstable_by(|one, other| other.cmp(one));
    folders.dedup();
    for folder in folders {
        for folder in folder.ancestors().take_while(|folder| folder.starts_with(&root)) {
            match fs::remove_dir(folder) {
                Ok(()) => {}
                // It holds files of other programs, or is gone.
                Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => break,
                Err(error) => return Err(unremoved(folder, &error)),
            }
        }
    }
    Ok(())
}

fn unremoved(path: &Path, error: &std::io::Error) -> Error {
    Error::unwritten(path.display(), error).hint("remove it by hand; a later removal goes on with what is left")
}

/// The shell command that removes the same files as [`remove`]. It also removes every empty folder in the
/// place, those of other programs too.
pub(super) fn remove_command(files: &KeptFiles) -> String {
    let path = files.real_path();
    if !is_in_folder(files) {
        let names = files.names.iter().map(|name| match *name {
            FileName::BesideFrom(ending) => format!("{}*", word(&beside(&path, ending))),
            FileName::Beside(ending) => word(&beside(&path, ending)),
            FileName::In(_) | FileName::InFrom(_) | FileName::Below(_) => String::new(),
        });
        let names: Vec<String> = names.collect();
        return format!("rm -f -- {}", names.join(" "));
    }
    let tests = files.names.iter().map(|name| match *name {
        FileName::Below(end) => format!("-name {}", quoted(&format!("*{end}"))),
        FileName::InFrom(start) => format!("-name {}", quoted(&format!("{start}*"))),
        FileName::In(whole) | FileName::Beside(whole) | FileName::BesideFrom(whole) => {
            format!("-name {}", quoted(whole))
        }
    });
    let tests: Vec<String> = tests.collect();
    let depth = if is_deep(files) { "" } else { " -maxdepth 1" };
    // find visits a folder after its contents, so it is empty by then.
    format!(
        "find {}{depth} \\( -type f \\( {} \\) -o -type d -empty \\) -delete",
        word(&path),
        tests.join(" -o ")
    )
}

fn word(path: &Path) -> String {
    quoted(&path.display().to_string())
}
