//! The index of a file: which metric has which number. Pure.

use std::path::Path;

use super::list::{Listed, corrupt};
use crate::error::Result;

/// Bytes of the head: the first point of the file, and how many it has for each metric.
pub(super) const HEAD_BYTES: u64 = 16;

/// The longest name.
pub(super) const NAME_MAX: usize = u16::MAX as usize;

/// The head of an index.
pub(super) fn head(offset: i64, points_per_file: i64) -> [u8; HEAD_BYTES as usize] {
    let mut head = [0; HEAD_BYTES as usize];
    head[..8].copy_from_slice(&offset.to_be_bytes());
    head[8..].copy_from_slice(&points_per_file.to_be_bytes());
    head
}

/// Appends an entry. The name has at most [`NAME_MAX`] bytes.
pub(super) fn push(into: &mut Vec<u8>, name: &[u8]) {
    into.extend_from_slice(&(name.len() as u16).to_be_bytes());
    into.extend_from_slice(name);
}

/// The names of an index, by number, where its bytes are those that were listed. Bytes behind
/// them are of an append that a crash has interrupted.
pub(super) fn names<'a>(path: &Path, bytes: &'a [u8], listed: Listed) -> Result<Vec<&'a [u8]>> {
    let whole = usize::try_from(listed.index_bytes)
        .ok()
        .and_then(|len| bytes.get(..len));
    let Some(whole) = whole else {
        let what = format!("it is cut short: {} bytes were listed", listed.index_bytes);
        return Err(corrupt(path, bytes.len() as u64, what));
    };
    if crc32fast::hash(whole) != listed.index_crc {
        return Err(corrupt(path, 0, "its checksum is not the one that was listed"));
    }
    let mut rest = whole.get(HEAD_BYTES as usize..).unwrap_or_default();
    let mut names = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length));
        let Some((name, behind)) = behind.split_at_checked(length) else {
            break;
        };
        names.push(name);
        rest = behind;
    }
    if !rest.is_empty() || names.len() != listed.metrics as usize {
        return Err(corrupt(
            path,
            listed.index_bytes,
            "it does not have the metrics that were listed",
        ));
    }
    Ok(names)
}
