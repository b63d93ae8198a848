//! Reads a write-ahead log as SQLite does when it recovers one: how many pages will be used, and
//! whether commits follow the place where SQLite stops.
//!
//! The format: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>.

use std::fs;
use std::io;
use std::path::Path;

use tsb_core::bytes::array_at;

/// Bytes of the header of the log.
const HEADER: usize = 32;
/// Bytes of the header of a page.
const FRAME_HEADER: usize = 24;
/// The first four bytes, except for the lowest bit, which is the byte order of checksums.
const MAGIC: u32 = 0x377f_0682;
/// The only version.
const VERSION: u32 = 3_007_000;

/// The state of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sqlite) struct Log {
    /// Two numbers that change whenever the log starts over; `None`: it has no valid header, so
    /// none of it is used.
    pub(super) salts: Option<(u32, u32)>,
    /// Pages that are used: those up to the last commit before the first torn or damaged page.
    pub(super) pages: u64,
    /// Commits after that page, of this log by their salts.
    pub(super) commits_behind: u64,
    /// Its header is invalid, and not just the zeros that a power cut may leave.
    pub(super) is_foreign: bool,
    /// Bytes of the file.
    pub(super) bytes: u64,
}

/// Reads a log file; a missing file counts as an empty log.
pub(super) fn read(path: &Path) -> io::Result<Log> {
    match fs::read(path) {
        Ok(bytes) => Ok(scan(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Log::default()),
        Err(error) => Err(error),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    array_at(bytes, at).map_or(0, u32::from_be_bytes)
}

/// SQLite's checksum of pairs of words, continued from `sum`.
fn add(sum: (u32, u32), bytes: &[u8], big: bool) -> (u32, u32) {
    let number = |four: &[u8]| {
        let four = four.try_into().unwrap_or_default();
        if big {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        }
    };
    bytes.chunks_exact(8).fold(sum, |(first, second), pair| {
        let first = first.wrapping_add(number(&pair[..4])).wrapping_add(second);
        let second = second.wrapping_add(number(&pair[4..])).wrapping_add(first);
        (first, second)
    })
}

/// The header of a log.
struct Header {
    /// Bytes per page.
    page: usize,
    salts: (u32, u32),
    /// The checksum, from which those of the pages continue.
    sum: (u32, u32),
    /// Words are big-endian in checksums.
    big: bool,
}

/// The header, if it is valid.
fn header(bytes: &[u8]) -> Option<Header> {
    let header = bytes.get(..HEADER)?;
    let (magic, version) = (word(header, 0), word(header, 4));
    if magic & !1 != MAGIC || version != VERSION {
        return None;
    }
    let big = magic & 1 == 1;
    let sum = add((0, 0), &header[..24], big);
    let page = word(header, 8) as usize;
    let is_valid = sum == (word(header, 24), word(header, 28)) && page.is_power_of_two() && page >= 512;
    let salts = (word(header, 16), word(header, 20));
    is_valid.then_some(Header { page, salts, sum, big })
}

/// Scans a log. Accepts any bytes.
pub(super) fn scan(bytes: &[u8]) -> Log {
    let mut log = Log {
        bytes: bytes.len() as u64,
        ..Log::default()
    };
    let Some(Header {
        page,
        salts,
        mut sum,
        big,
    }) = header(bytes)
    else {
        log.is_foreign = bytes.iter().take(HEADER).any(|byte| *byte != 0);
        return log;
    };
    log.salts = Some(salts);
    let mut is_whole = true;
    for (index, frame) in bytes[HEADER..].chunks_exact(FRAME_HEADER + page).enumerate() {
        let is_commit = word(frame, 4) != 0;
        let is_of_this_log = (word(frame, 8), word(frame, 12)) == salts && word(frame, 0) != 0;
        if is_whole {
            let next = add(add(sum, &frame[..8], big), &frame[FRAME_HEADER..], big);
            is_whole = is_of_this_log && next == (word(frame, 16), word(frame, 20));
            sum = next;
        }
        if is_whole && is_commit {
            log.pages = index as u64 + 1;
        } else if !is_whole && is_of_this_log && is_commit {
            log.commits_behind += 1;
        }
    }
    log
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// A log with some commits, and how many pages SQLite reports after each.
    fn logged(commits: i64) -> (tempfile::TempDir, Vec<u8>, Vec<u64>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a)")
            .unwrap();
        let mut pages = Vec::new();
        for commit in 0..commits {
            connection
                .execute("INSERT INTO t VALUES (zeroblob(?1))", [commit * 3000])
                .unwrap();
            let bytes = fs::metadata(folder.path().join("x.db-wal")).unwrap().len();
            pages.push((bytes - HEADER as u64) / (FRAME_HEADER as u64 + 4096));
        }
        let bytes = fs::read(folder.path().join("x.db-wal")).unwrap();
        drop(connection);
        (folder, bytes, pages)
    }

    #[test]
    fn a_whole_log_has_all_of_its_pages() {
        let (_folder, bytes, pages) = logged(6);
        let log = scan(&bytes);
        assert_eq!((log.pages, log.commits_behind), (*pages.last().unwrap(), 0));
        assert!(log.salts.is_some());
    }

    #[test]
    fn a_log_is_used_up_to_the_commit_before_a_damage() {
        let (_folder, bytes, pages) = logged(8);
        let frame = FRAME_HEADER + 4096;
        for (index, &before) in pages.iter().enumerate().take(pages.len() - 1) {
            // In the first page of the commit behind this one.
            let mut damaged = bytes.clone();
            damaged[HEADER + before as usize * frame + 100] ^= 1;
            let log = scan(&damaged);
            assert_eq!(log.pages, before);
            assert_eq!(log.commits_behind, (pages.len() - 1 - index) as u64);
        }
        for byte in 0..HEADER {
            let mut damaged = bytes.clone();
            damaged[byte] ^= 1;
            let log = scan(&damaged);
            assert!(log.pages == 0 && log.is_foreign, "byte {byte}");
        }
        for end in (0..bytes.len()).step_by(997) {
            let log = scan(&bytes[..end]);
            let whole = (end.saturating_sub(HEADER) / frame) as u64;
            let last = pages.iter().rev().find(|&&pages| pages <= whole);
            // The commit that made the table is before the first.
            assert!(log.pages >= last.copied().unwrap_or(0) && log.pages <= whole);
            assert_eq!(log.commits_behind, 0);
        }
        for blank in [&b""[..], &[0; 9], &[0; 5000]] {
            assert!(scan(blank).salts.is_none() && !scan(blank).is_foreign);
        }
    }
}
