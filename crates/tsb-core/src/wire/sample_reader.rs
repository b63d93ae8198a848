//! How an interface that answers queries reads the store behind it.

use std::fmt;
use std::ops::ControlFlow;

use crate::series::SeriesKey;
use crate::time::Timestamp;

/// Takes chunks of samples; `Break` ends the reading.
pub type Take<'a> = dyn FnMut(&[Timestamp], &[f64]) -> ControlFlow<()> + 'a;

/// Reads the store behind an interface. Every method may block, and sees all samples that were applied
/// before the call.
pub trait SampleReader: fmt::Debug + Send {
    /// The samples of a series from `start` to before `end`, oldest first.
    ///
    /// # Errors
    /// Why the store cannot be read, or knows no such series and defines none.
    fn samples(&mut self, key: &SeriesKey, start: Timestamp, end: Timestamp, take: &mut Take<'_>)
    -> Result<(), String>;

    /// The newest timestamp of each series; `None` where it has no sample.
    ///
    /// # Errors
    /// As for [`SampleReader::samples`].
    fn newest(&mut self, keys: &[SeriesKey]) -> Result<Vec<Option<Timestamp>>, String>;

    /// The series that were written or read so far.
    fn keys(&self) -> Vec<SeriesKey>;
}
