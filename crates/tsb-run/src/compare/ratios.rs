//! From the runs of complete rounds to figures and ratios.

use std::collections::BTreeMap;

use tsb_core::report::{ComparedSide, RoundReport, Run, SideRatio};
use tsb_core::stats::{Ratio, RatioOutcome, have_answered, mean, rounds_disagree};

use crate::threshold::{Better, Figure};

/// The figures whose ratios decide when rounds have answered, where both sides have them: what the
/// store holds, how late, and at what cost.
pub const DECIDING: [&str; 4] = ["held", "response.p99", "staleness.p99", "cost.store"];

/// The figures that a short table shows. A JSON document has all.
pub const HEADLINE: [&str; 14] = [
    "held",
    "response.p50",
    "response.p99",
    "service.p50",
    "service.p99",
    "lag.p99",
    "staleness.p99",
    "cost.store",
    "cost.process",
    "bytes_per_sample",
    "sealed_bytes_per_sample",
    "disk_bytes_per_sample",
    "size.disk",
    "rss",
];

/// Whether a short table shows a figure: those of [`HEADLINE`], and the 0.99 quantile of each stream
/// of queries.
pub fn is_headline(metric: &str) -> bool {
    HEADLINE.contains(&metric)
        || metric
            .strip_prefix("query.")
            .is_some_and(|of| of.rsplit('.').next() == Some("p99"))
}

/// The figures of a run that can be better or worse, by name, where they are known exactly.
pub(super) fn figures(run: &Run) -> BTreeMap<String, f64> {
    let all = Figure::all_of(run).into_iter();
    all.filter(|figure| figure.better() != Better::Neither)
        .filter_map(|figure| Some((figure.name().to_owned(), figure.of(run).ok()?.value()?)))
        .collect()
}

/// The blocks `[a, b, b, a]` of a figure; `None` if a run of a round does not have it.
fn blocks(rounds: &[RoundReport], metric: &str, a: usize, b: usize) -> Option<Vec<[f64; 4]>> {
    let block = |round: &RoundReport| {
        let of = |side: usize| {
            let mut values = round.runs.iter().filter(|run| run.side == side);
            Some([values.next()?, values.next()?].map(|run| run.figures.get(metric).copied()))
        };
        let ([first_a, last_a], [first_b, last_b]) = (of(a)?, of(b)?);
        Some([first_a?, first_b?, last_b?, last_a?])
    };
    rounds.iter().map(block).collect()
}

/// Whether no more rounds are needed, by [`have_answered`], for every two sides and each of
/// [`DECIDING`] that both have. `enough` is the relative difference that has to be detectable. A single
/// side is never clear.
pub(super) fn are_clear(sides: usize, rounds: &[RoundReport], enough: f64) -> bool {
    sides > 1
        && pairs(sides).all(|(a, b)| {
            let known = DECIDING.iter().filter_map(|metric| blocks(rounds, metric, a, b));
            let mut known = known.filter(|blocks| Ratio::from_blocks(blocks).is_some()).peekable();
            known.peek().is_some() && known.all(|blocks| have_answered(&blocks, enough))
        })
}

fn pairs(sides: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..sides).flat_map(move |a| (a + 1..sides).map(move |b| (a, b)))
}

/// The mean of each figure of a side, with its interval. The unit is the round: two runs of one
/// round share what the machine did then.
pub(super) fn summarize(sides: &mut [ComparedSide], rounds: &[RoundReport]) {
    for (index, side) in sides.iter_mut().enumerate() {
        let mut by_name: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for round in rounds {
            let runs: Vec<_> = round.runs.iter().filter(|run| run.side == index).collect();
            for name in runs.first().iter().flat_map(|run| run.figures.keys()) {
                let values: Vec<f64> = runs.iter().filter_map(|run| run.figures.get(name).copied()).collect();
                if values.len() == runs.len() {
                    let value = values.iter().sum::<f64>() / values.len() as f64;
                    by_name.entry(name).or_default().push(value);
                }
            }
        }
        let whole = by_name.into_iter().filter(|(_, values)| values.len() == rounds.len());
        side.figures = whole
            .filter_map(|(name, values)| Some((name.to_owned(), mean(&values)?)))
            .collect();
    }
}

/// The ratios of every two sides, in the order of [`Figure::all_of`] a run.
pub(super) fn ratios(sides: &[ComparedSide], rounds: &[RoundReport], run: &Run) -> Vec<SideRatio> {
    let figures = Figure::all_of(run);
    let one = |figure: &Figure, a: usize, b: usize| {
        let blocks = blocks(rounds, figure.name(), a, b)?;
        let found = Ratio::from_blocks(&blocks)?;
        let disagree = rounds_disagree(&blocks);
        let mut ratio = SideRatio::new(figure.name(), figure.unit().name(), a, b);
        ratio.a = sides.get(a)?.figures.get(figure.name())?.value;
        ratio.b = sides.get(b)?.figures.get(figure.name())?.value;
        ratio.ratio = found.ratio;
        ratio.ratio_low = found.ratio_low;
        ratio.ratio_high = found.ratio_high;
        ratio.detectable = found.detectable;
        RatioOutcome::of(&found, disagree).name().clone_into(&mut ratio.outcome);
        ratio.erratic = disagree == Some(true);
        Some(ratio)
    };
    pairs(sides.len())
        .flat_map(|(a, b)| figures.iter().filter_map(move |figure| one(figure, a, b)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::example_run;
    use tsb_core::report::RoundRun;
    use tsb_core::verdict::Status;

    use super::*;

    /// Rounds in which `response.p99` of the second side is `factor` times that of the first, and
    /// the first has a `lag.p99` that the second lacks.
    fn rounds(count: u32, factor: f64) -> Vec<RoundReport> {
        let run = |side: usize, value: f64| {
            let mut run = RoundRun::new(side, Status::Valid);
            run.figures.insert("response.p99".to_owned(), value);
            if side == 0 {
                run.figures.insert("lag.p99".to_owned(), value);
            }
            run
        };
        let round = |index: u32| {
            let noise = 1.0 + 0.01 * f64::from(index % 3);
            let mut round = RoundReport::default();
            // The order within a round does not matter.
            round.runs = vec![
                run(1, factor * 100.0),
                run(0, 100.0 * noise),
                run(0, 100.0),
                run(1, factor * 100.0),
            ];
            round
        };
        (0..count).map(round).collect()
    }

    fn sides() -> Vec<ComparedSide> {
        vec![ComparedSide::new("A", "memory:"), ComparedSide::new("B", "memory:")]
    }

    #[test]
    fn a_slower_side_has_a_ratio_above_one_and_ends_the_rounds() {
        let rounds = rounds(6, 2.0);
        let mut sides = sides();
        summarize(&mut sides, &rounds);
        let ratios = ratios(&sides, &rounds, &example_run());
        assert_eq!(ratios.len(), 1, "{ratios:?}");
        let ratio = &ratios[0];
        assert_eq!((ratio.metric.as_str(), ratio.unit.as_str()), ("response.p99", "ns"));
        assert!(
            (1.97..2.0).contains(&ratio.ratio) && ratio.outcome == "higher",
            "{ratio:?}"
        );
        assert!(
            (ratio.a - 100.5).abs() < 1e-9 && (ratio.b - 200.0).abs() < 1e-9,
            "{ratio:?}"
        );
        assert!(are_clear(2, &rounds, 0.02));
        assert!(!are_clear(2, &rounds[..4], 0.02) && !are_clear(1, &rounds, 0.02));
    }

    #[test]
    fn rounds_without_a_deciding_figure_are_never_clear() {
        let mut rounds = rounds(6, 2.0);
        for run in rounds.iter_mut().flat_map(|round| &mut round.runs) {
            run.figures.clear();
        }
        assert!(!are_clear(2, &rounds, 0.02));
    }
}
