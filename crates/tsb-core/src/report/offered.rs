//! What the values of a workload were like, as a report says it. How it is estimated is *not* here
//! but in the workload.

use serde::{Deserialize, Serialize};

use super::{RecordingReport, is_unknown, unknown};

/// Properties of the values that the workload offered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Offered {
    /// Series in the catalog.
    pub series: u64,
    /// Share of values equal to the previous one in their series. in [0, 1]; NaN, and absent in
    /// JSON, where other programs sent them.
    #[serde(default = "unknown", skip_serializing_if = "is_unknown")]
    pub repeat_rate: f64,
    /// Estimated information per value, in bits; docs/workloads.md describes the estimator.
    #[serde(default = "unknown", skip_serializing_if = "is_unknown")]
    pub entropy_bits: f64,
    /// Share of the values in series for which only an upper bound is known: if above 0,
    /// `entropy_bits` is an upper bound, otherwise an estimate. in [0, 1]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounded_share: Option<f64>,
    /// Number of series and values behind the estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_from: Option<EstimatedFrom>,
    /// Calculated information per value, in bits, where the fleet's models allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calculated_bits: Option<f64>,
    /// The recorded window that was repeated, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    /// How a recording was replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingReport>,
}

/// What an estimate rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EstimatedFrom {
    /// Number of series, drawn at random if not all.
    pub series: u64,
    /// Number of values in these series.
    pub values: u64,
}

impl EstimatedFrom {
    /// An estimate from `values` values of `series` series.
    pub const fn new(series: u64, values: u64) -> Self {
        Self { series, values }
    }
}

impl Offered {
    /// The properties of samples from other programs, of which only the number of series is known.
    pub const fn of_strangers(series: u64) -> Self {
        Self::new(series, unknown(), unknown())
    }

    /// The properties that are known of every generated workload.
    pub const fn new(series: u64, repeat_rate: f64, entropy_bits: f64) -> Self {
        Self {
            series,
            repeat_rate,
            entropy_bits,
            bounded_share: None,
            estimated_from: None,
            calculated_bits: None,
            repeats: None,
            recording: None,
        }
    }

    /// A description of what `entropy_bits` is.
    pub fn kind(&self) -> &'static str {
        match self.bounded_share {
            Some(share) if share > 0.0 => "upper bound",
            _ => "estimate",
        }
    }
}
