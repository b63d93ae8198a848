//! Series keys, their dense ids, and the catalog that maps one to the other.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A dense number for a series, local to one run or one listener.
///
/// Stores use it as an array index. It means nothing outside the run: persistent stores map it to
/// their own key table when the series is defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct SeriesId(pub u32);

impl SeriesId {
    /// The id as an index into a column or table.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for SeriesId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The key of a series: its name and its labels, sorted by label name.
///
/// Clones share one text, so a listener, its catalog and the store that it feeds hold a long name
/// once. `Display` gives `name{label=value,...}`, or only the name without labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesKey(Arc<Parts>);

/// The text of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename = "SeriesKey", deny_unknown_fields)]
struct Parts {
    name: String,
    // Invariant: sorted by label name, label names unique.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<(String, String)>,
}

impl SeriesKey {
    /// A key without labels.
    pub fn new(name: impl Into<String>) -> Self {
        Self::of(name.into(), Vec::new())
    }

    fn of(name: String, labels: Vec<(String, String)>) -> Self {
        Self(Arc::new(Parts { name, labels }))
    }

    /// A key with labels in any order. Of two labels with the same name the later wins.
    ///
    /// ```
    /// use tsb_core::SeriesKey;
    ///
    /// let key = SeriesKey::with_labels("cpu.load", [("host", "a1"), ("core", "3")]);
    /// assert_eq!(key.label("host"), Some("a1"));
    /// assert_eq!(key, SeriesKey::with_labels("cpu.load", [("core", "3"), ("host", "a1")]));
    /// ```
    pub fn with_labels<K, V>(name: impl Into<String>, labels: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<String>,
    {
        let mut sorted = std::collections::BTreeMap::new();
        for (label, value) in labels {
            sorted.insert(label.into(), value.into());
        }
        Self::of(name.into(), sorted.into_iter().collect())
    }

    /// The name, without labels.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The labels, sorted by name.
    pub fn labels(&self) -> &[(String, String)] {
        &self.0.labels
    }

    /// The value of one label.
    pub fn label(&self, name: &str) -> Option<&str> {
        let at = self.labels().binary_search_by(|(label, _)| label.as_str().cmp(name));
        at.ok().map(|index| self.labels()[index].1.as_str())
    }

    /// Bytes of heap memory of the key, shared by all its clones.
    pub fn heap_bytes(&self) -> usize {
        let Parts { name, labels } = &*self.0;
        let text = |text: &String| text.capacity();
        let labels_text: usize = labels.iter().map(|(label, value)| text(label) + text(value)).sum();
        // An `Arc` stores two counters before its contents.
        2 * size_of::<usize>()
            + size_of::<Parts>()
            + text(name)
            + labels.capacity() * size_of::<(String, String)>()
            + labels_text
    }
}

impl Serialize for SeriesKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SeriesKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Parts::deserialize(deserializer).map(|parts| Self(Arc::new(parts)))
    }
}

impl fmt::Display for SeriesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        for (index, (label, value)) in self.labels().iter().enumerate() {
            f.write_str(if index == 0 { "{" } else { "," })?;
            write!(f, "{label}={value}")?;
        }
        if self.labels().is_empty() {
            Ok(())
        } else {
            f.write_str("}")
        }
    }
}

/// The table of keys and ids of a workload or a listener; ids are dense from 0.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    keys: Vec<SeriesKey>,
    ids: HashMap<SeriesKey, SeriesId, foldhash::fast::FixedState>,
}

impl Catalog {
    /// An empty catalog.
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of `key`; a new key is given the next id.
    pub fn intern(&mut self, key: SeriesKey) -> SeriesId {
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = SeriesId(self.keys.len() as u32);
        self.keys.push(key.clone());
        self.ids.insert(key, id);
        id
    }

    /// The id of a known key.
    pub fn id(&self, key: &SeriesKey) -> Option<SeriesId> {
        self.ids.get(key).copied()
    }

    /// The key of an id.
    pub fn key(&self, id: SeriesId) -> Option<&SeriesKey> {
        self.keys.get(id.index())
    }

    /// Every key; its position is its id.
    pub fn keys(&self) -> &[SeriesKey] {
        &self.keys
    }

    /// Number of series.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no series.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// All (id, key) pairs in id order, as `Store::define` takes them.
    pub fn definitions(&self) -> Vec<(SeriesId, SeriesKey)> {
        let keys = self.keys.iter().cloned().enumerate();
        keys.map(|(index, key)| (SeriesId(index as u32), key)).collect()
    }
}

impl FromIterator<SeriesKey> for Catalog {
    fn from_iter<I: IntoIterator<Item = SeriesKey>>(keys: I) -> Self {
        let mut catalog = Self::new();
        for key in keys {
            catalog.intern(key);
        }
        catalog
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_the_later_value_wins() {
        let key = SeriesKey::with_labels("cpu", [("zone", "a"), ("host", "h1"), ("zone", "b")]);
        assert_eq!(key.to_string(), "cpu{host=h1,zone=b}");
        assert_eq!(key.label("zone"), Some("b"));
        assert_eq!(key.label("rack"), None);
    }

    #[test]
    fn clones_share_their_text_and_serde_keeps_its_form() {
        let key = SeriesKey::with_labels("x".repeat(30_000), [("a", "b")]);
        assert!(std::ptr::eq(key.clone().name(), key.name()));
        assert!((30_000..30_400).contains(&key.heap_bytes()));
        let json = serde_json::to_string(&SeriesKey::with_labels("m", [("a", "b")])).unwrap();
        assert_eq!(json, r#"{"name":"m","labels":[["a","b"]]}"#);
        assert_eq!(serde_json::to_string(&SeriesKey::new("m")).unwrap(), r#"{"name":"m"}"#);
        assert!(serde_json::from_str::<SeriesKey>(r#"{"name":"m","other":1}"#).is_err());
    }

    #[test]
    fn ids_are_dense_and_stable() {
        let mut catalog = Catalog::new();
        let first = catalog.intern(SeriesKey::new("a"));
        let second = catalog.intern(SeriesKey::new("b"));
        assert_eq!((first, second), (SeriesId(0), SeriesId(1)));
        assert_eq!(catalog.intern(SeriesKey::new("a")), first);
        assert_eq!(catalog.key(second).map(SeriesKey::name), Some("b"));
        assert_eq!(catalog.len(), 2);
    }
}
