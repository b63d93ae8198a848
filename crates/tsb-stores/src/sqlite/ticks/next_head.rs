//! Allocates the memory of the next head, a little with each commit: all at once it would delay
//! the first batch of a generation by tens of milliseconds.

use std::sync::Arc;

use super::writer::Writer;
use super::{TickShared, memory, panicked};
use crate::error::Result;
use crate::memory::MemoryStore;

/// The part of the next head that is ready.
#[derive(Debug, Default)]
pub(super) struct NextHead {
    store: Option<Arc<MemoryStore>>,
    /// Series numbers below this are defined in it.
    series: u32,
    /// Number of extents that it has, modelled on those of the current head.
    extents: u32,
}

impl NextHead {
    /// Takes the store, with the numbers below `series` defined, and begins anew.
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
    /// Prepares what is due while the head fills its second half; by then the aging generation
    /// has freed its memory.
    pub(super) fn prepare_next(&mut self, shared: &TickShared) -> Result<()> {
        let progress = self.progress(shared);
        if progress < 0.5 {
            return Ok(());
        }
        let view = shared.view()?;
        let due = (f64::from(view.head.extent_count()) * (progress * 2.0 - 1.0).min(1.0)) as u32;
        let series = shared.keys.read().map_err(panicked)?.count();
        let next = &mut self.next_head;
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
