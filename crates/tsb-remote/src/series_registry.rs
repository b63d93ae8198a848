//! The series of a client: their numbers at the server, and which numbers are not stored there
//! yet.

use std::sync::{Mutex, RwLock, RwLockReadGuard};

use tsb_core::{SeriesId, SeriesKey};

use tsb_stores::error::Result;
use tsb_stores::parts::Keys;
use tsb_stores::parts::{lock, read, write};

/// A number and its series.
pub(crate) type NumberedSeries = (u32, SeriesKey);

/// The series of a client.
#[derive(Debug)]
pub(crate) struct SeriesRegistry {
    keys: RwLock<Keys>,
    /// Series whose numbers are not stored at the server yet.
    unsaved: Mutex<Vec<NumberedSeries>>,
    /// Held while numbers are being stored.
    saving: tokio::sync::Mutex<()>,
}

impl SeriesRegistry {
    /// `stored` are the series that the server knows, in the order of their numbers.
    pub(crate) fn new(stored: Vec<SeriesKey>, max_series: usize) -> Self {
        Self {
            keys: RwLock::new(Keys::new(stored, max_series)),
            unsaved: Mutex::default(),
            saving: tokio::sync::Mutex::default(),
        }
    }

    /// Ids and numbers.
    pub(crate) fn keys(&self) -> RwLockReadGuard<'_, Keys> {
        read(&self.keys)
    }

    /// Checks that all series are defined.
    pub(crate) fn check(&self, series: &[SeriesId]) -> Result<()> {
        self.keys().numbers(series).map(drop)
    }

    /// Binds all ids, or none. New series get numbers, and are passed to `on_new` before they can
    /// be written.
    pub(crate) fn define(
        &self,
        series: &[(SeriesId, SeriesKey)],
        on_new: impl FnOnce(&[NumberedSeries]),
    ) -> Result<()> {
        let mut keys = write(&self.keys);
        let first = keys.count();
        let new: Vec<_> = (first..).zip(keys.define(series)?).collect();
        on_new(&new);
        lock(&self.unsaved).extend(new);
        Ok(())
    }

    /// The series to store at the server, if there are any. Concurrent callers wait until the
    /// result is dropped.
    pub(crate) async fn unsaved(&self) -> Option<Unsaved<'_>> {
        if lock(&self.unsaved).is_empty() {
            return None;
        }
        let saving = self.saving.lock().await;
        let series = lock(&self.unsaved).clone();
        Some(Unsaved {
            registry: self,
            series,
            _saving: saving,
        })
    }
}

/// Series that are about to be stored at the server. If that fails, they remain unsaved.
#[derive(Debug)]
pub(crate) struct Unsaved<'a> {
    registry: &'a SeriesRegistry,
    series: Vec<NumberedSeries>,
    _saving: tokio::sync::MutexGuard<'a, ()>,
}

impl Unsaved<'_> {
    /// The series.
    pub(crate) fn series(&self) -> &[NumberedSeries] {
        &self.series
    }

    /// Marks the series as stored.
    pub(crate) fn saved(self) {
        lock(&self.registry.unsaved).drain(..self.series.len());
    }
}
