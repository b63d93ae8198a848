//! Formats the result of `tsb capacity` as text.

use tsb_core::report::capacity::{Capacity, CapacityReport, Hysteresis, ProbeReport};
use tsb_run::units;

use super::lines::Lines;
use super::scaling;

/// The whole text.
pub fn text(report: &CapacityReport, width: Option<usize>) -> String {
    let mut lines = Lines::new(width);
    let capacity = &report.capacity;
    lines.raw(title(report));
    lines.line("capacity", found(report));
    lines.line("limited by", &capacity.why);
    if let Some(hysteresis) = &capacity.hysteresis {
        lines.line("hysteresis", hysteresis_words(hysteresis, &report.find));
    }
    if let Some(level) = report.durability {
        lines.line("durability", level.to_string());
    }
    lines.line("objective", report.slo.join(", "));
    lines.line("probes", probes_words(report));
    for note in &report.notes {
        lines.line("note", note);
    }
    if let Some(scaling) = &report.scaling {
        scaling::text(&mut lines, scaling, &report.find);
    }
    table(&mut lines, capacity);
    lines.finish()
}

/// What was searched.
pub fn title(report: &CapacityReport) -> String {
    let path = report.target.as_ref().map_or(String::new(), |target| {
        let protocol = target
            .protocol
            .as_ref()
            .map_or(String::new(), |protocol| format!(", {protocol}"));
        format!(" of {} over {}{protocol}", target.store, target.transport)
    });
    format!(
        "Capacity{path}: the highest {} at which the objective holds",
        what(&report.find)
    )
}

fn what(find: &str) -> &'static str {
    if find == "series" {
        "number of series, one sample per second each,"
    } else {
        "rate"
    }
}

/// A load with its unit.
pub fn load(value: f64, find: &str) -> String {
    let unit = if find == "series" { "series" } else { "samples/s" };
    format!("{} {unit}", units::count(value.round() as u64))
}

/// The capacity with its interval, or that there is none.
pub fn found(report: &CapacityReport) -> String {
    let Capacity {
        found_per_second,
        low_per_second,
        high_per_second,
        narrow,
        ..
    } = report.capacity;
    match (found_per_second, low_per_second, high_per_second) {
        (Some(found), Some(low), Some(high)) => {
            let wide = if narrow {
                ""
            } else {
                "; the search ended before the interval was as narrow as was asked"
            };
            format!(
                "{} (95 % interval {} to {}{wide})",
                load(found, &report.find),
                units::count(low.round() as u64),
                units::count(high.round() as u64)
            )
        }
        _ => "not found".to_owned(),
    }
}

/// What the two passes saw.
pub fn hysteresis_words(hysteresis: &Hysteresis, find: &str) -> String {
    let Hysteresis {
        upwards_per_second: up,
        downwards_per_second: down,
        resolution,
        seen,
        ..
    } = *hysteresis;
    let seen = if seen {
        "seen: after an overload the store holds less"
    } else {
        "not seen"
    };
    format!(
        "{seen}; {} on the way up, {} on the way down, in steps of {:.1} %",
        load(up, find),
        load(down, find),
        resolution * 100.0
    )
}

/// How many probes had which result, and how long they took.
pub fn probes_words(report: &CapacityReport) -> String {
    let probes = &report.capacity.probes;
    let count = |result: &str| probes.iter().filter(|probe| probe.result == result).count();
    format!(
        "{} in {}: {} held, {} broke, {} say nothing of the store",
        probes.len(),
        units::nanos((report.took_seconds * 1e9) as u64),
        count("held"),
        count("broke"),
        count("void")
    )
}

fn table(lines: &mut Lines, capacity: &Capacity) {
    if capacity.probes.is_empty() {
        return;
    }
    let mut probes: Vec<&ProbeReport> = capacity.probes.iter().collect();
    probes.sort_by_key(|probe| (probe.load_per_second, probe.number));
    lines.heading("Probes by load");
    lines.row(format!(
        "  {:>13}  {:>5}  {:>13}  {:>12}  {:>13}  result",
        "load /s", "probe", "held /s", "response p99", "staleness p99"
    ));
    for probe in probes {
        lines.row(format!(
            "  {:>13}  {:>5}  {:>13}  {:>12}  {:>13}  {}",
            units::count(probe.load_per_second),
            probe.number,
            units::count(probe.held_per_second.round() as u64),
            probe.response_p99_ns.map_or_else(|| "-".to_owned(), units::nanos),
            probe
                .staleness_p99_ms
                .map_or_else(|| "-".to_owned(), |ms| units::nanos((ms * 1e6) as u64)),
            result(probe)
        ));
    }
}

/// The result of a probe, with the conditions that broke.
pub fn result(probe: &ProbeReport) -> String {
    let conditions: Vec<&str> = probe.broke.iter().map(|broken| broken.condition.as_str()).collect();
    match probe.result.as_str() {
        "held" => "held".to_owned(),
        "broke" => format!("broke {}", conditions.join(", ")),
        _ => format!("limited by the {}", probe.limited_by.as_deref().unwrap_or("run")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::report::capacity::BrokenCondition;

    fn report() -> CapacityReport {
        let mut report = CapacityReport::new(serde_json::Value::Null, 1, "rate", vec!["response.p99<50ms".to_owned()]);
        report.capacity.found_per_second = Some(20_010.0);
        report.capacity.low_per_second = Some(19_800.0);
        report.capacity.high_per_second = Some(20_220.0);
        report.capacity.narrow = true;
        report.capacity.why = "the store was the limit".to_owned();
        report.capacity.hysteresis = Some(Hysteresis::new(20_000.0, 20_100.0, 0.02, false));
        for (load, result) in [(21_000, "broke"), (19_000, "held")] {
            let mut probe = ProbeReport::default();
            probe.load_per_second = load;
            probe.result = result.to_owned();
            if result == "broke" {
                probe
                    .broke
                    .push(BrokenCondition::new("response.p99<50ms", "it was 70 ms"));
            }
            report.capacity.probes.push(probe);
        }
        report
    }

    #[test]
    fn the_text_has_the_capacity_with_its_interval_and_the_probes_by_load() {
        let text = text(&report(), None);
        for words in [
            "20,010 samples/s (95 % interval 19,800 to 20,220)",
            "not seen; 20,000 samples/s on the way up",
            "2 in 0 ns: 1 held, 1 broke, 0 say nothing",
            "broke response.p99<50ms",
        ] {
            assert!(text.contains(words), "{words}:\n{text}");
        }
        assert!(text.find("19,000") < text.find("21,000"), "{text}");
    }

    #[test]
    fn without_a_capacity_the_text_says_so() {
        let mut report = report();
        report.capacity.found_per_second = None;
        report.capacity.high_per_second = None;
        report.capacity.why = "the generator cannot offer more".to_owned();
        let text = text(&report, Some(80));
        assert!(
            text.contains("not found") && text.contains("the generator cannot offer more"),
            "{text}"
        );
    }
}
