//! A stamp of a file, which shows whether any program has written to it since.
//!
//! A write changes the file's times. But two writes within one tick of the kernel's clock may
//! leave the same time, so the existing time is not used: the file is given a modification time of
//! its own, just before the present, which no later write can produce.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Stat, Timespec, Timestamps, UTIME_OMIT, fstat, futimens};
use rustix::time::{ClockId, clock_gettime};

/// Number of words in a stamp, for storing it.
pub(crate) const WORDS: usize = 7;

/// The file's identity, length and times, all from its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp([u64; WORDS]);

impl Stamp {
    pub(crate) fn of(state: &Stat) -> Self {
        Self([
            state.st_dev,
            state.st_ino,
            state.st_size as u64,
            state.st_mtime as u64,
            state.st_mtime_nsec,
            // The change time: a program that sets the modification time back still changes this
            // one.
            state.st_ctime as u64,
            state.st_ctime_nsec,
        ])
    }

    /// The same from the standard library's metadata.
    pub(crate) fn of_metadata(file: &Metadata) -> Self {
        Self([
            file.dev(),
            file.ino(),
            file.size(),
            file.mtime() as u64,
            file.mtime_nsec() as u64,
            file.ctime() as u64,
            file.ctime_nsec() as u64,
        ])
    }

    pub(crate) const fn words(self) -> [u64; WORDS] {
        self.0
    }

    pub(crate) const fn from_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    /// Marks a file that was just written, under its lock. `None` if its file system cannot store
    /// such a time.
    pub(crate) fn mark(file: &File) -> Option<Self> {
        // The clock from which the kernel takes file times.
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let own = match now.tv_nsec {
            0 => Timespec {
                tv_sec: now.tv_sec - 1,
                tv_nsec: 999_999_999,
            },
            nanos => Timespec {
                tv_nsec: nanos - 1,
                ..now
            },
        };
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: own,
        };
        futimens(file, &times).ok()?;
        let state = fstat(file).ok()?;
        // A file system that stores whole seconds could not tell two writes apart.
        let is_kept = state.st_mtime == own.tv_sec && state.st_mtime_nsec == own.tv_nsec as u64;
        is_kept.then(|| Self::of(&state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    fn at(path: &Path) -> Stamp {
        Stamp::of_metadata(&std::fs::symlink_metadata(path).unwrap())
    }

    #[test]
    fn a_later_write_of_one_byte_is_noticed_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let file = File::create(&path).unwrap();
        for _ in 0..200 {
            file.write_all_at(b"ours", 0).unwrap();
            let Some(stamp) = Stamp::mark(&file) else { return };
            assert_eq!(at(&path), stamp);
            file.write_all_at(b"x", 0).unwrap();
            assert_ne!(at(&path), stamp);
        }
    }

    #[test]
    fn a_copy_with_the_same_times_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        let file = File::create(&path).unwrap();
        let Some(stamp) = Stamp::mark(&file) else { return };
        let modified = file.metadata().unwrap().modified().unwrap();
        let copy = File::create(&other).unwrap();
        copy.set_modified(modified).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_ne!(at(&path), stamp);
        assert_eq!(Stamp::from_words(stamp.words()), stamp);
    }
}
