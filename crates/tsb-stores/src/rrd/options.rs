//! The options of an RRD store, and the layout of its files.

use tsb_rrd::{Archive, Cf, DataSource, DsKind, Layout};

use crate::error::{Error, Result};
use crate::store::{ArchiveRule, Consolidated, Consolidation, Derivation, MAX_ARCHIVES};

/// The name of the data source in every file, as rrdtool shows it.
const SOURCE: &str = "value";

/// Default for the maximum size of one file: 1 GiB.
pub const FILE_BYTES_MAX: u64 = 1 << 30;

/// The code that reads and writes the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineKind {
    /// Our own.
    #[default]
    Native,
    /// The system's librrd; only with the feature `librrd`.
    Librrd,
}

/// The options of an [`RrdStore`](super::RrdStore).
#[derive(Clone, Debug, PartialEq)]
pub struct RrdOptions {
    /// The code that reads and writes the files.
    pub engine: EngineKind,
    /// Length of a step in seconds; at least 1.
    pub step_s: u64,
    /// Maximum time between two samples, in seconds; in a longer gap the rate is unknown.
    pub heartbeat_s: u64,
    /// How values become rates.
    pub derivation: Derivation,
    /// The archives; the first one answers raw queries.
    pub archives: Vec<ArchiveRule>,
    /// No other process writes these files: they are not locked or checked for changes, and stay
    /// mapped.
    pub is_exclusive: bool,
    /// Maximum number of files kept open between writes.
    pub max_open: usize,
    /// Maximum number of series.
    pub max_series: usize,
    /// Maximum size of one file in bytes: a layout that needs more is refused.
    pub max_file_bytes: u64,
}

impl Default for RrdOptions {
    fn default() -> Self {
        Self {
            engine: EngineKind::Native,
            step_s: 300,
            heartbeat_s: 600,
            derivation: Derivation::Gauge,
            archives: default_archives(),
            is_exclusive: false,
            max_open: 512,
            max_series: 1_000_000,
            max_file_bytes: FILE_BYTES_MAX,
        }
    }
}

/// The archives of the published rrdcached benchmark, taken from GrowthForecast.
fn default_archives() -> Vec<ArchiveRule> {
    let of = |consolidation| {
        [(1, 1440), (6, 1008), (24, 1344), (288, 2500)].map(|(steps, rows)| ArchiveRule {
            consolidation,
            steps,
            rows,
            unknown_permille_max: 500,
        })
    };
    [of(Consolidation::Average), of(Consolidation::Max)].concat()
}

impl RrdOptions {
    /// The layout of each file.
    ///
    /// # Errors
    /// [`Error::Spec`] if no RRD file can have this layout.
    pub fn layout(&self) -> Result<Layout> {
        let source = DataSource::new(SOURCE, ds_kind(self.derivation), self.heartbeat_s);
        let archives = self.archives.iter().map(archive).collect::<Result<Vec<_>>>()?;
        let layout = Layout::new(self.step_s, vec![source], archives).map_err(|error| invalid(error.to_string()))?;
        let (bytes, limit) = (layout.file_len(), self.max_file_bytes);
        if bytes > limit {
            return Err(invalid(format!(
                "a file would have {bytes} bytes, and max_file_bytes allows {limit}"
            )));
        }
        Ok(layout)
    }

    /// The rules from which the audit computes every row.
    ///
    /// # Errors
    /// [`Error::Spec`] if there are more than [`MAX_ARCHIVES`] archives.
    pub fn consolidated(&self) -> Result<Consolidated> {
        let mut archives = [None; MAX_ARCHIVES];
        if self.archives.len() > archives.len() {
            return Err(invalid(format!("more than {MAX_ARCHIVES} archives")));
        }
        for (place, archive) in archives.iter_mut().zip(&self.archives) {
            *place = Some(*archive);
        }
        Ok(Consolidated {
            derivation: self.derivation,
            step_s: self.step_s,
            longest_gap_s: self.heartbeat_s,
            archives,
        })
    }

    /// The time that the longest archive certainly covers, in nanoseconds.
    pub(super) fn retention_ns(&self) -> Option<i64> {
        let spans = self.archives.iter().map(|archive| {
            // An archive holds complete rows only, so the row in progress has replaced none.
            let steps = u64::from(archive.steps) * u64::from(archive.rows);
            steps.saturating_mul(self.step_s)
        });
        let nanos = spans.max()?.checked_mul(1_000_000_000)?;
        i64::try_from(nanos).ok()
    }
}

pub(super) fn invalid(what: String) -> Error {
    Error::Spec {
        spec: "rrd:".to_owned(),
        what,
    }
}

fn archive(rule: &ArchiveRule) -> Result<Archive> {
    let cf = match rule.consolidation {
        Consolidation::Average => Cf::Average,
        Consolidation::Min => Cf::Min,
        Consolidation::Max => Cf::Max,
        Consolidation::Last => Cf::Last,
        other => return Err(invalid(format!("an archive cannot keep {other:?}"))),
    };
    let xff = f64::from(rule.unknown_permille_max) / 1000.0;
    Ok(Archive::new(cf, xff, u64::from(rule.steps), u64::from(rule.rows)))
}

fn ds_kind(derivation: Derivation) -> DsKind {
    match derivation {
        Derivation::Gauge => DsKind::Gauge,
        Derivation::Counter => DsKind::Counter,
        Derivation::Derive => DsKind::Derive,
        Derivation::Absolute => DsKind::Absolute,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_published_layout_with_one_source() {
        let options = RrdOptions::default();
        // 102,712 bytes is what the document's own program makes without its second source.
        assert_eq!(options.layout().unwrap().file_len(), 102_712);
        assert_eq!(options.retention_ns(), Some(288 * 2500 * 300 * 1_000_000_000));
        assert_eq!(options.consolidated().unwrap().archives().count(), 8);
    }
}
