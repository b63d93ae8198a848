//! A part of a fleet: some of its groups, as a layout of their own.
//!
//! The whole is planned first, so that names, phases and generations do not depend on the division.

use super::error::WorkloadError;
use super::layout::{Block, Layout, SeriesGroup};
use super::spec::FleetPart;
use crate::series::SeriesId;

/// Cuts a part out of a whole layout.
///
/// # Errors
/// If the whole does not have these groups.
pub(super) fn cut(whole: Layout, part: FleetPart) -> Result<Layout, WorkloadError> {
    let groups = whole.groups.get(part.range()).filter(|groups| !groups.is_empty());
    let Some((first, groups)) = groups.and_then(|groups| Some((groups.first()?, groups))) else {
        return Err(WorkloadError::invalid(
            "part",
            &format!("the fleet has {} groups", whole.groups.len()),
        ));
    };
    let (first_series, first_block) = (first.first.0, first.blocks.start);
    let end_block = groups.last().map_or(first_block, |group| group.blocks.end);
    let blocks = &whole.blocks[first_block..end_block];
    let end_series = blocks.last().map_or(first_series, |block| block.first + block.len);
    let series = first_series as usize..end_series as usize;
    Ok(Layout {
        first_series,
        catalog: whole.catalog.keys()[series.clone()].iter().cloned().collect(),
        model_of: whole.model_of[series].to_vec(),
        blocks: blocks
            .iter()
            .map(|block| Block {
                first: block.first - first_series,
                ..block.clone()
            })
            .collect(),
        groups: groups
            .iter()
            .map(|group| SeriesGroup {
                first: SeriesId(group.first.0 - first_series),
                blocks: group.blocks.start - first_block..group.blocks.end - first_block,
                ..group.clone()
            })
            .collect(),
        models: whole.models,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::{BASE, generated, replayed};
    use super::super::{
        BatchMode, Churn, ChurnMode, Disorder, FleetSpec, IntervalShare, Jitter, Workload, WorkloadSpec,
    };
    use super::*;
    use crate::time::SECOND_NS;

    /// What a workload sends in its first ticks, by the names of its series.
    fn named(workload: &Workload, ticks: u64) -> BTreeMap<String, Vec<(u64, crate::Timestamp, u64)>> {
        let sent = generated(workload, 2, 0..ticks, 1);
        assert_eq!(sent, replayed(workload, 0..ticks), "rows and columns agree");
        let keys = workload.catalog().keys();
        sent.into_iter()
            .map(|(id, samples)| (keys[id as usize].to_string(), samples))
            .collect()
    }

    fn specs() -> Vec<WorkloadSpec> {
        let plain = WorkloadSpec {
            series: Some(1_620),
            ..WorkloadSpec::new(FleetSpec::Mix, 7)
        };
        let churned = WorkloadSpec {
            churn: Some(Churn {
                mode: ChurnMode::Steady {
                    lifetime_ns: 9 * SECOND_NS,
                },
                horizon_ns: 60 * SECOND_NS,
                unit: 20,
            }),
            ..plain.clone()
        };
        let disordered = WorkloadSpec {
            disorder: Disorder {
                late: 0.05,
                late_ticks: 3,
                missing: 0.05,
                duplicate: 0.05,
                out_of_order: 0.05,
            },
            jitter: Jitter::up_to(SECOND_NS / 2),
            ..churned.clone()
        };
        let ticked = WorkloadSpec {
            batch: BatchMode::Tick,
            tick_parts: 4,
            intervals: [1, 2]
                .map(|seconds| IntervalShare {
                    interval_ns: seconds * SECOND_NS,
                    share: 1.0,
                })
                .to_vec(),
            ..plain.clone()
        };
        vec![plain, churned, disordered, ticked]
    }

    #[test]
    fn the_parts_of_a_fleet_send_what_the_whole_sends() {
        for spec in specs() {
            let whole = Workload::new(&spec).unwrap();
            for weights in [&[1.0, 1.0][..], &[1.0, 5.0, 2.0]] {
                let mut sent = BTreeMap::new();
                let mut rate = 0.0;
                let ranges = whole.split_by(weights);
                assert_eq!(ranges.len(), weights.len());
                for range in ranges {
                    let part = FleetPart {
                        first_group: range.start as u32,
                        groups: range.len() as u32,
                    };
                    let part = Workload::new(&WorkloadSpec {
                        part: Some(part),
                        ..spec.clone()
                    })
                    .unwrap();
                    for group in range.clone() {
                        let (of_part, of_whole) = (
                            part.timestamp(group - range.start, 3, BASE),
                            whole.timestamp(group, 3, BASE),
                        );
                        assert_eq!(of_part, of_whole);
                    }
                    rate += part.samples_per_second();
                    let of_part = named(&part, 20);
                    assert!(!of_part.is_empty());
                    for (name, samples) in of_part {
                        assert!(sent.insert(name, samples).is_none(), "two parts have a series");
                    }
                }
                assert_eq!(sent, named(&whole, 20));
                assert!((rate - whole.samples_per_second()).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_part_that_the_fleet_does_not_have_is_refused() {
        let [spec, ..] = &specs()[..] else { unreachable!() };
        for (first_group, groups) in [(0, 0), (0, 31), (30, 1), (u32::MAX, u32::MAX)] {
            let part = Some(FleetPart { first_group, groups });
            let refused = Workload::new(&WorkloadSpec { part, ..spec.clone() });
            assert!(refused.unwrap_err().to_string().contains("30 groups"), "{first_group}");
        }
    }

    #[test]
    fn weights_divide_the_rate() {
        let whole = Workload::new(&WorkloadSpec {
            series: Some(54 * 100),
            ..WorkloadSpec::new(FleetSpec::Mix, 7)
        })
        .unwrap();
        assert_eq!(whole.split_by(&[1.0, 3.0]), [0..25, 25..100]);
        assert_eq!(whole.split_by(&[1e-9, 1.0, 1e-9]), [0..1, 1..99, 99..100]);
    }
}
