//! Consolidation of a block, whatever part of it is decoded, against its samples one by one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::prelude::*;
use tsb_core::SeriesId;

use super::*;
use crate::store::{Consolidation, Resample};

const CONSOLIDATIONS: [Consolidation; 7] = [
    Consolidation::Min,
    Consolidation::Max,
    Consolidation::Average,
    Consolidation::Sum,
    Consolidation::Count,
    Consolidation::First,
    Consolidation::Last,
];

/// Columns of every kind that the codec knows.
fn values() -> impl Strategy<Value = Vec<f64>> {
    let special = prop::sample::select(vec![f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0]);
    let of = |value: BoxedStrategy<f64>| prop::collection::vec(value, 1..=MAX_ROWS).boxed();
    let decimal = any::<i32>().prop_map(|n| f64::from(n) / 100.0);
    prop_oneof![
        of(any::<f64>().boxed()),
        of(special.clone().boxed()),
        of((-50..50i64).prop_map(|n| n as f64).boxed()),
        of(decimal.clone().boxed()),
        of(prop_oneof![30 => decimal, 1 => special].boxed()),
        of(prop_oneof![40 => Just(7.0), 1 => Just(9.0)].boxed()),
        of(Just(-3.25).boxed()),
        (any::<i32>(), prop::collection::vec(0..999i64, 1..=MAX_ROWS)).prop_map(|(first, steps)| {
            let counted = steps.iter().scan(i64::from(first), |count, step| {
                *count += step;
                Some(*count as f64)
            });
            counted.collect()
        }),
    ]
}

/// The rows that the rule of [`Resample`] demands.
fn naive(samples: &[(i64, f64)], resample: Resample) -> BTreeMap<i64, f64> {
    let mut steps: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for (at, value) in samples {
        let step = at.saturating_sub(at.rem_euclid(resample.step_ns));
        steps.entry(step).or_default().push(*value);
    }
    let row = |values: Vec<f64>| {
        let numbers: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        let sum = numbers.iter().fold(0.0, |sum, number| sum + number);
        match resample.consolidation {
            Consolidation::Min => numbers.into_iter().reduce(f64::min).unwrap_or(f64::NAN),
            Consolidation::Max => numbers.into_iter().reduce(f64::max).unwrap_or(f64::NAN),
            Consolidation::Average => sum / numbers.len() as f64,
            Consolidation::Sum => sum,
            Consolidation::Count => values.len() as f64,
            Consolidation::First => values[0],
            Consolidation::Last => values[values.len() - 1],
        }
    };
    steps.into_iter().map(|(at, values)| (at, row(values))).collect()
}

/// Equal, any NaN being like any other and 0.0 like -0.0: what arithmetic leaves open.
fn same(left: f64, right: f64) -> bool {
    left == right || (left.is_nan() && right.is_nan())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_block_gives_the_rows_of_its_samples(
        values in values(),
        start in prop_oneof![Just(0i64), Just(i64::MIN), -2_000_000_000_000i64..2_000_000_000_000, Just(1_700_000_000_000_000_000)],
        distance in prop::sample::select(vec![1i64, 7, 1_000_000_000, 60_000_000_001]),
        irregular in prop::sample::select(vec![0u64, 0, 0, 3]),
        gaps in prop::sample::select(vec![0u64, 0, 0, 5]),
        step in prop_oneof![Just(1i64), Just(60_000_000_000), Just(3_600_000_000_000), Just(i64::MAX), 1..90_000_000_000i64],
        cut in any::<(prop::sample::Index, prop::sample::Index, bool)>(),
    ) {
        let mut sealer = Box::new(Sealer::default());
        let mut samples = Vec::new();
        let mut at = start;
        for (row, value) in values.iter().enumerate() {
            let is_gap = gaps > 0 && (row as u64 * 7).is_multiple_of(gaps);
            sealer.times[row] = at;
            sealer.columns[0][row] = *value;
            sealer.present[row] = u8::from(!is_gap);
            if !is_gap {
                samples.push((at, *value));
            }
            at += distance + if irregular > 0 { (row as u64 % irregular) as i64 } else { 0 };
        }
        let block = sealer.seal_with_gaps(values.len(), 1).0;
        let times = &sealer.times[..values.len()];
        let (from, to, whole) = cut;
        let range = if whole { (i64::MIN, i64::MAX) } else { (*from.get(times), *to.get(times)) };
        samples.retain(|(at, _)| (range.0..range.1).contains(at));
        for consolidation in CONSOLIDATIONS {
            let resample = Resample { step_ns: step, consolidation };
            let mut rows = Vec::new();
            let mut visit = |_: SeriesId, times: &[tsb_core::Timestamp], values: &[f64]| {
                rows.extend(times.iter().map(|at| at.0).zip(values.iter().copied()));
                ControlFlow::Continue(())
            };
            let parts = [Part::of_block(block.clone(), 0)];
            let mut fold = Fold::new(resample);
            let flow = Answer::default().visit(SeriesId(0), &parts, range, Some(&mut fold), &mut visit);
            prop_assert!(flow.is_continue());
            let expected = naive(&samples, resample);
            prop_assert_eq!(rows.len(), expected.len(), "{:?}", resample);
            for (row, expected) in rows.iter().zip(expected) {
                prop_assert!(row.0 == expected.0 && same(row.1, expected.1), "{row:?}, not {expected:?}, {resample:?}");
            }
        }
    }
}
