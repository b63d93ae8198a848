//! Interval logs in the standard HdrHistogram V2 form, readable by its own tools.
//!
//! One line per interval: `Tag=response,0.000,1.000,12.345,HISTFAAA...`: start in seconds since
//! `BaseTime`, length in seconds, largest value in milliseconds, and a compressed V2 histogram in
//! base64. Values inside the histograms are nanoseconds. Format: HistogramLogWriter of
//! HdrHistogram (Java) 2.x, log version 1.3.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::{V2DeflateSerializeError, V2DeflateSerializer};

use super::histogram::{DIGITS, Histogram};
use super::recorder::Recording;
use crate::time::Timestamp;

/// The largest value of the standard form (146 years); longer times are recorded as this.
const VALUE_MAX: u64 = 1 << 62;

/// Why a log could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A tag that the format cannot carry.
    #[error("cannot use `{tag}` as a tag in an interval log: it must have no comma, space or line end")]
    Tag {
        /// The tag.
        tag: String,
    },
    /// The output failed.
    #[error("cannot write the interval log")]
    Write(#[source] std::io::Error),
    /// The histogram library failed.
    #[error("cannot encode an interval: {what}")]
    Encode {
        /// Its error message.
        what: String,
    },
}

/// One histogram series of a log.
#[derive(Clone, Copy, Debug)]
pub struct LoggedSeries<'a> {
    /// Its tag: `response`, `delivery`, `service`, `lag`.
    pub tag: &'a str,
    /// Its intervals.
    pub recording: &'a Recording,
}

/// Writes the intervals of all series to `out`, in time order. `start_ns` is the start of the run
/// on the run's clock, `start_at` the same moment as time of day.
///
/// # Errors
/// When the format cannot carry a tag, an interval cannot be encoded, or the output fails.
pub fn write_interval_log(
    out: &mut impl Write,
    start_at: Timestamp,
    start_ns: u64,
    series: &[LoggedSeries<'_>],
) -> Result<(), LogError> {
    let base = UNIX_EPOCH + Duration::from_nanos(u64::try_from(start_at.0).unwrap_or(0));
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment("[logged by tsb; values in nanoseconds]")
        .with_start_time(base)
        .with_base_time(base)
        .with_max_value_divisor(1_000_000.0)
        .begin_log_with(out, &mut serializer)
        .map_err(LogError::Write)?;
    let mut lines = Vec::new();
    for one in series {
        let tag = Tag::new(one.tag).ok_or_else(|| LogError::Tag {
            tag: one.tag.to_owned(),
        })?;
        lines.extend(one.recording.intervals.iter().map(|interval| (interval, tag)));
    }
    lines.sort_by_key(|(interval, _)| interval.start_ns);
    for (interval, tag) in lines {
        let since = Duration::from_nanos(interval.start_ns.saturating_sub(start_ns));
        let length = Duration::from_nanos(interval.end_ns.saturating_sub(interval.start_ns));
        let standard = standard(&interval.histogram())?;
        let written = writer.write_histogram(&standard, since, length, Some(tag));
        written.map_err(|error| encode_error(&error))?;
    }
    Ok(())
}

fn encode_error(
    error: &hdrhistogram::serialization::interval_log::IntervalLogWriterError<V2DeflateSerializeError>,
) -> LogError {
    LogError::Encode {
        what: error.to_string(),
    }
}

/// The same counts up to the largest value that the standard form can carry.
fn standard(histogram: &Histogram) -> Result<hdrhistogram::Histogram<u64>, LogError> {
    let high = histogram.max().unwrap_or(0).clamp(2, VALUE_MAX);
    let created = hdrhistogram::Histogram::new_with_bounds(1, high, DIGITS);
    let mut standard = created.map_err(|error| LogError::Encode {
        what: error.to_string(),
    })?;
    for (lowest, count) in histogram.buckets() {
        standard.saturating_record_n(lowest, count);
    }
    Ok(standard)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::super::recorder::Recorder;
    use super::*;

    fn recording(values: &[(u64, u64)]) -> Recording {
        let mut recorder = Recorder::new(5_000, 1_000_000_000, 0);
        for &(now, value) in values {
            recorder.cut(now);
            recorder.record(value);
        }
        recorder.finish()
    }

    #[test]
    fn a_public_reader_reads_back_every_count() {
        let second = 1_000_000_000;
        let response = recording(&[
            (6_000, 120),
            (7_000, 98_765),
            (5_000 + second, 44),
            (3 * second, 1 << 50),
        ]);
        let lag = recording(&[(6_000, 3)]);
        let series = [("response", &response), ("lag", &lag)];
        let series = series.map(|(tag, recording)| LoggedSeries { tag, recording });
        let mut out = Vec::new();
        write_interval_log(&mut out, Timestamp::from_secs(1_700_000_000), 5_000, &series).unwrap();
        let mut seen = Vec::new();
        let mut base_seen = false;
        for entry in IntervalLogIterator::new(&out) {
            match entry.unwrap() {
                LogEntry::BaseTime(time) => base_seen = time == Duration::from_secs(1_700_000_000),
                LogEntry::StartTime(time) => assert_eq!(time, Duration::from_secs(1_700_000_000)),
                LogEntry::Interval(interval) => {
                    let engine = base64::engine::general_purpose::STANDARD;
                    let bytes = engine.decode(interval.encoded_histogram()).unwrap();
                    let histogram: hdrhistogram::Histogram<u64> =
                        Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                    let tag = interval.tag().unwrap().as_str().to_owned();
                    seen.push((tag, interval.start_timestamp().as_secs(), histogram));
                }
            }
        }
        assert!(base_seen);
        let heads: Vec<(&str, u64, u64)> = seen.iter().map(|(tag, at, h)| (tag.as_str(), *at, h.len())).collect();
        assert_eq!(
            heads,
            [
                ("response", 0, 2),
                ("lag", 0, 1),
                ("response", 1, 1),
                ("response", 2, 1)
            ]
        );
        assert!(seen[0].2.count_at(120) == 1 && seen[0].2.count_at(98_765) == 1);
        assert_eq!(seen[3].2.count_at(1 << 50), 1);
    }

    #[test]
    fn a_tag_with_a_comma_is_refused() {
        let recording = recording(&[(6_000, 1)]);
        let series = LoggedSeries {
            tag: "a,b",
            recording: &recording,
        };
        let result = write_interval_log(&mut Vec::new(), Timestamp(0), 0, &[series]);
        assert!(matches!(result, Err(LogError::Tag { .. })));
    }
}
