//! Where the samples of rrdcached's clients go: nowhere, because they have no series.

use crate::batch::Batch;
use crate::series::{SeriesId, SeriesKey};
use crate::wire::{Malformed, NotAdmitted, Sink};

/// A sink beside a conversation that deals with everything itself.
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
