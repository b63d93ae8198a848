//! The page of `tsb capacity`: what was found, the curves around it, and every probe.
//!
//! The curves are drawn in the markup and need no script.

mod curve;
mod scaling;

use tsb_core::report::capacity::{CapacityReport, ProbeReport};
use tsb_run::units;

use super::markup::Markup;
use super::{PLOT_STYLE, STYLE, begin};
use crate::render::capacity::{found, hysteresis_words, probes_words, result, title};
use crate::render::names::moment;

use curve::Curve;

/// The links to the sections.
const BAR: &str = "<header class=\"bar\"><nav aria-label=\"Sections\"><a href=\"#verdict\">Capacity</a><a href=\"#curve\">Curve</a><a href=\"#probes\">Probes</a><a href=\"#plan\">Plan</a></nav></header>\n";

/// The curves, with the figure of a probe that each shows.
const CURVES: [Curve; 3] = [
    Curve {
        caption: "Response time, p99",
        about: "Due until done, on a log axis. It rises where samples begin to wait for the store.",
        is_log: true,
        of: |probe| probe.response_p99_ns.map(|ns| ns as f64),
        show: |ns| units::nanos(ns as u64),
    },
    Curve {
        caption: "Staleness, p99",
        about: "The age of the newest visible sample, over all series and moments, on a log axis.",
        is_log: true,
        of: |probe| probe.staleness_p99_ms.map(|ms| ms * 1e6),
        show: |ns| units::nanos(ns as u64),
    },
    Curve {
        caption: "Held, of what was asked",
        about: "Accepted samples over asked samples. Where it is below 1, the store takes less than it is sent.",
        is_log: false,
        of: |probe| Some(probe.held_per_second / probe.load_per_second.max(1) as f64),
        show: |share| format!("{share:.2}"),
    },
];

/// The whole page.
pub fn capacity_page(report: &CapacityReport) -> String {
    let mut page = Markup::new();
    begin(&title(report), &[PLOT_STYLE, "\n", STYLE], "report", &mut page);
    page.raw(BAR);
    page.element("<main id=\"main\">\n<h1>", &title(report), "</h1>\n");
    let begun = format!(
        "Probes: {}; begun {}.",
        probes_words(report),
        moment(report.started_at_ns)
    );
    page.element("<p class=\"about\">", &begun, "</p>\n");
    verdict(report, &mut page);
    curves(report, &mut page);
    scaling::draw(report, &mut page);
    table(report, &mut page);
    plan(report, &mut page);
    let written = &report.written;
    let foot = format!(
        "Written by tsb {}, report schema {}.",
        written.tsb_version, written.schema_version
    );
    page.element("</main>\n<footer><p>", &foot, "</p></footer>\n</body>\n</html>\n");
    page.finish()
}

fn verdict(report: &CapacityReport, page: &mut Markup) {
    let capacity = &report.capacity;
    let class = if capacity.found_per_second.is_some() {
        "is-limit"
    } else {
        "is-doubtful"
    };
    page.raw("<section id=\"verdict\" aria-label=\"Capacity\">\n");
    page.raw(&format!("<div class=\"verdict {class}\">\n"));
    page.element("<p class=\"word\">", &found(report), "</p>\n<ul>\n");
    let mut reasons = vec![capacity.why.clone()];
    reasons.push(format!("Objective: {}.", report.slo.join(", ")));
    reasons.extend(report.durability.map(|level| format!("Durability: {level}.")));
    let words = |hysteresis| format!("Hysteresis {}.", hysteresis_words(hysteresis, &report.find));
    reasons.extend(capacity.hysteresis.as_ref().map(words));
    if !capacity.method.is_empty() {
        reasons.push(format!("Capacity and interval: {}.", capacity.method));
    }
    if report.interrupted {
        reasons.push("Interrupted: the search did not end by itself.".to_owned());
    }
    reasons.extend(report.notes.iter().cloned());
    for reason in reasons {
        page.element("<li>", &reason, "</li>\n");
    }
    page.raw("</ul>\n</div>\n");
    page.end_section();
}

fn curves(report: &CapacityReport, page: &mut Markup) {
    page.section(
        "curve",
        "Figures around the capacity",
        "Each mark is a probe: a circle held, a cross broke a condition, a triangle says nothing of the store. The line is the capacity, the band its 95 % interval. Point at a mark for its figures.",
    );
    for curve in CURVES {
        curve.draw(report, page);
    }
    page.end_section();
}

fn table(report: &CapacityReport, page: &mut Markup) {
    page.section(
        "probes",
        "Probes",
        "One run each, in a fresh place, in ascending order of the load.",
    );
    let head = [
        "load",
        "number",
        "for",
        "held",
        "response p99",
        "staleness p99",
        "result",
    ];
    let mut probes: Vec<&ProbeReport> = report.capacity.probes.iter().collect();
    probes.sort_by_key(|probe| (probe.load_per_second, probe.number));
    let absent = || "-".to_owned();
    let row = |probe: &ProbeReport| {
        vec![
            units::count(probe.load_per_second),
            probe.number.to_string(),
            probe.purpose.clone(),
            units::count(probe.held_per_second.round() as u64),
            probe.response_p99_ns.map_or_else(absent, units::nanos),
            probe
                .staleness_p99_ms
                .map_or_else(absent, |ms| units::nanos((ms * 1e6) as u64)),
            result(probe),
        ]
    };
    page.table("probes", &head, probes.into_iter().map(row));
    page.end_section();
}

fn plan(report: &CapacityReport, page: &mut Markup) {
    page.section("plan", "Plan", "What every probe sent, except its load.");
    page.raw("<details class=\"plan\"><summary>The plan as JSON</summary>\n<pre tabindex=\"0\">");
    page.text(&serde_json::to_string_pretty(&report.plan).unwrap_or_default());
    page.raw("</pre>\n</details>\n");
    page.end_section();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> CapacityReport {
        let mut report = CapacityReport::new(serde_json::Value::Null, 1, "rate", vec!["response.p99<50ms".to_owned()]);
        report.capacity.why = "<script>".to_owned();
        for (number, load) in [10_000, 20_000, 40_000].into_iter().enumerate() {
            let mut probe = ProbeReport::default();
            probe.number = number as u32 + 1;
            probe.load_per_second = load;
            probe.held_per_second = 20_000.0_f64.min(load as f64);
            probe.response_p99_ns = Some(load * load / 1_000);
            probe.result = ["held", "void", "broke"][number].to_owned();
            report.capacity.probes.push(probe);
        }
        report
    }

    #[test]
    fn the_page_has_a_mark_for_each_probe_and_escapes_text() {
        let mut report = report();
        for found in [None, Some(20_000.0)] {
            report.capacity.found_per_second = found;
            report.capacity.low_per_second = found;
            report.capacity.high_per_second = found;
            let page = capacity_page(&report);
            assert!(page.ends_with("</html>\n") && !page.contains("<script>"), "{page}");
            // The response time and the held share; no probe has a staleness.
            for (mark, count) in [("<circle", 2), ("class=\"broke\"", 2), ("class=\"void\"", 2)] {
                assert_eq!(page.matches(mark).count(), count, "{mark}");
            }
            assert_eq!(
                page.matches("class=\"found\"").count(),
                if found.is_some() { 2 } else { 0 }
            );
            assert!(!page.contains("NaN") && !page.contains("inf\""), "{page}");
        }
    }

    #[test]
    fn a_page_of_several_counts_has_the_law_and_marks_what_is_predicted() {
        use tsb_core::report::capacity::{Capacity, Scaling, ScalingLaw, ScalingPoint};
        use tsb_core::stats::{Estimate, Scalability};

        let mut report = report();
        let mut scaling = Scaling::default();
        scaling.over = "workers".to_owned();
        for count in [1, 2, 4, 8] {
            let mut capacity = Capacity::default();
            capacity.found_per_second = Some(9_000.0 * f64::from(count));
            scaling.points.push(ScalingPoint::new(count, capacity));
        }
        report.scaling = Some(scaling.clone());
        assert!(!capacity_page(&report).contains("predicted, not measured"));
        let found: Vec<(f64, f64)> = scaling.points.iter().filter_map(ScalingPoint::found).collect();
        let law = Scalability::fit(&found).unwrap();
        let predicted = Estimate::new(law.at(80.0), 700_000.0, 740_000.0);
        scaling.law = Some(ScalingLaw::new(law, &found, 80, predicted));
        report.scaling = Some(scaling);
        let page = capacity_page(&report);
        for words in [
            "Capacity by workers",
            "predicted, not measured, at 80 workers: 720,000 samples/s",
            "<th scope=\"row\">8</th>",
        ] {
            assert!(page.contains(words), "{words}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf\""), "{page}");
    }

    #[test]
    fn a_page_of_no_probe_has_no_curve() {
        let empty = CapacityReport::new(serde_json::Value::Null, 1, "series", Vec::new());
        assert!(!capacity_page(&empty).contains("<svg"));
    }
}
