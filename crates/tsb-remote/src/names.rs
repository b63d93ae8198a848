//! Series of a client: which id is which number at the server, and which of them the server
//! has not been told of yet.

use std::sync::{Mutex, RwLock, RwLockReadGuard};

use tsb_core::{SeriesId, SeriesKey};

use tsb_stores::error::Result;
use tsb_stores::parts::Keys;
use tsb_stores::parts::{lock, read, write};

/// A number and its series.
pub(crate) type Numbered = (u32, SeriesKey);

/// All of them.
#[derive(Debug)]
pub(crate) struct Names {
    keys: RwLock<Keys>,
    /// Series whose numbers the server does not know yet.
    unsaved: Mutex<Vec<Numbered>>,
    /// Held by who tells it.
    saving: tokio::sync::Mutex<()>,
}

impl Names {
    /// The series that the server knows, by number.
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

    /// Whether all series are known.
    pub(crate) fn check(&self, series: &[SeriesId]) -> Result<()> {
        self.keys().numbers(series).map(drop)
    }

    /// Binds ids, or none of them. Those that are new get numbers, and are shown before
    /// anybody can write to them.
    pub(crate) fn define(&self, series: &[(SeriesId, SeriesKey)], learn: impl FnOnce(&[Numbered])) -> Result<()> {
        let mut keys = write(&self.keys);
        let first = keys.count();
        let new: Vec<_> = (first..).zip(keys.define(series)?).collect();
        learn(&new);
        lock(&self.unsaved).extend(new);
        Ok(())
    }

    /// What the server has to be told, if anything; nobody else tells it meanwhile.
    pub(crate) async fn unsaved(&self) -> Option<Unsaved<'_>> {
        if lock(&self.unsaved).is_empty() {
            return None;
        }
        let saving = self.saving.lock().await;
        let series = lock(&self.unsaved).clone();
        Some(Unsaved {
            names: self,
            series,
            _saving: saving,
        })
    }
}

/// Series that the server is about to be told of. Where that fails, it is told another time.
#[derive(Debug)]
pub(crate) struct Unsaved<'a> {
    names: &'a Names,
    series: Vec<Numbered>,
    _saving: tokio::sync::MutexGuard<'a, ()>,
}

impl Unsaved<'_> {
    /// Which.
    pub(crate) fn series(&self) -> &[Numbered] {
        &self.series
    }

    /// The server knows them now.
    pub(crate) fn saved(self) {
        lock(&self.names.unsaved).drain(..self.series.len());
    }
}
