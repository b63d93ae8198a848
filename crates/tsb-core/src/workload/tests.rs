//! Rows against columns: what the generators send is what the replay says they sent.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

pub(super) const BASE: Timestamp = Timestamp(1_700_000_000 * SECOND_NS as i64);

pub(super) type Series = BTreeMap<u32, Vec<(u64, Timestamp, u64)>>;

/// What the generators of `workers` workers send in `ticks`, by series.
pub(super) fn generated(workload: &Workload, workers: usize, ticks: Range<u64>, step: usize) -> Series {
    let mut sent = Series::new();
    for groups in workload.split(workers) {
        let mut generator = workload.generator(groups.clone(), BASE);
        for tick in ticks.clone().step_by(step) {
            for group in groups.clone() {
                for (id, at, value) in generator.operation(group, tick).iter() {
                    sent.entry(id.0).or_default().push((tick, at, value.to_bits()));
                }
            }
        }
    }
    sent
}

/// What the replay says was sent in `ticks`, by series.
pub(super) fn replayed(workload: &Workload, ticks: Range<u64>) -> Series {
    let mut replay = workload.replay(BASE);
    let mut sent = Series::new();
    for id in 0..workload.catalog().len() as u32 {
        replay.series(SeriesId(id), ticks.clone(), &mut |chunk| {
            let samples = chunk.iter().map(|(tick, at, value, _)| (tick, at, value.to_bits()));
            sent.entry(id).or_default().extend(samples);
        });
    }
    sent
}

fn agree(spec: &WorkloadSpec, ticks: Range<u64>) {
    let workload = Workload::new(spec).unwrap();
    let rows = generated(&workload, 3, ticks.clone(), 1);
    let columns = replayed(&workload, ticks);
    assert_eq!(rows.len(), columns.len(), "series that sent anything");
    for (id, samples) in rows {
        assert_eq!(samples, columns[&id], "series {id} of {}", spec.fleet);
    }
}

fn small(fleet: FleetSpec, series: usize) -> WorkloadSpec {
    WorkloadSpec {
        series: Some(series),
        ..WorkloadSpec::new(fleet, 7)
    }
}

fn fleets() -> Vec<FleetSpec> {
    let named = [
        FleetSpec::Mix,
        FleetSpec::Kstat,
        FleetSpec::Heartbeat,
        FleetSpec::Gauges,
        FleetSpec::Counters,
    ];
    named
        .into_iter()
        .chain(Shape::ALL.map(|(shape, _)| FleetSpec::Shape(shape)))
        .collect()
}

#[test]
fn rows_and_columns_agree_in_every_fleet() {
    for fleet in fleets() {
        agree(&small(fleet, 2300), 0..300);
    }
}
