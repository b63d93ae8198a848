//! The names of a listener that faces foreign clients.
//!
//! Every connection's decoder remembers the ids it was given, so this table is asked
//! once for each name of each connection, and one lock is enough.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::series::{Catalog, SeriesId, SeriesKey};

/// Defines a new series where its samples will be written; an error does not admit it.
type Define = dyn Fn(SeriesId, &SeriesKey) -> Result<(), String> + Send + Sync;

/// Keys to ids, shared by all connections of a listener, and never more than `max_series`.
pub struct Registry {
    names: Mutex<Names>,
    max_series: usize,
    define: Box<Define>,
}

#[derive(Debug, Default)]
struct Names {
    catalog: Catalog,
    refused: u64,
    first_error: Option<String>,
}

impl Registry {
    /// An empty table. `define` is called for each new series before its id is given
    /// out, so that no sample can be written before its series is defined.
    pub fn new<F>(max_series: usize, define: F) -> Self
    where
        F: Fn(SeriesId, &SeriesKey) -> Result<(), String> + Send + Sync + 'static,
    {
        Self::with_catalog(Catalog::new(), max_series, define)
    }

    /// A table that knows `catalog` from the start; those series are defined already.
    pub fn with_catalog<F>(catalog: Catalog, max_series: usize, define: F) -> Self
    where
        F: Fn(SeriesId, &SeriesKey) -> Result<(), String> + Send + Sync + 'static,
    {
        let names = Names {
            catalog,
            ..Names::default()
        };
        Self {
            names: Mutex::new(names),
            // The ids are 32 bits wide.
            max_series: max_series.min(u32::MAX as usize),
            define: Box::new(define),
        }
    }

    /// The id of `key`, new or known; `None` when the limit is reached or the series
    /// could not be defined. Fits [`crate::wire::Sink::series`].
    pub fn resolve(&self, key: &SeriesKey) -> Option<SeriesId> {
        let mut names = self.lock();
        if let Some(id) = names.catalog.id(key) {
            return Some(id);
        }
        if names.catalog.len() >= self.max_series {
            names.refused += 1;
            return None;
        }
        let id = SeriesId(names.catalog.len() as u32);
        if let Err(error) = (self.define)(id, key) {
            names.refused += 1;
            names.first_error.get_or_insert(error);
            return None;
        }
        Some(names.catalog.intern(key.clone()))
    }

    /// How many series are known.
    pub fn len(&self) -> usize {
        self.lock().catalog.len()
    }

    /// Whether no series is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often a name was turned away. A decoder that forgets refused names asks again,
    /// so this is at least the number of different names.
    pub fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// The first error that `define` gave, if it ever did.
    pub fn first_error(&self) -> Option<String> {
        self.lock().first_error.clone()
    }

    /// A copy of the table as it is now.
    pub fn catalog(&self) -> Catalog {
        self.lock().catalog.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        // A panic in `define` leaves the table as it was: the key is entered after it.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.lock();
        f.debug_struct("Registry")
            .field("series", &names.catalog.len())
            .field("max_series", &self.max_series)
            .field("refused", &names.refused)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn new_names_are_defined_once_and_the_limit_holds() {
        let defined = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&defined);
        let registry = Registry::new(2, move |id, key| {
            seen.lock().unwrap().push((id, key.clone()));
            Ok(())
        });
        assert_eq!(registry.resolve(&SeriesKey::new("a")), Some(SeriesId(0)));
        assert_eq!(registry.resolve(&SeriesKey::new("b")), Some(SeriesId(1)));
        assert_eq!(registry.resolve(&SeriesKey::new("a")), Some(SeriesId(0)));
        assert_eq!(registry.resolve(&SeriesKey::new("c")), None);
        assert_eq!(registry.refused(), 1);
        assert_eq!(defined.lock().unwrap().len(), 2);
        assert_eq!(registry.catalog().len(), 2);
    }

    #[test]
    fn a_series_that_cannot_be_defined_is_not_admitted() {
        let registry = Registry::new(10, |_, _| Err("full".to_owned()));
        assert_eq!(registry.resolve(&SeriesKey::new("a")), None);
        assert!(registry.is_empty());
        assert_eq!(registry.first_error().as_deref(), Some("full"));
    }
}
