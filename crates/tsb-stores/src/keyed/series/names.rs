//! What a series and a sample stand for: keys by series, values by number.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tsb_core::{SeriesId, SeriesKey, Timestamp};

use crate::keyed::key::{Key, below};
use crate::store::Reason;

/// The sample of a deleted key.
pub(super) const DELETED: f64 = 0.0;

/// What a number stands for.
type Content = (Arc<str>, Option<u64>);

#[derive(Debug)]
pub(super) struct Names {
    max_keys: usize,
    max_values: usize,
    ids: BTreeMap<Key, SeriesId>,
    /// The latest timestamp that was given out for each id.
    latest: Vec<Timestamp>,
    numbers: HashMap<Content, usize>,
    /// The content of number 1 is the first.
    contents: Vec<Content>,
}

impl Names {
    pub(super) fn new(max_keys: usize, max_values: usize) -> Self {
        Self {
            max_keys,
            max_values,
            ids: BTreeMap::new(),
            latest: Vec::new(),
            numbers: HashMap::new(),
            contents: Vec::new(),
        }
    }

    /// The series of a key. A new one is appended to `new`, to be defined.
    pub(super) fn id(&mut self, key: &Key, new: &mut Vec<(SeriesId, SeriesKey)>) -> Result<SeriesId, Reason> {
        if let Some(id) = self.ids.get(key) {
            return Ok(*id);
        }
        if self.ids.len() >= self.max_keys {
            return Err(Reason::Full);
        }
        let id = SeriesId(self.latest.len() as u32);
        self.ids.insert(key.clone(), id);
        self.latest.push(Timestamp::MIN);
        new.push((id, SeriesKey::new(key.as_str())));
        Ok(id)
    }

    /// Undoes [`Self::id`] for the last series, which could not be defined.
    pub(super) fn forget(&mut self, new: &[(SeriesId, SeriesKey)]) {
        for (_, key) in new {
            self.ids.remove(key.name());
        }
        self.latest.truncate(self.latest.len() - new.len());
    }

    pub(super) fn known(&self, key: &Key) -> Option<SeriesId> {
        self.ids.get(key).copied()
    }

    /// A timestamp for the next sample of a series: `at`, or that of its last sample if that is
    /// later.
    pub(super) fn advance(&mut self, id: SeriesId, at: Timestamp) -> Timestamp {
        let latest = &mut self.latest[id.index()];
        *latest = at.max(*latest);
        *latest
    }

    /// The number of a value and its time to live.
    pub(super) fn number(&mut self, value: &str, ttl_ns: Option<u64>) -> Result<f64, Reason> {
        let content: Content = (value.into(), ttl_ns);
        if let Some(number) = self.numbers.get(&content) {
            return Ok(*number as f64);
        }
        if self.contents.len() >= self.max_values {
            return Err(Reason::Full);
        }
        self.contents.push(content.clone());
        self.numbers.insert(content, self.contents.len());
        Ok(self.contents.len() as f64)
    }

    /// The value of a key whose newest sample is this; `None` if it is deleted or has expired.
    pub(super) fn value(&self, number: f64, at: Timestamp, now: i64) -> Option<Arc<str>> {
        let (value, ttl_ns) = self.contents.get((number as usize).checked_sub(1)?)?;
        let is_there = ttl_ns.is_none_or(|ttl_ns| now < at.0.saturating_add_unsigned(ttl_ns));
        is_there.then(|| Arc::clone(value))
    }

    /// The first keys after `after` that are below `prefix`, at most `most`.
    pub(super) fn below(&self, prefix: Option<&Key>, after: Option<&Key>, most: usize) -> Vec<(Key, SeriesId)> {
        below(&self.ids, prefix, after)
            .map(|(key, id)| (key.clone(), *id))
            .take(most)
            .collect()
    }
}
