//! A file in exclusive use: mapped, with its header in memory, without locks and without reading
//! it again.
//!
//! Writes by other programs are not noticed, and are lost. An update is in the file when the call
//! returns, and other programs may read the file at any time.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::file::{RrdFile, Session, Updated};
use crate::layout::Layout;
use crate::live_header::LiveHeader;
use crate::mapped;
use crate::system::Mapping;

/// A file that no other program writes. It keeps no file descriptor open.
#[derive(Debug)]
pub struct ExclusiveFile {
    layout: Arc<Layout>,
    live: LiveHeader,
    mapping: Mapping,
}

impl ExclusiveFile {
    /// Opens a file of this layout.
    ///
    /// # Errors
    /// As [`RrdFile::open`], [`Error::Changed`] if the layout differs, and [`Error::Io`] if the
    /// system has no more mappings.
    pub fn open(path: &Path, layout: &Arc<Layout>) -> Result<Self> {
        let file = RrdFile::open_as(path, layout)?;
        let mut session = Session::default();
        let mapping = file.load(&mut session).and_then(|()| {
            let length =
                usize::try_from(layout.file_len()).map_err(|_| Error::Unsupported("a file of this size".to_owned()))?;
            Mapping::new(file.file(), length).map_err(Error::io("map the file"))
        });
        Ok(Self {
            layout: Arc::clone(layout),
            live: session.live,
            mapping: mapping.map_err(|error| error.at(path))?,
        })
    }

    /// Applies updates in order, as [`RrdFile::update`] does.
    ///
    /// # Errors
    /// [`Error::Io`], also if the file was truncated. The in-memory state is then undefined: drop
    /// this value and open the file again.
    pub fn update<T: AsRef<str>>(&mut self, session: &mut Session, updates: &[T]) -> Result<Updated> {
        let Session { staging, pass, .. } = session;
        let updated = pass.run(&self.layout, &mut self.live, updates);
        let written = mapped::write(staging, &mut self.mapping, &self.layout, pass, &self.live);
        written.map_err(Error::io("write to the mapped file"))?;
        Ok(updated)
    }

    /// Time of the last update.
    pub fn newest(&self) -> crate::parse::Moment {
        self.live.newest()
    }
}
