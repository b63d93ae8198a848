//! Shows sides that ran in rounds as text: what makes them unequal first, then the ratios.

use tsb_core::report::{ComparisonEnd, RoundRun, SideComparison, SideRatio};
use tsb_run::compare::is_headline;
use tsb_run::threshold::Figure;
use tsb_run::units::{Unit, exact_duration, nanos, scaled};

use super::lines::{Lines, terminal_width};
use super::thresholds;

/// Column widths of the figure's name and a figure.
const NAME: usize = 24;
const FIGURE: usize = 11;

/// The comparison as text.
pub fn text(comparison: &SideComparison) -> String {
    let mut lines = Lines::new(terminal_width());
    for side in &comparison.sides {
        lines.raw(format!("{}  {}", side.name, side.about));
    }
    lines.sentence(ending(comparison));
    lines.sentence(warm_up(comparison));
    if !comparison.unequal.is_empty() {
        lines.heading(unequal_heading(comparison));
        comparison.unequal.iter().for_each(|sentence| lines.sentence(sentence));
    }
    match comparison.sides.as_slice() {
        [_] => repeated(comparison, &mut lines),
        sides => {
            for a in 0..sides.len() {
                for b in a + 1..sides.len() {
                    pair(comparison, a, b, &mut lines);
                }
            }
        }
    }
    if !comparison.thresholds.is_empty() {
        lines.heading("Thresholds");
        for one in &comparison.thresholds {
            lines.sentence(format!("{}: {}", one.store, thresholds::sentence(&one.threshold)));
        }
    }
    if !comparison.notes.is_empty() {
        lines.heading("Notes");
        comparison.notes.iter().for_each(|note| lines.sentence(note));
    }
    lines.finish()
}

/// The heading above what makes sides unequal.
pub fn unequal_heading(comparison: &SideComparison) -> &'static str {
    if comparison.is_ranked {
        "The sides are not equal (ranked all the same, with --rank-unequal)"
    } else {
        "The sides are not equal, and are not ranked (--rank-unequal ranks them)"
    }
}

/// How many rounds there were, and why no more.
pub fn ending(comparison: &SideComparison) -> String {
    let rounds = comparison.rounds.len();
    let budget = exact_duration(comparison.plan.budget_ns);
    let plural = if rounds == 1 { "round" } else { "rounds" };
    let why = match comparison.ended {
        ComparisonEnd::Clear => "ended early, because the answer is clear".to_owned(),
        ComparisonEnd::Rounds => "all that were asked for".to_owned(),
        ComparisonEnd::Budget => format!("as many as fit into the budget of {budget}"),
        ComparisonEnd::Stopped => "stopped by the user".to_owned(),
        ComparisonEnd::Failed => "ended by a run that could not be made".to_owned(),
        _ => "ended".to_owned(),
    };
    format!("{rounds} {plural} in {}: {why}.", nanos(comparison.took_ns))
}

/// How long runs took to become steady, which the held rate and latencies leave out.
pub fn warm_up(comparison: &SideComparison) -> String {
    let runs: Vec<&RoundRun> = comparison.rounds.iter().flat_map(|round| &round.runs).collect();
    let found: Vec<u64> = runs
        .iter()
        .filter_map(|run| run.warm_up_ns)
        .filter(|ns| *ns > 0)
        .collect();
    let longest = found
        .iter()
        .max()
        .map_or_else(String::new, |ns| format!(" and took at most {}", nanos(*ns)));
    let steady = runs.iter().filter(|run| run.is_steady == Some(true)).count();
    format!(
        "Warm-up: found in {} of {} runs{longest}; the held rate and latencies leave it out; {steady} runs were steady \
         behind it.",
        found.len(),
        runs.len(),
    )
}

/// What a ratio says, as a sentence: `B is 2.10 times A (1.95 to 2.26)`.
pub fn sentence(comparison: &SideComparison, ratio: &SideRatio) -> String {
    let name = |side: usize| comparison.sides.get(side).map_or("?", |side| side.name.as_str());
    let (a, b) = (name(ratio.a_side), name(ratio.b_side));
    let interval = format!("{} to {}", times(ratio.ratio_low), times(ratio.ratio_high));
    let unsure = if ratio.erratic {
        "; its rounds differ by more than noise explains"
    } else {
        ""
    };
    match ratio.outcome.as_str() {
        "lower" | "higher" => format!(
            "{}: {b} is {} times {a} ({interval}){unsure}",
            ratio.metric,
            times(ratio.ratio)
        ),
        "erratic" => format!(
            "{}: erratic, the rounds contradict each other ({interval})",
            ratio.metric
        ),
        _ => format!(
            "{}: no difference was seen; one of {} would have been",
            ratio.metric,
            percent(ratio.detectable)
        ),
    }
}

/// A ratio: of a few rounds that differ by much, the interval may end at any number.
pub fn times(ratio: f64) -> String {
    if ratio < 1_000.0 {
        format!("{ratio:.3}")
    } else {
        scaled(ratio)
    }
}

/// A relative difference in percent.
pub fn percent(share: f64) -> String {
    if share < 10.0 {
        format!("{:.1} %", 100.0 * share)
    } else {
        "over 1000 %".to_owned()
    }
}

/// The unit of a figure.
pub fn unit(metric: &str) -> Unit {
    Figure::named(metric).map_or(Unit::Times, |figure| figure.unit())
}

/// The headline ratios of two sides.
pub fn headline(comparison: &SideComparison, a: usize, b: usize) -> impl Iterator<Item = &SideRatio> {
    let of = move |ratio: &&SideRatio| (ratio.a_side, ratio.b_side) == (a, b) && is_headline(&ratio.metric);
    comparison.comparisons.iter().filter(of)
}

fn pair(comparison: &SideComparison, a: usize, b: usize, lines: &mut Lines) {
    let (first, second) = (&comparison.sides[a].name, &comparison.sides[b].name);
    lines.heading(&format!("{second} against {first}"));
    if headline(comparison, a, b).next().is_none() {
        lines.sentence("No ratio: that takes two complete rounds.");
        return;
    }
    lines.row(format!(
        "  {:NAME$}{first:>FIGURE$}{second:>FIGURE$}{:>9}   95 % interval   detectable  outcome",
        "",
        format!("{second}/{first}")
    ));
    for ratio in headline(comparison, a, b) {
        let unit = unit(&ratio.metric);
        let outcome = match ratio.outcome.as_str() {
            "lower" | "higher" if !comparison.is_ranked => "not ranked",
            "not_seen" => "not seen",
            outcome => outcome,
        };
        lines.row(format!(
            "  {:NAME$}{:>FIGURE$}{:>FIGURE$}{:>9}  {:>6} to {:>6}{:>12}  {outcome}",
            ratio.metric,
            unit.show(ratio.a),
            unit.show(ratio.b),
            times(ratio.ratio),
            times(ratio.ratio_low),
            times(ratio.ratio_high),
            percent(ratio.detectable),
        ));
    }
    lines.sentence(
        "Of twenty figures that do not differ, one falls outside its interval by chance. detectable: the smallest \
         difference that these rounds would have shown in 8 of 10 cases.",
    );
}

fn repeated(comparison: &SideComparison, lines: &mut Lines) {
    let Some(side) = comparison.sides.first() else { return };
    lines.heading("Means over the rounds");
    lines.row(format!("  {:NAME$}{:>FIGURE$}   95 % interval", "", side.name));
    for (name, estimate) in side.figures.iter().filter(|(name, _)| is_headline(name)) {
        let show = |value: f64| unit(name).show(value.max(0.0));
        lines.row(format!(
            "  {name:NAME$}{:>FIGURE$}   {} to {}",
            show(estimate.value),
            show(estimate.low),
            show(estimate.high)
        ));
    }
}
