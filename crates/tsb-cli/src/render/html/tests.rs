//! Every figure of the page is one of the report.

use std::collections::BTreeMap;

use super::*;
use crate::render::figures::Unit;

const FIRST: &str = include_str!("../../../fixtures/reports/schema-1-first.json");

const CURRENT: &str = include_str!("../../../fixtures/reports/schema-1.json");

fn report(texts: &[&str]) -> Report {
    let mut report = Report::new(texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect());
    report.schema_version = 1;
    "0.1.0".clone_into(&mut report.tsb_version);
    report
}

/// The attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> &'a str {
    let rest = tag.split(&format!("{name}=\"")).nth(1).unwrap();
    rest.split('"').next().unwrap()
}

/// (place, unit, number, text) of every figure on a page.
fn figures(page: &str) -> Vec<(String, String, String, String)> {
    let tags = page.split("<data ").skip(1);
    tags.map(|rest| {
        let (tag, rest) = rest.split_once('>').unwrap();
        let text = rest.split("</data>").next().unwrap().to_owned();
        let part = |name| attribute(tag, name).to_owned();
        (part("data-at"), part("data-unit"), part("value"), text)
    })
    .collect()
}

fn embedded(page: &str) -> Value {
    let text = page
        .split("id=\"data\">")
        .nth(1)
        .unwrap()
        .split("</script>")
        .next()
        .unwrap();
    serde_json::from_str(text).unwrap()
}

const UNITS: [Unit; 10] = [
    Unit::Rate,
    Unit::Nanos,
    Unit::Millis,
    Unit::Bytes,
    Unit::BytesEach,
    Unit::NanosEach,
    Unit::Count,
    Unit::Bits,
    Unit::Share,
    Unit::Times,
];

/// Every figure on the page is the JSON's, and every number that a run is judged by is on
/// the page.
fn check(texts: &[&str]) {
    let page = page(&report(texts)).unwrap();
    let runs: Vec<Value> = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let runs = Value::Array(runs);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (at, unit, number, text) in figures(&page) {
        let expected = runs.pointer(&at).unwrap_or_else(|| panic!("{at} is not in the JSON"));
        assert_eq!(expected.to_string(), number, "{at}");
        let unit = UNITS.into_iter().find(|known| format!("{known:?}") == unit).unwrap();
        assert_eq!(unit.show(expected.as_f64().unwrap()), text, "{at}");
        *seen.entry(at).or_default() += 1;
    }
    for index in 0..texts.len() {
        for group in [
            "rate",
            "ledger",
            "latency/response",
            "latency/service",
            "latency/lag",
            "cost",
            "size",
        ] {
            let values = runs.pointer(&format!("/{index}/{group}")).unwrap().as_object().unwrap();
            for (name, _) in values.iter().filter(|(_, value)| value.is_number()) {
                let at = format!("/{index}/{group}/{name}");
                assert!(seen.contains_key(&at), "{at} is not on the page");
            }
        }
    }
}

#[test]
fn every_figure_of_the_page_is_the_one_in_the_json() {
    check(&[FIRST]);
    check(&[CURRENT]);
    check(&[FIRST, CURRENT]);
}

#[test]
fn the_series_of_the_page_are_those_of_the_json() {
    let page = page(&report(&[FIRST])).unwrap();
    let (drawn, run) = (embedded(&page), serde_json::from_str::<Value>(FIRST).unwrap());
    let slices = run["intervals"].as_array().unwrap();
    for name in [
        "end_ns",
        "sent",
        "accepted",
        "response_p50_ns",
        "response_max_ns",
        "lag_max_ns",
        "staleness_max_ms",
        "cpu_ns",
        "rss_bytes",
    ] {
        let column = drawn["runs"][0][name].as_array().unwrap();
        assert_eq!(column.len(), slices.len(), "{name}");
        for (slice, value) in slices.iter().zip(column) {
            assert_eq!(slice.get(name).unwrap_or(&Value::Null), value, "{name}");
        }
    }
}

#[test]
fn figures_that_one_end_did_not_count_are_not_drawn_as_zero() {
    use tsb_core::ledger::{Counter, Ledger};
    let drawn = |counted: &[Counter]| {
        let mut report = report(&[FIRST]);
        let mut counts = Ledger::new();
        for counter in counted {
            counts.set(*counter, 7);
        }
        report.runs[0].ledger.counts = counts;
        let run = embedded(&page(&report).unwrap())["runs"][0].clone();
        ["sent", "accepted"].map(|name| !run[name][0].is_null())
    };
    assert_eq!(drawn(&[Counter::Sent]), [true, false]);
    assert_eq!(drawn(&[Counter::Sent, Counter::Confirmed]), [true, true]);
    assert_eq!(drawn(&[Counter::Received, Counter::Accepted]), [false, true]);
}

#[test]
fn text_of_a_report_cannot_become_markup() {
    let mut report = report(&[FIRST]);
    let bad = "<script>alert(1)</script><!-- \"'&";
    let run = &mut report.runs[0];
    bad.clone_into(&mut run.target.store);
    run.notes = vec![bad.to_owned()];
    run.verdict.reasons = vec![bad.to_owned()];
    run.ledger.violated = vec![bad.to_owned()];
    run.plan = serde_json::json!({ bad: bad });
    run.resources[0].name = bad.to_owned();
    let page = page(&report).unwrap();
    assert!(!page.contains("<script>alert"), "markup came through");
    assert_eq!(page.matches("<script").count(), 3);
    assert_eq!(embedded(&page)["runs"][0]["plan"][bad], bad);
}

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let page = page(&report(&[FIRST])).unwrap();
    for reference in [
        "src=",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "sendBeacon",
        "<link rel=\"stylesheet\"",
    ] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.find("id=\"verdict\"").unwrap() < page.find("id=\"rate\"").unwrap());
}

#[test]
fn ten_minutes_take_less_than_500_kilobytes() {
    let mut report = report(&[FIRST]);
    let run = &mut report.runs[0];
    let slice = run.intervals[0].clone();
    run.intervals = (1..=600u64)
        .map(|second| {
            let mut slice = slice.clone();
            slice.end_ns = second * 1_000_000_000 + second * 7_919;
            slice.response_cells = Some(tsb_core::latency::Cells {
                first: 100,
                counts: (0..45).map(|cell| second * 31 % (cell * 3 + 7)).collect(),
            });
            slice
        })
        .collect();
    let length = page(&report).unwrap().len();
    assert!(length < 500_000, "{length} bytes");
}
