//! The `grid` option of a recording: whether its samples are laid on a grid of ticks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::schedule::per_duration;
use crate::workload::error::WorkloadError;

/// The requested grid. As text: `none`, or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum GridOption {
    /// No grid: every sample at its own time.
    None,
    /// Nanoseconds between two ticks; moved and dropped samples are counted. in [1, ..)
    Every(u64),
}

impl FromStr for GridOption {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        if text == "none" {
            return Ok(Self::None);
        }
        let exact = per_duration(text).filter(|(nanos, scale)| nanos % scale == 0 && nanos / scale > 0);
        let (nanos, scale) =
            exact.ok_or_else(|| WorkloadError::invalid("grid", "must be none or a duration, such as 10s"))?;
        Ok(Self::Every(nanos / scale))
    }
}

impl fmt::Display for GridOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Every(nanos) = *self else {
            return f.write_str("none");
        };
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        let whole = units.iter().find(|(unit, _)| nanos.is_multiple_of(*unit));
        let &(unit, name) = whole.unwrap_or(&(1, "ns"));
        write!(f, "{}{name}", nanos / unit)
    }
}

impl From<GridOption> for String {
    fn from(asked: GridOption) -> Self {
        asked.to_string()
    }
}

impl TryFrom<String> for GridOption {
    type Error = WorkloadError;

    fn try_from(text: String) -> Result<Self, WorkloadError> {
        text.parse()
    }
}
