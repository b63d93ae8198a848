//! The defects of the original, as switches.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Something that the original did, and that changes what it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// An advertise bumps `actual-fresh` before any heartbeat has been heard.
    AdvertiseBump,
    /// The cache changes before the store does, so a failed write is hidden for up to 20 s.
    CacheFirst,
    /// Instances of a DEA without presence are deleted with all instances of their apps.
    DeleteApps,
    /// The count of heartbeats is written per heartbeat, while the bus waits.
    CountPerHeartbeat,
    /// The tick waits for the polls, so the load falls when the store is slow.
    CoordinatedTick,
    /// Apps are added while it runs, so their number is not fixed.
    AppsAdded,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::AdvertiseBump,
        Self::CacheFirst,
        Self::DeleteApps,
        Self::CountPerHeartbeat,
        Self::CoordinatedTick,
        Self::AppsAdded,
    ];
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AdvertiseBump => "advertise-bump",
            Self::CacheFirst => "cache-first",
            Self::DeleteApps => "delete-apps",
            Self::CountPerHeartbeat => "count-per-heartbeat",
            Self::CoordinatedTick => "coordinated-tick",
            Self::AppsAdded => "apps-added",
        })
    }
}

impl FromStr for Defect {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|defect| defect.to_string() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(|defect| defect.to_string());
            Error::plan(format!("cannot leave out {text}"))
                .because_of("the original has no such defect")
                .hint(format!("name one of {}", names.join(", ")))
        })
    }
}

/// The defects that are in force; all of them, as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defects {
    /// Those that are left out.
    pub without: Vec<Defect>,
}

impl Defects {
    /// Whether a defect is in force.
    pub fn has(&self, defect: Defect) -> bool {
        !self.without.contains(&defect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_named_and_an_unknown_one_explained() {
        for defect in Defect::ALL {
            assert_eq!(defect.to_string().parse::<Defect>().unwrap(), defect);
            assert!(Defects::default().has(defect));
            assert!(!Defects { without: vec![defect] }.has(defect));
        }
        let error = "rust".parse::<Defect>().unwrap_err();
        assert!(error.explanation().hint().unwrap().contains("cache-first"), "{error}");
    }
}
