//! The reasons for which a sink refuses a series name.

/// Why a sink refuses a name. Every sample of the name is refused for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// The listener or the store has reached its maximum number of series.
    SeriesLimit,
    /// The known names have reached the listener's or the store's memory limit.
    NameBytes,
    /// The store could not define the series.
    Undefined,
}

impl NotAdmitted {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::SeriesLimit, Self::NameBytes, Self::Undefined];

    /// Ids from this value on are markers for refused names.
    pub(crate) const FIRST: u32 = u32::MAX - 2;

    /// The reason's name in reports.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::SeriesLimit => "series_limit",
            Self::NameBytes => "name_bytes",
            Self::Undefined => "not_defined",
        }
    }

    /// The marker for a name refused for this reason, stored in a table in place of an id.
    pub(crate) const fn stand_in(self) -> u32 {
        match self {
            Self::SeriesLimit => u32::MAX,
            Self::NameBytes => u32::MAX - 1,
            Self::Undefined => Self::FIRST,
        }
    }

    /// The reason that a marker stands for; `id` must be [`Self::FIRST`] or above.
    #[cold]
    pub(crate) const fn of(id: u32) -> Self {
        match u32::MAX - id {
            0 => Self::SeriesLimit,
            1 => Self::NameBytes,
            _ => Self::Undefined,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_stands_for_its_reason() {
        for why in NotAdmitted::ALL {
            assert!(why.stand_in() >= NotAdmitted::FIRST);
            assert_eq!(NotAdmitted::of(why.stand_in()), why);
        }
    }
}
