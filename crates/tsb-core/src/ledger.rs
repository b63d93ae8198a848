//! The ledger: what happened to every sample, and whether the sums add up.
//!
//! A count that cannot exist in a run is absent, not 0. Equations hold between the counts that
//! exist; [`Ledger::violations`] returns those that do not hold, with both sides. Ledgers of
//! workers, hosts or parts of a run are added with [`Ledger::merge`].

mod finding;

use std::fmt;
use std::ops::Index;

pub use finding::{FindingKind, Findings, LedgerFinding};

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is counted; the unit is samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
#[non_exhaustive]
pub enum Counter {
    /// Due by the schedule.
    Due,
    /// Due, but never sent.
    Shed,
    /// Handed to the wire or the store.
    Sent,
    /// Dropped by this machine's kernel buffers, by the kernel's counters.
    KernelDropped,
    /// Sent, not dropped by the kernel, but never received.
    LostInTransport,
    /// Received by our listener.
    Received,
    /// Received, but not parseable as a record.
    Malformed,
    /// Received and refused.
    Rejected,
    /// Accepted by the store.
    Accepted,
    /// Acknowledged by an external server; at a listener of ours it is [`Counter::Accepted`].
    Confirmed,
    /// Refused by an external server; at a listener of ours it is [`Counter::Rejected`].
    Refused,
    /// Sent to an external server that never answered for them.
    Unknown,
    /// Read back with the value that was written.
    Verified,
    /// Replaced by a later write of the same timestamp.
    Superseded,
    /// Older than the store's stated retention, and no longer there.
    Expired,
    /// Accepted, but not in the store.
    Lost,
    /// In the store, with another value.
    Altered,
    /// Found beyond what was sent: extra copies, and samples that were never sent.
    Duplicated,
    /// In a step for which a consolidating store has no row yet.
    Unconsolidated,
    /// Accepted, but by the store's rules in no row, because its step is unknown.
    Unrepresented,
    /// Accepted by a consolidating store into a row that also depends on samples which may not
    /// have arrived: the expected value of that row cannot be computed.
    Uncompared,
}

impl Counter {
    /// All counters, in the report's order.
    pub const ALL: [Self; 21] = [
        Self::Due,
        Self::Shed,
        Self::Sent,
        Self::KernelDropped,
        Self::LostInTransport,
        Self::Received,
        Self::Malformed,
        Self::Rejected,
        Self::Accepted,
        Self::Confirmed,
        Self::Refused,
        Self::Unknown,
        Self::Verified,
        Self::Superseded,
        Self::Expired,
        Self::Lost,
        Self::Altered,
        Self::Duplicated,
        Self::Unconsolidated,
        Self::Unrepresented,
        Self::Uncompared,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Shed => "shed",
            Self::Sent => "sent",
            Self::KernelDropped => "kernel_dropped",
            Self::LostInTransport => "lost_in_transport",
            Self::Received => "received",
            Self::Malformed => "malformed",
            Self::Rejected => "rejected",
            Self::Accepted => "accepted",
            Self::Confirmed => "confirmed",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
            Self::Verified => "verified",
            Self::Superseded => "superseded",
            Self::Expired => "expired",
            Self::Lost => "lost",
            Self::Altered => "altered",
            Self::Duplicated => "duplicated",
            Self::Unconsolidated => "unconsolidated",
            Self::Unrepresented => "unrepresented",
            Self::Uncompared => "uncompared",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| counter.name() == name)
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An equation: the left count is the sum of the right ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Equation {
    /// The count on the left side.
    pub whole: Counter,
    /// The counts that it is the sum of.
    pub parts: &'static [Counter],
}

/// The possible fates of an accepted sample: these counts add up to [`Counter::Accepted`]. Each is also
/// listed in the judge of `tsb-run`, as compared or not compared.
pub const OF_ACCEPTED: [Counter; 8] = [
    Counter::Verified,
    Counter::Superseded,
    Counter::Expired,
    Counter::Lost,
    Counter::Altered,
    Counter::Unconsolidated,
    Counter::Unrepresented,
    Counter::Uncompared,
];

/// The equations between the counts. One applies if its whole and at least one of its parts are
/// counted; a part that cannot exist in the run counts as 0.
pub const EQUATIONS: [Equation; 5] = [
    Equation {
        whole: Counter::Due,
        parts: &[Counter::Shed, Counter::Sent],
    },
    Equation {
        whole: Counter::Sent,
        parts: &[Counter::KernelDropped, Counter::LostInTransport, Counter::Received],
    },
    Equation {
        whole: Counter::Sent,
        parts: &[Counter::Confirmed, Counter::Refused, Counter::Unknown],
    },
    Equation {
        whole: Counter::Received,
        parts: &[Counter::Malformed, Counter::Rejected, Counter::Accepted],
    },
    Equation {
        whole: Counter::Accepted,
        parts: &OF_ACCEPTED,
    },
];

/// An equation that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The equation.
    pub equation: Equation,
    /// The count of the whole.
    pub whole: u64,
    /// The sum of the parts.
    pub parts: u128,
}

impl fmt::Display for Violation {
    /// `due 54000 is not shed + sent = 53999`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} is not ", self.equation.whole, self.whole)?;
        for (index, part) in self.equation.parts.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { " + " })?;
            part.fmt(f)?;
        }
        write!(f, " = {}", self.parts)
    }
}

/// The counts of a run.
///
/// ```
/// use tsb_core::ledger::{Counter, Ledger};
///
/// let mut ledger = Ledger::new();
/// ledger.set(Counter::Accepted, 100).set(Counter::Verified, 98).set(Counter::Lost, 1);
/// // One is neither here nor there.
/// assert_eq!(ledger.violations().len(), 1);
/// ledger.add(Counter::Superseded, 1);
/// assert!(ledger.is_balanced());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    counts: [Option<u64>; Counter::ALL.len()],
}

impl Index<Counter> for Ledger {
    type Output = Option<u64>;

    fn index(&self, counter: Counter) -> &Option<u64> {
        &self.counts[counter as usize]
    }
}

impl Ledger {
    /// A ledger in which nothing is counted.
    pub fn new() -> Self {
        Self::default()
    }

    /// A count; `None` if it does not exist in this run.
    pub const fn get(&self, counter: Counter) -> Option<u64> {
        self.counts[counter as usize]
    }

    /// A count, or 0 if it does not exist.
    pub fn count(&self, counter: Counter) -> u64 {
        self.get(counter).unwrap_or(0)
    }

    /// Sets a count, which exists from then on.
    pub fn set(&mut self, counter: Counter, samples: u64) -> &mut Self {
        self.counts[counter as usize] = Some(samples);
        self
    }

    /// Adds to a count, which exists from then on. Saturates.
    pub fn add(&mut self, counter: Counter, samples: u64) -> &mut Self {
        let sum = self.count(counter).saturating_add(samples);
        self.set(counter, sum)
    }

    /// Adds the counts of another part of the same run.
    pub fn merge(&mut self, other: &Self) {
        for counter in Counter::ALL {
            if let Some(samples) = other.get(counter) {
                self.add(counter, samples);
            }
        }
    }

    /// The counts that exist, in the report's order.
    pub fn counts(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        let all = Counter::ALL.into_iter();
        all.filter_map(|counter| Some((counter, self.get(counter)?)))
    }

    /// The equations that apply to this ledger.
    pub fn equations(&self) -> impl Iterator<Item = Equation> + '_ {
        let exists = |counter: Counter| self.get(counter).is_some();
        EQUATIONS
            .into_iter()
            .filter(move |equation| exists(equation.whole) && equation.parts.iter().any(|&part| exists(part)))
    }

    /// The equations that do not hold, with both sides.
    pub fn violations(&self) -> Vec<Violation> {
        let check = |equation: Equation| {
            let whole = self.count(equation.whole);
            let parts = equation.parts.iter().map(|&part| u128::from(self.count(part))).sum();
            (u128::from(whole) != parts).then_some(Violation { equation, whole, parts })
        };
        self.equations().filter_map(check).collect()
    }

    /// Whether every equation holds.
    pub fn is_balanced(&self) -> bool {
        self.violations().is_empty()
    }
}

impl Serialize for Ledger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (counter, samples) in self.counts() {
            map.serialize_entry(counter.name(), &samples)?;
        }
        map.serialize_entry("balanced", &self.is_balanced())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Ledger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Ledger;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the counts of a ledger")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ledger, A::Error> {
        let mut ledger = Ledger::new();
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if name == "balanced" {
                // `balanced` follows from the counts.
                map.next_value::<IgnoredAny>()?;
            } else if let Some(counter) = Counter::from_name(&name) {
                ledger.set(counter, map.next_value()?);
            } else {
                return Err(A::Error::custom(format_args!("a ledger has no count `{name}`")));
            }
        }
        Ok(ledger)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_json_has_the_names_of_the_design() {
        let mut ledger = Ledger::new();
        ledger.set(Counter::Due, 10).set(Counter::Shed, 1).set(Counter::Sent, 9);
        ledger
            .set(Counter::KernelDropped, 0)
            .set(Counter::LostInTransport, 2)
            .set(Counter::Received, 7);
        let json = serde_json::to_string(&ledger).unwrap();
        assert_eq!(
            json,
            r#"{"due":10,"shed":1,"sent":9,"kernel_dropped":0,"lost_in_transport":2,"received":7,"balanced":true}"#
        );
        assert_eq!(serde_json::from_str::<Ledger>(&json).unwrap(), ledger);
        let error = serde_json::from_str::<Ledger>(r#"{"dew":1}"#).unwrap_err();
        assert!(error.to_string().contains("`dew`"), "{error}");
        for (index, counter) in Counter::ALL.into_iter().enumerate() {
            assert_eq!(counter as usize, index);
            let name = serde_json::to_string(&counter).unwrap();
            assert_eq!(name, format!("\"{}\"", counter.name()));
        }
    }

    #[test]
    fn a_violation_shows_both_sides() {
        let mut ledger = Ledger::new();
        ledger.set(Counter::Due, 54_000).set(Counter::Sent, 53_999);
        let violations = ledger.violations();
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].to_string(), "due 54000 is not shed + sent = 53999");
        ledger.set(Counter::Shed, 1);
        assert!(ledger.is_balanced());
        // Nothing was read back: the store's equation does not apply.
        ledger.set(Counter::Received, 53_999).set(Counter::Accepted, 53_999);
        assert!(ledger.is_balanced());
        ledger.set(Counter::Verified, 53_990).set(Counter::Lost, 8);
        assert_eq!(
            ledger.violations()[0].to_string(),
            "accepted 53999 is not verified + superseded + expired + lost + altered + unconsolidated + unrepresented + uncompared = 53998"
        );
    }

    #[test]
    fn a_foreign_server_has_equations_of_its_own() {
        let mut ledger = Ledger::new();
        ledger
            .set(Counter::Sent, 10)
            .set(Counter::Confirmed, 7)
            .set(Counter::Refused, 1);
        assert_eq!(ledger.violations()[0].parts, 8);
        ledger.set(Counter::Unknown, 2);
        assert!(ledger.is_balanced());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn balanced_parts_add_up_to_a_balanced_whole(parts in prop::collection::vec(prop::array::uniform8(0u64..1 << 40), 1..5)) {
            let mut whole = Ledger::new();
            for [shed, kernel, transport, malformed, rejected, verified, lost, altered] in parts {
                let accepted = verified + lost + altered;
                let received = malformed + rejected + accepted;
                let sent = kernel + transport + received;
                let mut part = Ledger::new();
                part.set(Counter::Due, shed + sent).set(Counter::Shed, shed).set(Counter::Sent, sent);
                part.set(Counter::KernelDropped, kernel).set(Counter::LostInTransport, transport);
                part.set(Counter::Received, received).set(Counter::Malformed, malformed);
                part.set(Counter::Rejected, rejected).set(Counter::Accepted, accepted);
                part.set(Counter::Verified, verified).set(Counter::Lost, lost).set(Counter::Altered, altered);
                prop_assert!(part.is_balanced());
                whole.merge(&part);
            }
            prop_assert!(whole.is_balanced());
            prop_assert_eq!(whole.get(Counter::Superseded), None);
            whole.add(Counter::Lost, 1);
            prop_assert!(!whole.is_balanced());
        }
    }
}
