//! Files that are written one after the other, and what the system reads for the next ones.
//!
//! A file that is opened ahead belongs to its entry, not to the thread that opened it: a flush
//! that comes first takes it, and nobody waits for anybody.

use tsb_rrd::{Ahead, RrdFile, Seen, Session, Stage, until_s};

use super::error::FileError;
use super::outlet::Outlet;
use super::shared::Shared;

impl Shared {
    /// Writes what waits for some files, in turn, and has them written out where there is an
    /// outlet; `each` is told what went wrong.
    pub(super) fn write_some(
        &self,
        names: &[Box<str>],
        (session, ahead): (&mut Session, &mut Ahead),
        outlet: Option<&Outlet>,
        mut each: impl FnMut(&str, Result<bool, FileError>),
    ) {
        let _ = ahead.each(names.len(), |stage, index| {
            let name = &names[index];
            Ok::<_, std::convert::Infallible>(match stage {
                Stage::Header => self.ask_header(name),
                Stage::Rows => self.ask_rows(name, session),
                Stage::Update => {
                    each(name, self.write_out(name, session, outlet));
                    Seen::Nothing
                }
            })
        });
    }

    /// Opens a file that nobody is busy with, and has its header read.
    fn ask_header(&self, name: &str) -> Seen {
        let shelved = self.shelf_of(name);
        let (claim, layout) = {
            let mut guard = shelved.lock();
            let shelf = &mut *guard;
            let entry = shelf.entries.get(name).filter(|entry| entry.is_written_next());
            let Some(entry) = entry.filter(|_| !shelf.busy.contains(name)) else {
                return Seen::Nothing;
            };
            let layout = entry.layout.clone();
            // IMPORTANT: closing a descriptor gives up the lock that others may hold.
            (shelved.claim(shelf, name), layout)
        };
        // What is wrong with it is found out by whoever writes it.
        let Ok(file) = RrdFile::open_as(&self.base.path(name), &layout) else {
            return Seen::Nothing;
        };
        let seen = file.ask_header();
        if let Some(entry) = shelved.lock().entries.get_mut(name) {
            entry.ready = Some(file);
        }
        drop(claim);
        seen
    }

    /// Has the pages read that what waits for an opened file will be written to.
    fn ask_rows(&self, name: &str, session: &mut Session) -> Seen {
        let shelved = self.shelf_of(name);
        let (claim, file, until) = {
            let mut guard = shelved.lock();
            let shelf = &mut *guard;
            let Some(entry) = shelf.entries.get_mut(name).filter(|_| !shelf.busy.contains(name)) else {
                return Seen::Nothing;
            };
            let until = entry.last_line().and_then(until_s);
            let (Some(file), Some(until)) = (entry.ready.take(), until) else {
                return Seen::Nothing;
            };
            (shelved.claim(shelf, name), file, until)
        };
        let seen = file.ask_rows(session, until).unwrap_or_else(Seen::from);
        if let Some(entry) = shelved.lock().entries.get_mut(name) {
            entry.ready = Some(file);
        }
        drop(claim);
        seen
    }
}
