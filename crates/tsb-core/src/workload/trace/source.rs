//! The file of a recorded fleet, and the options for reading it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::GridOption;
use crate::time::Timestamp;
use crate::trace::{self, DateOrder, ReadOptions, Scrapes, TimeUnit, Trace, with_causes};
use crate::workload::error::WorkloadError;

/// A file, and options where its format is ambiguous. As text: the path, then options such as
/// `?unit=ms&separator=;`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSource {
    /// The file or folder, of any format that [`trace::open`] knows.
    pub path: PathBuf,
    /// [`Trace::checksum`] of the contents when the plan was made; other contents are refused.
    /// Absent: any contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<u32>,
    /// `unit`: the unit of timestamps, if the format does not define it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    /// `scrape_seconds`: the time between successive scrapes in Prometheus text without
    /// timestamps. in [1, ..)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrape_seconds: Option<u32>,
    /// `histograms`: whether the rows of Prometheus histograms become series.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub histograms: bool,
    /// `separator`: the field separator of CSV, an ASCII character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<char>,
    /// `dates`: the order of the parts of a date in CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dates: Option<DateOrder>,
    /// `decimal=comma`: whether `1,5` in CSV means one and a half.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decimal_comma: bool,
    /// `grid`: whether the samples are laid on a grid of ticks, and on which. Absent: on the grid
    /// on which they already lie; otherwise they are replayed at their own times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<GridOption>,
}

impl TraceSource {
    /// Reads the recording, and checks that it has the expected checksum.
    ///
    /// # Errors
    /// The file cannot be read, or has other contents.
    pub fn open(&self) -> Result<Trace, WorkloadError> {
        let opened = trace::open_with(&self.path, None, &self.options()?);
        let trace = opened.map_err(|error| WorkloadError::Trace {
            what: with_causes(&error),
        })?;
        match self.checksum {
            Some(checksum) if checksum != trace.checksum() => Err(WorkloadError::Trace {
                what: format!(
                    "trace {} holds something else than when the plan was made",
                    self.path.display()
                ),
            }),
            _ => Ok(trace),
        }
    }

    fn options(&self) -> Result<ReadOptions, WorkloadError> {
        let mut options = ReadOptions {
            unit: self.unit,
            histogram_rows: self.histograms,
            dates: self.dates.unwrap_or_default(),
            decimal_comma: self.decimal_comma,
            ..ReadOptions::default()
        };
        if let Some(separator) = self.separator {
            let byte = u8::try_from(separator).ok().filter(u8::is_ascii);
            let byte = byte.ok_or_else(|| WorkloadError::invalid("separator", "must be an ASCII character"))?;
            options.separator = Some(byte);
        }
        if let Some(seconds) = self.scrape_seconds {
            if seconds == 0 {
                return Err(WorkloadError::invalid("scrape_seconds", "must be at least 1"));
            }
            // Only time differences matter when a recording is replayed.
            options.scrapes = Some(Scrapes {
                start: Timestamp(0),
                interval_ns: i64::from(seconds) * 1_000_000_000,
            });
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "unit" => self.unit = Some(value.parse().ok()?),
            "scrape_seconds" => self.scrape_seconds = Some(value.parse().ok()?),
            "histograms" => self.histograms = value.parse().ok()?,
            "separator" if value == "tab" => self.separator = Some('\t'),
            "separator" => self.separator = Some(value.parse().ok()?),
            "dates" => self.dates = Some(value.parse().ok()?),
            "decimal" if matches!(value, "comma" | "point") => self.decimal_comma = value == "comma",
            "grid" => self.grid = Some(value.parse().ok()?),
            _ => return None,
        }
        Some(())
    }
}

impl FromStr for TraceSource {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let (path, options) = text.rsplit_once('?').unwrap_or((text, ""));
        let mut source = Self {
            path: path.into(),
            ..Self::default()
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            source.set(name, value).ok_or_else(|| WorkloadError::Trace {
                what: format!(
                    "a trace is not read with {option:?}; there are unit=s|ms|us|ns, dates=ymd|dmy|mdy, \
                     grid=DURATION or grid=none, separator=CHARACTER or separator=tab, decimal=comma, \
                     scrape_seconds=N and histograms=true"
                ),
            })?;
        }
        Ok(source)
    }
}

impl fmt::Display for TraceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = [
            self.unit.map(|unit| format!("unit={unit}")),
            self.scrape_seconds.map(|seconds| format!("scrape_seconds={seconds}")),
            self.histograms.then(|| "histograms=true".to_owned()),
            self.separator.map(|separator| match separator {
                '\t' => "separator=tab".to_owned(),
                other => format!("separator={other}"),
            }),
            self.dates.map(|order| format!("dates={order}")),
            self.decimal_comma.then(|| "decimal=comma".to_owned()),
            self.grid.map(|grid| format!("grid={grid}")),
        ];
        let options: Vec<String> = options.into_iter().flatten().collect();
        let question = if options.is_empty() { "" } else { "?" };
        write!(f, "{}{question}{}", self.path.display(), options.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_as_text_is_read_back() {
        for text in [
            "a.csv",
            "dir/a.csv?unit=ms&separator=;",
            "a.csv?separator=tab",
            "a.prom?scrape_seconds=15&histograms=true",
            "a.csv?dates=dmy&decimal=comma&grid=10s",
            "a.csv?grid=1500ms",
            "folder?grid=none",
        ] {
            let source: TraceSource = text.parse().unwrap();
            assert_eq!(source.to_string(), text);
            let json = serde_json::to_string(&source).unwrap();
            assert_eq!(serde_json::from_str::<TraceSource>(&json).unwrap(), source);
        }
        let error = "a.csv?units=ms".parse::<TraceSource>().unwrap_err();
        assert!(error.to_string().contains("\"units=ms\""), "{error}");
        for text in [
            "a.csv?unit=minutes",
            "a.csv?grid=0s",
            "a.csv?grid=x",
            "a.csv?dates=dym",
            "a.csv?decimal=dot",
        ] {
            assert!(text.parse::<TraceSource>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_options_reach_the_reader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "1700000000000;cpu;1\n1700000001000;cpu;2\nx;cpu;3\n").unwrap();
        let text = format!("{}?unit=ms&separator=;", path.display());
        let trace = text.parse::<TraceSource>().unwrap().open().unwrap();
        assert_eq!(
            (trace.usual_interval_ns(), trace.problems.count),
            (Some(1_000_000_000), 1)
        );
        let zero = TraceSource {
            scrape_seconds: Some(0),
            ..text.parse().unwrap()
        };
        assert!(zero.open().is_err());
    }
}
