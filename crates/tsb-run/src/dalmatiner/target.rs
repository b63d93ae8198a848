//! What takes part: stores of ours behind DalmatinerDB's protocol, stores of ours in this process,
//! and servers that somebody started.

use std::fmt;
use std::path::Path;

use crate::error::Error;
use crate::spec::Spec;

/// How a target is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetWay {
    /// A store of ours in a process of its own, behind DalmatinerDB's protocol over TCP.
    Tcp,
    /// A store of ours in this process.
    InProcess,
    /// A server that somebody started, or a store that was given.
    Given,
}

impl TargetWay {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::InProcess => "inproc",
            Self::Given => "server",
        }
    }
}

/// The stores of ours: their name, the spec before the folder (`FOLDER` stands for it), and the
/// bits of a point that their format states.
const OURS: [OurStore; 5] = [
    OurStore {
        name: "mstore, round 1",
        spec: "mstore:FOLDER/mstore?cache=round1&cache_points=100",
        nominal_bits: Some(64.0),
    },
    OurStore {
        name: "mstore, round 2",
        spec: "mstore:FOLDER/mstore?cache=round2&cache_points=1800",
        nominal_bits: Some(64.0),
    },
    OurStore {
        name: "sqlite",
        spec: "sqlite:FOLDER/tsb.db",
        nominal_bits: None,
    },
    OurStore {
        name: "memory",
        spec: "memory:",
        nominal_bits: None,
    },
    OurStore {
        name: "write-cache+mstore",
        spec: "write-cache+mstore:FOLDER/mstore?cache=off",
        nominal_bits: Some(64.0),
    },
];

#[derive(Debug)]
struct OurStore {
    name: &'static str,
    spec: &'static str,
    nominal_bits: Option<f64>,
}

/// A target of the experiment.
#[derive(Clone, Debug)]
pub enum DalmatinerTarget {
    /// A store of ours, by its place in the list, and the way to it.
    Ours(usize, TargetWay),
    /// What was given by its spec.
    Given(Spec),
}

impl DalmatinerTarget {
    /// The stores of ours on the ways on which they take part, unless others are asked for.
    pub fn usual() -> Vec<Self> {
        let (tcp, inproc) = (TargetWay::Tcp, TargetWay::InProcess);
        [(0, tcp), (1, tcp), (2, tcp), (3, tcp), (2, inproc), (3, inproc)]
            .map(|(store, way)| Self::Ours(store, way))
            .to_vec()
    }

    /// A store of ours by its name in this list, such as `sqlite` or `sqlite in process`; `None` if
    /// there is none.
    pub fn named(name: &str) -> Option<Self> {
        let all =
            (0..OURS.len()).flat_map(|store| [TargetWay::Tcp, TargetWay::InProcess].map(|way| Self::Ours(store, way)));
        all.into_iter().find(|target| target.to_string() == name)
    }

    /// The names that [`Self::named`] knows.
    pub fn names() -> Vec<String> {
        OURS.iter()
            .flat_map(|store| [store.name.to_owned(), format!("{} in process", store.name)])
            .collect()
    }

    /// How it is reached.
    pub const fn way(&self) -> TargetWay {
        match self {
            Self::Ours(_, way) => *way,
            Self::Given(_) => TargetWay::Given,
        }
    }

    /// Whether it is Graphite, of which the original feed sent one point in five.
    pub fn is_graphite(&self) -> bool {
        matches!(self, Self::Given(spec) if spec.scheme() == "graphite")
    }

    /// Whether it has files in the folder that it is opened with.
    pub(super) fn has_files(&self) -> bool {
        matches!(self, Self::Ours(store, _) if OURS[*store].spec.contains("FOLDER"))
    }

    /// Bits of a point by its format, if that has such a size.
    pub(super) fn nominal_bits(&self) -> Option<f64> {
        match self {
            Self::Ours(store, _) => OURS[*store].nominal_bits,
            Self::Given(_) => None,
        }
    }

    /// The store itself, with its files in a folder: what is behind the endpoint, or is opened here.
    ///
    /// # Errors
    /// If this program has no such store.
    pub(super) fn spec(&self, folder: &Path) -> Result<Spec, Error> {
        match self {
            Self::Given(spec) => Ok(spec.clone()),
            Self::Ours(store, _) => {
                let text = OURS[*store].spec.replace("FOLDER", &folder.display().to_string());
                text.parse()
                    .map_err(|error| Error::plan(format!("cannot use {self}")).because(&error))
            }
        }
    }
}

impl fmt::Display for DalmatinerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(store, TargetWay::InProcess) => write!(f, "{} in process", OURS[*store].name),
            Self::Ours(store, _) => f.write_str(OURS[*store].name),
            Self::Given(spec) => write!(f, "{spec}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_of_ours_has_a_name_and_a_spec() {
        for name in DalmatinerTarget::names() {
            let target = DalmatinerTarget::named(&name).unwrap();
            assert_eq!(target.to_string(), name);
            if !name.starts_with("sqlite") || cfg!(feature = "sqlite") {
                target.spec(Path::new("/tmp/x")).unwrap();
            }
        }
        assert!(DalmatinerTarget::named("oracle").is_none());
        let usual = DalmatinerTarget::usual();
        assert!(usual.iter().any(|target| target.way() == TargetWay::InProcess));
    }
}
