//! Findings: samples found wrong, by name, with the kind of error. The list is bounded; the
//! ledger counts every sample. There an invented sample counts as duplicated, and a missing one
//! has no counter.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::Timestamp;

/// What is wrong with a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// Accepted, but not in the store.
    Lost,
    /// In the store with another value.
    Altered,
    /// In the store more than once.
    Duplicated,
    /// In the store, but never sent.
    Invented,
    /// Sent, but never received.
    LostInTransport,
    /// Sent, but not in the store; whether the wire or the store lost it is unknown.
    Missing,
}

/// One sample that was found wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerFinding {
    /// The series, by its number in the run.
    pub series: SeriesId,
    /// The key of the series; absent where only its number is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SeriesKey>,
    /// The sample's timestamp.
    pub at: Timestamp,
    /// What is wrong.
    pub kind: FindingKind,
    /// The value that was sent.
    #[serde(default, with = "value", skip_serializing_if = "Option::is_none")]
    pub expected: Option<f64>,
    /// The value that was read.
    #[serde(default, with = "value", skip_serializing_if = "Option::is_none")]
    pub found: Option<f64>,
}

impl fmt::Display for LedgerFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            FindingKind::Lost => "lost",
            FindingKind::Altered => "altered",
            FindingKind::Duplicated => "there once too often",
            FindingKind::Invented => "present, but never sent",
            FindingKind::LostInTransport => "lost in transport",
            FindingKind::Missing => "missing, lost on the way or by the store",
        };
        match &self.key {
            Some(key) => write!(f, "{key} ({}) at {}: {what}", self.series, self.at)?,
            None => write!(f, "series {} at {}: {what}", self.series, self.at)?,
        }
        if let Some(expected) = self.expected {
            write!(f, ", sent {expected}")?;
        }
        match self.found {
            Some(found) => write!(f, ", found {found}"),
            None => Ok(()),
        }
    }
}

/// The first findings up to a limit, and the number of further ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Findings {
    list: Vec<LedgerFinding>,
    more: u64,
    max: usize,
}

impl Findings {
    /// An empty list of at most `max` findings.
    pub const fn new(max: usize) -> Self {
        Self {
            list: Vec::new(),
            more: 0,
            max,
        }
    }

    /// Appends a finding, or only counts it when the list is full.
    pub fn push(&mut self, finding: LedgerFinding) {
        if self.list.len() < self.max {
            self.list.push(finding);
        } else {
            self.more += 1;
        }
    }

    /// Adds the findings of another part. The list stays in order of (series, time), so it does
    /// not depend on the order of the parts.
    pub fn merge(&mut self, other: Self) {
        self.list.extend(other.list);
        self.list
            .sort_by_key(|finding| (finding.series, finding.at, finding.kind));
        let dropped = self.list.len().saturating_sub(self.max);
        self.list.truncate(self.max);
        self.more += other.more + dropped as u64;
    }

    /// Sets the key of the series in every finding.
    pub fn name(&mut self, catalog: &Catalog) {
        for finding in &mut self.list {
            finding.key = catalog.key(finding.series).cloned();
        }
    }

    /// The findings in the list.
    pub fn as_slice(&self) -> &[LedgerFinding] {
        &self.list
    }

    /// Number of findings beyond those in the list.
    pub const fn more(&self) -> u64 {
        self.more
    }

    /// Whether there are no findings.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty() && self.more == 0
    }
}

/// JSON has no NaN and no infinities: these are written as strings.
mod value {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Value {
        Number(f64),
        Text(String),
    }

    #[expect(clippy::ref_option, reason = "the signature that serde calls")]
    pub(super) fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        let value = value.map(|number| {
            if number.is_finite() {
                Value::Number(number)
            } else {
                Value::Text(number.to_string())
            }
        });
        value.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        match Option::<Value>::deserialize(deserializer)? {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number)),
            Some(Value::Text(text)) => text.parse().map(Some).map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(series: u32) -> LedgerFinding {
        LedgerFinding {
            series: SeriesId(series),
            key: None,
            at: Timestamp::from_secs(1),
            kind: FindingKind::Lost,
            expected: Some(f64::from(series)),
            found: None,
        }
    }

    #[test]
    fn the_list_is_bounded_and_counts_the_rest() {
        let mut findings = Findings::new(3);
        (0..5).for_each(|series| findings.push(lost(series)));
        assert_eq!((findings.as_slice().len(), findings.more()), (3, 2));
        let (mut other, mut reverse) = (Findings::new(3), Findings::new(3));
        other.push(lost(1));
        reverse.push(lost(1));
        reverse.merge(findings.clone());
        findings.merge(other);
        assert_eq!(findings, reverse);
        assert_eq!((findings.as_slice().len(), findings.more()), (3, 3));
        assert_eq!(findings.as_slice()[1], findings.as_slice()[2]);
    }

    #[test]
    fn a_finding_is_named_by_the_key_of_its_series() {
        let mut catalog = Catalog::new();
        catalog.intern(SeriesKey::new("up"));
        let id = catalog.intern(SeriesKey::with_labels("cpu", [("host", "a")]));
        let mut findings = Findings::new(3);
        findings.push(lost(id.0));
        findings.name(&catalog);
        let finding = &findings.as_slice()[0];
        assert!(finding.to_string().starts_with("cpu{host=a} (#1) at "), "{finding}");
        let json = serde_json::to_string(finding).unwrap();
        assert!(
            json.contains(r#""series":1,"key":{"name":"cpu","labels":[["host","a"]]}"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<LedgerFinding>(&json).unwrap(), *finding);
        assert!(lost(7).to_string().starts_with("series #7 at "));
    }

    #[test]
    fn special_values_survive_json() {
        let mut finding = lost(7);
        finding.expected = Some(f64::NEG_INFINITY);
        finding.found = Some(f64::NAN);
        let json = serde_json::to_string(&finding).unwrap();
        assert!(json.contains(r#""expected":"-inf","found":"NaN""#), "{json}");
        let back: LedgerFinding = serde_json::from_str(&json).unwrap();
        assert_eq!(back.expected, finding.expected);
        assert!(back.found.is_some_and(f64::is_nan));
    }
}
