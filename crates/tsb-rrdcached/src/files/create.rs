//! Creates files for clients (`CREATE`).

use std::path::{Path, PathBuf};

use tsb_rrd::{Error as RrdError, Layout, Session};

use super::FileCache;
use super::error::{FileError, FileResult};
use super::librrd::{self, NewFile};
use super::shard::Claim;
use tsb_stores::error::chain;
use tsb_stores::parts::lock;

/// The step in seconds if the client gives none, or 0: rrdtool's default.
const STEP_S: u64 = 300;
/// The earliest start of a file (rrdtool's limit: in 1980).
const START_MIN_S: i64 = 315_360_000;
/// Without a given start, a file starts this many seconds ago.
const START_BEFORE_S: i64 = 10;

/// Larger files are created on a thread of their own.
const QUICK_BYTES: u64 = 1 << 20;

/// A client's options for a new file, besides its name and definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CreateOptions {
    pub(super) start_s: Option<i64>,
    /// In seconds; 0 means the template's step, or rrdtool's default.
    pub(super) step_s: u64,
    /// Fails if the file exists, instead of replacing it.
    pub(super) keeps_old: bool,
    /// Files whose rows are copied into the new one.
    pub(super) sources: Vec<String>,
    /// A file whose data sources and archives the new one copies.
    pub(super) template: Option<String>,
}

impl FileCache {
    /// Creates or replaces a file, and creates the folders above it. Updates queued for an old
    /// file are dropped.
    pub(super) fn create(
        &self,
        file: &str,
        options: &CreateOptions,
        definitions: &[String],
        session: &mut Session,
    ) -> FileResult<()> {
        let name = self.shared.base.name(file)?;
        if options.start_s.is_some_and(|start_s| start_s < START_MIN_S) {
            return Err(FileError::TooEarly);
        }
        let layout = self.layout_of(options, definitions)?;
        let source_files = self.source_files(options, session)?;
        // Claim the new file and those it is made from in one order, so that two creations cannot
        // wait for each other.
        let mut names: Vec<&str> = source_files.iter().map(|(name, _)| name.as_str()).collect();
        names.push(&name);
        names.sort_unstable();
        names.dedup();
        let claims = names
            .iter()
            .map(|&one| self.claim(one, *one == *name, options.keeps_old));
        let claims = claims.collect::<FileResult<Vec<Claim<'_>>>>()?;
        let path = self.shared.base.path(&name);
        let io = |source| FileError::Io {
            file: self.shared.base.display_path(&name),
            source,
        };
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(io)?;
        let made = match &layout {
            Some(layout) => self.make(&name, layout, options),
            None => self.make_with_librrd(&path, options, definitions, &source_files),
        };
        let kept = made.is_ok().then(|| self.sync_new_file(&path)).transpose();
        drop(claims);
        kept.map_err(io)?;
        made.map_err(|error| match error.cause() {
            RrdError::Exists => self.exists(&name),
            _ => FileError::Create(chain(&error)),
        })
    }

    /// Syncs a new file if acks mean synced: acknowledged values must not outlive their file.
    fn sync_new_file(&self, path: &Path) -> std::io::Result<()> {
        let journal = self.shared.journal.as_ref();
        if journal.is_some_and(|journal| journal.policy().is_before_ack()) {
            self.shared.base.sync_file(path)?;
        }
        Ok(())
    }

    /// Whether creating a file is too slow for the connection's thread: it is large, or librrd
    /// reads other files for it.
    pub(super) fn is_slow_to_create(options: &CreateOptions, definitions: &[String]) -> bool {
        let step_s = if options.step_s == 0 { STEP_S } else { options.step_s };
        let copies = options.template.is_some() || !options.sources.is_empty();
        copies || tsb_rrd::file_len_max(step_s, definitions, 0) > QUICK_BYTES
    }

    /// Creates a file while no other large one is being created: several at once would compete
    /// for the disk and finish no earlier.
    pub(super) fn create_exclusively(
        &self,
        file: &str,
        options: &CreateOptions,
        definitions: &[String],
    ) -> FileResult<()> {
        let _exclusive = lock(&self.creating);
        self.create(file, options, definitions, &mut Session::default())
    }

    fn make(&self, name: &str, layout: &Layout, options: &CreateOptions) -> tsb_rrd::Result<()> {
        let now_s = self.shared.clock.wall().as_secs();
        let start_s = options.start_s.unwrap_or(now_s - START_BEFORE_S);
        let make = if options.keeps_old {
            tsb_rrd::create
        } else {
            tsb_rrd::replace
        };
        make(&self.shared.base.path(name), layout, start_s, self.shared.seed_of(name))
    }

    fn make_with_librrd(
        &self,
        path: &Path,
        options: &CreateOptions,
        definitions: &[String],
        source_files: &[(String, PathBuf)],
    ) -> tsb_rrd::Result<()> {
        let paths: Vec<PathBuf> = source_files.iter().map(|(_, path)| path.clone()).collect();
        let (sources, template) = paths.split_at(options.sources.len());
        let template = template.first().map(PathBuf::as_path);
        let template_sources = template.map_or(Ok(0), librrd::sources)?;
        self.check_size(options.step_s, definitions, template_sources)?;
        let new = NewFile {
            step_s: options.step_s,
            start_s: options.start_s,
            keeps_old: options.keeps_old,
            sources,
            template,
            definitions,
        };
        librrd::create(path, &new)
    }

    /// The layout of a new file if our own engine can create it; `None` if only librrd can.
    /// Checks the size limit in both cases.
    fn layout_of(&self, options: &CreateOptions, definitions: &[String]) -> FileResult<Option<Layout>> {
        let step_s = if options.step_s == 0 { STEP_S } else { options.step_s };
        let fits = self.check_size(step_s, definitions, 0);
        fits.map_err(|error| FileError::Create(chain(&error)))?;
        if options.template.is_some() || !options.sources.is_empty() {
            return Ok(None);
        }
        match tsb_rrd::define(step_s, definitions) {
            Ok(layout) => Ok(Some(layout)),
            Err(error) if librrd::is_for_librrd(&error) => Ok(None),
            Err(error) => Err(FileError::Create(chain(&error))),
        }
    }

    /// Refuses a file larger than the cache allows. `template_sources` is the number of data
    /// sources copied from a template.
    fn check_size(&self, step_s: u64, definitions: &[String], template_sources: u64) -> tsb_rrd::Result<()> {
        let bytes = tsb_rrd::file_len_max(step_s, definitions, template_sources);
        let limit = self.shared.bounds.file_bytes;
        if bytes <= limit {
            return Ok(());
        }
        let what = format!("the archives would take {bytes} bytes, and max_file_bytes allows {limit}");
        Err(RrdError::Definition(what))
    }

    /// The files that a new one is made from, sources first, after their queues were written.
    fn source_files(&self, options: &CreateOptions, session: &mut Session) -> FileResult<Vec<(String, PathBuf)>> {
        let sources = options.sources.iter().map(|file| ("source", file));
        let files = sources.chain(options.template.iter().map(|file| ("template", file)));
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

    /// Claims a file. The new file is also checked and forgotten under the same lock.
    fn claim<'a>(&'a self, name: &'a str, is_new: bool, keeps_old: bool) -> FileResult<Claim<'a>> {
        let shard_mutex = self.shared.shard_of(name);
        let mut shard = shard_mutex.lock_idle(name);
        if is_new {
            match self.shared.base.walk(name)? {
                Some(_) if keeps_old => return Err(self.exists(name)),
                Some(kind) if !kind.is_file() => {
                    return Err(FileError::NotRegular(self.shared.base.display_path(name)));
                }
                _ => {}
            }
            self.shared.remove(&mut shard, name)?;
        }
        Ok(shard_mutex.claim(&mut shard, name))
    }

    fn exists(&self, name: &str) -> FileError {
        FileError::Create(format!(
            "creating '{}': File exists",
            self.shared.base.display_path(name)
        ))
    }
}
