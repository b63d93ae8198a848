//! Retention: removes samples older than the cutoff from a tile, with an exact count.

use super::{NOTE, Tile, TileContext};

impl Tile {
    /// Drops every block, loose sample and set of rows that lies completely before the cutoff.
    /// Returns the number of samples.
    pub(in crate::memory) fn expire(&mut self, context: TileContext<'_>) -> usize {
        self.expire_blocks(context) + self.expire_loose(context) + self.expire_rows(context)
    }

    fn expire_blocks(&mut self, context: TileContext<'_>) -> usize {
        let (mut expired, mut freed) = (0, 0);
        for group in &mut self.groups {
            while let Some(block) = group.index.pop_before(context.cutoff) {
                let before = group.dead.len();
                group.dead.retain(|(at, _)| *at > block.end);
                let dead = before - group.dead.len();
                context.budget.give(dead * NOTE);
                expired += block.samples() - dead;
                freed += block.heap_bytes();
            }
        }
        self.subtract_sealed(expired, freed, context);
        expired
    }

    fn expire_loose(&mut self, context: TileContext<'_>) -> usize {
        let (mut expired, mut freed, mut open) = (0, 0, 0);
        let Some(loose) = &mut self.loose else { return 0 };
        for series in loose.series_mut() {
            while series.blocks.front().is_some_and(|block| block.end < context.cutoff) {
                let Some(block) = series.blocks.pop_front() else { break };
                let (before, number) = (series.dead.len(), series.dropped);
                series.dead.retain(|(_, of)| *of != number);
                series.dropped += 1;
                let dead = before - series.dead.len();
                context.budget.give(dead * NOTE);
                expired += block.samples() - dead;
                freed += block.heap_bytes();
            }
        }
        for column in 0..self.len {
            open += loose.drop_before(column, context.cutoff);
        }
        self.subtract_sealed(expired, freed, context);
        expired + open
    }

    /// Drops the open rows if even the newest has expired: the tile gets no more samples.
    fn expire_rows(&mut self, context: TileContext<'_>) -> usize {
        if !self.rows.is_allocated() || self.rows.last().is_none_or(|last| last >= context.cutoff) {
            return 0;
        }
        let expired = self.open_before(context.cutoff);
        context.budget.give(self.rows.bytes());
        self.rows.release();
        expired
    }

    fn subtract_sealed(&mut self, samples: usize, bytes: usize, context: TileContext<'_>) {
        self.sealed_samples -= samples;
        self.sealed_bytes -= bytes;
        context.budget.give(bytes);
    }

    /// Number of samples in open rows before `cutoff`.
    fn open_before(&self, cutoff: i64) -> usize {
        let old = self.rows.before(cutoff);
        let held = |row: usize| {
            (0..self.len)
                .filter(|&column| self.rows.get(row, column).is_some())
                .count()
        };
        (0..old).map(held).sum()
    }

    /// Number of samples before `cutoff` that are not dropped yet.
    pub(in crate::memory) fn count_before(&self, cutoff: i64) -> usize {
        let mut samples = self.open_before(cutoff);
        for group in &self.groups {
            let old = group.index.blocks().iter().take_while(|block| block.start < cutoff);
            samples += old.map(|block| block.samples_where(|at| at < cutoff)).sum::<usize>();
            samples -= group.dead.iter().filter(|(at, _)| *at < cutoff).count();
        }
        let Some(loose) = &self.loose else { return samples };
        for (column, series) in loose.series().iter().enumerate() {
            let blocks = series.blocks.iter().filter(|block| block.start < cutoff);
            samples += blocks.map(|block| block.samples_where(|at| at < cutoff)).sum::<usize>();
            samples -= series.dead.iter().filter(|(at, _)| *at < cutoff).count();
            samples += loose.open_before(column, cutoff);
        }
        samples
    }
}
