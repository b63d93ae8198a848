//! Determines the columns of a CSV file from its header and its first row.

use super::super::error::TraceDefect;
use super::super::text::TimeUnit;
use super::is_missing;
use super::records::Records;

/// Names of a column of times, lower case.
const TIMES: [&str; 12] = [
    "timestamp",
    "time",
    "ts",
    "datetime",
    "date_time",
    "date time",
    "time_stamp",
    "@timestamp",
    "_time",
    "epoch",
    "unixtime",
    "unix_time",
];
/// Names of a date column, used if no other column holds the times.
const DATES: [&str; 2] = ["date", "day"];
const SERIES: [&str; 3] = ["series", "name", "key"];
const VALUES: [&str; 3] = ["value", "val", "_value"];

/// The column of a row's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeAt {
    Column(usize),
    /// A date, and a time of day in a separate column.
    DateAndTime(usize, usize),
}

/// The roles of the columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) time: TimeAt,
    pub(super) kind: RowShape,
    /// Columns whose text becomes a label, with their names.
    pub(super) labels: Vec<(usize, String)>,
    /// Number of fields per row.
    pub(super) width: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RowShape {
    /// One sample per row, whose series the row names.
    Long { series: usize, value: usize },
    /// One sample in each of these columns. A column without a name uses the file's name.
    Wide(Vec<(usize, Option<String>)>),
}

/// The names in a header, or assumed ones if there is none.
#[derive(Debug)]
pub(super) struct Header {
    line: u64,
    names: Vec<String>,
    /// The unit stated in the name of the time column.
    pub(super) unit: Option<TimeUnit>,
    shown: String,
}

impl Header {
    /// Parses a header row.
    pub(super) fn of(row: &Records, line: u64) -> Self {
        let names = row.fields().map(|field| {
            let name = String::from_utf8_lossy(field);
            name.trim_start_matches('#').trim().to_owned()
        });
        Self {
            line,
            names: names.collect(),
            unit: None,
            shown: String::from_utf8_lossy(&row.shown()).chars().take(200).collect(),
        }
    }

    /// The columns of a file without a header: time and value, or time, series and value.
    pub(super) fn assumed(row: &Records, line: u64) -> Result<Self, TraceDefect> {
        let names: &[&str] = match row.len() {
            2 => &["timestamp", "value"],
            3 => &["timestamp", "series", "value"],
            _ => {
                let header = Self::of(row, line);
                return Err(header.defect(format!("there is no header, and a row has {} fields", row.len())));
            }
        };
        Ok(Self {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            ..Self::of(row, line)
        })
    }

    pub(super) fn width(&self) -> usize {
        self.names.len()
    }

    /// Determines the columns from the header and the first row of the same width.
    pub(super) fn layout(&mut self, row: &Records) -> Result<Layout, TraceDefect> {
        let lower: Vec<String> = self.names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let time = self.time(&lower, row)?;
        let is_time = |index: usize| match time {
            TimeAt::Column(column) => index == column,
            TimeAt::DateAndTime(date, clock) => index == date || index == clock,
        };
        let only = |names: &[&str]| {
            let mut found = (0..lower.len()).filter(|&index| !is_time(index) && names.contains(&lower[index].as_str()));
            let first = found.next();
            (first, found.next().is_some())
        };
        let ((series, more_series), (value, more_values)) = (only(&SERIES), only(&VALUES));
        let rest = (0..lower.len()).filter(|&index| !is_time(index) && !self.names[index].is_empty());
        if let (Some(series), Some(value)) = (series, value) {
            if more_series || more_values {
                return Err(self.defect("two columns are called series, or two value".to_owned()));
            }
            let labels = rest.filter(|&index| index != series && index != value);
            return Ok(Layout {
                time,
                kind: RowShape::Long { series, value },
                labels: labels.map(|index| (index, self.names[index].clone())).collect(),
                width: self.names.len(),
            });
        }
        let is_label = |index: usize| {
            let cell = row.field(index);
            let is_text = !is_missing(cell) && super::super::text::is_text(cell);
            let name = lower[index].as_str();
            SERIES.contains(&name) || (is_text && !VALUES.contains(&name))
        };
        let (labels, values): (Vec<usize>, Vec<usize>) = rest.partition(|&index| is_label(index));
        if values.is_empty() {
            return Err(self.defect("no column holds numbers".to_owned()));
        }
        let named = |&index: &usize| {
            let is_plain = VALUES.contains(&lower[index].as_str());
            (index, (!is_plain).then(|| self.names[index].clone()))
        };
        let values: Vec<(usize, Option<String>)> = values.iter().map(named).collect();
        let mut names: Vec<&Option<String>> = values.iter().map(|(_, name)| name).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(self.defect("two columns have one name".to_owned()));
        }
        Ok(Layout {
            time,
            kind: RowShape::Wide(values),
            labels: labels.iter().map(|&index| (index, self.names[index].clone())).collect(),
            width: self.names.len(),
        })
    }

    /// The time column: by its name, or else the only one that contains dates.
    fn time(&mut self, lower: &[String], row: &Records) -> Result<TimeAt, TraceDefect> {
        let mut found = Vec::new();
        for (index, name) in lower.iter().enumerate() {
            let (word, unit) = split_unit(name);
            if TIMES.contains(&word) {
                found.push(index);
                self.unit = self.unit.or(unit);
            }
        }
        let date = lower.iter().position(|name| DATES.contains(&name.as_str()));
        match (found[..].as_ref(), date) {
            (&[clock], Some(date)) if is_clock(row.field(clock)) => Ok(TimeAt::DateAndTime(date, clock)),
            (&[time], _) => Ok(TimeAt::Column(time)),
            (&[], Some(date)) => Ok(TimeAt::Column(date)),
            (&[], None) => {
                let mut dates = (0..lower.len()).filter(|&index| is_date(row.field(index)));
                match (dates.next(), dates.next()) {
                    (Some(time), None) => Ok(TimeAt::Column(time)),
                    _ => Err(self.defect("no column is called timestamp, time or date".to_owned())),
                }
            }
            _ => Err(self.defect("two columns are called timestamp, time or the like".to_owned())),
        }
    }

    fn defect(&self, what: String) -> TraceDefect {
        TraceDefect::Header {
            line: self.line,
            what,
            found: self.shown.clone(),
        }
    }
}

/// Splits the unit off a name: `time_ms`, `time (ms)`.
fn split_unit(name: &str) -> (&str, Option<TimeUnit>) {
    let bracketed = name
        .strip_suffix([')', ']'])
        .and_then(|name| name.rsplit_once(['(', '[']));
    let split = bracketed.or_else(|| name.rsplit_once('_'));
    match split.and_then(|(word, unit)| Some((word.trim(), unit.parse().ok()?))) {
        Some((word, unit)) => (word, Some(unit)),
        None => (name, None),
    }
}

/// Whether a cell is a time of day without a date.
fn is_clock(cell: &[u8]) -> bool {
    let colon = memchr::memchr(b':', cell);
    colon.is_some_and(|at| at <= 2 && cell[..at].iter().all(u8::is_ascii_digit))
}

fn is_date(cell: &[u8]) -> bool {
    let text = std::str::from_utf8(cell).unwrap_or_default();
    let orders = [super::DateOrder::Ymd, super::DateOrder::Dmy, super::DateOrder::Mdy];
    super::super::text::is_text(cell)
        && orders
            .into_iter()
            .any(|order| super::super::dates::date_string(text, order).is_ok())
}
