//! Operations that need librrd (feature `librrd`).
//!
//! Our own engine handles neither COMPUTE data sources nor the archives of Holt-Winters
//! forecasting, cannot create a file from other files, and has no TUNE and DUMP. Without the
//! feature each of these is refused with a message that names it. A caller must hold the claim of
//! every file that it names here: librrd's file lock belongs to the process, and does not exclude
//! two threads from each other.

use std::path::{Path, PathBuf};

use tsb_rrd::{Error as RrdError, Fetched, InfoValue, Layout, Moment, Result};

/// The options of a new file, besides its name.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "librrd"),
    expect(dead_code, reason = "without librrd no such file is made")
)]
pub(super) struct NewFile<'a> {
    /// In seconds; 0 means the template's step, or 300 s.
    pub(super) step_s: u64,
    pub(super) start_s: Option<i64>,
    pub(super) keeps_old: bool,
    pub(super) sources: &'a [PathBuf],
    pub(super) template: Option<&'a Path>,
    pub(super) definitions: &'a [String],
}

/// Whether our own engine cannot handle a file or a definition, so that librrd is needed.
pub(super) fn is_for_librrd(error: &RrdError) -> bool {
    matches!(error.cause(), RrdError::Unsupported(_))
}

#[cfg(feature = "librrd")]
pub(super) use linked::{create, dump, fetch, first, info, last, layout, sources, tune, update};
#[cfg(not(feature = "librrd"))]
pub(super) use missing::{create, dump, fetch, first, info, last, layout, sources, tune, update};

#[cfg(feature = "librrd")]
mod linked {
    use tsb_librrd::{Creation, Error as LibrrdError, InfoValue as LibrrdValue};
    use tsb_rrd::{Archive, Cf, DataSource, DsKind};

    use super::{Fetched, InfoValue, Layout, Moment, NewFile, Path, Result, RrdError};

    fn words(error: LibrrdError) -> RrdError {
        match error {
            LibrrdError::Locked(_) => RrdError::Locked,
            other => {
                let text = other.to_string();
                let is_missing = text.starts_with("opening") && text.ends_with("No such file or directory");
                if is_missing {
                    RrdError::Io {
                        action: "open the file",
                        source: std::io::ErrorKind::NotFound.into(),
                    }
                } else {
                    RrdError::Definition(text)
                }
            }
        }
    }

    pub(in super::super) fn create(path: &Path, new: &NewFile<'_>) -> Result<()> {
        let creation = Creation {
            step_s: new.step_s,
            start_s: new.start_s,
            keeps_old: new.keeps_old,
            sources: new.sources,
            template: new.template,
            definitions: new.definitions,
        };
        tsb_librrd::create(path, &creation).map_err(words)
    }

    /// Applies one update. They are passed one by one, since librrd does not say how many of
    /// several it applied.
    pub(in super::super) fn update(path: &Path, update: &str) -> Result<()> {
        tsb_librrd::update(path, &[update]).map_err(words)
    }

    pub(in super::super) fn info(path: &Path) -> Result<Vec<(String, InfoValue)>> {
        let facts = tsb_librrd::info(path).map_err(words)?;
        // The caller adds the file's name.
        let facts = facts.into_iter().filter(|(key, _)| key != "filename");
        Ok(facts
            .map(|(key, fact)| {
                let fact = match fact {
                    LibrrdValue::Value(value) => InfoValue::Value(value),
                    LibrrdValue::Count(count) => InfoValue::Count(count),
                    LibrrdValue::Text(text) => InfoValue::Text(text),
                };
                (key, fact)
            })
            .collect())
    }

    /// Number of data sources of a file.
    pub(in super::super) fn sources(path: &Path) -> Result<u64> {
        Ok(count_of_sources(&info(path)?) as u64)
    }

    fn count_of_sources(facts: &[(String, InfoValue)]) -> usize {
        facts.iter().filter(|(key, _)| key.ends_with("].type")).count()
    }

    pub(in super::super) fn first(path: &Path, archive: usize) -> Result<i64> {
        let archive = u16::try_from(archive).unwrap_or(u16::MAX);
        tsb_librrd::first(path, archive).map_err(words)
    }

    pub(in super::super) fn last(path: &Path) -> Result<i64> {
        tsb_librrd::last(path).map_err(words)
    }

    pub(in super::super) fn dump(path: &Path, limit: usize) -> Result<Vec<u8>> {
        tsb_librrd::dump(path, limit).map_err(words)
    }

    pub(in super::super) fn tune(path: &Path, options: &[String]) -> Result<()> {
        tsb_librrd::tune(path, options).map_err(words)
    }

    /// A layout for checking updates of a file: its data sources that take a value. The archive
    /// in it is a placeholder.
    pub(in super::super) fn layout(path: &Path) -> Result<(Layout, Moment)> {
        let facts = info(path)?;
        let text = |key: &str| match find(&facts, key) {
            Some(InfoValue::Text(text)) => text.as_str(),
            _ => "",
        };
        let kinds = facts.iter().filter_map(|(key, _)| key.strip_suffix("].type"));
        let names = kinds.filter_map(|key| key.strip_prefix("ds["));
        let sources = names.filter_map(|name| {
            let kind = DsKind::from_name(text(&format!("ds[{name}].type")))?;
            let heartbeat_s = count(&facts, &format!("ds[{name}].minimal_heartbeat"));
            Some(DataSource::new(name, kind, heartbeat_s.max(1)))
        });
        let archive = Archive::new(Cf::Average, 0.5, 1, 1);
        let layout = Layout::new(count(&facts, "step"), sources.collect(), vec![archive])?;
        Ok((layout, Moment::from_secs(count(&facts, "last_update") as i64)))
    }

    fn find<'a>(facts: &'a [(String, InfoValue)], key: &str) -> Option<&'a InfoValue> {
        facts.iter().find_map(|(name, fact)| (name == key).then_some(fact))
    }

    fn count(facts: &[(String, InfoValue)], key: &str) -> u64 {
        match find(facts, key) {
            Some(InfoValue::Count(count)) => *count,
            _ => 0,
        }
    }

    /// Rows of a file and the names of its data sources; an error if the rows would have more
    /// than `limit` values.
    pub(in super::super) fn fetch(
        path: &Path,
        cf: &str,
        (start_s, end_s): (i64, i64),
        limit: usize,
    ) -> Result<(Vec<String>, Fetched)> {
        let facts = info(path)?;
        let width = count_of_sources(&facts);
        if let Some(span_s) = span_of_best(&facts, cf, start_s) {
            let rows = usize::try_from(end_s.saturating_sub(start_s) / span_s).unwrap_or(usize::MAX);
            if rows.saturating_mul(width) > limit {
                return Err(RrdError::Definition(format!("more than {limit} values are asked for")));
            }
        }
        let found = tsb_librrd::fetch(path, cf, start_s, end_s, 1).map_err(words)?;
        let step_s = found.step_s as i64;
        let rows = found.values.len() / found.sources.len().max(1);
        let start_s = found.first_s - step_s;
        let fetched = Fetched {
            start_s,
            end_s: start_s + rows as i64 * step_s,
            step_s,
            values: found.values,
        };
        Ok((found.sources, fetched))
    }

    /// Seconds per row of the archive that librrd would answer from: the finest one that reaches
    /// back to `start_s`, or otherwise the one that reaches back furthest.
    fn span_of_best(facts: &[(String, InfoValue)], cf: &str, start_s: i64) -> Option<i64> {
        let (step_s, newest_s) = (count(facts, "step"), count(facts, "last_update") as i64);
        let archives = (0..).map_while(|index| match find(facts, &format!("rra[{index}].cf")) {
            Some(InfoValue::Text(text)) => Some((index, text.as_str())),
            _ => None,
        });
        let spans = archives.filter_map(|(index, text)| {
            let steps = count(facts, &format!("rra[{index}].pdp_per_row"));
            let rows = count(facts, &format!("rra[{index}].rows")) as i64;
            let span_s = (steps * step_s) as i64;
            let oldest_s = newest_s - newest_s % span_s.max(1) - span_s * rows;
            (span_s > 0 && (text == cf || steps == 1)).then_some(((oldest_s - start_s).max(0), span_s))
        });
        spans.min().map(|(_, span_s)| span_s)
    }
}

#[cfg(not(feature = "librrd"))]
mod missing {
    use super::{Fetched, InfoValue, Layout, Moment, NewFile, Path, Result, RrdError};

    fn refused<T>(what: &str) -> Result<T> {
        let words = format!("{what} needs librrd, which this build of tsb does not have (cargo feature librrd)");
        Err(RrdError::Definition(words))
    }

    /// The feature of a file or a definition that our own engine lacks.
    fn of_file<T>(path: &Path) -> Result<T> {
        let opened = tsb_rrd::RrdFile::open(path);
        match opened.as_ref().err().map(RrdError::cause) {
            Some(RrdError::Unsupported(what)) => refused(what),
            _ => refused("this file"),
        }
    }

    pub(in super::super) fn create(_path: &Path, new: &NewFile<'_>) -> Result<()> {
        if !new.sources.is_empty() || new.template.is_some() {
            return refused("creation from other files");
        }
        match tsb_rrd::define(new.step_s, new.definitions) {
            Err(RrdError::Unsupported(what)) => refused(&what),
            Err(error) => Err(error),
            Ok(_) => refused("this file"),
        }
    }

    pub(in super::super) fn update(path: &Path, _reading: &str) -> Result<()> {
        of_file(path)
    }

    pub(in super::super) fn info(path: &Path) -> Result<Vec<(String, InfoValue)>> {
        of_file(path)
    }

    pub(in super::super) fn sources(_template: &Path) -> Result<u64> {
        refused("creation from other files")
    }

    pub(in super::super) fn first(path: &Path, _archive: usize) -> Result<i64> {
        of_file(path)
    }

    pub(in super::super) fn last(path: &Path) -> Result<i64> {
        of_file(path)
    }

    pub(in super::super) fn dump(_path: &Path, _limit: usize) -> Result<Vec<u8>> {
        refused("DUMP")
    }

    pub(in super::super) fn tune(_path: &Path, _options: &[String]) -> Result<()> {
        refused("TUNE")
    }

    pub(in super::super) fn layout(path: &Path) -> Result<(Layout, Moment)> {
        of_file(path)
    }

    pub(in super::super) fn fetch(
        path: &Path,
        _cf: &str,
        _range_s: (i64, i64),
        _limit: usize,
    ) -> Result<(Vec<String>, Fetched)> {
        of_file(path)
    }
}
