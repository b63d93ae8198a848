//! The cases: the batches of the earlier trial, with values generated in advance.

use tsb_core::{Batch, BatchBuf, SeriesId, SeriesKey, Times, Timestamp};

/// The timestamp of the first tick.
const BASE: i64 = 1_700_000_000;
/// Samples per document in the layout `ticks`.
pub(crate) const GROUP: u32 = 60;

/// One cell of the trial's table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    /// Our layout that writes such documents.
    pub(crate) layout: &'static str,
    pub(crate) workers: u32,
    /// Documents per request.
    pub(crate) documents: u32,
    /// Samples of one series per request.
    pub(crate) per_series: u32,
    /// Samples per second measured in the trial.
    pub(crate) trial_rate: f64,
}

/// All cases.
pub(crate) fn all() -> impl Iterator<Item = Cell> {
    // Workers, documents, samples of a series in a request of single samples.
    let shapes = [(1, 1_000, 1), (1, 5_000, 5), (8, 1_000, 8), (8, 5_000, 40)];
    let layouts = [
        ("rows", [250e3, 227e3, 342e3, 305e3]),
        ("series", [20e3, 95e3, 249e3, 432e3]),
        ("ticks", [6.8e6, 5.6e6, 11.0e6, 9.4e6]),
    ];
    layouts.into_iter().flat_map(move |(layout, rates)| {
        let cell = move |((workers, documents, per_series), trial_rate)| Cell {
            layout,
            workers,
            documents,
            per_series: if layout == "ticks" { 1 } else { per_series },
            trial_rate,
        };
        shapes.into_iter().zip(rates).map(cell)
    })
}

impl Cell {
    fn is_columns(self) -> bool {
        self.layout == "ticks"
    }

    pub(crate) fn samples_per_document(self) -> u32 {
        if self.is_columns() { GROUP } else { 1 }
    }

    /// Series per request.
    pub(crate) fn series(self) -> u32 {
        self.documents * self.samples_per_document() / self.per_series
    }

    /// Series of all workers. In the layout `ticks` the workers share one fleet, as whole ticks
    /// are large.
    pub(crate) fn all_series(self) -> u32 {
        if self.is_columns() {
            self.series()
        } else {
            self.series() * self.workers
        }
    }
}

/// A request: some ticks of neighbouring series, and the values, tick after tick.
pub(crate) struct Request {
    pub(crate) first: u32,
    pub(crate) first_tick: u64,
    pub(crate) values: Vec<f64>,
}

/// The requests of all workers.
pub(crate) struct Load {
    pub(crate) cell: Cell,
    pub(crate) workers: Vec<Vec<Request>>,
    /// Ticks of each series.
    pub(crate) ticks: u64,
}

impl Load {
    /// Approximately `documents` documents, or half as many in the layout `ticks`, rounded up so
    /// that all workers write the same number of requests.
    pub(crate) fn new(cell: Cell, documents: u32) -> Self {
        let documents = if cell.is_columns() { documents / 2 } else { documents };
        let rounds = u64::from(documents.div_ceil(cell.documents * cell.workers)).max(1);
        let request = |worker: u64, round: u64| {
            let turn = if cell.is_columns() {
                round * u64::from(cell.workers) + worker
            } else {
                round
            };
            let first = if cell.is_columns() {
                0
            } else {
                worker as u32 * cell.series()
            };
            let first_tick = turn * u64::from(cell.per_series);
            let ticks = first_tick..first_tick + u64::from(cell.per_series);
            let of_tick = |tick| (first..first + cell.series()).map(move |series| value(series, tick));
            Request {
                first,
                first_tick,
                values: ticks.flat_map(of_tick).collect(),
            }
        };
        let workers: Vec<Vec<Request>> = (0..u64::from(cell.workers))
            .map(|worker| (0..rounds).map(|round| request(worker, round)).collect())
            .collect();
        let turns = if cell.is_columns() { u64::from(cell.workers) } else { 1 };
        Self {
            cell,
            workers,
            ticks: rounds * turns * u64::from(cell.per_series),
        }
    }

    pub(crate) fn samples(&self) -> u64 {
        self.ticks * u64::from(self.cell.all_series())
    }

    /// The request as a batch.
    pub(crate) fn fill<'b>(&self, request: &Request, buffer: &'b mut BatchBuf) -> Batch<'b> {
        buffer.clear();
        let ticks = request.values.chunks(self.cell.series() as usize);
        for (tick, values) in (request.first_tick..).zip(ticks) {
            buffer.extend(SeriesId(request.first), Times::One(time(tick)), values);
        }
        buffer.as_batch()
    }

    pub(crate) fn keys(&self) -> Vec<(SeriesId, SeriesKey)> {
        let series = 0..self.cell.all_series();
        series
            .map(|number| (SeriesId(number), SeriesKey::new(format!("host.{number}.value"))))
            .collect()
    }
}

/// The timestamp of a tick, one per second.
pub(crate) fn time(tick: u64) -> Timestamp {
    Timestamp::from_secs(BASE + tick as i64)
}

/// A gauge with two decimals. SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) fn value(series: u32, tick: u64) -> f64 {
    let mut x = ((u64::from(series) << 32) | tick).wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) % 10_000) as f64 / 100.0
}
