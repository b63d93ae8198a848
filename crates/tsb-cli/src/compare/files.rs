//! Compares two reports: what makes them unequal, every figure with its ratio, and thresholds.

use std::path::Path;

use serde_json::Value;
use tsb_core::report::{
    ComparedMetric, ComparedStore, Comparison, ComparisonPlan, Run, StoreThreshold, ThresholdOutcome, ThresholdReport,
};
use tsb_core::stats::Ratio;
use tsb_core::verdict::Status;
use tsb_run::threshold::{Figure, Reading, Threshold};

use super::matched::{Matched, matched};
use crate::args::CompareArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outputs;
use crate::render::compare::unequal;
use crate::render::compared_files;
use crate::render::side_by_side::caveats;
use crate::{reports, thresholds};

/// How many differences of two plans are named.
const NAMED_MAX: usize = 5;

/// Compares the reports in two files, the earlier one first.
pub(super) fn compare(a: &Path, b: &Path, args: &CompareArgs) -> Result<Exit, Failure> {
    let conditions = thresholds::read(&args.fail_if, &args.fail_unless)?;
    let (old, new) = (read(a)?, read(b)?);
    let outputs = Outputs::of_document(args.format, args.out.as_deref())?;
    let plan = ComparisonPlan {
        a: a.display().to_string(),
        b: b.display().to_string(),
    };
    let comparison = comparison(plan, &old, &new, &conditions)?;
    let is_passed = tell(&comparison);
    outputs.write_value(&comparison, || compared_files::text(&comparison))?;
    let is_void = |run: &Run| matches!(run.verdict.status, Status::Invalid | Status::GeneratorLimited);
    Ok(if old.iter().chain(&new).any(is_void) {
        Exit::Invalid
    } else if is_passed {
        Exit::Done
    } else {
        Exit::Crossed
    })
}

fn read(path: &Path) -> Result<Vec<Run>, Failure> {
    reports::read(path).map(|report| report.runs)
}

/// The comparison of two reports' runs.
///
/// # Errors
/// If no store is in both.
fn comparison(plan: ComparisonPlan, old: &[Run], new: &[Run], conditions: &[Threshold]) -> Result<Comparison, Failure> {
    let mut comparison = Comparison::here(plan);
    for one in matched(old, new) {
        let ComparisonPlan { a, b } = &comparison.plan;
        let only = match (one.a.is_empty(), one.b.is_empty()) {
            (true, _) => Some(b.clone()),
            (_, true) => Some(a.clone()),
            _ => None,
        };
        if let Some(file) = only {
            let why = format!("only {file} has a run of {}", one.name);
            let absent = |condition: &Threshold| {
                let (fail, text) = (condition.fail, condition.condition.to_string());
                ThresholdReport::new(fail, text, ThresholdOutcome::Absent, why.clone())
            };
            comparison
                .thresholds
                .extend(of_store(&one, conditions.iter().map(absent)));
            comparison.unmatched.push(why);
            continue;
        }
        comparison.stores.push(store(&one));
        comparison.comparisons.extend(metrics(&one));
        let checked = conditions
            .iter()
            .map(|condition| condition.check_rounds(&one.b, &one.a));
        comparison.thresholds.extend(of_store(&one, checked));
    }
    if comparison.stores.is_empty() {
        let (ComparisonPlan { a, b }, unmatched) = (&comparison.plan, &comparison.unmatched);
        return Err(Failure::usage(format!("cannot compare {a} with {b}"))
            .because_of(unmatched.join("; "))
            .hint("runs are matched by their labels, or by store and transport: give both the same --label"));
    }
    Ok(comparison)
}

fn of_store(
    one: &Matched<'_>,
    thresholds: impl Iterator<Item = ThresholdReport>,
) -> impl Iterator<Item = StoreThreshold> {
    let store = one.name.clone();
    thresholds.map(move |threshold| StoreThreshold {
        store: store.clone(),
        threshold,
    })
}

fn store(one: &Matched<'_>) -> ComparedStore {
    let first = |runs: &[&Run]| runs.first().map(|run| (*run).clone());
    let firsts: Vec<Run> = [first(&one.a), first(&one.b)].into_iter().flatten().collect();
    let mut sentences = unequal(&firsts);
    sentences.extend(plans_differ(&firsts));
    for (letter, runs) in [("A", &one.a), ("B", &one.b)] {
        let other = runs.iter().filter(|run| run.fingerprint != runs[0].fingerprint).count();
        if other > 0 {
            sentences.push(format!(
                "{other} of the {} rounds of {letter} did other work than its first.",
                runs.len()
            ));
        }
    }
    ComparedStore {
        store: one.name.clone(),
        a_rounds: one.a.len(),
        b_rounds: one.b.len(),
        unequal: sentences,
        caveats: [("A", &one.a), ("B", &one.b)]
            .into_iter()
            .flat_map(|(letter, runs)| side_caveats(letter, runs))
            .collect(),
    }
}

/// Why the figures of one side may mean less than they seem to.
fn side_caveats(letter: &str, runs: &[&Run]) -> Vec<String> {
    let several = runs.len() > 1;
    let of_run = |(index, run): (usize, &&Run)| {
        let round = if several {
            format!(", round {}", index + 1)
        } else {
            String::new()
        };
        let verdict = run.verdict.status;
        caveats(run)
            .into_iter()
            .map(move |why| format!("{letter}{round} is {verdict}: {why}"))
    };
    runs.iter().enumerate().flat_map(of_run).collect()
}

/// A sentence that names where two plans differ besides their stores.
fn plans_differ(runs: &[Run]) -> Option<String> {
    let [a, b] = runs else { return None };
    let mut places = Vec::new();
    differences(&a.plan, &b.plan, "", &mut places);
    places.retain(|place| place != "stores" && place != "version");
    if places.is_empty() {
        return None;
    }
    let more = places.len().saturating_sub(NAMED_MAX);
    places.truncate(NAMED_MAX);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    Some(format!("Their plans differ in {}{more}.", places.join(", ")))
}

/// The places in which two JSON values differ; arrays are compared as a whole.
fn differences(a: &Value, b: &Value, place: &str, places: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(ones), Value::Object(others)) => {
            let names = ones
                .keys()
                .chain(others.keys().filter(|name| !ones.contains_key(*name)));
            for name in names {
                let dot = if place.is_empty() { "" } else { "." };
                differences(&a[name], &b[name], &format!("{place}{dot}{name}"), places);
            }
        }
        _ if a != b => places.push(place.to_owned()),
        _ => {}
    }
}

/// Every figure that at least one side has.
fn metrics(one: &Matched<'_>) -> Vec<ComparedMetric> {
    let figures = one.b.first().map_or_else(Figure::all, |run| Figure::all_of(run));
    let metric = |figure: &Figure| {
        let [a, b] = [&one.a, &one.b].map(|runs| figure.of_rounds(runs).ok());
        if a.is_none() && b.is_none() {
            return None;
        }
        let [a_value, b_value] = [a, b].map(|reading| reading.and_then(Reading::value));
        let paired = pairs(figure, one).and_then(|pairs| Ratio::from_pairs(&pairs));
        let single = a_value.zip(b_value).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a);
        Some(ComparedMetric {
            store: one.name.clone(),
            metric: figure.name().to_owned(),
            unit: figure.unit().name().to_owned(),
            a: a_value,
            b: b_value,
            ratio: paired.map(|paired| paired.ratio).or(single),
            ratio_low: paired.map(|paired| paired.ratio_low),
            ratio_high: paired.map(|paired| paired.ratio_high),
            detectable: paired.map(|paired| paired.detectable),
        })
    };
    figures.iter().filter_map(metric).collect()
}

/// The figure in pairs of rounds, in their order, if both sides have the same number.
fn pairs(figure: &Figure, one: &Matched<'_>) -> Option<Vec<(f64, f64)>> {
    let value = |run: &Run| figure.of(run).ok()?.value();
    let rounds = one.a.iter().zip(&one.b);
    let pairs = rounds.map(|(a, b)| Some((value(a)?, value(b)?)));
    (one.a.len() == one.b.len())
        .then(|| pairs.collect::<Option<Vec<_>>>())
        .flatten()
}

/// Writes the thresholds that were not passed to stderr. Returns whether all were passed.
fn tell(comparison: &Comparison) -> bool {
    let mut is_passed = true;
    for one in &comparison.thresholds {
        let of = compared_files::of_store(comparison, one);
        is_passed &= thresholds::tell(&of, std::slice::from_ref(&one.threshold));
    }
    is_passed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        serde_json::from_str(include_str!("../../fixtures/reports/schema-2.json")).unwrap()
    }

    fn compared(old: &[Run], new: &[Run], fail_if: &str) -> Comparison {
        let plan = ComparisonPlan {
            a: "old.json".to_owned(),
            b: "new.json".to_owned(),
        };
        let conditions = thresholds::read(&[fail_if.to_owned()], &[]).unwrap();
        comparison(plan, old, new, &conditions).unwrap()
    }

    #[test]
    fn a_slower_store_crosses_a_change_and_an_equal_one_does_not() {
        let mut slower = run();
        slower.rate.held_per_second *= 0.9;
        let crossed = compared(&[run()], &[slower], "held<-5%");
        assert_eq!(crossed.thresholds[0].threshold.outcome, ThresholdOutcome::Crossed);
        let held = crossed.comparisons.iter().find(|row| row.metric == "held").unwrap();
        assert!((held.ratio.unwrap() - 0.9).abs() < 1e-9 && held.ratio_low.is_none());
        let equal = compared(&[run()], &[run()], "held<-5%");
        assert_eq!(equal.thresholds[0].threshold.outcome, ThresholdOutcome::Passed);
        assert!(equal.stores[0].unequal.is_empty(), "{:?}", equal.stores[0].unequal);
        let text = compared_files::text(&crossed);
        assert!(
            text.contains("threshold crossed: held is") && text.contains("0.900"),
            "{text}"
        );
    }

    #[test]
    fn rounds_give_an_interval_and_what_could_have_been_seen() {
        let round = |factor: f64| {
            let mut run = run();
            run.rate.held_per_second *= factor;
            run
        };
        let old = [round(1.0), round(1.02), round(0.99)];
        let new = [round(0.9), round(0.93), round(0.89)];
        let compared = compared(&old, &new, "held<-5%");
        let held = compared.comparisons.iter().find(|row| row.metric == "held").unwrap();
        assert!(
            held.ratio_low.unwrap() < 0.9 && held.ratio_high.unwrap() < 0.95,
            "{held:?}"
        );
        assert!(held.detectable.unwrap() > 0.0);
        assert_eq!((compared.stores[0].a_rounds, compared.stores[0].b_rounds), (3, 3));
    }

    #[test]
    fn other_plans_other_work_and_other_verdicts_are_said() {
        let mut other = run();
        other.plan["workers"] = Value::from(7);
        other.fingerprint = "0123456789abcdef".to_owned();
        other.verdict.status = Status::Noisy;
        other.verdict.reasons = vec!["the machine was disturbed".to_owned()];
        let compared = compared(&[run()], &[other.clone(), run()], "held<-5%");
        let store = &compared.stores[0];
        for words in ["same work", "plans differ in workers", "1 of the 2 rounds of B"] {
            assert!(
                store.unequal.iter().any(|said| said.contains(words)),
                "{words}: {:?}",
                store.unequal
            );
        }
        let said = "B, round 1 is NOISY: the machine was disturbed";
        assert!(store.caveats.iter().any(|caveat| caveat == said), "{:?}", store.caveats);
    }

    #[test]
    fn a_store_that_one_report_lacks_passes_no_threshold() {
        let mut other = run();
        other.label = Some("other".to_owned());
        let compared = compared(&[run(), other], &[run()], "held<-5%");
        assert_eq!(compared.unmatched.len(), 1);
        let outcomes: Vec<_> = compared.thresholds.iter().map(|one| one.threshold.outcome).collect();
        assert_eq!(outcomes, [ThresholdOutcome::Passed, ThresholdOutcome::Absent]);
        assert!(!tell(&compared));
    }
}
