//! The table of ids and keys. Only `define` and `stats` use it.

use std::collections::HashMap;

use tsb_core::{SeriesId, SeriesKey};

use super::budget::Budget;
use crate::error::{Error, Result};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Ids and keys, bound one to one.
#[derive(Debug, Default)]
pub(super) struct SeriesTable {
    ids: Map<SeriesKey, SeriesId>,
    keys: Map<SeriesId, SeriesKey>,
    bytes: usize,
}

/// Bytes per series: its key, and two entries in tables that double. Approximate.
fn bytes_of(key: &SeriesKey) -> usize {
    key.heap_bytes() + 4 * (size_of::<(SeriesId, SeriesKey)>() + 1)
}

impl SeriesTable {
    /// Binds all of `series`, or none, and counts the memory of the keys in `budget`. Returns the
    /// new ids.
    pub(super) fn define(
        &mut self,
        series: &[(SeriesId, SeriesKey)],
        max: Option<usize>,
        budget: &Budget,
    ) -> Result<Vec<SeriesId>> {
        let mut new: Vec<(SeriesId, &SeriesKey)> = Vec::new();
        let mut fresh_ids: Map<SeriesId, &SeriesKey> = Map::default();
        let mut fresh_keys: Map<&SeriesKey, SeriesId> = Map::default();
        for (id, key) in series {
            let bound_key = self.keys.get(id).or_else(|| fresh_ids.get(id).copied());
            let bound_id = self.ids.get(key).or_else(|| fresh_keys.get(key)).copied();
            match (bound_key, bound_id) {
                (Some(bound), _) if bound != key => return Err(conflict(*id, bound.to_string())),
                (_, Some(bound)) if bound != *id => return Err(conflict(bound, key.to_string())),
                (Some(_), _) => {}
                (None, _) => {
                    fresh_ids.insert(*id, key);
                    fresh_keys.insert(key, *id);
                    new.push((*id, key));
                }
            }
        }
        if let Some(limit) = max
            && self.keys.len() + new.len() > limit
        {
            return Err(Error::TooManySeries { limit });
        }
        let bytes = new.iter().map(|(_, key)| bytes_of(key)).sum();
        if !budget.take(bytes) {
            return Err(Error::TooManyNameBytes {
                limit: budget.max(),
                defined: self.keys.len(),
            });
        }
        self.bytes += bytes;
        for (id, key) in &new {
            self.ids.insert((*key).clone(), *id);
            self.keys.insert(*id, (*key).clone());
        }
        Ok(new.into_iter().map(|(id, _)| id).collect())
    }

    /// Number of series.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of the table. Approximate.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn conflict(id: SeriesId, existing: String) -> Error {
    Error::Conflict { id, existing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binding_is_idempotent_and_all_or_nothing() {
        let (mut table, budget) = (SeriesTable::default(), Budget::new(None));
        let pair = |id, name: &str| (SeriesId(id), SeriesKey::new(name));
        assert_eq!(
            table
                .define(&[pair(0, "a"), pair(1, "b"), pair(0, "a")], Some(2), &budget)
                .unwrap()
                .len(),
            2
        );
        assert_eq!(table.define(&[pair(0, "a")], Some(2), &budget).unwrap(), []);
        assert!(matches!(
            table.define(&[pair(2, "c")], Some(2), &budget),
            Err(Error::TooManySeries { limit: 2 })
        ));
        assert!(matches!(
            table.define(&[pair(3, "c"), pair(0, "c")], None, &budget),
            Err(Error::Conflict { .. })
        ));
        assert!(matches!(
            table.define(&[pair(3, "a")], None, &budget),
            Err(Error::Conflict { .. })
        ));
        assert!(matches!(
            table.define(&[pair(4, "d"), pair(5, "d")], None, &budget),
            Err(Error::Conflict { .. })
        ));
        assert_eq!(table.len(), 2);
    }

    /// Issue 15: the number of names was limited, but not their bytes.
    #[test]
    fn keys_stay_within_the_budget_and_count_once() {
        let (mut table, budget) = (SeriesTable::default(), Budget::new(Some(1 << 20)));
        let long = |id: u32| (SeriesId(id), SeriesKey::new(format!("{id}{}", "x".repeat(30_000))));
        let defined = (0..100)
            .filter(|id| table.define(&[long(*id)], None, &budget).is_ok())
            .count();
        assert!((30..35).contains(&defined), "{defined}");
        let refused = table.define(&[long(99)], None, &budget).unwrap_err();
        assert!(
            matches!(refused, Error::TooManyNameBytes { limit: 1_048_576, .. }),
            "{refused}"
        );
        assert_eq!(
            table.define(&[long(0)], None, &budget).unwrap(),
            [],
            "what is known costs nothing"
        );
        assert!(table.bytes() <= 1 << 20);
    }
}
