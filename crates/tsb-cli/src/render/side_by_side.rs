//! Formats the comparison of several runs for a terminal: the runs, their verdicts, what makes
//! them unequal, then every figure next to that of the first run.

use serde_json::Value;
use tsb_core::report::Run;
use tsb_core::verdict::Status;

use super::compare::{ComparedFigure, rows, unequal};
use super::lines::Lines;
use super::names::{letter, names, path};

/// Column widths of the figure's name, a figure, and a ratio, each with the space before it.
const NAME: usize = 22;
const FIGURE: usize = 12;
const RATIO: usize = 9;

/// Writes the comparison; nothing for a single run.
pub fn text(runs: &[Run], lines: &mut Lines) {
    if runs.len() < 2 {
        return;
    }
    lines.heading("Side by side");
    for (index, (run, name)) in runs.iter().zip(names(runs)).enumerate() {
        let store = if run.label.is_some() {
            format!("{} ", run.target.store)
        } else {
            String::new()
        };
        lines.sentence(format!(
            "{}  {name}: {store}{}, {}: {}",
            letter(index),
            path(run),
            run.durability.level,
            run.verdict.status
        ));
        for sentence in caveats(run) {
            lines.below(sentence);
        }
    }
    let unequal = unequal(runs);
    if unequal.is_empty() {
        lines.raw("\n  The same samples, the same path, the same durability.");
    } else {
        lines.heading("Unequal");
        for sentence in unequal {
            lines.sentence(sentence);
        }
    }
    table(runs, lines);
    lines.raw("");
    lines.sentence("Ratios are those of single runs: nothing here says how much of them is chance.");
}

/// The caveats of a run's figures: the reasons of a verdict other than VALID, and an
/// interruption.
pub fn caveats(run: &Run) -> Vec<String> {
    let mut sentences = Vec::new();
    if run.verdict.status != Status::Valid {
        sentences.extend(run.verdict.reasons.iter().cloned());
    }
    if run.interrupted {
        sentences.push("interrupted: its figures are about the part that was done".to_owned());
    }
    sentences
}

/// Number of runs that fit next to the first one; further runs follow in separate tables.
fn beside(runs: usize, width: Option<usize>) -> usize {
    let others = runs - 1;
    let Some(width) = width else { return others };
    (width.saturating_sub(NAME + FIGURE) / (FIGURE + RATIO)).clamp(1, others)
}

fn table(runs: &[Run], lines: &mut Lines) {
    let values: Vec<Value> = runs
        .iter()
        .map(|run| serde_json::to_value(run).unwrap_or_default())
        .collect();
    let groups = rows(&values);
    let others: Vec<usize> = (1..runs.len()).collect();
    for others in others.chunks(beside(runs.len(), lines.width())) {
        lines.row("");
        lines.row(head(others));
        for (heading, rows) in &groups {
            lines.row(format!("  {heading}"));
            for row in rows {
                lines.row(line(row, others));
            }
        }
    }
}

fn head(others: &[usize]) -> String {
    let figures = others.iter().map(|&index| cell(&letter(index), FIGURE));
    let ratios = others.iter().map(|&index| cell(&format!("{}/A", letter(index)), RATIO));
    let cells: String = figures.chain(ratios).collect();
    format!("{:NAME$}{}{cells}", "", cell("A", FIGURE))
}

fn line(row: &ComparedFigure, others: &[usize]) -> String {
    let show = |index: usize| {
        let value = row.values.get(index).copied().flatten();
        cell(
            &value.map_or("-".to_owned(), |value| row.figure.unit.show(value)),
            FIGURE,
        )
    };
    let figures = others.iter().map(|&index| show(index));
    let ratios = others
        .iter()
        .map(|&index| cell(&row.ratio(index).map_or("-".to_owned(), ratio), RATIO));
    let cells: String = figures.chain(ratios).collect();
    format!("    {:<18}{}{cells}", row.figure.name, show(0))
}

/// A right-aligned cell. A text wider than the column shifts the row rather than touch the cell
/// before it.
fn cell(text: &str, width: usize) -> String {
    format!(" {text:>width$}", width = width - 1)
}

/// A ratio in at most eight characters, the width of its column without the space.
fn ratio(ratio: f64) -> String {
    if ratio < 999.999_5 {
        format!("{ratio:.3}")
    } else if ratio < 99_999_999.5 {
        format!("{ratio:.0}")
    } else {
        format!("{ratio:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        serde_json::from_str(include_str!("../../fixtures/reports/schema-1-first.json")).unwrap()
    }

    fn shown(runs: &[Run], width: Option<usize>) -> String {
        let mut lines = Lines::new(width);
        text(runs, &mut lines);
        lines.finish()
    }

    #[test]
    fn ratios_are_to_the_first_run_and_absent_figures_are_dashes() {
        let mut other = run();
        other.rate.held_per_second *= 2.0;
        other.staleness = None;
        let text = shown(&[run(), other], None);
        let line = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
        assert!(line("held").ends_with("2.000"), "{text}");
        let staleness = text.split("Staleness").nth(1).unwrap();
        assert!(staleness.lines().nth(1).unwrap().ends_with('-'), "{text}");
        assert!(text.contains("single runs"), "{text}");
    }

    #[test]
    fn a_large_ratio_does_not_run_into_the_figure_before_it() {
        for (factor, expected) in [(31_614.183, "31614"), (2e9, "2.00e9")] {
            let mut other = run();
            other.rate.held_per_second *= factor;
            let text = shown(&[run(), other], None);
            let held = text.lines().find(|line| line.trim_start().starts_with("held")).unwrap();
            let last = held.rsplit_once(' ').map(|(_, last)| last);
            assert_eq!(last, Some(expected), "{text}");
        }
        for (value, expected) in [
            (0.0, "0.000"),
            (999.999_4, "999.999"),
            (999.999_6, "1000"),
            (99_999_999.4, "99999999"),
            (99_999_999.6, "1.00e8"),
            (f64::MAX, "1.80e308"),
        ] {
            assert_eq!(ratio(value), expected);
            assert!(ratio(value).len() < RATIO, "{value}");
        }
    }

    #[test]
    fn a_verdict_that_is_not_valid_stands_with_its_reason_before_every_ratio() {
        let mut bad = run();
        bad.verdict.status = Status::Invalid;
        bad.verdict.reasons = vec!["12 samples are lost".to_owned()];
        bad.label = Some("after".to_owned());
        let text = shown(&[run(), bad], None);
        let reason = text.find("12 samples are lost").unwrap();
        assert!(reason < text.find("B/A").unwrap(), "{text}");
        assert!(
            text.contains("  B  after: memory over tcp (tsb), volatile: INVALID"),
            "{text}"
        );
    }

    #[test]
    fn more_runs_than_fit_stand_in_tables_of_their_own() {
        let runs: Vec<Run> = (0..5).map(|_| run()).collect();
        let text = shown(&runs, Some(80));
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert_eq!(text.matches("p99  ").count(), 2, "{text}");
        for ratio in ["B/A", "C/A", "D/A", "E/A"] {
            assert_eq!(text.matches(ratio).count(), 1, "{text}");
        }
        assert_eq!(shown(&runs, None).matches("B/A      C/A      D/A      E/A").count(), 1);
    }
}
