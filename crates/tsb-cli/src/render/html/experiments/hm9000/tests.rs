//! The page of a small result.

use tsb_core::report::Written;
use tsb_core::report::experiment::hm9000::{Break, CorrectedRun, Hm9000Plan, Outage, OutagePlan, OutageRun};
use tsb_core::report::experiment::{Experiment, ExperimentPlan};

use super::*;

#[expect(clippy::too_many_lines, reason = "one document, written out")]
fn result() -> Reproduction {
    let mut as_it_was = Vec::new();
    for (apps, missing_max) in [(1_000, 0), (20_000, 345)] {
        as_it_was.push(AsItWas {
            store: "a <store>".to_owned(),
            is_virtual: false,
            keys_per_second: None,
            apps,
            fresh_at_seconds: Some(30.5),
            polls_fresh: 3,
            polls_checked: 3,
            polls_falsely_fresh: usize::from(missing_max > 0),
            missing_max,
            syncs_failed: 0,
            syncs_slow: 0,
            polls: Vec::new(),
            lines: vec!["~~~~ STORE IS FRESH: 30.5s".to_owned()],
        });
    }
    let curve = [1_000, 20_000].map(|apps| CurvePoint {
        store: "memory:".to_owned(),
        apps,
        document_fresh_at: None,
        fresh_at: Figure::of(&[9.1, 9.2]),
        keys_per_second: Figure::of(&[apps as f64 / 10.0]),
        response_p90_ms: None,
        response_p99_ms: None,
        cpu_seconds_per_million: None,
        rounds_kept: if apps == 1_000 { 2 } else { 1 },
        rounds: 2,
    });
    Reproduction {
        written: Written::here(),
        plan: ExperimentPlan {
            experiment: "hm9000".to_owned(),
            is_quick: true,
            asked: Hm9000Plan {
                seed: 1,
                stores: vec!["memory:".to_owned()],
                apps: vec![1_000, 20_000],
                apps_max: 20_000,
                rounds: 2,
                seconds: 11,
                seconds_as_it_was: 32,
                without: Vec::new(),
                outage: Some(OutagePlan {
                    command: "kill <it>".to_owned(),
                    count: 2,
                }),
            },
        },
        took_seconds: 1.0,
        experiment: Experiment {
            name: "hm9000".to_owned(),
            is_quick: true,
            is_debug_build: false,
            rows: vec![Row::new("rate", Figure::of(&[2.0]), "keys/s", "why").beside(4.0)],
            mistakes: vec!["a timer".to_owned()],
            details: Hm9000Details {
                as_it_was,
                runs: vec![CorrectedRun {
                    store: "memory:".to_owned(),
                    broke: vec!["behind".to_owned()],
                    ..CorrectedRun::default()
                }],
                curve: curve.to_vec(),
                breaks: vec![Break {
                    store: "memory:".to_owned(),
                    kept: Some(1_000),
                    broke: Some(20_000),
                    why: "behind".to_owned(),
                }],
                outage_runs: vec![OutageRun {
                    run: CorrectedRun {
                        store: "memory:".to_owned(),
                        ..CorrectedRun::default()
                    },
                    outages: [Some(2.5), None]
                        .map(|recovered_after_seconds| Outage {
                            recovered_after_seconds,
                            ..Outage::default()
                        })
                        .to_vec(),
                    failure: None,
                }],
                failures: Vec::new(),
                interrupted: false,
            },
        },
    }
}

#[test]
fn the_page_tells_what_was_found_and_escapes_text() {
    let page = page(&result());
    for part in [
        "What their program measured was a timer",
        "fresh while 345 instances were missing",
        "memory: keeps 1,000 apps fresh; it breaks at 20,000 apps: behind.",
        "a &lt;store&gt;",
        "~~~~ STORE IS FRESH: 30.5s",
        "quick version",
        "<td>0.50</td>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("a <store>") && !page.contains("NaN"));
    // Two charts of the timer and two of the curve; the other figures are absent.
    assert_eq!(page.matches("<svg").count(), 4);
    assert_eq!(page.matches("<circle").count(), 8);
    // One size of the timer was falsely fresh, in two charts; one of the curve was not kept.
    assert_eq!(page.matches("class=\"mark failed\"").count(), 4);
}

#[test]
fn a_page_of_nothing_has_no_chart() {
    let mut empty = result();
    empty.experiment.details = Hm9000Details::default();
    assert!(!page(&empty).contains("<svg"));
}
