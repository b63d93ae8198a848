//! Determines whether a text exposition is Prometheus' (milliseconds) or OpenMetrics (seconds).
//!
//! The rows of the two look alike. OpenMetrics is recognized by features that only it has: `#
//! EOF`, `# UNIT`, the types `unknown`, `info`, `stateset` and `gaugehistogram`, an exemplar, or a
//! timestamp with a fraction. Until one of these appears, times are taken as milliseconds, and
//! corrected when it does. A file that contradicts itself, or looks like seconds without any of
//! these features, is refused.

use super::error::TraceDefect;
use super::memory::TraceBuilder;
use super::text::{self, TimeUnit};
use crate::series::SeriesId;
use crate::time::Timestamp;

/// September 2001 in seconds; earlier recordings are very unlikely.
const SOME_SECONDS: u128 = 1_000_000_000;
/// The year 5138 in seconds: a larger number must be in a finer unit.
const MANY_SECONDS: u128 = 100_000_000_000;

/// The unit of the timestamps of one file.
#[derive(Debug)]
pub(super) struct Dialect {
    given: Option<TimeUnit>,
    // The feature that identified the file as OpenMetrics.
    sign: Option<&'static str>,
    // Samples whose times are provisionally taken as milliseconds; `None` if all are.
    tentative: Option<Vec<(SeriesId, usize)>>,
    rows: u64,
    smallest: u128,
    largest: u128,
}

impl Dialect {
    /// `mixed`: rows without a timestamp get one that does not depend on the unit.
    pub(super) fn new(given: Option<TimeUnit>, mixed: bool) -> Self {
        Self {
            given,
            sign: None,
            tentative: mixed.then(Vec::new),
            rows: 0,
            smallest: u128::MAX,
            largest: 0,
        }
    }

    /// Records a feature that only OpenMetrics has.
    pub(super) fn sign(&mut self, sign: &'static str, trace: &mut TraceBuilder) -> Result<(), TraceDefect> {
        if self.given.is_some() || self.sign.is_some() {
            return Ok(());
        }
        self.sign = Some(sign);
        let tentative = self.tentative.as_mut().map(std::mem::take);
        trace.rescale(1_000, tentative.as_deref()).map_err(|_| contradiction())
    }

    /// Reads a timestamp.
    pub(super) fn read(&mut self, digits: &[u8]) -> Result<Timestamp, &'static str> {
        let (whole, fraction) = text::split_time(digits)?;
        let unit = match (self.given, self.sign) {
            (Some(unit), _) => unit,
            (None, Some(_)) => TimeUnit::Seconds,
            (None, None) => TimeUnit::Millis,
        };
        let at = match text::timestamp(digits, unit) {
            // A number too large for seconds; the whole file is refused at the end.
            Err(_) if self.given.is_none() && whole.unsigned_abs() >= MANY_SECONDS && fraction.is_empty() => {
                text::timestamp(digits, TimeUnit::Millis)?
            }
            at => at?,
        };
        self.rows += 1;
        self.smallest = self.smallest.min(whole.unsigned_abs());
        self.largest = self.largest.max(whole.unsigned_abs());
        Ok(at)
    }

    /// Records which sample got a provisional time.
    pub(super) fn took(&mut self, id: SeriesId, place: usize) {
        if let (None, None, Some(tentative)) = (self.given, self.sign, &mut self.tentative) {
            tentative.push((id, place));
        }
    }

    /// A description of the decision.
    ///
    /// # Errors
    /// If the file contradicts itself, or is ambiguous.
    pub(super) fn finish(&self) -> Result<Option<String>, TraceDefect> {
        if self.rows == 0 {
            return Ok(None);
        }
        match (self.given, self.sign) {
            (Some(unit), _) => Ok(Some(format!("times are taken as {}, as was given", unit.word()))),
            (None, Some(_)) if self.largest >= MANY_SECONDS => Err(contradiction()),
            (None, Some(sign)) => Ok(Some(format!("OpenMetrics, by {sign}: times are seconds"))),
            (None, None) if self.smallest >= SOME_SECONDS && self.largest < MANY_SECONDS => {
                Err(TraceDefect::Ambiguous {
                    what: "its timestamps are seconds of this century, or milliseconds of 1970, and nothing in it says \
                           that it is OpenMetrics; give unit=s or unit=ms",
                })
            }
            (None, None) => Ok(Some("Prometheus text: times are milliseconds".to_owned())),
        }
    }
}

fn contradiction() -> TraceDefect {
    TraceDefect::Ambiguous {
        what: "it is OpenMetrics, whose timestamps are seconds, but they would lie beyond the year 5138; \
               give unit=ms if they are milliseconds",
    }
}
