//! Writes a batch into files: one pass per file, while the next files are read ahead.

use std::sync::atomic::Ordering;

use tsb_core::{Batch, Ids};
use tsb_rrd::{Residency, Stage};

use super::RrdStore;
use super::engine::Buffers;
use crate::error::{Error, Result};
use crate::locks::{lock, read};
use crate::store::Refusals;

impl RrdStore {
    /// Writes the samples of a batch, series by series, each in one pass.
    pub(super) fn write_series(&self, batch: &Batch<'_>, buffers: &mut Buffers, refused: &mut Refusals) -> Result<()> {
        let series = read(&self.series);
        let context = self.context();
        let mut order = std::mem::take(&mut buffers.order);
        order.clear();
        order.extend(0..batch.len() as u32);
        if let Ids::Each(ids) = batch.ids()
            && !ids.is_sorted()
        {
            // The sort must be stable, to keep the batch's order within a series.
            order.sort_by_key(|&index| ids[index as usize]);
        }
        let mut parts = std::mem::take(&mut buffers.parts);
        parts.clear();
        let same = |&a: &u32, &b: &u32| batch.id(a as usize) == batch.id(b as usize);
        let ends = order.chunk_by(same).scan(0, |end, part| {
            *end += part.len() as u32;
            Some(*end)
        });
        parts.extend(ends);
        let mut ahead = std::mem::take(&mut buffers.ahead);
        let part_of = |index: usize| {
            let start = index.checked_sub(1).map_or(0, |before| parts[before] as usize);
            &order[start..parts[index] as usize]
        };
        let mut reached = 0;
        let result = ahead.for_each(parts.len(), |stage, index| {
            let part = part_of(index);
            let (first, last) = (part[0] as usize, part[part.len() - 1] as usize);
            let id = batch.id(first);
            let series = series.get(id.index()).and_then(Option::as_ref);
            let series = series.ok_or(Error::UnknownSeries { id })?;
            reached = reached.max(index);
            if stage != Stage::Update {
                return Ok(lock(series).prefetch(&context, stage, batch.time(last), buffers));
            }
            let indexes = part.iter().map(|&index| index as usize);
            let accepted = lock(series).write(&context, batch, indexes, buffers, refused)?;
            self.accepted.fetch_add(accepted as u64, Ordering::AcqRel);
            Ok(Residency::NotProbed)
        });
        if result.is_err() {
            // Files opened ahead will not be written any more.
            for id in (0..=reached).map(|index| batch.id(part_of(index)[0] as usize)) {
                if let Some(Some(series)) = series.get(id.index()) {
                    lock(series).close_prefetched();
                }
            }
        }
        (buffers.order, buffers.parts, buffers.ahead) = (order, parts, ahead);
        result
    }
}
