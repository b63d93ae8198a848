//! Errors in the specification of a workload.

/// Why a workload cannot be built. `Display` names the field and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A field of the spec or of the fleet file has an invalid value.
    #[error("invalid {field}: {what}")]
    Invalid {
        /// The field, as a dotted path.
        field: String,
        /// What the value must be.
        what: String,
    },
    /// The fleet file cannot be parsed.
    #[error("cannot read the fleet file: {what}")]
    FleetFile {
        /// The parser's message: line, field and reason.
        what: String,
    },
    /// There is no fleet of this name.
    #[error("unknown fleet {name:?}; fleets are {known}")]
    UnknownFleet {
        /// The requested name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The recording cannot be read, or cannot be replayed as requested.
    #[error("{what}")]
    Trace {
        /// What is wrong, with its causes.
        what: String,
    },
    /// The spec has more series than a workload allows.
    #[error("{asked} series are planned; at most {limit} can be")]
    TooManySeries {
        /// Number of series, all generations of churn included.
        asked: u64,
        /// The limit.
        limit: u64,
    },
}

impl WorkloadError {
    pub(crate) fn invalid(field: &str, what: &str) -> Self {
        Self::Invalid {
            field: field.to_owned(),
            what: what.to_owned(),
        }
    }
}
