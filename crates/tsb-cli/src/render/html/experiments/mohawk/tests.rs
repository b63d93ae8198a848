//! The page of a small result.

use tsb_core::report::Written;
use tsb_core::report::experiment::mohawk::{FeedRun, LoadRun, MohawkPlan, ProcessLoad, ProcessMoment, TestedBackend};
use tsb_core::report::experiment::{Experiment, ExperimentPlan};

use super::*;

fn details() -> MohawkDetails {
    let backend = TestedBackend {
        name: "a <ring>".to_owned(),
        status: "Mohawk 0.15.4, Memory".to_owned(),
        durability: "volatile".to_owned(),
    };
    let process = ProcessLoad {
        role: "endpoint".to_owned(),
        moments: vec![ProcessMoment {
            at_seconds: 0.5,
            cpu_percent: 42.0,
            lifetime_percent: Some(7.5),
            rss_bytes: 2_048,
        }],
        ..ProcessLoad::default()
    };
    MohawkDetails {
        as_it_was: vec![ClassicRun {
            backend: backend.clone(),
            processes: vec![process],
            wrong: vec!["997 rows instead of 998".to_owned()],
            ..ClassicRun::default()
        }],
        corrected: vec![LoadRun {
            backend: backend.clone(),
            way: "kept".to_owned(),
            wrong: vec!["3 confirmed samples, read back: not there".to_owned()],
            ..LoadRun::default()
        }],
        feeds: vec![FeedRun {
            backend: backend.clone(),
            confirmed: 600,
            kept: 20,
            ..FeedRun::default()
        }],
        classic: vec![ClassicSummary {
            backend: backend.clone(),
            seconds: Figure::of(&[1.0, 1.2]),
            client_cpu: Figure::of(&[0.25]),
            endpoint_cpu: Figure::of(&[0.25]),
            rows: Some(997),
            rounds: 2,
            ..ClassicSummary::default()
        }],
        ways: vec![LoadSummary {
            backend,
            way: "kept".to_owned(),
            samples_per_second: Figure::of(&[5_000.0]),
            confirmed: 300,
            verified: 297,
            rounds: 1,
            ..LoadSummary::default()
        }],
        absent: vec!["MongoDB: no address".to_owned()],
        failures: Vec::new(),
        interrupted: false,
    }
}

fn result(details: MohawkDetails) -> Reproduction {
    Reproduction {
        written: Written::here(),
        plan: ExperimentPlan {
            experiment: "mohawk".to_owned(),
            is_quick: true,
            asked: MohawkPlan {
                seed: 1,
                backends: vec!["a <ring>".to_owned()],
                rounds: 2,
                count: 999,
                requests: 300,
                batch: 50,
                connections: 8,
                rate: 100,
                seconds: 5,
                feed: 600,
                budget_seconds: Some(105),
            },
        },
        took_seconds: 1.0,
        experiment: Experiment {
            name: "mohawk".to_owned(),
            is_quick: true,
            is_debug_build: false,
            rows: vec![Row::new("a <ring>, 999 writes and 999 reads", Figure::of(&[1.1]), "s", "why").beside(2.2)],
            mistakes: vec!["a script".to_owned()],
            details,
        },
    }
}

#[test]
fn the_page_tells_what_was_found_and_escapes_text() {
    let page = page(&result(details()));
    for part in [
        "What was measured is mostly the script",
        "a &lt;ring&gt; as it was took 1.10 s and returned 997 rows; a confirmed write is volatile.",
        "Some answers were wrong",
        "997 rows instead of 998",
        "3 confirmed samples, read back: not there",
        "Not run: MongoDB: no address.",
        "1.10 s, published 2.20",
        "20 of 600",
        "297 of 300",
        "<td>7.5 %</td>",
        "quick version",
        "<td>0.50</td>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("a <ring>") && !page.contains("NaN"));
    // The times, the rates and the feed; the published time is one line.
    assert_eq!(page.matches("<svg").count(), 3);
    assert_eq!(page.matches("class=\"found\"").count(), 1);
    // Four parts of the time, one of a rate, one of the feed.
    assert_eq!(page.matches("<rect").count(), 6);
}

#[test]
fn a_page_of_nothing_has_no_bar() {
    let page = page(&result(MohawkDetails::default()));
    assert!(!page.contains("<svg") && !page.contains("Some answers were wrong"));
}
