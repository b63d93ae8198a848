//! Parses the time column: numbers in some unit, or date strings.
//!
//! Unless they are given, the type and the unit are determined from the first readable row;
//! [`Clock::decision`] reports them.

use super::super::dates::{self, DateOrder};
use super::super::text::{self, TimeUnit};
use crate::time::Timestamp;

/// How the unit of numeric times was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Given,
    Header,
    Magnitude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Numbers(TimeUnit, Source),
    Dates,
}

/// Parses the times of one file.
#[derive(Debug)]
pub(super) struct Clock {
    form: Option<Form>,
    order: DateOrder,
    dates: u64,
    without_zone: u64,
}

impl Clock {
    pub(super) fn new(unit: Option<TimeUnit>, order: DateOrder) -> Self {
        Self {
            form: unit.map(|unit| Form::Numbers(unit, Source::Given)),
            order,
            dates: 0,
            without_zone: 0,
        }
    }

    /// Sets the unit from the header, unless one was given.
    pub(super) fn header_unit(&mut self, unit: TimeUnit) {
        self.form.get_or_insert(Form::Numbers(unit, Source::Header));
    }

    /// The time in a cell. An unreadable cell decides nothing.
    pub(super) fn read(&mut self, cell: &[u8]) -> Result<Timestamp, &'static str> {
        if cell.is_empty() {
            return Err(text::NO_TIMESTAMP);
        }
        let is_number = text::split_time(cell).is_ok();
        let is_compact = || std::str::from_utf8(cell).is_ok_and(|cell| dates::compact(cell).is_some());
        let form = match self.form {
            Some(form) => form,
            None if is_number && !is_compact() => {
                let unit = TimeUnit::detect(text::split_time(cell)?.0);
                Form::Numbers(unit, Source::Magnitude)
            }
            None => Form::Dates,
        };
        let at = match form {
            Form::Numbers(unit, source) => Self::number(cell, unit, source)?,
            Form::Dates if is_number && !is_compact() => return Err("a number where other rows have a date"),
            Form::Dates => {
                let cell = std::str::from_utf8(cell).map_err(|_| dates::BAD_DATE)?;
                let (at, has_zone) = dates::date_string(cell, self.order)?;
                self.dates += 1;
                self.without_zone += u64::from(!has_zone);
                at
            }
        };
        self.form = Some(form);
        Ok(at)
    }

    fn number(cell: &[u8], unit: TimeUnit, source: Source) -> Result<Timestamp, &'static str> {
        let (whole, _) = text::split_time(cell)?;
        if source == Source::Magnitude && TimeUnit::detect(whole) != unit {
            return Err("a timestamp of another unit than the first; if it is the same, give the unit");
        }
        text::timestamp(cell, unit)
    }

    /// A description of what the times were taken for; `None` before the first.
    pub(super) fn decision(&self) -> Option<String> {
        let (unit, source) = match self.form? {
            Form::Numbers(unit, source) => (unit, source),
            Form::Dates if self.dates == 0 => return None,
            Form::Dates if self.without_zone == 0 => return Some("times are dates with their zone".to_owned()),
            Form::Dates if self.without_zone == self.dates => {
                return Some("times are dates without a zone, taken as UTC".to_owned());
            }
            Form::Dates => return Some("times are dates; those without a zone are taken as UTC".to_owned()),
        };
        let why = match source {
            Source::Given => "as was given",
            Source::Header => "as the header says",
            Source::Magnitude => "by their magnitude",
        };
        Some(format!("times are numbers, taken as {} since 1970 {why}", unit.word()))
    }
}
