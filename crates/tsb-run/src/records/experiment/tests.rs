//! Small experiments in memory.

use super::*;
use crate::records::APPS_IN_FLIGHT;

fn request<'a>(folder: &'a Path, stores: &[&str]) -> Request<'a> {
    Request {
        plan: RecordsPlan {
            seed: 7,
            stores: stores.iter().map(|store| (*store).to_owned()).collect(),
            in_flight: vec![1, 5],
            sizes: vec![128, 256],
            records: 512,
            apps: vec![30],
            apps_in_flight: APPS_IN_FLIGHT,
            samples: 2,
            budget_seconds: None,
        },
        layouts: stores.iter().map(|store| store.parse().unwrap()).collect(),
        folder,
        stop: Arc::default(),
    }
}

#[test]
fn every_cell_has_a_sample_per_round_and_reads_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = Vec::new();
    let details = measure(&request(folder.path(), &["memory:", "series+memory:"]), &mut |line| {
        said.push(line.to_owned());
    });
    assert_eq!(details.failures, Vec::<String>::new());
    assert!(details.is_right() && !details.interrupted);
    assert_eq!(
        said,
        [1, 2].map(|round| format!("round {round} of 2: 10 cells of 2 stores, in random order"))
    );
    // Two stores, four cells, two rounds; and one number of apps.
    assert_eq!((details.samples.len(), details.app_samples.len()), (16, 4));
    assert!(details.samples.iter().all(|sample| sample.read.found == 512));
    let apps = details.app_samples.iter();
    assert!(apps.clone().all(|sample| (sample.read.found, sample.left) == (60, 0)));
    assert_eq!((details.cells.len(), details.app_cells.len()), (8, 2));
    assert!(
        details
            .cells
            .iter()
            .all(|cell| (cell.samples, cell.samples_right) == (2, 2))
    );
    let order: Vec<(&str, usize, usize)> = details.samples[..8]
        .iter()
        .map(|sample| (sample.store.as_str(), sample.in_flight, sample.size))
        .collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_ne!(order, sorted, "cells run in random order");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_store_that_cannot_be_opened_fails_once_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    // Without the feature there is no client, and with it nobody answers.
    let details = measure(&request(folder.path(), &["etcd2:127.0.0.1:1", "memory:"]), &mut |_| {});
    assert_eq!(details.failures.len(), 1, "{:?}", details.failures);
    assert!(
        details.failures[0].starts_with("etcd2:127.0.0.1:1, "),
        "{:?}",
        details.failures
    );
    assert_eq!(details.samples.len(), 8);
    let stores: Vec<&str> = details.stores.iter().map(|store| store.store.as_str()).collect();
    assert_eq!(stores, ["memory:"]);
    assert!(details.absent.iter().any(|absent| absent.starts_with("ZooKeeper")));
}

#[test]
fn what_is_stopped_keeps_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(folder.path(), &["memory:"]);
    let stop = Arc::clone(&request.stop);
    let details = measure(&request, &mut |line| {
        stop.store(line.starts_with("round 2"), Ordering::Relaxed);
    });
    assert!(
        details.interrupted && details.failures.is_empty(),
        "{:?}",
        details.failures
    );
    // The first round; the first sample of the second one was interrupted.
    assert_eq!((details.samples.len(), details.app_samples.len()), (4, 1));
}
