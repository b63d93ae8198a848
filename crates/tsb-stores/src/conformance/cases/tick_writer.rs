//! A writer of whole ticks, and the check of what its store must contain after it was abandoned.

use std::collections::BTreeSet;

use tsb_core::{Batch, Durability, SeriesId};

use super::{tick_values, value_of};
use crate::conformance::failure::{Failure, ensure, equal};
use crate::conformance::model::same_value;
use crate::conformance::subject::{definitions, open_again, reads, time_of_slot};
use crate::conformance::{BoxedStore, Place};
use crate::store::{Capabilities, Position, StoreExt, TimeRange};

/// Number of series that are written, with ids from 0.
pub(in crate::conformance) const SERIES: usize = 3;

/// Writes tick after tick to all series, and keeps the position of each.
#[derive(Debug)]
pub(in crate::conformance) struct TickWriter {
    pub(in crate::conformance) store: BoxedStore,
    capabilities: Capabilities,
    /// Ticks written before this opening, and those of them that are lost for good.
    before: WrittenTicks,
    positions: Vec<Position>,
}

/// The ticks written to a store that is gone, from 0.
#[derive(Clone, Debug, Default)]
pub(in crate::conformance) struct WrittenTicks {
    begun: i64,
    /// Series and ticks that were not durable in an earlier run, and were gone.
    gone: BTreeSet<(u32, i64)>,
}

impl TickWriter {
    /// Opens a place in which nothing was written yet.
    pub(in crate::conformance) fn open(place: &dyn Place) -> Result<Self, Failure> {
        Self::after(place, WrittenTicks::default())
    }

    /// Reopens a place, to continue after the ticks written before.
    pub(in crate::conformance) fn after(place: &dyn Place, before: WrittenTicks) -> Result<Self, Failure> {
        let store = open_again(place)?;
        store.define(&definitions(0..SERIES as u32))?;
        Ok(Self::of(store, before))
    }

    /// A writer for an open store with defined series.
    pub(in crate::conformance) fn of(store: BoxedStore, before: WrittenTicks) -> Self {
        Self {
            capabilities: store.capabilities(),
            store,
            before,
            positions: Vec::new(),
        }
    }

    /// Writes the next tick.
    pub(in crate::conformance) fn write(&mut self) -> Result<(), Failure> {
        let tick = self.ticks();
        let values = tick_values(0, SERIES as u32, tick);
        let batch = Batch::tick(SeriesId(0), time_of_slot(&self.capabilities, tick), &values);
        self.positions.push(self.store.write_all(&batch)?.position);
        Ok(())
    }

    /// Number of ticks written, now and before.
    pub(in crate::conformance) fn ticks(&self) -> i64 {
        self.before.begun + self.positions.len() as i64
    }

    /// Number of ticks that are durable at a level, according to the store: those before this
    /// opening, and as many of this one as `durable` covers.
    pub(in crate::conformance) fn covered(&self, level: Durability) -> i64 {
        let covered = self.store.durable(level);
        let of_this_life = self.positions.iter().take_while(|&&position| position <= covered);
        self.before.begun + of_this_life.count() as i64
    }

    /// The ticks written so far.
    pub(in crate::conformance) fn written(&self) -> WrittenTicks {
        WrittenTicks {
            begun: self.ticks(),
            gone: self.before.gone.clone(),
        }
    }

    /// Drops the store without closing it.
    pub(in crate::conformance) fn drop_unclosed(self) -> WrittenTicks {
        let written = self.written();
        drop(self.store);
        written
    }
}

impl WrittenTicks {
    /// The same with `begun` ticks, for a writer that can no longer report.
    pub(in crate::conformance) fn begun(self, begun: i64) -> Self {
        Self { begun, ..self }
    }

    /// Reopens the place. Of each series the first `durable` ticks must be there, possibly some
    /// later ones that were written, and nothing else. The new writer continues after them.
    pub(in crate::conformance) fn reopen(
        mut self,
        place: &dyn Place,
        durable: &[i64; SERIES],
    ) -> Result<TickWriter, Failure> {
        let writer = TickWriter::after(place, self.clone())?;
        self.check(&writer, durable)?;
        Ok(TickWriter { before: self, ..writer })
    }

    /// Compares the store's contents with what was written.
    pub(in crate::conformance) fn check(
        &mut self,
        writer: &TickWriter,
        durable: &[i64; SERIES],
    ) -> Result<(), Failure> {
        for (id, &durable) in (0..).zip(durable) {
            if reads(&writer.capabilities) {
                self.check_rows(writer, id, durable)?;
            } else {
                self.check_newest(writer, id, durable)?;
            }
        }
        Ok(())
    }

    /// Notes the ticks that are gone; a durable one must not be.
    fn check_rows(&mut self, writer: &TickWriter, id: u32, durable: i64) -> Result<(), Failure> {
        let rows = writer.store.samples(SeriesId(id), TimeRange::ALL)?;
        let exactness = writer.capabilities.exactness;
        let mut rows = rows.iter().peekable();
        for tick in 0..self.begun {
            let (at, value) = (time_of_slot(&writer.capabilities, tick), value_of(id, tick));
            let found = rows.next_if(|row| row.0 == at);
            let was_gone = self.gone.contains(&(id, tick));
            ensure(tick >= durable || was_gone || found.is_some(), || {
                format!("series {id} has lost tick {tick}, and the first {durable} ticks were durable")
            })?;
            ensure(found.is_none_or(|row| same_value(exactness, row.1, value)), || {
                format!("tick {tick} of series {id} is {found:?}, {value} was written")
            })?;
            if found.is_none() {
                self.gone.insert((id, tick));
            }
        }
        equal("a row that was not written", &rows.next(), &None)
    }

    /// For stores of consolidated rows: compares the newest accepted sample.
    fn check_newest(&mut self, writer: &TickWriter, id: u32, durable: i64) -> Result<(), Failure> {
        let mut newest = [None];
        writer.store.newest_accepted(&[SeriesId(id)], &mut newest)?;
        let time = |tick| time_of_slot(&writer.capabilities, tick);
        let found = (0..self.begun).rev().find(|&tick| newest[0] == Some(time(tick)));
        ensure(found.is_some() == newest[0].is_some(), || {
            format!(
                "the newest sample of series {id} is at {:?}, which was not written",
                newest[0]
            )
        })?;
        let floor = (0..durable).rev().find(|&tick| !self.gone.contains(&(id, tick)));
        ensure(found >= floor, || {
            format!(
                "the newest sample of series {id} is that of tick {found:?}; the first {durable} ticks were durable"
            )
        })?;
        let behind = found.map_or(0, |tick| tick + 1);
        self.gone.extend((behind..self.begun).map(|tick| (id, tick)));
        Ok(())
    }
}
