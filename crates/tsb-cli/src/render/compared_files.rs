//! Shows the comparison of two reports as text: what makes them unequal first, then the figures,
//! then the thresholds.

use tsb_core::report::{ComparedMetric, ComparedStore, Comparison, StoreThreshold};

use super::lines::{Lines, terminal_width};
use super::sides::unit;
use super::thresholds::sentence;

/// Column widths of the figure's name, a figure, and a ratio.
const NAME: usize = 28;
const FIGURE: usize = 12;
const RATIO: usize = 9;

/// The comparison as text.
pub fn text(comparison: &Comparison) -> String {
    let mut lines = Lines::new(terminal_width());
    let plan = &comparison.plan;
    lines.raw(format!("A  {}\nB  {}", plan.a, plan.b));
    for one in &comparison.unmatched {
        lines.raw(format!("Not compared: {one}."));
    }
    for store in &comparison.stores {
        one(store, comparison, &mut lines);
    }
    if !comparison.thresholds.is_empty() {
        lines.heading("Thresholds");
        for threshold in &comparison.thresholds {
            let of = of_store(comparison, threshold);
            lines.sentence(format!("{of}{}", sentence(&threshold.threshold)));
        }
    }
    lines.finish()
}

/// The store of a threshold, as in `memory: `, unless there is only one.
pub fn of_store(comparison: &Comparison, threshold: &StoreThreshold) -> String {
    if comparison.stores.len() + comparison.unmatched.len() == 1 {
        String::new()
    } else {
        format!("{}: ", threshold.store)
    }
}

fn one(store: &ComparedStore, comparison: &Comparison, lines: &mut Lines) {
    lines.heading(&store.store);
    let rows = comparison.comparisons.iter().filter(|row| row.store == store.store);
    for sentence in store.caveats.iter().chain(&store.unequal) {
        lines.sentence(sentence);
    }
    if store.unequal.is_empty() {
        lines.sentence("The same samples, the same path, the same durability.");
    }
    lines.row("");
    let has_interval = store.a_rounds.min(store.b_rounds) > 1;
    let interval = if has_interval {
        "   95 % interval   detectable"
    } else {
        ""
    };
    lines.row(format!(
        "  {:NAME$}{:>FIGURE$}{:>FIGURE$}{:>RATIO$}{interval}",
        "", "A", "B", "B/A"
    ));
    for row in rows.filter(|row| !is_nothing(row)) {
        lines.row(line(row));
    }
    lines.raw("");
    if has_interval {
        lines.sentence(format!(
            "A has {} rounds and B {}: A and B are their medians, and B/A is of rounds in pairs.",
            store.a_rounds, store.b_rounds
        ));
    } else {
        lines.sentence("Ratios are those of single runs: nothing here says how much of them is chance.");
    }
}

/// Whether a figure is 0 on both sides.
fn is_nothing(row: &ComparedMetric) -> bool {
    row.a.unwrap_or(0.0) == 0.0 && row.b.unwrap_or(0.0) == 0.0
}

fn line(row: &ComparedMetric) -> String {
    let unit = unit(&row.metric);
    let show = |value: Option<f64>| value.map_or("-".to_owned(), |value| unit.show(value));
    let ratio = row.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
    let interval = match (row.ratio_low, row.ratio_high, row.detectable) {
        (Some(low), Some(high), Some(detectable)) => {
            format!("  {low:>6.3} to {high:>6.3}{:>10.1} %", detectable * 100.0)
        }
        _ => String::new(),
    };
    format!(
        "  {:NAME$} {:>width$} {:>width$}{ratio:>RATIO$}{interval}",
        row.metric,
        show(row.a),
        show(row.b),
        width = FIGURE - 1,
    )
}
