//! Compares two or more runs: first the differences that make them incomparable, as sentences,
//! then ratios.
//!
//! A ratio of two single runs has no confidence interval: how much of it is chance is unknown,
//! and the table says so.

use serde_json::Value;
use tsb_core::report::Run;

use super::figures::{COMPARED, Figure};
use super::names::{letter, path};
use super::times;
use tsb_run::compare::{asked, durability};

/// The differences that a reader must know before comparing figures, workload and durability
/// first. Empty if the runs differ only in the store.
pub fn unequal(runs: &[Run]) -> Vec<String> {
    let mut sentences = Vec::new();
    let all = |what: &dyn Fn(&Run) -> String| {
        let named = runs
            .iter()
            .enumerate()
            .map(|(index, run)| format!("{} {}", letter(index), what(run)));
        named.collect::<Vec<_>>().join(", ")
    };
    let differ = |what: &dyn Fn(&Run) -> String| {
        let mut values = runs.iter().map(what);
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let mut tell = |what: &dyn Fn(&Run) -> String, start: &str, end: &str| {
        if differ(what) {
            sentences.push(format!("{start}: {}. {end}", all(what)));
        }
    };
    tell(
        &|run| run.fingerprint.clone(),
        "They did not do the same work; fingerprints of the samples",
        "Ratios of rate, latency and cost compare the work as much as the store.",
    );
    tell(
        &durability,
        "Their acknowledgements are not worth the same",
        "A lower level is faster because it promises less: do not rank these rates and latencies.",
    );
    tell(
        &|run| if run.rate.closed_loop { "closed" } else { "open" }.to_owned(),
        "One waited for its store and another did not; loops",
        "Response times of a closed loop leave out how long others would have waited.",
    );
    let rates = runs.iter().enumerate();
    let rates = rates.filter_map(|(index, run)| Some((letter(index), run.rate.asked_per_second?)));
    sentences.extend(asked(&rates.collect::<Vec<_>>()));
    let mut tell = |what: &dyn Fn(&Run) -> String, start: &str, end: &str| {
        if differ(what) {
            sentences.push(format!("{start}: {}. {end}", all(what)));
        }
    };
    tell(
        &path,
        "Their samples took different paths",
        "Cost and latency include the path.",
    );
    // Other paths have been told of.
    if !differ(&path) {
        tell(
            &|run| times::service(run).span.to_owned(),
            "Their service times do not hold the same",
            "Compare their response times instead.",
        );
    }
    tell(
        &machine,
        "They ran on different machines or builds",
        "Then every figure in time differs for that reason too.",
    );
    tell(
        &|run| run.target.exactness.clone(),
        "Their stores do not return values equally exactly",
        "A store that keeps less has less to do.",
    );
    sentences
}

fn machine(run: &Run) -> String {
    let machine = &run.machine;
    format!(
        "{} x {}, kernel {}{}",
        machine.cores,
        machine.cpu.as_deref().unwrap_or("unknown"),
        machine.kernel.as_deref().unwrap_or("unknown"),
        if machine.debug_build { ", debug build" } else { "" }
    )
}

/// A figure of every run.
#[derive(Clone, Debug)]
pub struct ComparedFigure {
    /// The figure.
    pub figure: Figure,
    /// Its value in each run.
    pub values: Vec<Option<f64>>,
}

impl ComparedFigure {
    /// The value of a run divided by that of the first.
    pub fn ratio(&self, index: usize) -> Option<f64> {
        let (first, other) = (self.values.first().copied()??, self.values.get(index).copied()??);
        (first > 0.0).then(|| other / first)
    }
}

/// The rows of a comparison, by heading. Figures that no run has are left out.
pub fn rows(runs: &[Value]) -> Vec<(&'static str, Vec<ComparedFigure>)> {
    let group = |&(heading, figures): &(&'static str, &[Figure])| {
        let rows = figures.iter().map(|figure| ComparedFigure {
            figure: *figure,
            values: runs.iter().map(|run| figure.of(run)).collect(),
        });
        let rows: Vec<ComparedFigure> = rows.filter(|row| row.values.iter().any(Option::is_some)).collect();
        (heading, rows)
    };
    COMPARED
        .iter()
        .map(group)
        .filter(|(_, rows)| !rows.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        serde_json::from_str(include_str!("../../fixtures/reports/schema-1-first.json")).unwrap()
    }

    #[test]
    fn equal_runs_have_nothing_to_be_said_first() {
        assert_eq!(unequal(&[run(), run()]), Vec::<String>::new());
    }

    #[test]
    fn other_work_and_other_durability_are_said_first() {
        let mut other = run();
        other.fingerprint = "0123456789abcdef".to_owned();
        other.durability.level = tsb_core::Durability::Synced;
        other.machine.cores += 1;
        other.rate.asked_per_second = Some(1.0);
        let sentences = unequal(&[run(), other]);
        assert!(sentences[0].contains("same work") && sentences[0].contains("B 0123456789abcdef"));
        assert!(
            sentences[1].contains("A volatile on 1 copy, B synced on 1 copy"),
            "{sentences:?}"
        );
        assert!(sentences.iter().any(|sentence| sentence.contains("different machines")));
        assert!(sentences.iter().any(|sentence| sentence.contains("different rates")));
    }
}
