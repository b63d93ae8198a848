//! The range, the order and the limit of a query, as each server reads them.

use super::super::query::Parameters;
use super::behaviour::{Backend, Behaviour, HawkularOptions, Problem};
use super::body::DataQuery;

/// Default number of items of an answer.
const LIMIT: i64 = 20_000;

const HOUR_MS: i64 = 3_600_000;

/// The last time that a timestamp can have.
const FARTHEST_MS: i64 = i64::MAX / 1_000_000;

/// What is asked of one metric. Times are in milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: i64,
    pub(super) end: i64,
    /// Maximum number of items. in [1, ..)
    pub(super) limit: i64,
    /// Whether the newest item comes first.
    pub(super) is_newest_first: bool,
    /// Length of a bucket in milliseconds; 0 for raw data. in [0, ..)
    pub(super) bucket_ms: i64,
}

/// The texts of a query, from a target or from a body.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Texts<'a> {
    start: Option<&'a str>,
    end: Option<&'a str>,
    limit: Option<&'a str>,
    order: Option<&'a str>,
    bucket: Option<&'a str>,
    is_body: bool,
}

impl<'a> Texts<'a> {
    pub(super) fn of_target(parameters: &'a Parameters) -> Self {
        Self {
            start: parameters.get("start"),
            end: parameters.get("end"),
            limit: parameters.get("limit"),
            order: parameters.get("order"),
            bucket: parameters.get("bucketDuration"),
            is_body: false,
        }
    }

    pub(super) fn of_body(query: &'a DataQuery) -> Self {
        let word = |word: &'a Option<super::body::Word>| word.as_ref().map(|word| word.0.as_str());
        Self {
            start: word(&query.start),
            end: word(&query.end),
            limit: word(&query.limit),
            order: query.order.as_deref(),
            bucket: word(&query.bucket_duration),
            is_body: true,
        }
    }

    /// The window, with `now_ms` as the present.
    pub(super) fn window(&self, now_ms: i64, options: HawkularOptions) -> Result<Window, Problem> {
        // Mohawk's clock has seconds.
        let second = now_ms.div_euclid(1_000) * 1_000;
        let mut window = match options.behaviour {
            Behaviour::Mohawk0154 => self.of_0154(second),
            Behaviour::Head => self.of_head(second)?,
            Behaviour::Corrected => self.corrected(now_ms)?,
        };
        if window.bucket_ms == 0 && options.is(Behaviour::Mohawk0154, Backend::Mongo) {
            window.is_newest_first = !window.is_newest_first;
        }
        for time in [&mut window.start, &mut window.end, &mut window.bucket_ms] {
            *time = (*time).clamp(-FARTHEST_MS, FARTHEST_MS);
        }
        Ok(window)
    }

    /// Anything that is no number above the least one is the default.
    fn of_0154(&self, now: i64) -> Window {
        let least = if self.is_body { 1 } else { 2 };
        let time = |text: Option<&str>| number(text).filter(|&time| time >= least);
        let end = time(self.end).unwrap_or(now);
        let bucket = self.bucket.and_then(|text| {
            // Without its last character, whatever that is.
            let (last, _) = text.char_indices().next_back()?;
            number(text.get(..last)).filter(|&seconds| seconds >= least)
        });
        Window {
            start: time(self.start).unwrap_or(end.saturating_sub(8 * HOUR_MS)),
            end,
            limit: self.limit(),
            is_newest_first: if self.is_body {
                self.order == Some("DESC")
            } else {
                self.order != Some("ASC")
            },
            bucket_ms: bucket.unwrap_or(0).saturating_mul(1_000),
        }
    }

    fn of_head(&self, now: i64) -> Result<Window, Problem> {
        let time = |text: Option<&str>, default: i64| match text.filter(|text| !text.is_empty()) {
            None => Ok(default),
            Some(text) => Ok(based(whole_seconds(text)?, now / 1_000).saturating_mul(1_000)),
        };
        Ok(Window {
            end: time(self.end, now)?,
            // Before now, not before the end.
            start: time(self.start, now - HOUR_MS / 4)?,
            limit: self.limit(),
            is_newest_first: self.order == Some("DESC"),
            bucket_ms: time(self.bucket, 0)?.max(0),
        })
    }

    fn limit(&self) -> i64 {
        number(self.limit).filter(|&limit| limit > 0).unwrap_or(LIMIT)
    }

    fn corrected(&self, now: i64) -> Result<Window, Problem> {
        let time = |what, text: Option<&str>, default: i64| {
            let Some(text) = text else { return Ok(default) };
            let millis = millis(text).ok_or_else(|| Problem::unreadable(what, text))?;
            Ok(if millis < 0 { now.saturating_add(millis) } else { millis })
        };
        let end = time("an end is not a time", self.end, now)?;
        let start = time("a start is not a time", self.start, end.saturating_sub(8 * HOUR_MS))?;
        let limit = match self.limit {
            None => LIMIT,
            Some(text) => number(Some(text))
                .filter(|&limit| limit > 0)
                .ok_or_else(|| Problem::unreadable("a limit is not a number above 0", text))?,
        };
        let bucket_ms = self.bucket.map_or(Ok(0), |text| {
            let length = millis(text).filter(|&length| length > 0);
            length.ok_or_else(|| Problem::unreadable("a bucketDuration is not a time above 0", text))
        })?;
        let is_newest_first = match self.order {
            None | Some("ASC") => false,
            Some("DESC") => true,
            Some(text) => return Err(Problem::unreadable("an order is neither ASC nor DESC", text)),
        };
        if start >= end {
            let text = format!("{start} to {end}");
            return Err(Problem::unreadable("a range does not end after its start", &text));
        }
        Ok(Window {
            start,
            end,
            limit,
            is_newest_first,
            bucket_ms,
        })
    }
}

/// An integer with an optional sign.
fn number(text: Option<&str>) -> Option<i64> {
    text.and_then(|text| text.parse().ok())
}

/// A number with a unit of Mohawk's last version, and the milliseconds of that unit; plain ones
/// are milliseconds.
fn with_unit(text: &str) -> Option<(i64, i64)> {
    const UNITS: [(&str, i64); 5] = [
        ("ms", 1),
        ("mn", 60_000),
        ("s", 1_000),
        ("h", HOUR_MS),
        ("d", 24 * HOUR_MS),
    ];
    if let Some(plain) = number(Some(text)) {
        return Some((plain, 1));
    }
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))?;
    Some((number(Some(digits))?, unit))
}

fn millis(text: &str) -> Option<i64> {
    let (number, unit) = with_unit(text)?;
    number.checked_mul(unit)
}

/// Whole seconds: milliseconds are cut, towards 0.
fn whole_seconds(text: &str) -> Result<i64, Problem> {
    millis(text)
        .map(|millis| millis / 1_000)
        .ok_or_else(|| Problem::unreadable("Can't parse timestamp", text))
}

/// A negative number of seconds counts from now.
fn based(seconds: i64, now: i64) -> i64 {
    if seconds < 0 {
        now.saturating_add(seconds)
    } else {
        seconds
    }
}
