//! The storage of a journal's segments: a folder, or in tests a simulation that loses what was
//! not synced.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::machine::Page;

/// Segments by name, and small counter files.
pub trait Medium: Debug + Send + Sync + 'static {
    /// Names of all files of the journal, in any order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// All bytes of a file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Creates an empty segment. When this returns, its existence outlives a power cut.
    fn create(&self, name: &str) -> io::Result<Arc<dyn Segment>>;

    /// Removes a segment; a power cut may bring it back.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Renames a segment. When this returns, the new name outlives a power cut.
    fn rename(&self, name: &str, to: &str) -> io::Result<()>;

    /// Replaces the contents of a file, which is created if it does not exist. A power cut leaves
    /// the old contents or the new ones; after the return, the new ones.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Creates a new file of these bytes (a multiple of eight), replacing a file of that name. A
    /// process that still has the old file open must not be able to write to the new one.
    fn counter_file(&self, name: &str, bytes: &[u8]) -> io::Result<Arc<dyn CounterFile>>;

    /// Unlocks the storage: nothing more is written, and another journal may open it.
    fn release(&self);

    /// The path of a file, for errors.
    fn path_of(&self, name: &str) -> PathBuf;
}

/// A segment that is open for writing.
pub trait Segment: Debug + Send + Sync {
    /// Appends bytes. When this returns, they outlive the process.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// When this returns, everything appended before outlives a power cut.
    fn sync(&self) -> io::Result<()>;
}

/// A small file of words of eight bytes, each overwritten on its own and never synced.
pub trait CounterFile: Debug + Send + Sync {
    /// Sets the word at `index` to `value`, little-endian. When this returns, the word outlives
    /// the process. A reader sees the old word or the new one. A power cut may leave any earlier
    /// state of the file, zeros or nothing.
    fn set(&self, index: usize, value: u64);
}

/// A folder that is locked against other journals.
#[derive(Debug)]
pub(super) struct JournalFolder {
    path: PathBuf,
    // Holds the lock while it is open.
    file: File,
}

/// The start of every file name of a journal.
const PREFIX: &str = "tsb.journal.";
/// The marker: states which segments exist.
pub(super) const MARKER: &str = "tsb.journal.marker";
/// The count file: states how far the journal was written.
pub(super) const COUNT: &str = "tsb.journal.count";
/// The temporary name of a file that is being replaced.
const TEMPORARY: &str = "tsb.marker.new";

impl JournalFolder {
    /// Opens a folder, which is created if it does not exist, and locks it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        make(path)?;
        let file = File::open(path)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            if error == rustix::io::Errno::WOULDBLOCK {
                io::Error::other("another process, or another store, uses it")
            } else {
                error.into()
            }
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }
}

/// Creates a folder and its parents. Each parent is synced, since it holds the folder's name:
/// otherwise a power cut could lose the whole journal.
fn make(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let above = match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    make(above)?;
    match std::fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    File::open(above)?.sync_all()
}

impl Medium for JournalFolder {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            names.extend(name.to_str().filter(|name| name.starts_with(PREFIX)).map(str::to_owned));
        }
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.path.join(name))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Segment>> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(self.path.join(name))?;
        self.file.sync_all()?;
        Ok(Arc::new(file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn rename(&self, name: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(name), self.path.join(to))?;
        self.file.sync_all()
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        // The temporary name is not a name of the journal: a crash may leave the file, and the
        // next replacement overwrites it.
        let temporary = self.path.join(TEMPORARY);
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(temporary, self.path.join(name))?;
        self.file.sync_all()
    }

    fn counter_file(&self, name: &str, bytes: &[u8]) -> io::Result<Arc<dyn CounterFile>> {
        Ok(Arc::new(create_page(&self.path.join(name), bytes)?))
    }

    fn release(&self) {
        // If unlocking fails, closing the descriptor releases the lock.
        let _ = rustix::fs::flock(&self.file, rustix::fs::FlockOperation::Unlock);
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for JournalFolder {
    fn drop(&mut self) {
        // Unlock explicitly: a child process that another thread has just forked holds copies of
        // the descriptor, and with it the lock.
        self.release();
    }
}

impl Segment for File {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self;
        file.write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The name of a segment: its number, padded so that names sort like numbers.
pub(super) fn name_of(number: u32) -> String {
    format!("{PREFIX}{number:010}")
}

/// The number in the name of a segment.
pub(super) fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?;
    digits.parse().ok().filter(|_| digits.len() == 10)
}

/// Creates a file with these bytes and maps its first page. If writing or mapping fails, the file
/// is removed.
///
/// An existing file is removed, not truncated: another process may still have it mapped, and
/// would be killed by a truncation, or write into the new count.
pub(super) fn create_page(path: &Path, bytes: &[u8]) -> io::Result<Page> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)?;
    // Write the bytes before mapping, so that the file system allocates the blocks: a store into
    // a page without room would kill the process.
    let page = file.write_all(bytes).and_then(|()| Page::map(&file));
    page.inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

impl CounterFile for Page {
    fn set(&self, index: usize, value: u64) {
        Self::set(self, index, value);
    }
}

/// Calls the medium for one file, with an error that names it.
///
/// # Errors
/// [`Error::Backend`] where the call fails.
pub(super) fn with_path<T>(
    medium: &dyn Medium,
    name: &str,
    verb: &str,
    call: impl Fn(&str) -> std::io::Result<T>,
) -> Result<T> {
    call(name).map_err(|source| Error::Backend {
        action: format!("{verb} the journal {}", medium.path_of(name).display()),
        source: source.into(),
    })
}

/// A file of a version that is not known here.
pub(super) fn later_format(medium: &dyn Medium, name: &str, found: char, reads: char) -> Error {
    Error::LaterFormat {
        path: medium.path_of(name),
        found: found.to_string(),
        reads: reads.to_string(),
    }
}
