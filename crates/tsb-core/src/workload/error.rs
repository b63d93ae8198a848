//! What can be wrong with a workload that was asked for.

/// Why a workload cannot be built. `Display` names the field and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A field of the spec or of the fleet file has a value that makes no sense.
    #[error("invalid {field}: {what}")]
    Invalid {
        /// The field, as a dotted path.
        field: String,
        /// What it must be.
        what: String,
    },
    /// The fleet file is not what its format says.
    #[error("cannot read the fleet file: {what}")]
    FleetFile {
        /// The parser's words: line, field and reason.
        what: String,
    },
    /// No fleet has this name.
    #[error("unknown fleet {name:?}; fleets are {known}")]
    UnknownFleet {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The recording cannot be read, or cannot be replayed as asked.
    #[error("{what}")]
    Trace {
        /// What is wrong, with its causes.
        what: String,
    },
    /// More series than a workload may plan.
    #[error("{asked} series are planned; at most {limit} can be")]
    TooManySeries {
        /// Series that the spec comes to, all generations of churn included.
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
