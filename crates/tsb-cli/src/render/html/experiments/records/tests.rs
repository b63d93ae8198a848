//! The page of a small result.

use tsb_core::report::Written;
use tsb_core::report::experiment::records::{AppCell, CheckedRead, RecordCell, RecordSample, RecordsPlan, TestedStore};
use tsb_core::report::experiment::{Experiment, ExperimentPlan, Figure, Row};

use super::*;

fn details() -> RecordsDetails {
    let read = CheckedRead {
        expected: 512,
        found: 512,
        ..CheckedRead::default()
    };
    let mut cells = Vec::new();
    for (in_flight, seconds) in [(1, 1.024), (10, 0.512), (30, 0.032)] {
        for size in [128, 4_096] {
            cells.push(RecordCell {
                store: "a <store>".to_owned(),
                in_flight,
                size,
                write: BatchFigures::of(&[seconds], 512, size),
                read: BatchFigures::of(&[0.5, 0.25], 512, size),
                samples: 2,
                samples_right: if in_flight == 1 { 1 } else { 2 },
            });
        }
    }
    RecordsDetails {
        stores: vec![TestedStore {
            store: "a <store>".to_owned(),
            nodes: 3,
            durability: "synced".to_owned(),
            copies: 2,
            is_local: true,
            requests: "one request per key".to_owned(),
        }],
        samples: vec![RecordSample {
            store: "a <store>".to_owned(),
            in_flight: 1,
            size: 128,
            read: CheckedRead { wrong: 3, ..read },
            ..RecordSample::default()
        }],
        cells,
        app_samples: Vec::new(),
        app_cells: vec![AppCell {
            store: "a <store>".to_owned(),
            apps: 1_000,
            write_seconds: Spread::of(&[0.5, 0.7]),
            read_seconds: Spread::of(&[0.1]),
            delete_seconds: None,
            samples: 2,
            samples_right: 2,
        }],
        absent: vec!["ZooKeeper".to_owned()],
        failures: Vec::new(),
        interrupted: false,
    }
}

fn result(details: RecordsDetails) -> Reproduction {
    Reproduction {
        written: Written::here(),
        plan: ExperimentPlan {
            experiment: "records".to_owned(),
            is_quick: true,
            asked: RecordsPlan {
                records: 512,
                apps_in_flight: 30,
                samples: 2,
                ..RecordsPlan::default()
            },
        },
        took_seconds: 1.0,
        experiment: Experiment {
            name: "records".to_owned(),
            is_quick: true,
            is_debug_build: false,
            rows: vec![Row::new("rate", Figure::of(&[2_000.0]), "records/s", "why")],
            mistakes: vec!["a burst".to_owned()],
            details,
        },
    }
}

#[test]
fn the_page_tells_what_was_found_and_escapes_text() {
    let page = page(&result(details()));
    for part in [
        "not published: only the program that plots them was",
        "a &lt;store&gt; took 500 records of 128 bytes per second with 1 in flight, and 16,000 with 30.",
        "In 2 of 6 cells of records the write took less than 100 ms",
        "512 keys of 512 returned, 0 missing, 3 with a wrong value",
        "Not run: ZooKeeper.",
        "one request per key",
        // 1,024 and 2,048 records per second.
        "<td>1536 +-6506</td><td>724</td>",
        "~32.0 ms",
        "quick version",
        "<td>2,000</td>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("a <store>") && !page.contains("NaN") && !page.contains("came back, with"));
    // Six charts of records, and two of apps: nothing was deleted.
    assert_eq!(page.matches("<svg").count(), 8);
    // By size: two lines of two sizes, four times. By requests in flight: two lines of three, twice.
    // And two of apps.
    assert_eq!(page.matches("<circle").count(), 4 * 4 + 2 * 6 + 2);
    // Those of one request in flight: two sizes in each of six charts.
    assert_eq!(page.matches("class=\"mark failed\"").count(), 6 * 2);
}

#[test]
fn a_page_of_nothing_has_no_chart() {
    assert!(!page(&result(RecordsDetails::default())).contains("<svg"));
}
