//! One writer of whole ticks, and what has to be there when its store was left.

use std::collections::BTreeSet;

use tsb_core::{Batch, Durability, SeriesId};

use super::{tick_values, value_of};
use crate::conformance::failure::{Failure, ensure, equal};
use crate::conformance::model::same_value;
use crate::conformance::subject::{definitions, open_again, reads, time_of};
use crate::conformance::{Opened, Place};
use crate::store::{Capabilities, Position, StoreExt, TimeRange};

/// Series that are written, ids from 0.
pub(in crate::conformance) const SERIES: usize = 3;

/// Writes tick after tick, each to all series, and knows where each ends.
#[derive(Debug)]
pub(in crate::conformance) struct Writer {
    pub(in crate::conformance) store: Opened,
    capabilities: Capabilities,
    /// What was begun before this life, and what of it is lost for good.
    before: Outlived,
    positions: Vec<Position>,
}

/// What was written to a store that is gone: ticks from 0.
#[derive(Clone, Debug, Default)]
pub(in crate::conformance) struct Outlived {
    begun: i64,
    /// Series and ticks that an earlier life had not made durable, and that were gone.
    gone: BTreeSet<(u32, i64)>,
}

impl Writer {
    /// Opens a place in which nothing was written.
    pub(in crate::conformance) fn open(place: &dyn Place) -> Result<Self, Failure> {
        Self::after(place, Outlived::default())
    }

    /// Opens a place again, to go on behind what was begun there.
    pub(in crate::conformance) fn after(place: &dyn Place, before: Outlived) -> Result<Self, Failure> {
        let store = open_again(place)?;
        store.define(&definitions(0..SERIES as u32))?;
        Ok(Self::of(store, before))
    }

    /// A store that is open, and whose series are defined.
    pub(in crate::conformance) fn of(store: Opened, before: Outlived) -> Self {
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
        let batch = Batch::tick(SeriesId(0), time_of(&self.capabilities, tick), &values);
        self.positions.push(self.store.write_all(&batch)?.position);
        Ok(())
    }

    /// Ticks that were begun, in this life and before.
    pub(in crate::conformance) fn ticks(&self) -> i64 {
        self.before.begun + self.positions.len() as i64
    }

    /// Ticks that are durable at a level, as the store says now: those before this life, and
    /// of this one as many as `durable` covers.
    pub(in crate::conformance) fn covered(&self, level: Durability) -> i64 {
        let covered = self.store.durable(level);
        let of_this_life = self.positions.iter().take_while(|&&position| position <= covered);
        self.before.begun + of_this_life.count() as i64
    }

    /// What has been written up to now.
    pub(in crate::conformance) fn written(&self) -> Outlived {
        Outlived {
            begun: self.ticks(),
            gone: self.before.gone.clone(),
        }
    }

    /// Drops the store without closing it.
    pub(in crate::conformance) fn leave(self) -> Outlived {
        let written = self.written();
        drop(self.store);
        written
    }
}

impl Outlived {
    /// So many ticks were begun, by a writer that says nothing more.
    pub(in crate::conformance) fn begun(self, begun: i64) -> Self {
        Self { begun, ..self }
    }

    /// Opens the place again: of each series the first `durable` ticks are there, perhaps
    /// some of the others that were begun, and nothing else. The writer goes on behind them.
    pub(in crate::conformance) fn reopen(
        mut self,
        place: &dyn Place,
        durable: &[i64; SERIES],
    ) -> Result<Writer, Failure> {
        let writer = Writer::after(place, self.clone())?;
        self.check(&writer, durable)?;
        Ok(Writer { before: self, ..writer })
    }

    /// Compares what is there with what was written.
    pub(in crate::conformance) fn check(&mut self, writer: &Writer, durable: &[i64; SERIES]) -> Result<(), Failure> {
        for (id, &durable) in (0..).zip(durable) {
            if reads(&writer.capabilities) {
                self.check_rows(writer, id, durable)?;
            } else {
                self.check_newest(writer, id, durable)?;
            }
        }
        Ok(())
    }

    /// Notes which ticks are gone; one that was durable must not be.
    fn check_rows(&mut self, writer: &Writer, id: u32, durable: i64) -> Result<(), Failure> {
        let rows = writer.store.samples(SeriesId(id), TimeRange::ALL)?;
        let exactness = writer.capabilities.exactness;
        let mut rows = rows.iter().peekable();
        for tick in 0..self.begun {
            let (at, value) = (time_of(&writer.capabilities, tick), value_of(id, tick));
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

    /// Where only consolidated rows come back: by the newest sample that was accepted.
    fn check_newest(&mut self, writer: &Writer, id: u32, durable: i64) -> Result<(), Failure> {
        let mut newest = [None];
        writer.store.newest_accepted(&[SeriesId(id)], &mut newest)?;
        let time = |tick| time_of(&writer.capabilities, tick);
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
