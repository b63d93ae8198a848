//! The page of a small result.

use tsb_core::report::Written;
use tsb_core::report::experiment::dalmatiner::{DalmatinerPlan, KillRun, SizeRun, TestedTarget};
use tsb_core::report::experiment::{Experiment, ExperimentPlan, Row};

use super::*;

fn details() -> DalmatinerDetails {
    let target = TestedTarget {
        name: "mstore, round 2".to_owned(),
        way: "tcp".to_owned(),
        acknowledged: "volatile".to_owned(),
        exactness: "<exact>".to_owned(),
    };
    DalmatinerDetails {
        summaries: vec![TargetSummary {
            target: target.clone(),
            series: 15_000,
            rounds: 2,
            rounds_valid: 1,
            cpu_seconds_per_million: Figure::of(&[8.0]),
            verified: 44_999,
            sent: 45_000,
            ..TargetSummary::default()
        }],
        queries: vec![QueryRun {
            target: target.clone(),
            query: "q2".to_owned(),
            state: "first".to_owned(),
            mean_ms: 12.5,
            rows: 168,
            times: {
                let mut histogram = tsb_core::latency::Histogram::default();
                histogram.record(12_500_000);
                tsb_core::latency::Quantiles::new(&histogram)
            },
            wrong: vec!["167 rows instead of 168".to_owned()],
            ..QueryRun::default()
        }],
        sizes: vec![SizeRun {
            target: target.clone(),
            samples: 6_048_000,
            nominal_bits: Some(64.0),
            compressed_bits: 11.25,
            ..SizeRun::default()
        }],
        kills: vec![KillRun {
            target,
            taken: 150_000,
            lost: 149_000,
            longest_loss_seconds: 150,
            ..KillRun::default()
        }],
        absent: vec!["KairosDB".to_owned()],
        ..DalmatinerDetails::default()
    }
}

fn result(details: DalmatinerDetails) -> Reproduction {
    Reproduction {
        written: Written::here(),
        plan: ExperimentPlan {
            experiment: "dalmatiner".to_owned(),
            is_quick: true,
            asked: DalmatinerPlan {
                series: vec![15_000],
                seconds: 3,
                rounds: 2,
                killed_series: 1_000,
                killed_seconds: 150,
                ..DalmatinerPlan::default()
            },
        },
        took_seconds: 1.0,
        experiment: Experiment {
            name: "dalmatiner".to_owned(),
            is_quick: true,
            is_debug_build: false,
            rows: vec![Row::new("mstore, round 2: CPU", Figure::of(&[0.12]), "cores", "why").beside(0.48)],
            mistakes: vec!["the headline".to_owned()],
            details,
        },
    }
}

#[test]
fn the_page_tells_what_was_found_and_escapes_text() {
    let page = page(&result(details()));
    for part in [
        "Nobody looked whether what was sent was there",
        "mstore, round 2, killed, lost 149,000 of 150,000 samples.",
        "Some runs or answers were wrong",
        "167 rows instead of 168",
        "Not run: KairosDB.",
        "0.120 cores, volatile",
        "44,999 of 45,000",
        "<td>1 of 2</td>",
        "<td>11.25</td>",
        "12.50 ms",
        "&lt;exact&gt;",
        "<td>0.25</td>",
        "quick version",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<exact>") && !page.contains("NaN"));
    // The published CPU time, and the published time of q2, are one line each.
    assert_eq!(page.matches("class=\"found\"").count(), 2);
    assert!(page.ends_with("</html>\n"));
}

#[test]
fn an_experiment_without_a_measurement_has_a_page() {
    let page = self::page(&result(DalmatinerDetails {
        interrupted: true,
        ..DalmatinerDetails::default()
    }));
    assert!(page.contains("Interrupted") && page.ends_with("</html>\n"), "{page}");
}
