//! The key table: which id is bound to which key. Only `define` and `stats` look at it.

use std::collections::HashMap;

use tsb_core::{SeriesId, SeriesKey};

use crate::error::{Error, Result};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Ids and keys, bound one to one.
#[derive(Debug, Default)]
pub(super) struct SeriesTable {
    ids: Map<SeriesKey, SeriesId>,
    keys: Map<SeriesId, SeriesKey>,
    bytes: usize,
}

/// What one more series occupies, about: two table slots and two copies of the key.
fn bytes_of(key: &SeriesKey) -> usize {
    let labels = key
        .labels()
        .iter()
        .map(|(label, value)| label.len() + value.len() + size_of::<(String, String)>());
    let strings = key.name().len() + labels.sum::<usize>();
    2 * (strings + size_of::<(SeriesId, SeriesKey)>() + 8)
}

impl SeriesTable {
    /// Binds `series`, or nothing at all. Returns the ids that are new.
    pub(super) fn define(&mut self, series: &[(SeriesId, SeriesKey)], max: Option<usize>) -> Result<Vec<SeriesId>> {
        let mut new: Vec<(SeriesId, &SeriesKey)> = Vec::new();
        let mut fresh_ids: Map<SeriesId, &SeriesKey> = Map::default();
        let mut fresh_keys: Map<&SeriesKey, SeriesId> = Map::default();
        for (id, key) in series {
            let bound_key = self.keys.get(id).or_else(|| fresh_ids.get(id).copied());
            let bound_id = self.ids.get(key).or_else(|| fresh_keys.get(key)).copied();
            match (bound_key, bound_id) {
                (Some(bound), _) if bound != key => return Err(conflict(*id, bound.to_string())),
                (_, Some(bound)) if bound != *id => return Err(conflict(*id, format!("{key}, which is {bound}"))),
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
        for (id, key) in &new {
            self.bytes += bytes_of(key);
            self.ids.insert((*key).clone(), *id);
            self.keys.insert(*id, (*key).clone());
        }
        Ok(new.into_iter().map(|(id, _)| id).collect())
    }

    /// How many series there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// What the table occupies, about.
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
        let mut table = SeriesTable::default();
        let pair = |id, name: &str| (SeriesId(id), SeriesKey::new(name));
        assert_eq!(
            table
                .define(&[pair(0, "a"), pair(1, "b"), pair(0, "a")], Some(2))
                .unwrap()
                .len(),
            2
        );
        assert_eq!(table.define(&[pair(0, "a")], Some(2)).unwrap(), []);
        assert!(matches!(
            table.define(&[pair(2, "c")], Some(2)),
            Err(Error::TooManySeries { limit: 2 })
        ));
        assert!(matches!(
            table.define(&[pair(3, "c"), pair(0, "c")], None),
            Err(Error::Conflict { .. })
        ));
        assert!(matches!(
            table.define(&[pair(3, "a")], None),
            Err(Error::Conflict { .. })
        ));
        assert!(matches!(
            table.define(&[pair(4, "d"), pair(5, "d")], None),
            Err(Error::Conflict { .. })
        ));
        assert_eq!(table.len(), 2);
    }
}
