//! Formats how a capacity grows with workers or requests in flight, as text.

use tsb_core::report::capacity::{Scaling, ScalingLaw, ScalingPoint};
use tsb_run::capacity::{counted, why_no_law};
use tsb_run::units;

use super::capacity::load;
use super::lines::Lines;

/// Sentences about the law, or why there is none.
pub(super) fn sentences(scaling: &Scaling, find: &str) -> Vec<String> {
    let Some(law) = &scaling.law else {
        return why_no_law(scaling).into_iter().collect();
    };
    vec![
        parameters(law, find),
        peak(law, &scaling.over),
        prediction(law, &scaling.over, find),
    ]
}

fn parameters(law: &ScalingLaw, find: &str) -> String {
    let parameters = &law.parameters;
    format!(
        "universal scalability law: {} for one, contention {:.2} %, coherency {:.4} %; the capacities are within {:.1} % of \
         it",
        load(parameters.one_per_second, find),
        parameters.contention * 100.0,
        parameters.coherency * 100.0,
        law.largest_deviation * 100.0
    )
}

fn peak(law: &ScalingLaw, over: &str) -> String {
    law.peak_count.map_or_else(
        || "the law grows at every count".to_owned(),
        |peak| format!("the law is highest at {}", counted(peak.round() as u32, over)),
    )
}

fn prediction(law: &ScalingLaw, over: &str, find: &str) -> String {
    let predicted = law.predicted_per_second;
    format!(
        "prediction, not measured: {} at {} (95 % interval {} to {}, if the law holds there)",
        load(predicted.value, find),
        counted(law.predicted_count, over),
        units::count(predicted.low.round() as u64),
        units::count(predicted.high.round() as u64)
    )
}

/// The lines and the table of the text.
pub(super) fn text(lines: &mut Lines, scaling: &Scaling, find: &str) {
    lines.heading(&format!("Capacity by {}", scaling.over));
    for sentence in sentences(scaling, find) {
        lines.sentence(sentence);
    }
    lines.row(format!(
        "  {:>9}  {:>13}  {:>27}  {:>13}  limited by",
        scaling.over, "capacity", "95 % interval", "law"
    ));
    for point in &scaling.points {
        let [count, capacity, interval, law] = cells(point, scaling.law.as_ref());
        lines.row(format!(
            "  {count:>9}  {capacity:>13}  {interval:>27}  {law:>13}  {}",
            point.capacity.limited_by
        ));
    }
}

/// The count, the capacity, its interval and what the law says of a point; a dash where there is
/// none.
pub(super) fn cells(point: &ScalingPoint, law: Option<&ScalingLaw>) -> [String; 4] {
    let whole = |value: f64| units::count(value.round() as u64);
    let dash = || "-".to_owned();
    let capacity = &point.capacity;
    let interval = match (
        capacity.found_per_second,
        capacity.low_per_second,
        capacity.high_per_second,
    ) {
        (Some(_), Some(low), Some(high)) => format!("{} to {}", whole(low), whole(high)),
        _ => dash(),
    };
    [
        units::count(u64::from(point.count)),
        capacity.found_per_second.map_or_else(dash, whole),
        interval,
        law.map_or_else(dash, |law| whole(law.parameters.at(f64::from(point.count)))),
    ]
}

#[cfg(test)]
mod tests {
    use tsb_core::report::capacity::Capacity;
    use tsb_core::stats::{Estimate, Scalability};

    use super::*;

    fn scaling(counts: &[u32]) -> Scaling {
        let mut scaling = Scaling::default();
        "workers".clone_into(&mut scaling.over);
        for &count in counts {
            let mut capacity = Capacity::default();
            let found = 10_000.0 * f64::from(count) / (1.0 + 0.1 * f64::from(count - 1));
            (capacity.found_per_second, capacity.low_per_second) = (Some(found), Some(found * 0.9));
            capacity.high_per_second = Some(found * 1.1);
            "store".clone_into(&mut capacity.limited_by);
            scaling.points.push(ScalingPoint::new(count, capacity));
        }
        let points: Vec<(f64, f64)> = scaling.points.iter().filter_map(ScalingPoint::found).collect();
        let law = Scalability::fit(&points);
        scaling.law = law.map(|law| ScalingLaw::new(law, &points, 80, Estimate::new(law.at(80.0), 80_000.0, 97_000.0)));
        scaling
    }

    #[test]
    fn the_law_its_prediction_and_each_capacity_are_in_the_text() {
        let mut lines = Lines::new(None);
        text(&mut lines, &scaling(&[1, 2, 4, 8]), "rate");
        let text = lines.finish();
        for words in [
            "10,000 samples/s for one, contention 10.00 %, coherency 0.0000 %",
            "within 0.0 % of it",
            "prediction, not measured: 89,888 samples/s at 80 workers (95 % interval 80,000 to 97,000",
            "8         47,059",
        ] {
            assert!(text.contains(words), "{words}:\n{text}");
        }
    }

    #[test]
    fn without_a_law_the_text_says_why() {
        let mut lines = Lines::new(None);
        text(&mut lines, &scaling(&[1, 4]), "series");
        let text = lines.finish();
        assert!(
            text.contains("no law was fitted: a capacity was found at 2 of 2 counts"),
            "{text}"
        );
        assert!(!text.contains("prediction"), "{text}");
    }
}
