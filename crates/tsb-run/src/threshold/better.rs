//! The direction in which figures get better.

/// The direction in which a figure gets better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Lower is better.
    Lower,
    /// Higher is better.
    Higher,
    /// Neither: it says what was asked for, or what happened.
    Neither,
}
