//! An open RRD file. A pass reads its header, applies updates and writes the changes, under
//! librrd's lock.
//!
//! Only the layout is kept between passes, so other programs may read and write the file between
//! them.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FlockOperation, fcntl_lock, fstat};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::layout::{Layout, STAT_HEAD};
use crate::live_header::LiveHeader;
use crate::parse::Moment;
use crate::rows::Rows;
use crate::system::{StagingBuffer, begin_writeback};
use crate::update::{Scratch, apply};
use crate::write_policy::WritePolicy;

/// Reusable buffers for passes over any number of files.
#[derive(Debug, Default)]
pub struct Session {
    pub(crate) header: Vec<u8>,
    pub(crate) live: LiveHeader,
    pub(crate) pass: Pass,
    pub(crate) staging: Option<StagingBuffer>,
    /// The policy for writing to open files ([`crate::write_policy`]).
    pub(crate) write_policy: WritePolicy,
}

/// The result of a pass.
#[derive(Debug)]
pub struct Updated {
    /// Number of updates applied.
    pub applied: usize,
    /// Why the next update was refused; those after it were dropped.
    pub stopped: Option<Error>,
    /// Time of the newest update in the file now.
    pub newest: Moment,
    /// End of the newest row of the first archive that this pass wrote and whose first value is
    /// known, in seconds since the epoch.
    pub row_s: Option<i64>,
}

/// The part of a pass that does no I/O.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    scratch: Scratch,
    pub(crate) rows: Rows,
}

impl Pass {
    /// Applies updates to the live header and collects the rows that they complete for writing.
    pub(crate) fn run<T: AsRef<str>>(&mut self, layout: &Layout, live: &mut LiveHeader, updates: &[T]) -> Updated {
        self.rows.clear();
        self.scratch.start();
        let mut updated = Updated {
            applied: 0,
            stopped: None,
            newest: Moment::default(),
            row_s: None,
        };
        for update in updates {
            if let Err(error) = apply(layout, live, update.as_ref(), &mut self.scratch, &mut self.rows) {
                updated.stopped = Some(error);
                break;
            }
            updated.applied += 1;
        }
        updated.newest = live.newest();
        updated.row_s = self.scratch.known_row_s();
        updated
    }

    /// The prefix of the live header that the run may have changed.
    pub(crate) fn changed<'a>(&self, live: &'a LiveHeader) -> &'a [u8] {
        if self.scratch.has_ended() {
            live.bytes()
        } else {
            live.within_step()
        }
    }
}

/// An RRD file opened for updates.
///
/// librrd's lock belongs to the process: to use a file from two threads, lock around the calls,
/// and do not open a second descriptor of it in the process.
#[derive(Debug)]
pub struct RrdFile {
    file: File,
    layout: Arc<Layout>,
}

impl RrdFile {
    /// Opens a file and reads its layout.
    pub fn open(path: &Path) -> Result<Self> {
        let file = writable(path)?;
        let layout = read_layout(&file).map_err(|error| error.at(path))?;
        Ok(Self {
            file,
            layout: Arc::new(layout),
        })
    }

    /// Opens a file that is expected to have this layout, which each pass verifies.
    pub fn open_as(path: &Path, layout: &Arc<Layout>) -> Result<Self> {
        Ok(Self {
            file: writable(path)?,
            layout: Arc::clone(layout),
        })
    }

    /// The layout.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Applies updates in order, as one pass: it stops at the first that is refused, as librrd
    /// does, and writes the changes of those before it.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Changed`], [`Error::Damaged`] and [`Error::Io`]. A refused
    /// update is not an error but in [`Updated::stopped`].
    pub fn update<T: AsRef<str>>(&self, session: &mut Session, updates: &[T]) -> Result<Updated> {
        self.locked(FlockOperation::NonBlockingLockExclusive, || self.pass(session, updates))
    }

    /// The same as the last use of this descriptor: closing the file releases the lock.
    pub fn update_and_close<T: AsRef<str>>(self, session: &mut Session, updates: &[T]) -> Result<Updated> {
        self.lock(FlockOperation::NonBlockingLockExclusive)?;
        self.pass(session, updates)
    }

    /// Asks the system to start writing out the changes of earlier passes, so that a sync has less
    /// to do. It waits for a place if the device's queue is full. A page that is changed again
    /// before the system would have written it is written twice.
    pub fn begin_writeback(&self) {
        begin_writeback(&self.file);
    }

    /// Time of the last update.
    pub fn newest(&self, session: &mut Session) -> Result<Moment> {
        self.load(session)?;
        Ok(session.live.newest())
    }

    /// Waits until all writes have reached the storage medium.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::io("sync the file"))
    }

    fn pass<T: AsRef<str>>(&self, session: &mut Session, updates: &[T]) -> Result<Updated> {
        self.load(session)?;
        let Session { live, pass, .. } = session;
        let updated = pass.run(&self.layout, live, updates);
        self.write(pass, live)?;
        Ok(updated)
    }

    /// Writes the changes of a pass.
    pub(crate) fn write(&self, pass: &Pass, live: &LiveHeader) -> Result<()> {
        // Rows are written before the header that makes them valid: a crash between the two leaves
        // the old state.
        let write = |offset: u64, bytes: &[u8]| self.file.write_all_at(bytes, offset);
        pass.rows.write(write).map_err(Error::io("write rows"))?;
        write(self.layout.live_offset() as u64, pass.changed(live)).map_err(Error::io("write the header"))
    }

    /// Reads the header, after checking that the file still has a name and is not shorter than its
    /// layout.
    pub(crate) fn load(&self, session: &mut Session) -> Result<()> {
        let state = fstat(&self.file).map_err(|error| Error::Io {
            action: "look at the file",
            source: error.into(),
        })?;
        if state.st_nlink == 0 || (state.st_size as u64) < self.layout.file_len() {
            return Err(Error::Changed);
        }
        self.read_live(session)
    }

    /// Reads the header of a file whose length was checked.
    pub(crate) fn read_live(&self, session: &mut Session) -> Result<()> {
        let header = &mut session.header;
        header.resize(self.layout.header_len(), 0);
        self.file
            .read_exact_at(header, 0)
            .map_err(Error::io("read the header"))?;
        if header.get(..self.layout.statics.len()) != Some(self.layout.statics.as_slice()) {
            return Err(Error::Changed);
        }
        session.live.load(&self.layout, header)
    }

    /// Takes librrd's lock, or fails at once if it is held, as librrd does.
    pub(crate) fn lock(&self, how: FlockOperation) -> Result<()> {
        match fcntl_lock(&self.file, how) {
            Ok(()) => Ok(()),
            Err(Errno::AGAIN | Errno::ACCESS) => Err(Error::Locked),
            Err(error) => Err(Error::Io {
                action: "lock the file",
                source: error.into(),
            }),
        }
    }

    /// Runs `read` under a shared lock.
    pub(crate) fn shared<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        self.locked(FlockOperation::NonBlockingLockShared, read)
    }

    pub(crate) fn locked<T>(&self, how: FlockOperation, act: impl FnOnce() -> Result<T>) -> Result<T> {
        self.lock(how)?;
        let result = act();
        self.lock(FlockOperation::Unlock)?;
        result
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(bytes, offset).map_err(Error::io("read rows"))
    }
}

fn writable(path: &Path) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).open(path);
    file.map_err(|error| Error::io("open the file")(error).at(path))
}

fn read_layout(file: &File) -> Result<Layout> {
    let length = file.metadata().map_err(Error::io("look at the file"))?.len();
    let read = |length: usize| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, 0)
            .map_err(Error::io("read the header"))?;
        Ok::<_, Error>(bytes)
    };
    if length < STAT_HEAD as u64 {
        return Err(Error::damaged(length as usize, "too short to be an RRD file"));
    }
    let header_len = Layout::header_len_of(&read(STAT_HEAD)?)?;
    if length < header_len as u64 {
        let what = format!("ends within its header of {header_len} bytes");
        return Err(Error::damaged(length as usize, what));
    }
    let layout = Layout::decode(&read(header_len)?)?;
    if length < layout.file_len() {
        let what = format!("ends before its {} bytes", layout.file_len());
        return Err(Error::damaged(length as usize, what));
    }
    Ok(layout)
}
