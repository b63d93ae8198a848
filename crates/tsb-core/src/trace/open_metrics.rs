//! Whether a text exposition is Prometheus' (milliseconds) or OpenMetrics (seconds).
//!
//! The two look alike row by row. OpenMetrics is known by what only it has: `# EOF`,
//! `# UNIT`, the types `unknown`, `info`, `stateset` and `gaugehistogram`, an exemplar, or
//! a timestamp with a fraction. Until one of them shows, times are taken as milliseconds,
//! and put right when it does. What contradicts itself, or looks like seconds without any
//! of these, is refused.

use super::error::TraceDefect;
use super::memory::TraceBuilder;
use super::text::{self, TimeUnit};
use crate::series::SeriesId;
use crate::time::Timestamp;

/// Seconds of September 2001, before which hardly anybody has recorded anything.
const SOME_SECONDS: u128 = 1_000_000_000;
/// Seconds of the year 5138: what is more can only be a finer unit.
const MANY_SECONDS: u128 = 100_000_000_000;

/// The unit of the timestamps of one file.
#[derive(Debug)]
pub(super) struct Dialect {
    given: Option<TimeUnit>,
    // What shows that it is OpenMetrics.
    sign: Option<&'static str>,
    // Samples whose time is taken as milliseconds; not kept where all are.
    tentative: Option<Vec<(SeriesId, usize)>>,
    rows: u64,
    smallest: u128,
    largest: u128,
}

impl Dialect {
    /// `mixed`: rows without a timestamp get one that is no matter of units.
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

    /// Something that only OpenMetrics has.
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
            // What no second can be is refused as a whole at the end.
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

    /// Notes which sample got a time that is tentative.
    pub(super) fn took(&mut self, id: SeriesId, place: usize) {
        if let (None, None, Some(tentative)) = (self.given, self.sign, &mut self.tentative) {
            tentative.push((id, place));
        }
    }

    /// What was decided, in words.
    ///
    /// # Errors
    /// When what is in the file contradicts itself, or leaves open what it is.
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
