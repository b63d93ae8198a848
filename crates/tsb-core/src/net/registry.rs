//! The series names of a listener whose clients choose the names.
//!
//! Every connection's decoder remembers the ids that it was given, so this table is asked once per
//! name and connection, and a single lock is enough.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::wire::NotAdmitted;

/// Number of ids that are never assigned: decoders use them for markers of their own.
const RESERVED_IDS: usize = 16;

/// Why a series could not be defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// The reason under which its samples are refused.
    pub why: NotAdmitted,
    /// The store's error message.
    pub cause: String,
}

impl From<String> for Undefined {
    fn from(cause: String) -> Self {
        let why = NotAdmitted::Undefined;
        Self { why, cause }
    }
}

/// Defines a new series in the store. A series whose definition fails is not admitted.
type Define = dyn Fn(SeriesId, &SeriesKey) -> Result<(), Undefined> + Send + Sync;

/// Maps keys to ids, for all connections of a listener: at most `max_series` of them, and with
/// [`Registry::within`] at most a number of bytes.
pub struct Registry {
    names: Mutex<Names>,
    counts: RegistryCounts,
    max_series: usize,
    max_name_bytes: u64,
    define: Box<Define>,
}

#[derive(Debug, Default)]
struct Names {
    catalog: Catalog,
    bytes: u64,
}

/// Counts that are readable without the lock of the names. That lock is held while a series is
/// defined, and a store may never return from that.
#[derive(Debug, Default)]
struct RegistryCounts {
    series: AtomicU64,
    bytes: AtomicU64,
    refused: AtomicU64,
    first_error: Mutex<Option<String>>,
}

impl RegistryCounts {
    fn refuse(&self, cause: Option<String>) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        if let Some(cause) = cause {
            self.first_error().get_or_insert(cause);
        }
    }

    fn admit(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.series.fetch_add(1, Ordering::Relaxed);
    }

    fn first_error(&self) -> MutexGuard<'_, Option<String>> {
        self.first_error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    /// An empty table. `define` is called for each new series before its id is returned, so no
    /// sample can be written before its series is defined.
    pub fn new<F, E>(max_series: usize, define: F) -> Self
    where
        F: Fn(SeriesId, &SeriesKey) -> Result<(), E> + Send + Sync + 'static,
        E: Into<Undefined>,
    {
        Self::with_catalog(Catalog::new(), max_series, define)
    }

    /// A table that starts with `catalog`, whose series are defined already.
    pub fn with_catalog<F, E>(catalog: Catalog, max_series: usize, define: F) -> Self
    where
        F: Fn(SeriesId, &SeriesKey) -> Result<(), E> + Send + Sync + 'static,
        E: Into<Undefined>,
    {
        let names = Names {
            bytes: catalog.keys().iter().map(bytes_of).sum(),
            catalog,
        };
        let counts = RegistryCounts {
            series: AtomicU64::new(names.catalog.len() as u64),
            bytes: AtomicU64::new(names.bytes),
            ..RegistryCounts::default()
        };
        Self {
            names: Mutex::new(names),
            counts,
            // Ids have 32 bits.
            max_series: max_series.min(u32::MAX as usize - RESERVED_IDS),
            max_name_bytes: u64::MAX,
            define: Box::new(move |id, key| define(id, key).map_err(Into::into)),
        }
    }

    /// Admits no further name once the known ones take `max_name_bytes` of memory: text, labels
    /// and the table itself.
    #[must_use]
    pub fn within(mut self, max_name_bytes: u64) -> Self {
        self.max_name_bytes = max_name_bytes;
        self
    }

    /// The id of `key`, which is added if it is new. Fits [`crate::wire::Sink::series`].
    ///
    /// # Errors
    /// Which limit is reached, or that the store could not define the series.
    pub fn resolve(&self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        let mut names = self.lock();
        if let Some(id) = names.catalog.id(key) {
            return Ok(id);
        }
        let bytes = bytes_of(key);
        let limit = if names.catalog.len() >= self.max_series {
            Some(NotAdmitted::SeriesLimit)
        } else {
            (names.bytes + bytes > self.max_name_bytes).then_some(NotAdmitted::NameBytes)
        };
        if let Some(why) = limit {
            self.counts.refuse(None);
            return Err(why);
        }
        let id = SeriesId(names.catalog.len() as u32);
        if let Err(Undefined { why, cause }) = (self.define)(id, key) {
            self.counts.refuse(Some(cause));
            return Err(why);
        }
        names.bytes += bytes;
        self.counts.admit(bytes);
        Ok(names.catalog.intern(key.clone()))
    }

    /// Number of known series. Like the other counts, it does not wait for a running definition.
    pub fn len(&self) -> usize {
        self.counts.series.load(Ordering::Relaxed) as usize
    }

    /// Whether no series is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the known names take.
    pub fn name_bytes(&self) -> u64 {
        self.counts.bytes.load(Ordering::Relaxed)
    }

    /// Number of refused requests. A decoder that forgets refused names asks again, so this is at
    /// least the number of different names.
    pub fn refused(&self) -> u64 {
        self.counts.refused.load(Ordering::Relaxed)
    }

    /// The first error of `define`, if there was one.
    pub fn first_error(&self) -> Option<String> {
        self.counts.first_error().clone()
    }

    /// A copy of the table in its current state.
    pub fn catalog(&self) -> Catalog {
        self.lock().catalog.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        // A panic in `define` leaves the table consistent: the key is entered only after the call.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that one more name takes: its key, its text, and its entries in the catalog.
fn bytes_of(key: &SeriesKey) -> u64 {
    (key.heap_bytes() + 2 * size_of::<(SeriesKey, SeriesId)>()) as u64
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("series", &self.len())
            .field("max_series", &self.max_series)
            .field("name_bytes", &self.name_bytes())
            .field("refused", &self.refused())
            .finish_non_exhaustive()
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
            Ok::<(), String>(())
        });
        assert_eq!(registry.resolve(&SeriesKey::new("a")), Ok(SeriesId(0)));
        assert_eq!(registry.resolve(&SeriesKey::new("b")), Ok(SeriesId(1)));
        assert_eq!(registry.resolve(&SeriesKey::new("a")), Ok(SeriesId(0)));
        assert_eq!(registry.resolve(&SeriesKey::new("c")), Err(NotAdmitted::SeriesLimit));
        assert_eq!(registry.refused(), 1);
        assert_eq!(defined.lock().unwrap().len(), 2);
        assert_eq!(registry.catalog().len(), 2);
    }

    #[test]
    fn a_series_that_cannot_be_defined_is_not_admitted() {
        let registry = Registry::new(10, |_, _| Err("full".to_owned()));
        assert_eq!(registry.resolve(&SeriesKey::new("a")), Err(NotAdmitted::Undefined));
        assert!(registry.is_empty());
        assert_eq!(registry.first_error().as_deref(), Some("full"));
    }

    #[test]
    fn counts_wait_for_no_definition() {
        use std::sync::mpsc::sync_channel;
        let (begun, begins) = sync_channel(1);
        let (go, gone) = sync_channel::<()>(1);
        let gone = Mutex::new(gone);
        let registry = Arc::new(Registry::new(10, move |_, _: &SeriesKey| {
            let _ = begun.send(());
            let _ = gone.lock().unwrap().recv();
            Err::<(), String>("late".to_owned())
        }));
        let resolving = {
            let registry = Arc::clone(&registry);
            std::thread::spawn(move || registry.resolve(&SeriesKey::new("a")))
        };
        begins.recv().unwrap();
        assert_eq!((registry.len(), registry.name_bytes(), registry.refused()), (0, 0, 0));
        assert_eq!(registry.first_error(), None);
        go.send(()).unwrap();
        assert_eq!(resolving.join().unwrap(), Err(NotAdmitted::Undefined));
        assert_eq!(
            (registry.refused(), registry.first_error().as_deref()),
            (1, Some("late"))
        );
    }

    /// Issue 15: 8,000 names of 30 kB took 1.2 GB, because names were counted and not their
    /// bytes.
    #[test]
    fn names_count_by_their_bytes() {
        let registry = Registry::new(1_000_000, |_, _| Ok::<(), String>(())).within(1 << 20);
        let long = |index: usize| SeriesKey::new(format!("{index}{}", "x".repeat(30_000)));
        let outcomes: Vec<_> = (0..100).map(|index| registry.resolve(&long(index))).collect();
        let admitted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert!((30..35).contains(&admitted), "{admitted}");
        assert_eq!(outcomes[99], Err(NotAdmitted::NameBytes));
        assert_eq!(registry.resolve(&long(0)), Ok(SeriesId(0)), "what is known stays so");
        assert!(registry.name_bytes() <= 1 << 20 && registry.refused() == 100 - admitted as u64);
        let labels = (0..100).map(|index| (format!("label{index}"), "x".repeat(300)));
        let labelled = SeriesKey::with_labels("m", labels);
        assert!(labelled.heap_bytes() > 30_000, "labels count, too");
    }

    /// Issue 15: any failed define was called `series_limit`.
    #[test]
    fn a_store_says_why_a_series_is_not_admitted() {
        let registry = Registry::new(10, |_, key: &SeriesKey| match key.name() {
            "full" => Err(Undefined {
                why: NotAdmitted::SeriesLimit,
                cause: "the store has its own limit".to_owned(),
            }),
            _ => Err(Undefined::from("no such folder".to_owned())),
        });
        assert_eq!(registry.resolve(&SeriesKey::new("bad")), Err(NotAdmitted::Undefined));
        assert_eq!(registry.resolve(&SeriesKey::new("full")), Err(NotAdmitted::SeriesLimit));
        assert_eq!(registry.first_error().as_deref(), Some("no such folder"));
    }
}
