//! A recording at its own times: which samples are sent when.
//!
//! The samples of a host at one moment form one operation at that moment; nothing is moved or
//! dropped. A copy is the same recording, shifted in time by an amount drawn from the seed, and
//! wrapped within the window: the length of the recording plus one usual interval. Samples of one
//! series at the same time are all sent, in file order, so the store decides which of them it
//! keeps.

use std::ops::Range;
use std::sync::Arc;

use super::{CellLists, TickSamples};
use crate::schedule::TickTimes;
use crate::series::SeriesId;
use crate::time::SECOND_NS;
use crate::trace::Trace;
use crate::workload::error::WorkloadError;

/// The samples of a recording by host and moment, and by series.
#[derive(Debug)]
pub(super) struct OwnTimes {
    window_ns: u64,
    interval_ns: u64,
    hosts: Vec<Host>,
    /// By position: the moments of its host at which a series has a sample.
    by_series: CellLists<u32>,
    /// By group.
    tick_times: Vec<TickTimes>,
    /// Samples whose series has another sample at the same time.
    doubled: u64,
}

/// The series of one host, which report together.
#[derive(Debug)]
struct Host {
    first: u32,
    times: Arc<[u64]>,
    /// By moment.
    rows: CellLists<SeriesId>,
}

impl OwnTimes {
    /// Lays out the series in `order`; `sizes` are the numbers of series per host.
    pub(super) fn new(
        trace: &Trace,
        order: &[usize],
        sizes: &[u32],
        resolution_ns: u64,
    ) -> Result<Self, WorkloadError> {
        let failure = |what: &str| WorkloadError::Trace { what: what.to_owned() };
        let Some((start, end)) = trace.span() else {
            return Err(failure("the trace holds no sample"));
        };
        let span_ns = end.0.abs_diff(start.0);
        let usual_ns = trace.usual_interval_ns().unwrap_or(SECOND_NS);
        let window_ns = span_ns
            .checked_add(usual_ns)
            .and_then(|window| window.checked_next_multiple_of(resolution_ns))
            .filter(|window| i64::try_from(*window).is_ok())
            .ok_or_else(|| failure("the trace is longer than 292 years"))?;
        let mut own = Self {
            window_ns,
            interval_ns: usual_ns,
            hosts: Vec::with_capacity(sizes.len()),
            by_series: CellLists::new(),
            tick_times: Vec::new(),
            doubled: 0,
        };
        let mut first = 0;
        for &size in sizes {
            let members = &order[first..first + size as usize];
            own.add_host(trace, first as u32, members, start.0);
            first += size as usize;
        }
        let mut times = own.hosts.iter().flat_map(|host| host.times.iter());
        if times.any(|time| !time.is_multiple_of(resolution_ns)) {
            return Err(WorkloadError::Trace {
                what: format!(
                    "the trace has times between those that the store or the wire can tell apart, which are {} s apart; \
                     give grid=DURATION, with a multiple of it, to have them moved",
                    resolution_ns as f64 / SECOND_NS as f64
                ),
            });
        }
        Ok(own)
    }

    fn add_host(&mut self, trace: &Trace, first: u32, members: &[usize], start: i64) {
        let mut samples: Vec<(u64, u32, f64)> = Vec::new();
        for (place, &column) in (first..).zip(members) {
            let column = &trace.columns[column];
            let times = column.times().iter().map(|at| at.0.abs_diff(start));
            samples.extend(times.zip(column.values()).map(|(time, &value)| (time, place, value)));
        }
        // The sort must be stable: samples of one series at the same time keep their file order.
        samples.sort_by_key(|&(time, place, _)| (time, place));
        let mut times = Vec::new();
        let mut rows = CellLists::new();
        let mut by_place: Vec<Vec<(u32, f64)>> = vec![Vec::new(); members.len()];
        for moment in samples.chunk_by(|left, right| left.0 == right.0) {
            let number = times.len() as u32;
            times.push(moment[0].0);
            for &(_, place, value) in moment {
                rows.push(SeriesId(place), value);
                let cells = &mut by_place[(place - first) as usize];
                self.doubled += u64::from(cells.last().is_some_and(|&(last, _)| last == number));
                cells.push((number, value));
            }
            rows.end_list();
        }
        for cells in by_place {
            for (number, value) in cells {
                self.by_series.push(number, value);
            }
            self.by_series.end_list();
        }
        self.hosts.push(Host {
            first,
            times: times.into(),
            rows,
        });
    }

    /// Builds the groups: one per host and copy, starting at the copy's shift.
    pub(super) fn form(&mut self, sizes: &[u32], shifts: &[u64]) {
        let hosts = self.hosts.len();
        let groups = sizes.iter().enumerate().map(|(group, &len)| {
            let host = &self.hosts[group % hosts];
            let samples =
                self.by_series.starts[(host.first + len) as usize] - self.by_series.starts[host.first as usize];
            let shift = shifts[group / hosts];
            TickTimes::new(host.times.clone(), self.window_ns, shift, samples as u64)
        });
        // Every host has a series and every series a sample, so no list is empty or refused.
        self.tick_times = groups.flatten().collect();
    }

    pub(super) fn window_ns(&self) -> u64 {
        self.window_ns
    }

    pub(super) fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    pub(super) fn doubled(&self) -> u64 {
        self.doubled
    }

    pub(super) fn samples(&self) -> u64 {
        self.by_series.len() as u64
    }

    /// The largest number of moments of any host in the window.
    pub(super) fn ticks(&self) -> u64 {
        self.hosts.iter().map(|host| host.times.len() as u64).max().unwrap_or(0)
    }

    pub(super) fn tick_times(&self) -> &[TickTimes] {
        &self.tick_times
    }

    fn copy_of(&self, group: usize) -> u32 {
        (group / self.hosts.len()) as u32
    }

    /// What a range of series of a group sends at a tick; `series` is the number of series per
    /// copy.
    pub(super) fn piece(&self, group: usize, ids: Range<u32>, tick: u64, series: u32) -> TickSamples<'_> {
        let host = &self.hosts[group % self.hosts.len()];
        let offset = self.copy_of(group) * series;
        let range = SeriesId(ids.start - offset)..SeriesId(ids.end - offset);
        let (places, values) = host.rows.part(self.tick_times[group].place(tick), range);
        TickSamples { offset, places, values }
    }

    /// The values of a series (`place` in the recording) at some ticks of its group.
    pub(super) fn samples_of(
        &self,
        group: usize,
        place: u32,
        ticks: Range<u64>,
    ) -> impl Iterator<Item = (u64, f64)> + use<'_> {
        let (rows, values) = self.by_series.list(place as usize);
        let tick_times = &self.tick_times[group];
        let per_window = tick_times.per_window();
        let first = tick_times.place(ticks.start) as u64;
        let start = rows.partition_point(|&row| u64::from(row) < first);
        // The tick at which moment 0 was last; negative if that was before tick 0.
        let zero = i128::from(ticks.start) - i128::from(first);
        let samples = (0..).flat_map(move |pass: i128| {
            let from = if pass == 0 { start } else { 0 };
            let cells = rows[from..].iter().zip(&values[from..]);
            cells.map(move |(&row, &value)| ((zero + pass * i128::from(per_window) + i128::from(row)) as u64, value))
        });
        samples.take_while(move |&(tick, _)| tick < ticks.end)
    }

    /// Whether a time is between the first and the last sample of a series, or less than a usual
    /// interval after the last.
    pub(super) fn lives_at(&self, group: usize, place: u32, offset_ns: u64) -> bool {
        let times = &self.hosts[group % self.hosts.len()].times;
        let (rows, _) = self.by_series.list(place as usize);
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else {
            return false;
        };
        let at = self.tick_times[group].within_window(offset_ns);
        (times[first as usize]..times[last as usize].saturating_add(self.interval_ns)).contains(&at)
    }
}

#[cfg(test)]
mod tests;
