//! New files.

use std::path::{Path, PathBuf};

use tsb_rrd::{Error as RrdError, Layout, Session};

use super::FileCache;
use super::error::FileError;
use super::librrd::{self, NewFile};
use super::shelf::Claim;
use tsb_stores::error::chain;
use tsb_stores::parts::lock;

/// Seconds of a step, where a client says none, or 0: rrdtool's.
const STEP_S: u64 = 300;
/// No file starts earlier: some time in 1980.
const START_MIN_S: i64 = 315_360_000;
/// A file without a start takes updates from this many seconds ago on.
const START_BEFORE_S: i64 = 10;

/// A file of up to this many bytes is created at once.
const QUICK_BYTES: u64 = 1 << 20;

/// What a client asks of a new file, besides its name and definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Creation {
    pub(super) start_s: Option<i64>,
    /// 0: the template's, or rrdtool's.
    pub(super) step_s: u64,
    /// One that is there is left alone.
    pub(super) keeps_old: bool,
    /// Files whose rows fill the new one.
    pub(super) sources: Vec<String>,
    /// A file whose data sources and archives the new one has, too.
    pub(super) template: Option<String>,
}

type Done<T> = std::result::Result<T, FileError>;

impl FileCache {
    /// Creates a file, with the folders on its way, or replaces one: what waits for that is
    /// forgotten.
    pub(super) fn create(
        &self,
        file: &str,
        creation: &Creation,
        definitions: &[String],
        session: &mut Session,
    ) -> Done<()> {
        let name = self.shared.base.name(file)?;
        if creation.start_s.is_some_and(|start_s| start_s < START_MIN_S) {
            return Err(FileError::TooEarly);
        }
        let layout = self.layout_of(creation, definitions)?;
        let copied = self.copied(creation, session)?;
        // Those that are read, and the new one: claimed in one order, so that no two creations
        // wait for each other.
        let mut names: Vec<&str> = copied.iter().map(|(name, _)| name.as_str()).collect();
        names.push(&name);
        names.sort_unstable();
        names.dedup();
        let claims = names
            .iter()
            .map(|&one| self.claim(one, *one == *name, creation.keeps_old));
        let claims = claims.collect::<Done<Vec<Claim<'_>>>>()?;
        let path = self.shared.base.path(&name);
        let io = |source| FileError::Io {
            file: self.shared.base.shown(&name),
            source,
        };
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(io)?;
        let made = match &layout {
            Some(layout) => self.make(&name, layout, creation),
            None => self.make_with_librrd(&path, creation, definitions, &copied),
        };
        let kept = made.is_ok().then(|| self.keep(&path)).transpose();
        drop(claims);
        kept.map_err(io)?;
        made.map_err(|error| match error.cause() {
            RrdError::Exists => self.exists(&name),
            _ => FileError::Create(chain(&error)),
        })
    }

    /// Brings a new file to the medium where values are acknowledged as synced: they must not
    /// outlive their file.
    fn keep(&self, path: &Path) -> std::io::Result<()> {
        let journal = self.shared.journal.as_ref();
        if journal.is_some_and(|journal| journal.policy().is_before_ack()) {
            self.shared.base.keep(path)?;
        }
        Ok(())
    }

    /// Whether creating a file takes so long that others should not wait for it: it is large, or
    /// librrd reads other files for it.
    pub(super) fn is_slow_to_create(creation: &Creation, definitions: &[String]) -> bool {
        let step_s = if creation.step_s == 0 { STEP_S } else { creation.step_s };
        let copies = creation.template.is_some() || !creation.sources.is_empty();
        copies || tsb_rrd::file_len_max(step_s, definitions, 0) > QUICK_BYTES
    }

    /// Creates a file, one after the other: large files at once would share the disk, and fill it
    /// no sooner.
    pub(super) fn create_in_turn(&self, file: &str, creation: &Creation, definitions: &[String]) -> Done<()> {
        let _turn = lock(&self.creating);
        self.create(file, creation, definitions, &mut Session::default())
    }

    fn make(&self, name: &str, layout: &Layout, creation: &Creation) -> tsb_rrd::Result<()> {
        let now_s = self.shared.clock.wall().as_secs();
        let start_s = creation.start_s.unwrap_or(now_s - START_BEFORE_S);
        let make = if creation.keeps_old {
            tsb_rrd::create
        } else {
            tsb_rrd::replace
        };
        make(&self.shared.base.path(name), layout, start_s, self.shared.seed_of(name))
    }

    fn make_with_librrd(
        &self,
        path: &Path,
        creation: &Creation,
        definitions: &[String],
        copied: &[(String, PathBuf)],
    ) -> tsb_rrd::Result<()> {
        let paths: Vec<PathBuf> = copied.iter().map(|(_, path)| path.clone()).collect();
        let (sources, template) = paths.split_at(creation.sources.len());
        let template = template.first().map(PathBuf::as_path);
        let lent = template.map_or(Ok(0), librrd::sources)?;
        self.check_size(creation.step_s, definitions, lent)?;
        let new = NewFile {
            step_s: creation.step_s,
            start_s: creation.start_s,
            keeps_old: creation.keeps_old,
            sources,
            template,
            definitions,
        };
        librrd::create(path, &new)
    }

    /// The layout of a new file, where our own engine makes it; librrd's are bounded, too.
    fn layout_of(&self, creation: &Creation, definitions: &[String]) -> Done<Option<Layout>> {
        let step_s = if creation.step_s == 0 { STEP_S } else { creation.step_s };
        let fits = self.check_size(step_s, definitions, 0);
        fits.map_err(|error| FileError::Create(chain(&error)))?;
        if creation.template.is_some() || !creation.sources.is_empty() {
            return Ok(None);
        }
        match tsb_rrd::define(step_s, definitions) {
            Ok(layout) => Ok(Some(layout)),
            Err(error) if librrd::is_for_librrd(&error) => Ok(None),
            Err(error) => Err(FileError::Create(chain(&error))),
        }
    }

    /// Refuses a file of more bytes than the cache allows; a template lends it `lent` sources.
    fn check_size(&self, step_s: u64, definitions: &[String], lent: u64) -> tsb_rrd::Result<()> {
        let bytes = tsb_rrd::file_len_max(step_s, definitions, lent);
        let limit = self.shared.bounds.file_bytes;
        if bytes <= limit {
            return Ok(());
        }
        let what = format!("the archives would take {bytes} bytes, and max_file_bytes allows {limit}");
        Err(RrdError::Definition(what))
    }

    /// The files that a new one is made from, sources first, with all that waited for them.
    fn copied(&self, creation: &Creation, session: &mut Session) -> Done<Vec<(String, PathBuf)>> {
        let sources = creation.sources.iter().map(|file| ("source", file));
        let files = sources.chain(creation.template.iter().map(|file| ("template", file)));
        let named = files.map(|(what, file)| {
            let name = self.shared.base.name(file)?.into_owned();
            let missing = |_| FileError::Create(format!("Cannot open {what} RRD {file}"));
            self.shared.base.check_file(&name).map_err(missing)?;
            self.shared.flush(&name, session)?;
            let path = self.shared.base.path(&name);
            Ok((name, path))
        });
        named.collect()
    }

    /// Claims a file; the new one is checked, and forgotten, at the same moment.
    fn claim<'a>(&'a self, name: &'a str, is_new: bool, keeps_old: bool) -> Done<Claim<'a>> {
        let shelved = self.shared.shelf_of(name);
        let mut shelf = shelved.lock_idle(name);
        if is_new {
            match self.shared.base.walk(name)? {
                Some(_) if keeps_old => return Err(self.exists(name)),
                Some(kind) if !kind.is_file() => return Err(FileError::NotRegular(self.shared.base.shown(name))),
                _ => {}
            }
            self.shared.remove(&mut shelf, name)?;
        }
        Ok(shelved.claim(&mut shelf, name))
    }

    fn exists(&self, name: &str) -> FileError {
        FileError::Create(format!("creating '{}': File exists", self.shared.base.shown(name)))
    }
}
