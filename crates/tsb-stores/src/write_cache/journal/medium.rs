//! Where a journal's segments are: a folder, or in a test something that loses what was
//! not synced.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::machine::Page;

/// Segments by name, and a small file beside them.
pub trait Medium: Debug + Send + Sync + 'static {
    /// Names of all files of the journal, in any order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// All bytes of a segment.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// A new, empty segment. That it is there outlives a power cut when this returns.
    fn create(&self, name: &str) -> io::Result<Arc<dyn Segment>>;

    /// Removes a segment; a power cut may bring it back.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Gives a segment another name, which outlives a power cut when this returns.
    fn rename(&self, name: &str, to: &str) -> io::Result<()>;

    /// Makes `bytes` all that a file holds, whether it was there or not. A power cut leaves
    /// the old file or the new one; when this returns, the new one.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// A new file of these bytes, a multiple of eight, in place of the one of that name: whoever
    /// still writes to that one does not reach this one.
    fn note(&self, name: &str, bytes: &[u8]) -> io::Result<Arc<dyn Note>>;

    /// Nothing more will be written: somebody else may open it.
    fn release(&self);

    /// Where this is, for errors.
    fn path_of(&self, name: &str) -> PathBuf;
}

/// A segment that is written.
pub trait Segment: Debug + Send + Sync {
    /// Appends bytes; when it returns, they outlive the process.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// When it returns, all that was appended before outlives a power cut.
    fn sync(&self) -> io::Result<()>;
}

/// A small file of words of eight bytes, each written over by itself, and never synced.
pub trait Note: Debug + Send + Sync {
    /// Makes `value`, little-endian, the word at `index`. When it returns, the word outlives the
    /// process; a reader finds the word before or this one. A power cut may leave any earlier
    /// state of the file, zeros or nothing.
    fn set(&self, index: usize, value: u64);
}

/// A folder that nobody else may use.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    // Locked as long as it is open.
    file: File,
}

/// Every segment's name begins with it.
const PREFIX: &str = "tsb.journal.";
/// The file that says which segments there are.
pub(super) const MARKER: &str = "tsb.journal.marker";
/// The file that says how far the journal had got.
pub(super) const COUNT: &str = "tsb.journal.count";
/// What becomes the marker.
const BESIDE: &str = "tsb.marker.new";

impl Folder {
    /// Opens a folder, which is made if it is not there.
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

/// Makes a folder and those above it. A folder's name is in the one above, which is synced: a
/// power cut must not take the journal as a whole.
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

impl Medium for Folder {
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
        // Not a name of the journal: a crash may leave it, and the next opening writes over it.
        let beside = self.path.join(BESIDE);
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(beside, self.path.join(name))?;
        self.file.sync_all()
    }

    fn note(&self, name: &str, bytes: &[u8]) -> io::Result<Arc<dyn Note>> {
        Ok(Arc::new(create_page(&self.path.join(name), bytes)?))
    }

    fn release(&self) {
        // A lock that cannot be given up goes with the descriptor.
        let _ = rustix::fs::flock(&self.file, rustix::fs::FlockOperation::Unlock);
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A process that another thread has just forked has copies of the descriptor.
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

/// The name of a segment: its number, so that names sort as numbers do.
pub(super) fn name_of(number: u32) -> String {
    format!("{PREFIX}{number:010}")
}

/// The number in the name of a segment.
pub(super) fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?;
    digits.parse().ok().filter(|_| digits.len() == 10)
}

/// A new file of these bytes, whose first page is mapped. Where they do not fit, there is none.
///
/// A file of that name is removed and not emptied: a store that was left behind may have it
/// mapped, and would die, or write into the new count.
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
    // Written, so that the file system has room for it: a page that it finds none for later ends
    // the process.
    let page = file.write_all(bytes).and_then(|()| Page::map(&file));
    page.inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

impl Note for Page {
    fn set(&self, index: usize, value: u64) {
        Self::set(self, index, value);
    }
}

/// Calls the medium for one file, with an error that names it.
///
/// # Errors
/// [`Error::Backend`] where the call fails.
pub(super) fn read<T>(
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
pub(super) fn later(medium: &dyn Medium, name: &str, found: char, reads: char) -> Error {
    Error::LaterFormat {
        path: medium.path_of(name),
        found: found.to_string(),
        reads: reads.to_string(),
    }
}
