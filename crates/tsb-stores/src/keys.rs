//! The table behind `define` (clause 3): which id is bound to which key.
//!
//! For stores that hold their series in memory. It has no samples and no locks.

use std::collections::HashMap;

use tsb_core::{Batch, Ids, SeriesId, SeriesKey};

use crate::error::{Error, Result};

/// Ids and keys, bound one to one, at most `max_series` of them.
#[derive(Debug)]
pub struct KeyTable {
    keys: Vec<Option<SeriesKey>>,
    ids: HashMap<SeriesKey, SeriesId, foldhash::fast::FixedState>,
    // Every id below this is defined, so a whole range is checked with one comparison.
    dense: usize,
    max_series: usize,
}

impl KeyTable {
    /// An empty table. Ids are dense, so an id of `max_series` or more exceeds the limit.
    pub fn new(max_series: usize) -> Self {
        Self {
            keys: Vec::new(),
            ids: HashMap::default(),
            dense: 0,
            max_series,
        }
    }

    /// Binds all of `series`, or none of them on a conflict or beyond the limit.
    pub fn define(&mut self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let mut added = Vec::new();
        for (id, key) in series {
            match self.bind(*id, key) {
                Ok(false) => {}
                Ok(true) => added.push(*id),
                Err(error) => {
                    for id in added {
                        self.unbind(id);
                    }
                    return Err(error);
                }
            }
        }
        while self.keys.get(self.dense).is_some_and(Option::is_some) {
            self.dense += 1;
        }
        Ok(())
    }

    /// Whether `id` has a key.
    pub fn is_defined(&self, id: SeriesId) -> bool {
        id.index() < self.dense || self.keys.get(id.index()).is_some_and(Option::is_some)
    }

    /// The key of an id.
    pub fn key(&self, id: SeriesId) -> Option<&SeriesKey> {
        self.keys.get(id.index())?.as_ref()
    }

    /// Returns an error for the first id of `batch` that has no key.
    pub fn check_batch(&self, batch: &Batch<'_>) -> Result<()> {
        match batch.ids() {
            Ids::Range(first) if first.index() + batch.len() <= self.dense => Ok(()),
            Ids::Range(first) => {
                let ids = (0..batch.len()).map(|offset| SeriesId((first.index() + offset) as u32));
                self.check_each(ids)
            }
            Ids::Each(ids) => self.check_each(ids.iter().copied()),
        }
    }

    /// Returns an error for the first of `ids` that has no key.
    pub fn check_each(&self, mut ids: impl Iterator<Item = SeriesId>) -> Result<()> {
        match ids.find(|&id| !self.is_defined(id)) {
            Some(id) => Err(Error::UnknownSeries { id }),
            None => Ok(()),
        }
    }

    /// Number of defined series.
    pub fn count(&self) -> usize {
        self.ids.len()
    }

    /// Bytes of the table and its keys.
    pub fn bytes(&self) -> u64 {
        let entry = size_of::<Option<SeriesKey>>() + size_of::<(SeriesKey, SeriesId)>() + 1;
        let texts: usize = self.ids.keys().map(SeriesKey::heap_bytes).sum();
        (self.keys.len() * entry + texts) as u64
    }

    /// Binds one pair. Returns whether it is new.
    fn bind(&mut self, id: SeriesId, key: &SeriesKey) -> Result<bool> {
        if id.index() >= self.max_series {
            return Err(Error::TooManySeries { limit: self.max_series });
        }
        if let Some(existing) = self.keys.get(id.index()).and_then(Option::as_ref) {
            return if existing == key {
                Ok(false)
            } else {
                Err(conflict(id, existing))
            };
        }
        if let Some((existing, &other)) = self.ids.get_key_value(key) {
            return Err(conflict(other, existing));
        }
        if self.keys.len() <= id.index() {
            self.keys.resize(id.index() + 1, None);
        }
        if let Some(slot) = self.keys.get_mut(id.index()) {
            *slot = Some(key.clone());
        }
        self.ids.insert(key.clone(), id);
        Ok(true)
    }

    fn unbind(&mut self, id: SeriesId) {
        if let Some(key) = self.keys.get_mut(id.index()).and_then(Option::take) {
            self.ids.remove(&key);
        }
    }
}

fn conflict(id: SeriesId, existing: &SeriesKey) -> Error {
    Error::Conflict {
        id,
        existing: existing.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::Timestamp;

    fn pair(id: u32, name: &str) -> (SeriesId, SeriesKey) {
        (SeriesId(id), SeriesKey::new(name))
    }

    #[test]
    fn a_conflict_binds_nothing_of_the_call() {
        let mut table = KeyTable::new(10);
        table.define(&[pair(1, "b")]).unwrap();
        let by_id = table.define(&[pair(0, "a"), pair(1, "c")]).unwrap_err();
        assert_eq!(by_id.to_string(), "series #1 is already defined as b");
        let by_key = table.define(&[pair(0, "a"), pair(2, "b")]).unwrap_err();
        assert_eq!(by_key.to_string(), "series #1 is already defined as b");
        assert!(!table.is_defined(SeriesId(0)));
        assert_eq!(table.count(), 1);
        table.define(&[pair(0, "a"), pair(1, "b")]).unwrap();
        assert_eq!((table.count(), table.dense), (2, 2));
    }

    #[test]
    fn an_id_beyond_the_bound_is_one_series_too_many() {
        let mut table = KeyTable::new(2);
        let error = table.define(&[pair(0, "a"), pair(u32::MAX, "z")]).unwrap_err();
        assert!(matches!(error, Error::TooManySeries { limit: 2 }));
        assert_eq!((table.count(), table.keys.len()), (0, 1));
    }

    #[test]
    fn a_range_is_checked_to_its_end() {
        let mut table = KeyTable::new(10);
        table.define(&[pair(2, "c"), pair(0, "a")]).unwrap();
        let values = [0.0; 3];
        let batch = Batch::tick(SeriesId(0), Timestamp(0), &values);
        let error = table.check_batch(&batch).unwrap_err();
        assert!(matches!(error, Error::UnknownSeries { id: SeriesId(1) }));
        table.define(&[pair(1, "b")]).unwrap();
        assert!(table.check_batch(&batch).is_ok());
        assert!(table.bytes() > 0);
    }
}
