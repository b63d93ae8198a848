//! A file held for ourselves alone: mapped, its state in memory, no lock and no second look.
//!
//! Whoever writes to it meanwhile is not noticed, and what they wrote is lost. What is
//! updated is in the file when the call returns; readers may look at any time.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::file::{RrdFile, Session, Updated};
use crate::layout::Layout;
use crate::live::Live;
use crate::mapped;
use crate::system::Mapping;

/// A file that nobody else writes. It takes no descriptor.
#[derive(Debug)]
pub struct Held {
    layout: Arc<Layout>,
    live: Live,
    mapping: Mapping,
}

impl Held {
    /// Holds a file of this layout.
    ///
    /// # Errors
    /// As [`RrdFile::open`], [`Error::Changed`] where the layout is another, and
    /// [`Error::Io`] where the system maps no more files.
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

    /// Applies readings in their order, as [`RrdFile::update`] does.
    ///
    /// # Errors
    /// [`Error::Io`], also where the file was cut short. Afterwards the state is unsure:
    /// drop it and open the file again.
    pub fn update<T: AsRef<str>>(&mut self, session: &mut Session, readings: &[T]) -> Result<Updated> {
        let Session { stage, pass, .. } = session;
        let updated = pass.run(&self.layout, &mut self.live, readings);
        let written = mapped::write(stage, &mut self.mapping, &self.layout, pass, &self.live);
        written.map_err(Error::io("write to the mapped file"))?;
        Ok(updated)
    }

    /// When the last update was.
    pub fn newest(&self) -> crate::reading::Moment {
        self.live.newest()
    }
}
