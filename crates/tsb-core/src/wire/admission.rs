//! Why a sink does not admit a name.

/// Why a sink does not admit a name. Each sample of the name is refused for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// As many series are known as the listener or the store allows.
    SeriesLimit,
    /// The names that are known take as many bytes as the listener or the store allows.
    NameBytes,
    /// The store could not define the series.
    Undefined,
}

impl NotAdmitted {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::SeriesLimit, Self::NameBytes, Self::Undefined];

    /// Ids from here on stand for names that were not admitted.
    pub(crate) const FIRST: u32 = u32::MAX - 2;

    /// The reason as reports name it.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::SeriesLimit => "series_limit",
            Self::NameBytes => "name_bytes",
            Self::Undefined => "not_defined",
        }
    }

    /// What stands in a table for the id of a name that was not admitted.
    pub(crate) const fn stand_in(self) -> u32 {
        match self {
            Self::SeriesLimit => u32::MAX,
            Self::NameBytes => u32::MAX - 1,
            Self::Undefined => Self::FIRST,
        }
    }

    /// What such a stand-in stands for; the id must be [`Self::FIRST`] or above.
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
