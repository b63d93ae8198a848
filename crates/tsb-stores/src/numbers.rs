//! Maps the ids of a run to the series numbers of a file or database, and numbers to keys.
//!
//! A file numbers its series from 0 in the order in which they were first defined, and never
//! changes a number. Ids are chosen by the caller, and are meaningless after closing.

use std::collections::{HashMap, HashSet};

use tsb_core::{Batch, Ids, SeriesId, SeriesKey};

use crate::error::{Error, Result};
use crate::keys::KeyTable;
use crate::store::Scope;

/// Not bound to a number.
const NONE: u32 = u32::MAX;

/// Ids, keys and numbers.
#[derive(Debug)]
pub struct Keys {
    ids: KeyTable,
    numbers: HashMap<SeriesKey, u32, foldhash::fast::FixedState>,
    /// The number of each id.
    of_id: Vec<u32>,
    /// Number of series in the file.
    count: u32,
    max_series: usize,
}

impl Keys {
    /// A table with the keys of a file, in the order of their numbers.
    pub fn new(stored: Vec<SeriesKey>, max_series: usize) -> Self {
        let count = stored.len() as u32;
        Self {
            ids: KeyTable::new(max_series),
            numbers: stored.into_iter().zip(0..).collect(),
            of_id: Vec::new(),
            count,
            max_series,
        }
    }

    /// Number of bound ids.
    pub fn defined(&self) -> usize {
        self.ids.count()
    }

    /// Number of series in the file.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Binds all ids, or none. Returns the keys that got new numbers, in order.
    pub fn define(&mut self, series: &[(SeriesId, SeriesKey)]) -> Result<Vec<SeriesKey>> {
        let unknown = series.iter().map(|(_, key)| key);
        let fresh: HashSet<&SeriesKey, foldhash::fast::FixedState> =
            unknown.filter(|key| !self.numbers.contains_key(key)).collect();
        if self.numbers.len() + fresh.len() > self.max_series {
            return Err(Error::TooManySeries { limit: self.max_series });
        }
        self.ids.define(series)?;
        let mut new = Vec::new();
        for (id, key) in series {
            let number = *self.numbers.entry(key.clone()).or_insert_with(|| {
                new.push(key.clone());
                self.count += 1;
                self.count - 1
            });
            if self.of_id.len() <= id.index() {
                self.of_id.resize(id.index() + 1, NONE);
            }
            self.of_id[id.index()] = number;
        }
        Ok(new)
    }

    /// The number of an id.
    pub fn number(&self, id: SeriesId) -> Result<u32> {
        let number = self.of_id.get(id.index()).copied().filter(|number| *number != NONE);
        number.ok_or(Error::UnknownSeries { id })
    }

    /// The numbers of ids, all of which must be defined.
    pub fn numbers(&self, ids: &[SeriesId]) -> Result<Vec<u32>> {
        ids.iter().map(|id| self.number(*id)).collect()
    }

    /// Checks that all series of a flush are defined.
    pub fn check_scope(&self, scope: Scope<'_>) -> Result<()> {
        match scope {
            Scope::Series(series) => self.numbers(series).map(drop),
            Scope::All => Ok(()),
        }
    }

    /// The batch with numbers in place of ids; numbers that are not neighbours are stored in
    /// `into`.
    pub fn numbered<'a>(&self, batch: &Batch<'a>, into: &'a mut Vec<SeriesId>) -> Result<Batch<'a>> {
        let first = match batch.ids() {
            Ids::Range(first) => first,
            Ids::Each(_) => return self.listed(batch, into),
        };
        let numbers = self.of_id.get(first.index()..first.index() + batch.len());
        let start = numbers.and_then(<[u32]>::first).copied().filter(|start| *start != NONE);
        let Some((numbers, start)) = numbers.zip(start) else {
            return self.listed(batch, into);
        };
        let apart = numbers
            .iter()
            .zip(start..)
            .fold(0, |apart, (number, expected)| apart | (number ^ expected));
        if apart == 0 {
            Ok(Batch::new(Ids::Range(SeriesId(start)), batch.times(), batch.values()))
        } else {
            self.listed(batch, into)
        }
    }

    fn listed<'a>(&self, batch: &Batch<'a>, into: &'a mut Vec<SeriesId>) -> Result<Batch<'a>> {
        into.clear();
        for index in 0..batch.len() {
            into.push(SeriesId(self.number(batch.id(index))?));
        }
        Ok(Batch::new(Ids::Each(into), batch.times(), batch.values()))
    }
}

/// The labels as a JSON object, sorted by name.
pub fn labels_to_json(key: &SeriesKey) -> String {
    let pairs = key.labels().iter();
    let map: serde_json::Map<_, _> = pairs
        .map(|(label, value)| (label.clone(), value.clone().into()))
        .collect();
    serde_json::Value::Object(map).to_string()
}

/// The inverse of [`labels_to_json`]; `None` for any other text.
pub fn key_of(name: &str, labels: &str) -> Option<SeriesKey> {
    let labels: std::collections::BTreeMap<String, String> = serde_json::from_str(labels).ok()?;
    Some(SeriesKey::with_labels(name, labels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::Timestamp;

    fn pairs(keys: &[(u32, &str)]) -> Vec<(SeriesId, SeriesKey)> {
        let pairs = keys.iter().map(|(id, name)| (SeriesId(*id), SeriesKey::new(*name)));
        pairs.collect()
    }

    #[test]
    fn numbers_are_the_files_and_ids_the_callers() {
        let mut keys = Keys::new(vec![SeriesKey::new("a"), SeriesKey::new("b")], 4);
        let new = keys.define(&pairs(&[(0, "b"), (1, "c"), (2, "a")])).unwrap();
        assert_eq!(new, [SeriesKey::new("c")]);
        let numbers: Vec<u32> = (0..3).map(|id| keys.number(SeriesId(id)).unwrap()).collect();
        assert_eq!(numbers, [1, 2, 0]);
        let values = [1.0, 2.0];
        let mut into = Vec::new();
        let batch = Batch::tick(SeriesId(0), Timestamp(5), &values);
        assert_eq!(keys.numbered(&batch, &mut into).unwrap().ids(), Ids::Range(SeriesId(1)));
        let batch = Batch::tick(SeriesId(1), Timestamp(5), &values);
        assert_eq!(
            keys.numbered(&batch, &mut into).unwrap().ids(),
            Ids::Each(&[SeriesId(2), SeriesId(0)])
        );
        let values = [1.0; 4];
        let batch = Batch::tick(SeriesId(0), Timestamp(5), &values);
        assert!(matches!(
            keys.numbered(&batch, &mut into),
            Err(Error::UnknownSeries { id: SeriesId(3) })
        ));
        assert!(matches!(
            keys.define(&pairs(&[(3, "d"), (1, "e")])),
            Err(Error::TooManySeries { limit: 4 })
        ));
        assert_eq!((keys.defined(), keys.count()), (3, 3));
    }

    #[test]
    fn labels_there_and_back() {
        for key in [
            SeriesKey::new("a"),
            SeriesKey::with_labels("a\"b", [("x\n", "{}"), ("y", "\u{e9}")]),
        ] {
            assert_eq!(key_of(key.name(), &labels_to_json(&key)), Some(key));
        }
        assert_eq!(key_of("a", "[]"), None);
    }
}
