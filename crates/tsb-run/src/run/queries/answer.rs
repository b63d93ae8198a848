//! The answer to one query, as it came.

use std::ops::ControlFlow;

use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{Query, Resample, Result, Store, TimeRange};

use super::derive::derive;
use crate::audit::Columns;
use crate::plan::QueryShape;

/// Most rows that are taken of one answer; a store that returns more has gone wrong.
const ROWS_MAX: usize = 1 << 24;

/// An answer: rows of each series that was asked for. Reused for the next.
#[derive(Clone, Debug, Default)]
pub(super) struct QueryAnswer {
    /// Whether the store returned from the call without an error.
    pub(super) is_whole: bool,
    /// By series, in the order asked: the newest timestamp, where that was asked for.
    pub(super) newest: Vec<Option<Timestamp>>,
    /// By series, in the order asked.
    pub(super) rows: Vec<Columns>,
    /// What the query makes of the rows: see [`derive`].
    pub(super) derived: Vec<Columns>,
    /// A series of which rows came although it was not asked for, or not in that place.
    pub(super) stray: Option<SeriesId>,
    /// Whether rows beyond the most that are taken were left out.
    pub(super) is_cut: bool,
}

impl QueryAnswer {
    /// Empties it, and makes room for the rows of `series` series.
    pub(super) fn begin(&mut self, series: usize) {
        self.is_whole = false;
        self.stray = None;
        self.is_cut = false;
        self.newest.clear();
        self.newest.resize(series, None);
        self.rows.iter_mut().for_each(Columns::clear);
        self.rows.resize_with(series, Columns::default);
    }

    /// Number of rows in it.
    pub(super) fn len(&self) -> usize {
        self.rows.iter().map(Columns::len).sum()
    }

    /// Asks the store and takes what it returns.
    pub(super) fn ask(
        &mut self,
        store: &dyn Store,
        shape: QueryShape,
        ids: &[SeriesId],
        range: TimeRange,
    ) -> Result<()> {
        match shape {
            QueryShape::Last { .. } => {
                store.newest(ids, &mut self.newest)?;
                for (place, id) in ids.iter().enumerate() {
                    if let Some(at) = self.newest[place] {
                        let only = TimeRange { start: at, end: at + 1 };
                        self.read(store, std::slice::from_ref(id), place, only, None)?;
                    }
                }
            }
            shape => {
                let resample = shape.steps().map(|(step_ns, by)| Resample {
                    step_ns: step_ns as i64,
                    consolidation: by,
                });
                self.read(store, ids, 0, range, resample)?;
            }
        }
        derive(shape, &self.rows, &mut self.derived);
        self.is_whole = true;
        Ok(())
    }

    /// Reads rows of `ids` into the places from `first` on.
    fn read(
        &mut self,
        store: &dyn Store,
        ids: &[SeriesId],
        first: usize,
        range: TimeRange,
        resample: Option<Resample>,
    ) -> Result<()> {
        let query = Query {
            series: ids,
            range,
            resample,
        };
        let Self {
            rows, stray, is_cut, ..
        } = self;
        let (mut place, mut room) = (0, ROWS_MAX);
        store.query(&query, &mut |id, times, values| {
            while ids.get(place).is_some_and(|asked| *asked != id) {
                place += 1;
            }
            let Some(rows) = rows.get_mut(first + place).filter(|_| place < ids.len()) else {
                *stray = Some(id);
                return ControlFlow::Break(());
            };
            if times.len() > room {
                *is_cut = true;
                return ControlFlow::Break(());
            }
            room -= times.len();
            rows.times.extend_from_slice(times);
            rows.values.extend_from_slice(values);
            ControlFlow::Continue(())
        })
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::{Batch, SeriesKey};
    use tsb_stores::memory::{MemoryOptions, MemoryStore};
    use tsb_stores::{Consolidation, StoreExt as _};

    use super::*;

    #[test]
    fn an_answer_has_the_rows_of_each_series_in_the_order_asked() {
        let store = MemoryStore::new(MemoryOptions::default());
        let ids = [2, 0, 1].map(SeriesId);
        let definitions = ids.map(|id| (id, SeriesKey::new(format!("s{id}"))));
        store.define(&definitions).unwrap();
        for second in 0..10 {
            let values = [second as f64, 10.0 + second as f64];
            let _ = store
                .write_all(&Batch::tick(SeriesId(0), Timestamp::from_secs(second), &values))
                .unwrap();
        }
        let range = TimeRange {
            start: Timestamp::from_secs(3),
            end: Timestamp::from_secs(6),
        };
        let mut answer = QueryAnswer::default();
        let mut ask = |shape| {
            answer.begin(ids.len());
            answer.ask(&store, shape, &ids, range).unwrap();
            let values: Vec<Vec<f64>> = answer.rows.iter().map(|rows| rows.values.clone()).collect();
            (values, answer.newest.clone(), answer.len())
        };
        let series = 3;
        let (values, _, rows) = ask(QueryShape::Raw { series, span_ns: 1 });
        assert_eq!(values, [vec![], vec![3.0, 4.0, 5.0], vec![13.0, 14.0, 15.0]]);
        assert_eq!(rows, 6);
        let (values, ..) = ask(QueryShape::Steps {
            series,
            span_ns: 1,
            step_ns: 4_000_000_000,
            by: Consolidation::Max,
        });
        assert_eq!(values, [vec![], vec![3.0, 5.0], vec![13.0, 15.0]]);
        let (values, newest, _) = ask(QueryShape::Last { series });
        assert_eq!(values, [vec![], vec![9.0], vec![19.0]]);
        let at = Some(Timestamp::from_secs(9));
        assert_eq!(newest, [None, at, at]);
    }
}
