//! A sink for rrdcached connections, which produce no samples.

use crate::batch::Batch;
use crate::series::{SeriesId, SeriesKey};
use crate::wire::{Malformed, NotAdmitted, Sink};

/// A sink for a decoder that handles its input completely by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoSeries;

impl Sink for NoSeries {
    fn series(&mut self, _key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        Err(NotAdmitted::SeriesLimit)
    }

    fn batch(&mut self, _batch: &Batch<'_>) {}

    fn refused(&mut self, _why: NotAdmitted, _samples: usize) {}

    fn unannounced(&mut self, _samples: usize) {}

    fn malformed(&mut self, _problem: &Malformed<'_>) {}
}
