//! How a consolidating store makes rows of samples: the rule that it states, and by which the audit
//! computes every row again.
//!
//! Time is divided into steps of equal length that begin at multiples of it since 1970. A sample
//! determines a rate for the time since the sample before it, by the [`Derivation`]; where that
//! time is longer than [`Consolidated::longest_gap_s`], the rate is unknown. The value of a step is
//! the mean of its rates, weighted by time, and is unknown where too much of the step is. An
//! archive makes one row of [`ArchiveRule::steps`] steps; a row of which a larger share than
//! [`ArchiveRule::unknown_permille_max`] is unknown is unknown itself. Of each archive the newest
//! [`ArchiveRule::rows`] rows are kept.
//!
//! RRD files are such a store. Whisper's archives follow another rule: `slots`.

use super::Consolidation;

/// The most archives that a consolidating store may have.
pub const MAX_ARCHIVES: usize = 12;

/// How a consolidating store makes rows of samples; the module's head states the rule.
///
/// A raw query returns the known rows of the first archive, each stamped with its end; a
/// resampled query is answered by the archive with that step and consolidation, each row
/// stamped with its start, and is [`Error::Unsupported`](crate::Error::Unsupported) where there
/// is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consolidated {
    /// How values become rates.
    pub derivation: Derivation,
    /// Length of a step, in seconds. in [1, ..)
    pub step_s: u64,
    /// The longest time between two samples, in seconds; beyond it the rate is unknown.
    pub longest_gap_s: u64,
    /// The archives, the unused places at the end.
    pub archives: [Option<ArchiveRule>; MAX_ARCHIVES],
}

impl Consolidated {
    /// The archives that there are.
    pub fn archives(&self) -> impl Iterator<Item = ArchiveRule> + '_ {
        self.archives.iter().copied().flatten()
    }
}

/// How the value of a sample becomes the rate since the sample before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derivation {
    /// The value is the rate.
    Gauge,
    /// The growth per second of whole numbers that only grow, and wrap at 32 or 64 bits.
    Counter,
    /// The change per second of whole numbers; the rate may be negative.
    Derive,
    /// The value per second: it counts what happened since the sample before.
    Absolute,
}

/// One archive of a consolidating store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveRule {
    /// How the known steps of a row become one value. [`Consolidation::First`] and
    /// [`Consolidation::Last`] are those of the row's first and last step, and unknown where that
    /// step is; [`Consolidation::Count`] is the number of known steps.
    pub consolidation: Consolidation,
    /// Steps of a row. in [1, ..)
    pub steps: u32,
    /// Rows that are kept. in [1, ..)
    pub rows: u32,
    /// The largest share of a row's steps that may be unknown, in thousandths. in [0, 999]
    pub unknown_permille_max: u16,
}

impl ArchiveRule {
    /// An archive of which half the steps of a row may be unknown.
    pub const fn new(consolidation: Consolidation, steps: u32, rows: u32) -> Self {
        Self {
            consolidation,
            steps,
            rows,
            unknown_permille_max: 500,
        }
    }
}
