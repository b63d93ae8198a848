//! Waits until what was written last can be read: carbon takes a connection's samples in order, so
//! that what came before is visible too.

use std::time::Duration;

use tokio::time::sleep;
use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::{Batch, Timestamp};

use super::super::render::Render;
use super::GraphiteClient;
use tsb_stores::error::Result;
use tsb_stores::parts::lock;

/// Number of samples of the last batch that are looked for: a relay sends them to several daemons.
const LOOKED_FOR: usize = 16;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

impl GraphiteClient {
    /// Remembers some samples of the last batch sent to a daemon.
    pub(super) fn note_last(&self, host: usize, batch: &Batch<'_>) {
        let step = batch.len().div_ceil(LOOKED_FOR).max(1);
        let some = (0..batch.len()).step_by(step);
        let mut last = lock(&self.last);
        if let Some(last) = last.get_mut(host) {
            last.clear();
            last.extend(some.map(|index| (batch.id(index).0, batch.time(index).as_secs())));
        }
    }

    /// Returns when those samples are visible, or the visibility delay is over. With several
    /// archives the delay is always waited out: until carbon has written to its files, coarser
    /// slots are computed from a part of the samples.
    pub(super) async fn await_visible(&self, render: &Render) -> Result<()> {
        let clock = MonotonicClock::new();
        let delay_ns = self.options.visibility_delay.as_nanos() as u64;
        let wanted: Vec<(u32, i64)> = lock(&self.last).iter().flatten().copied().collect();
        if wanted.is_empty() {
            return Ok(());
        }
        if self.archives.len() > 1 {
            sleep(self.options.visibility_delay).await;
            return Ok(());
        }
        let slot_s = self.archives[0].slot_s;
        let numbers: Vec<u32> = wanted.iter().map(|(number, _)| *number).collect();
        let mut newest: Vec<Option<Timestamp>> = vec![None; wanted.len()];
        while clock.now() < delay_ns {
            self.newest_of(render, &numbers, &mut newest).await?;
            let is_there = |((_, second), newest): (&(u32, i64), &Option<Timestamp>)| {
                newest.is_some_and(|newest| newest.as_secs() >= second.div_euclid(slot_s) * slot_s)
            };
            if wanted.iter().zip(&newest).all(is_there) {
                break;
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }
}
