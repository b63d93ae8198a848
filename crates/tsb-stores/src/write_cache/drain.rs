//! Writes queued samples to the inner store. A series is written by one thread at a time; a
//! second one waits.

use std::iter::Peekable;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tsb_core::SeriesId;
use tsb_core::time::Clock;

use super::background::BackgroundTasks;
use super::checkpoint::{CheckpointSource, Unsynced, WrittenUpTo};
use super::journal::Journal;
use super::shard::{SHARDING, SHARDS};
use super::shared::SharedCache;
use super::write_batch::{SeriesOutcome, SeriesPart, WriteBatch};
use crate::activity::ActivityKind;
use crate::error::{Error, Result, chain};
use crate::locks::lock;
use crate::store::{Scope, Store};

impl<S: Store> SharedCache<S> {
    /// Waits for new work, counted by `Work::announced`; `seen` is the count handled so far.
    /// Returns false once the cache is stopping.
    fn wait_for_work(&self, seen: &mut u64) -> bool {
        let mut work = lock(&self.work);
        while work.announced == *seen && !work.is_stopping {
            work = self.work_available.wait(work);
        }
        *seen = work.announced;
        !work.is_stopping
    }

    /// Writes the due queues of a shard.
    pub(super) fn write_due(&self, shard: usize, batch: &mut WriteBatch) {
        loop {
            batch.clear();
            lock(&self.shards[shard]).take_due(batch, self.clock.now());
            if batch.is_empty() {
                return;
            }
            // A failure is recorded by `write_taken`, and the series is retried.
            let _ = self.write_taken(shard, batch);
        }
    }

    /// Writes the queues in `scope`, and reports samples in it that the store has refused for
    /// good since the last report, whichever thread wrote them.
    ///
    /// # Errors
    /// The first failed write, after trying all others; otherwise the first refusal.
    pub(super) fn write_and_report(&self, scope: Scope<'_>) -> Result<()> {
        let written = match scope {
            Scope::All => self.write_all(),
            Scope::Series(series) => self.write_series(series),
        };
        let refused = self.take_refused(scope);
        written?;
        refused.map_or(Ok(()), |(id, why)| {
            Err(Error::Backend {
                action: format!("write all that was accepted for series {}", id.0),
                source: why.into(),
            })
        })
    }

    fn take_refused(&self, scope: Scope<'_>) -> Option<(SeriesId, String)> {
        let mut refused = lock(&self.refused);
        match scope {
            Scope::All => std::mem::take(&mut *refused).pop_first(),
            Scope::Series(series) => {
                let taken: Vec<_> = series.iter().filter_map(|id| refused.remove_entry(id)).collect();
                taken.into_iter().next()
            }
        }
    }

    /// Writes all queues, with the help of the writeback threads; returns when everything is
    /// written.
    ///
    /// # Errors
    /// The first failed write, after trying all others.
    pub(super) fn write_all(&self) -> Result<()> {
        self.queue_due(true);
        let mut batch = WriteBatch::default();
        let mut result = Ok(());
        for shard in 0..SHARDS {
            let places = lock(&self.shards[shard]).places();
            let mut ids = (0..places).map(|place| SHARDING.series_at(shard, place)).peekable();
            result = result.and(self.write_each(shard, &mut ids, &mut batch));
        }
        result
    }

    /// Writes the queues of some series.
    ///
    /// # Errors
    /// As [`SharedCache::write_all`].
    pub(super) fn write_series(&self, series: &[SeriesId]) -> Result<()> {
        let mut held: Vec<SeriesId> = series
            .iter()
            .copied()
            .filter(|&id| self.shard(id).has_pending(id))
            .collect();
        held.sort_unstable_by_key(|&id| (SHARDING.shard_of(id), id));
        let mut batch = WriteBatch::default();
        let mut result = Ok(());
        for of_shard in held.chunk_by(|&a, &b| SHARDING.shard_of(a) == SHARDING.shard_of(b)) {
            let Some(&first) = of_shard.first() else { continue };
            let mut ids = of_shard.iter().copied().peekable();
            result = result.and(self.write_each(SHARDING.shard_of(first), &mut ids, &mut batch));
        }
        result
    }

    fn write_each(
        &self,
        shard: usize,
        ids: &mut Peekable<impl Iterator<Item = SeriesId>>,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        let mut result = Ok(());
        while ids.peek().is_some() {
            batch.clear();
            self.take_each(shard, ids, batch);
            if !batch.is_empty() {
                result = result.and(self.write_taken(shard, batch));
            }
        }
        result
    }

    /// Takes queues of `ids` into `batch`, and waits for a series that another thread is writing.
    /// It waits only while `batch` is empty: two threads that each hold a series could wait for
    /// each other.
    fn take_each(&self, shard: usize, ids: &mut Peekable<impl Iterator<Item = SeriesId>>, batch: &mut WriteBatch) {
        let now_ns = self.clock.now();
        let mut queues = lock(&self.shards[shard]);
        while let Some(&id) = ids.peek()
            && !batch.is_full()
        {
            if !queues.is_being_written(id) {
                queues.take(id, batch, now_ns);
                ids.next();
            } else if batch.is_empty() {
                queues = self.written[shard].wait(queues);
            } else {
                return;
            }
        }
    }

    /// Writes the samples taken from a shard, and updates the shard's account.
    fn write_taken(&self, shard: usize, batch: &mut WriteBatch) -> Result<()> {
        if let Some(journal) = &self.journal {
            // IMPORTANT: wait for the record before the store gets its samples. Otherwise a kill
            // could leave one series of a write in the store and lose the others.
            journal.await_record();
        }
        let mut outcomes: Vec<(SeriesPart, SeriesOutcome)> = Vec::with_capacity(batch.parts().len());
        batch.write(&self.inner, |part, outcome| outcomes.push((part.clone(), outcome)));
        let now_ns = self.clock.now();
        // IMPORTANT: record the refusals before the queues are marked as written. Otherwise a
        // flush that waits for them would miss the refusals.
        self.note_refused(&outcomes);
        {
            let mut queues = lock(&self.shards[shard]);
            for (part, outcome) in &outcomes {
                queues.done(part, outcome, now_ns);
            }
        }
        self.written[shard].notify_all();
        if self.journal.is_some() {
            let written = outcomes.iter().filter(|(_, outcome)| outcome.to_retry.is_empty());
            self.unsynced
                .add(written.map(|(part, _)| (part.id, part.last_record, ())));
        }
        if let Some(error) = outcomes.iter().find_map(|(_, outcome)| outcome.error.as_ref()) {
            self.note_failure(chain(error));
        }
        // A permanent refusal is reported by the next flush; here it must not fail a reader of
        // the other samples.
        let mut to_retry = outcomes.into_iter().filter(|(_, outcome)| !outcome.to_retry.is_empty());
        match to_retry.find_map(|(_, outcome)| outcome.error) {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    fn note_refused(&self, outcomes: &[(SeriesPart, SeriesOutcome)]) {
        let failed = outcomes.iter().filter(|(_, outcome)| outcome.failed > 0);
        for (part, outcome) in failed {
            let why = outcome.error.as_ref().map_or_else(String::new, |error| chain(error));
            lock(&self.refused).insert(part.id, why);
        }
    }
}

impl<S: Store> CheckpointSource for SharedCache<S> {
    type Key = ();

    fn unsynced(&self) -> &Unsynced<()> {
        &self.unsynced
    }

    fn oldest_record(&self) -> Option<u64> {
        let held = self.shards.iter().filter_map(|shard| lock(shard).oldest_record()).min();
        // IMPORTANT: hold no queue's lock here. `define` takes this lock while it holds one.
        let orphans = lock(&self.orphans);
        let orphaned = orphans.values().flatten().map(|(record, _)| *record).min();
        held.into_iter().chain(orphaned).min()
    }

    fn sync(&self) -> Result<()> {
        let level = self.inner.capabilities().reaches;
        self.inner.flush(Scope::All, level)
    }

    fn mark(&self, journal: &Journal, written: &[WrittenUpTo<()>]) -> Result<()> {
        let keys = self.keys();
        journal.mark_written(written, |(id, ..)| keys.key(*id))
    }
}

impl<S: Store> BackgroundTasks for SharedCache<S> {
    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    fn run_writeback(&self, index: usize, threads: usize) {
        // Each thread starts at a shard of its own, and then visits all others.
        let first = index * SHARDS / threads;
        let (mut batch, mut seen) = (WriteBatch::default(), 0);
        while self.wait_for_work(&mut seen) {
            let _under_way = self.activity.begin(ActivityKind::Flush);
            for shard in (first..SHARDS).chain(0..first) {
                self.write_due(shard, &mut batch);
            }
            self.is_full.store(false, Ordering::Release);
        }
    }

    fn sleep(&self, poll: Duration) -> bool {
        let waited = self
            .stopping
            .wait_timeout_while(lock(&self.work), poll, |work| !work.is_stopping);
        let (work, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !work.is_stopping
    }

    fn sweep(&self, _idle_ns: u64) {
        // A series stays known until the cache is closed; only due queues are written.
        self.queue_due(false);
    }

    fn queue_if_nearly_full(&self) {
        // Nothing to do: the writer that reaches the memory bound queues everything itself.
    }

    fn retry_failed(&self) {
        if self.has_failed_writes.swap(false, Ordering::AcqRel) {
            self.queue_due(false);
            // Stay set while any series waits for its retry.
            let has_waiting = self.shards.iter().any(|shard| lock(shard).needs_retry());
            self.has_failed_writes.fetch_or(has_waiting, Ordering::AcqRel);
        }
    }

    fn queue_upto(&self, record: u64) {
        for shard in &self.shards {
            lock(shard).queue_before(record + 1);
        }
        self.wake();
    }

    fn poison_by(&self, error: &Error) {
        self.note_failure(chain(error));
        self.state.poison(error);
    }
}
