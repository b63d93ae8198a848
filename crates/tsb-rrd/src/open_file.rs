//! An open file whose descriptor is kept between passes, and which is mapped where that costs
//! less.
//!
//! Each pass takes librrd's lock and reads the header again; only the write method differs
//! ([`crate::write_policy`]). Changes are in the file when the call returns.

use rustix::fs::FlockOperation;

use crate::error::{Error, Result};
use crate::file::{RrdFile, Session, Updated};
use crate::mapped;
use crate::system::{Mapping, faults};
use crate::write_policy::WriteMethod;

/// An open file that other programs may read and write between passes.
#[derive(Debug)]
pub struct OpenFile {
    file: RrdFile,
    writer: Writer,
}

/// How changes are written to the file.
#[derive(Debug, Default)]
struct Writer {
    mapping: Option<Mapping>,
    // Whether the last pass wrote through the mapping: only then do page faults of the next pass
    // show whether pages have been written back since.
    was_mapped: bool,
}

impl OpenFile {
    /// Keeps `file` open.
    pub fn new(file: RrdFile) -> Self {
        Self {
            file,
            writer: Writer::default(),
        }
    }

    /// The file.
    pub fn file(&self) -> &RrdFile {
        &self.file
    }

    /// Applies updates as [`RrdFile::update`] does.
    ///
    /// # Errors
    /// As [`RrdFile::update`].
    pub fn update<T: AsRef<str>>(&mut self, session: &mut Session, updates: &[T]) -> Result<Updated> {
        let Self { file, writer } = self;
        file.locked(FlockOperation::NonBlockingLockExclusive, || {
            file.load(session)?;
            let updated = session.pass.run(file.layout(), &mut session.live, updates);
            writer.write(file, session)?;
            Ok(updated)
        })
    }
}

impl Writer {
    /// Writes the changes of a pass.
    fn write(&mut self, file: &RrdFile, session: &mut Session) -> Result<()> {
        let Session {
            staging,
            pass,
            live,
            write_policy,
            ..
        } = session;
        let method = write_policy.method(self.was_mapped);
        self.was_mapped = false;
        let mapping = match method {
            WriteMethod::Calls => None,
            WriteMethod::Mapping { .. } => self.map(file),
        };
        let Some(mapping) = mapping else {
            return file.write(pass, live);
        };
        let is_measured = method == WriteMethod::Mapping { is_measured: true };
        let before = if is_measured { faults() } else { 0 };
        if let Err(error) = mapped::write(staging, mapping, file.layout(), pass, live) {
            // After an error the mapping may be stale; the next pass maps the file anew.
            self.mapping = None;
            return Err(Error::io("write to the mapped file")(error));
        }
        self.was_mapped = write_policy.measures_next(method);
        if is_measured {
            write_policy.record_faults(faults() - before);
        }
        Ok(())
    }

    /// Maps the file; `None` if that fails.
    fn map(&mut self, file: &RrdFile) -> Option<&mut Mapping> {
        if self.mapping.is_none() {
            let length = usize::try_from(file.layout().file_len()).ok()?;
            self.mapping = Mapping::new(file.file(), length).ok();
        }
        self.mapping.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Archive, Cf, DataSource, DsKind, Layout};
    use crate::write_policy::WritePolicy;
    use std::path::{Path, PathBuf};

    const START_S: i64 = 1_700_000_000;

    fn create(folder: &Path, name: &str) -> PathBuf {
        let sources = ["a", "b"].map(|name| DataSource::new(name, DsKind::Gauge, 100));
        let archives = [(1, 2_000), (7, 900)].map(|(steps, rows)| Archive::new(Cf::Average, 0.5, steps, rows));
        let layout = Layout::new(10, sources.to_vec(), archives.to_vec()).unwrap();
        let path = folder.join(name);
        crate::create(&path, &layout, START_S, 5).unwrap();
        path
    }

    fn opened(path: &Path) -> OpenFile {
        OpenFile::new(RrdFile::open(path).unwrap())
    }

    fn mapping() -> Session {
        Session {
            write_policy: WritePolicy::mapping(),
            ..Session::default()
        }
    }

    /// Within steps, across them, and across gaps of many rows; by calls, by the mapping, and
    /// by both in turn.
    #[test]
    fn every_write_method_leaves_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["calls.rrd", "mapped.rrd", "turns.rrd"].map(|name| create(folder.path(), name));
        let mut files = paths.each_ref().map(|path| opened(path));
        let (mut calls, mut maps) = (Session::default(), mapping());
        let (mut at_s, mut seed) = (START_S, 3_u64);
        for round in 0..600 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let step_s = [1, 4, 10, 37, 900, 25_000][(seed >> 33) as usize % 6];
            let updates: Vec<String> = (0..=(seed >> 40) % 5)
                .map(|_| {
                    at_s += step_s;
                    format!("{at_s}:{}.5:{}", seed >> 50, at_s % 977)
                })
                .collect();
            let [by_calls, mapped, turns] = &mut files;
            by_calls.update(&mut calls, &updates).unwrap();
            mapped.update(&mut maps, &updates).unwrap();
            let session = if round % 3 == 0 { &mut calls } else { &mut maps };
            turns.update(session, &updates).unwrap();
        }
        assert!(
            files[1].writer.mapping.is_some() && maps.write_policy.measures_next(WriteMethod::Calls),
            "it was mapped"
        );
        let bytes = paths.map(|path| std::fs::read(path).unwrap());
        assert!(bytes[0] == bytes[1] && bytes[0] == bytes[2]);
    }

    #[test]
    fn a_file_that_was_replaced_or_cut_is_noticed_mapped_or_not() {
        for session in [&mut Session::default(), &mut mapping()] {
            let folder = tempfile::tempdir().unwrap();
            let path = create(folder.path(), "a.rrd");
            let mut file = opened(&path);
            file.update(session, &[format!("{}:1:2", START_S + 5)]).unwrap();
            std::fs::rename(create(folder.path(), "b.rrd"), &path).unwrap();
            let result = file.update(session, &[format!("{}:1:2", START_S + 6)]);
            assert!(matches!(result, Err(Error::Changed)), "{result:?}");
            let mut file = opened(&path);
            file.update(session, &[format!("{}:1:2", START_S + 5)]).unwrap();
            std::fs::File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(10_000)
                .unwrap();
            let result = file.update(session, &[format!("{}:1:2", START_S + 20)]);
            assert!(matches!(result, Err(Error::Changed)), "{result:?}");
        }
    }

    /// What others wrote between two passes counts, also to a file that is mapped.
    #[test]
    fn other_programs_may_write_between_passes() {
        let folder = tempfile::tempdir().unwrap();
        let path = create(folder.path(), "a.rrd");
        let (mut file, session) = (opened(&path), &mut mapping());
        file.update(session, &[format!("{}:1:2", START_S + 5)]).unwrap();
        let other = RrdFile::open(&path).unwrap();
        other
            .update(&mut Session::default(), &[format!("{}:1:2", START_S + 50)])
            .unwrap();
        let updated = file.update(session, &[format!("{}:1:2", START_S + 40)]).unwrap();
        assert!(matches!(updated.stopped, Some(Error::NotLater { .. })), "{updated:?}");
        file.update(session, &[format!("{}:1:2", START_S + 60)]).unwrap();
        assert_eq!(other.newest(session).unwrap().seconds, START_S + 60);
    }
}
