//! The options of a folder of mstore files.

use super::cache::{CachePolicy, CacheRules};
use super::geometry::Geometry;
use crate::error::{Error, Result};

/// The shortest step: the number of any time's point is far from the bounds of 64 bits.
const STEP_MIN_NS: i64 = 1_000;
/// Bound of the points of a file for each metric, so that positions have room.
const POINTS_MAX: i64 = 1 << 31;
/// Bound of the points of a cache entry.
const CACHE_POINTS_MAX: usize = 1 << 20;
/// Points that one write puts together without a cache.
const OFF_POINTS: usize = 4_096;

/// The options of an [`MstoreStore`](super::MstoreStore).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MstoreOptions {
    /// Nanoseconds of a point: the resolution of the bucket. At least 1,000.
    pub step_ns: i64,
    /// Points of a metric in one file; in [1, 2^31].
    pub points_per_file: i64,
    /// Which points wait, and how long.
    pub cache: CachePolicy,
    /// Points of a metric that wait at most: `CT` in DalmatinerDB. In [1, 2^20].
    pub cache_points: usize,
    /// Keeps the defect of round 2: a late point within the window shrinks it, and points behind
    /// it are lost.
    pub has_defect: bool,
    /// Maximum number of files of points; samples that need one more are refused as full.
    pub max_files: usize,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for MstoreOptions {
    fn default() -> Self {
        Self {
            step_ns: 1_000_000_000,
            points_per_file: 604_800,
            cache: CachePolicy::default(),
            cache_points: 120,
            has_defect: false,
            max_files: 1_024,
            max_series: 1_000_000,
        }
    }
}

impl MstoreOptions {
    /// The arithmetic of the files.
    ///
    /// # Errors
    /// [`Error::Spec`] for options that no file can have.
    pub(super) fn geometry(&self) -> Result<Geometry> {
        if self.step_ns < STEP_MIN_NS {
            return Err(invalid("step must be at least 1 microsecond".to_owned()));
        }
        if !(1..=POINTS_MAX).contains(&self.points_per_file) {
            return Err(invalid(format!("points_per_file must be in 1..={POINTS_MAX}")));
        }
        if !(1..=CACHE_POINTS_MAX).contains(&self.cache_points) {
            return Err(invalid(format!("cache_points must be in 1..={CACHE_POINTS_MAX}")));
        }
        if self.has_defect && self.cache != CachePolicy::Round2 {
            return Err(invalid("the defect is that of cache=round2".to_owned()));
        }
        let geometry = Geometry {
            step_ns: self.step_ns,
            points_per_file: self.points_per_file,
        };
        let fits = (self.max_series as u64)
            .checked_mul(geometry.stride())
            .is_some_and(|bytes| i64::try_from(bytes).is_ok());
        if !fits || self.max_series > u32::MAX as usize {
            let what = format!(
                "{} series of {} points have no room in a file",
                self.max_series, self.points_per_file
            );
            return Err(invalid(what));
        }
        Ok(geometry)
    }

    pub(super) fn rules(&self) -> CacheRules {
        CacheRules {
            policy: self.cache,
            points: if self.cache == CachePolicy::Off {
                OFF_POINTS
            } else {
                self.cache_points
            },
            has_defect: self.has_defect,
        }
    }
}

fn invalid(what: String) -> Error {
    Error::Spec {
        spec: "mstore:".to_owned(),
        what,
    }
}
