//! The memory of the next head, made ready a little with each commit: taken with the first
//! batch after a turn, all of it would hold that batch up for tens of milliseconds.

use std::sync::Arc;

use super::writer::Writer;
use super::{Shared, memory, panicked};
use crate::error::Result;
use crate::memory::MemoryStore;

/// What of the next head is ready.
#[derive(Debug, Default)]
pub(super) struct Next {
    store: Option<Arc<MemoryStore>>,
    /// Numbers below this are defined in it.
    series: u32,
    /// Extents of the head before this have one like them in it.
    extents: u32,
}

impl Next {
    /// The store, with these many numbers defined; nothing is left behind.
    pub(super) fn take(&mut self, series: u32) -> Arc<MemoryStore> {
        let Self {
            store, series: defined, ..
        } = std::mem::take(self);
        let store = store.unwrap_or_else(memory);
        store.define_ids(defined..series);
        store
    }
}

impl Writer {
    /// Makes ready what is due while the head fills its second half, in which the aging
    /// generation has given its memory back.
    pub(super) fn prepare_next(&mut self, shared: &Shared) -> Result<()> {
        let progress = self.progress(shared);
        if progress < 0.5 {
            return Ok(());
        }
        let view = shared.view()?;
        let due = (f64::from(view.head.extent_count()) * (progress * 2.0 - 1.0).min(1.0)) as u32;
        let series = shared.keys.read().map_err(panicked)?.count();
        let next = &mut self.next;
        if due <= next.extents {
            return Ok(());
        }
        if next.store.is_none() {
            next.store = Some(next.take(series));
            next.series = series;
        }
        if let Some(store) = &next.store {
            store.prepare_like(&view.head, next.extents..due)?;
            next.extents = due;
        }
        Ok(())
    }
}
