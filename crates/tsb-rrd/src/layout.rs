//! The layout of a file: its data sources and archives, and the offsets of their bytes.

use crate::error::{Error, Result};

/// Bytes of the static head.
pub(crate) const STAT_HEAD: usize = 128;
/// Bytes of the definition of a data source.
pub(crate) const DS_DEF: usize = 120;
/// Bytes of the definition of an archive.
pub(crate) const RRA_DEF: usize = 120;
/// Bytes of the live head: seconds and microseconds of the last update.
pub(crate) const LIVE_HEAD: usize = 16;
/// Bytes of the open step's state, per data source.
pub(crate) const PDP_PREP: usize = 112;
/// Bytes of the open row's state, per archive and data source.
pub(crate) const CDP_PREP: usize = 80;
/// Bytes of the newest row's number, per archive.
pub(crate) const RRA_PTR: usize = 8;
/// Bytes of a value.
pub(crate) const VALUE: usize = 8;
/// The longest name of a data source.
const NAME_MAX: usize = 19;
/// Upper bound of both counts, above any real file; a damaged count is detected by it before
/// memory is allocated.
pub(crate) const COUNT_MAX: u64 = 65_536;

/// How the values of a data source become rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DsKind {
    /// The value is the rate.
    Gauge,
    /// Integers that grow and wrap at 32 or 64 bits; the rate is their difference per second.
    Counter,
    /// Integers; the rate is their difference per second, which may be negative.
    Derive,
    /// Counts since the last update.
    Absolute,
    /// Floating-point numbers that grow; after a reset the rate is unknown.
    DCounter,
    /// Floating-point numbers; the rate is their difference per second.
    DDerive,
}

impl DsKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Gauge,
        Self::Counter,
        Self::Derive,
        Self::Absolute,
        Self::DCounter,
        Self::DDerive,
    ];

    /// rrdtool's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gauge => "GAUGE",
            Self::Counter => "COUNTER",
            Self::Derive => "DERIVE",
            Self::Absolute => "ABSOLUTE",
            Self::DCounter => "DCOUNTER",
            Self::DDerive => "DDERIVE",
        }
    }

    /// Parses rrdtool's name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether librrd marks a file with it as version 5.
    pub(crate) const fn is_float_difference(self) -> bool {
        matches!(self, Self::DCounter | Self::DDerive)
    }
}

/// The consolidation function: how the steps of a row become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cf {
    /// The mean of the known steps.
    Average,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The latest.
    Last,
}

impl Cf {
    /// All functions.
    pub const ALL: [Self; 4] = [Self::Average, Self::Min, Self::Max, Self::Last];

    /// rrdtool's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Average => "AVERAGE",
            Self::Min => "MIN",
            Self::Max => "MAX",
            Self::Last => "LAST",
        }
    }

    /// Parses rrdtool's name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cf| cf.name() == name)
    }
}

/// The archives of Holt-Winters forecasting, which rrdtool supports and this crate does not.
pub const FORECASTS: [&str; 6] = [
    "HWPREDICT",
    "MHWPREDICT",
    "SEASONAL",
    "DEVSEASONAL",
    "DEVPREDICT",
    "FAILURES",
];

/// One data source of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSource {
    /// Its name: 1 to 19 letters, digits, `_` and `-`.
    pub name: String,
    /// How its values become rates.
    pub kind: DsKind,
    /// The longest time between two updates, in seconds; after a longer one the rate is unknown.
    pub heartbeat_s: u64,
    /// Smaller rates become unknown; NaN means no bound.
    pub min: f64,
    /// Larger rates become unknown; NaN means no bound.
    pub max: f64,
}

impl DataSource {
    /// A data source without bounds.
    pub fn new(name: impl Into<String>, kind: DsKind, heartbeat_s: u64) -> Self {
        Self {
            name: name.into(),
            kind,
            heartbeat_s,
            min: UNKNOWN,
            max: UNKNOWN,
        }
    }
}

/// The unknown value in librrd's bit pattern: the NaN that `0.0 / 0.0` gives on x86.
pub(crate) const UNKNOWN: f64 = f64::from_bits(0xfff8_0000_0000_0000);

/// One archive of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Archive {
    /// The consolidation function.
    pub cf: Cf,
    /// Maximum share of a row's steps that may be unknown. in [0, 1)
    pub xff: f64,
    /// Number of steps per row. in [1, ..)
    pub steps: u64,
    /// Number of rows; the oldest is overwritten. in [1, ..)
    pub rows: u64,
}

impl Archive {
    /// An archive.
    pub const fn new(cf: Cf, xff: f64, steps: u64, rows: u64) -> Self {
        Self { cf, xff, steps, rows }
    }
}

/// The properties of a file that updates do not change.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) step_s: u64,
    pub(crate) sources: Vec<DataSource>,
    pub(crate) archives: Vec<Archive>,
    // Offset of each archive's rows in the file.
    pub(crate) starts: Vec<u64>,
    // The static part of the header, as stored in the file.
    pub(crate) statics: Vec<u8>,
    pub(crate) file_len: u64,
}

// Two layouts are equal if their files start with the same bytes.
impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.statics == other.statics
    }
}

impl Layout {
    /// A layout with a step of `step_s` seconds.
    ///
    /// # Errors
    /// [`Error::Layout`] when librrd would not create such a file.
    pub fn new(step_s: u64, sources: Vec<DataSource>, archives: Vec<Archive>) -> Result<Self> {
        for (index, source) in sources.iter().enumerate() {
            check_source(source)?;
            if sources[..index].iter().any(|other| other.name == source.name) {
                return Err(Error::Layout(format!("two data sources are called {:?}", source.name)));
            }
        }
        if let Some(archive) = archives.iter().find(|archive| !(0.0..1.0).contains(&archive.xff)) {
            return Err(Error::Layout(format!("xff {} is not in [0, 1)", archive.xff)));
        }
        let mut layout = Self::measured(step_s, sources, archives)?;
        layout.statics = crate::header::encode(&layout);
        Ok(layout)
    }

    /// A layout of the given parts with its offsets computed, but without its static bytes.
    pub(crate) fn measured(step_s: u64, sources: Vec<DataSource>, archives: Vec<Archive>) -> Result<Self> {
        let invalid = |what: &str| Err(Error::Layout(what.to_owned()));
        if sources.is_empty() || archives.is_empty() {
            return invalid("a file needs a data source and an archive");
        }
        if sources.len() as u64 > COUNT_MAX || archives.len() as u64 > COUNT_MAX {
            return invalid("more data sources or archives than a file can have");
        }
        if step_s == 0 || step_s > i64::MAX as u64 {
            return invalid("the step is not a positive number of seconds");
        }
        if archives.iter().any(|archive| archive.steps == 0 || archive.rows == 0) {
            return invalid("an archive has no rows, or rows of no steps");
        }
        let mut layout = Self {
            step_s,
            sources,
            archives,
            starts: Vec::new(),
            statics: Vec::new(),
            file_len: 0,
        };
        let mut at = layout.header_len() as u64;
        let row_len = layout.row_len() as u64;
        for archive in &layout.archives {
            layout.starts.push(at);
            let end = archive
                .rows
                .checked_mul(row_len)
                .and_then(|bytes| at.checked_add(bytes));
            at = match end.filter(|&end| i64::try_from(end).is_ok()) {
                Some(end) => end,
                None => return invalid("the archives are larger than any file"),
            };
            let span = archive
                .steps
                .checked_mul(archive.rows)
                .and_then(|steps| steps.checked_mul(step_s));
            if span.is_none_or(|span| span > i64::MAX as u64) {
                return invalid("an archive spans more seconds than can be said");
            }
        }
        layout.file_len = at;
        Ok(layout)
    }

    /// Seconds per step.
    pub fn step_s(&self) -> u64 {
        self.step_s
    }

    /// The data sources, in the order of the values in an update.
    pub fn sources(&self) -> &[DataSource] {
        &self.sources
    }

    /// The archives, in file order.
    pub fn archives(&self) -> &[Archive] {
        &self.archives
    }

    /// Length of the file, in bytes.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Length of the header, in bytes.
    pub fn header_len(&self) -> usize {
        self.live_offset() + self.live_len()
    }

    /// Length of the static part of the header, in bytes; the live part starts after it.
    pub fn live_offset(&self) -> usize {
        STAT_HEAD + DS_DEF * self.sources.len() + RRA_DEF * self.archives.len()
    }

    /// Length of the live part of the header, in bytes; updates change no other part of the
    /// header.
    pub fn live_len(&self) -> usize {
        let cells = self.sources.len() * self.archives.len();
        LIVE_HEAD + PDP_PREP * self.sources.len() + CDP_PREP * cells + RRA_PTR * self.archives.len()
    }

    /// Bytes per row, which has one value per data source.
    pub(crate) fn row_len(&self) -> usize {
        VALUE * self.sources.len()
    }

    /// Offset of a row of an archive in the file.
    pub(crate) fn row_offset(&self, archive: usize, row: u64) -> u64 {
        self.starts[archive] + row * self.row_len() as u64
    }
}

/// Whether a text is a valid name of a data source.
pub(crate) fn is_name(text: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=NAME_MAX).contains(&text.len()) && text.chars().all(is_good)
}

fn check_source(source: &DataSource) -> Result<()> {
    if !is_name(&source.name) {
        return Err(Error::Layout(format!(
            "{:?} is not a name of a data source: 1 to {NAME_MAX} letters, digits, _ and -",
            source.name
        )));
    }
    if source.heartbeat_s == 0 {
        return Err(Error::Layout(format!("the heartbeat of {:?} is 0", source.name)));
    }
    if source.min >= source.max {
        return Err(Error::Layout(format!(
            "the least rate of {:?} is not below its largest",
            source.name
        )));
    }
    Ok(())
}
