//! What the original got wrong, and the measured figures. No figure was published: its repository has
//! the programs, and a plotter whose axes say what was seen.

use tsb_core::report::experiment::records::{AppCell, RecordCell, RecordsDetails, Spread, TestedStore};
use tsb_core::report::experiment::{Figure, Row};

/// What the original got wrong, or did not measure.
pub const MISTAKES: [&str; 12] = [
    "one batch of 512 records is one burst, often over within milliseconds: before a queue is full, a file grows or \
     anything is compacted (here too, but its duration is printed, and marked where it is below 100 ms)",
    "five samples with a sigma and no interval, taken one after the other: what disturbs the machine for a second is in \
     all five (here every cell has one sample per round, in random order, with 95 % intervals)",
    "cells run in a fixed order, each size after the smaller one in the same program, so that what drifts looks like an \
     effect of size or concurrency",
    "a rate is 512 divided by the mean time, and its sigma that of the time in proportion; the sigma of the MB/s read is \
     computed from the records written (here each sample has its rate, and mean and sigma are of these rates)",
    "what was read is only counted: 512 records of any content pass (here every value is compared)",
    "records are drawn from 26 letters, 4.7 bits per byte: a store that compresses writes 0.59 of the bytes that MB/s \
     counts (here too: the bytes are the original's)",
    "the read is one, of what the same client has just written, so that it comes from memory (here too)",
    "all nodes and the client are on one machine: a node more has less of its cores and disk, and no network between \
     (here too for a loopback address: the table of stores says so)",
    "nothing says whether an acknowledged record was synced, or on how many nodes (here it stands beside each store)",
    "only whole batches are timed: one slow request of 512 cannot be seen (nor here)",
    "old/phdaws is named after AWS and titles its result Local_ETCD, and its last version writes into a Cassandra at \
     127.0.0.1 with consistency ONE: a result does not say which store it is of, or where",
    "no result is in the repository: the program that plots one is, and its axes say what was seen",
];

/// The measured figures of each store: rates at the ends of what was asked, and the times of the most
/// apps.
pub fn rows(details: &RecordsDetails) -> Vec<Row> {
    details
        .stores
        .iter()
        .flat_map(|store| {
            let cells: Vec<&RecordCell> = details.cells.iter().filter(|cell| cell.store == store.store).collect();
            let most_apps = details.app_cells.iter().rfind(|cell| cell.store == store.store);
            let mut rows = rows_of_records(store, &cells);
            rows.extend(most_apps.into_iter().flat_map(|cell| rows_of_apps(store, cell)));
            rows
        })
        .collect()
}

/// The cells of a store, in ascending order of requests in flight and then of size.
fn rows_of_records(store: &TestedStore, cells: &[&RecordCell]) -> Vec<Row> {
    let (Some(first), Some(last)) = (cells.first(), cells.last()) else {
        return Vec::new();
    };
    let busiest = cells.iter().find(|cell| cell.in_flight == last.in_flight);
    let mut shown: Vec<&RecordCell> = vec![first];
    shown.extend(busiest);
    shown.push(last);
    shown.dedup();
    let row = |cell: &RecordCell, (verb, axis): (&str, &str), figure: Option<Figure>| {
        let what = format!(
            "{}, records of {} bytes {verb}, {} in flight",
            store.store, cell.size, cell.in_flight
        );
        let why = format!("{}; the axis of the original's plot goes {axis}", level(store));
        Row::new(what, figure, "records/s", why)
    };
    let written = ("written", "from 10 to 30,000");
    let read = ("read", "from 5,000 to 140,000");
    let rate = |cell: &RecordCell| Some(cell.write?.records_per_second.figure);
    let mut rows: Vec<Row> = shown.iter().map(|cell| row(cell, written, rate(cell))).collect();
    rows.extend(busiest.map(|cell| row(cell, read, cell.read.map(|figures| figures.records_per_second.figure))));
    rows
}

fn rows_of_apps(store: &TestedStore, cell: &AppCell) -> Vec<Row> {
    let times = [
        ("WRITE", cell.write_seconds),
        ("READ", cell.read_seconds),
        ("DELETE", cell.delete_seconds),
    ];
    let row = |(name, spread): (&str, Option<Spread>)| {
        let what = format!("{}, {name} of {} apps", store.store, cell.apps);
        let why = format!("two instances of each app; {}", level(store));
        Row::new(what, spread.map(|spread| spread.figure.scaled(1e3)), "ms", why)
    };
    times.map(row).to_vec()
}

/// What an acknowledgement of the store was worth.
fn level(store: &TestedStore) -> String {
    let copies = match store.copies {
        1 => "on one node".to_owned(),
        copies => format!("on {copies} nodes"),
    };
    format!("{} {copies}", store.durability)
}

#[cfg(test)]
mod tests {
    use tsb_core::report::experiment::records::BatchFigures;

    use super::*;

    #[test]
    fn rows_are_of_the_ends_of_what_was_asked_and_claim_no_published_figure() {
        let cell = |in_flight, size, seconds: f64| RecordCell {
            store: "etcd2:h:1".to_owned(),
            in_flight,
            size,
            write: BatchFigures::of(&[seconds], 512, size),
            read: BatchFigures::of(&[0.064], 512, size),
            samples: 1,
            samples_right: 1,
        };
        let details = RecordsDetails {
            stores: vec![TestedStore {
                store: "etcd2:h:1".to_owned(),
                durability: "synced".to_owned(),
                copies: 2,
                ..TestedStore::default()
            }],
            cells: vec![
                cell(1, 128, 5.12),
                cell(1, 4_096, 6.4),
                cell(30, 128, 0.256),
                cell(30, 4_096, 0.512),
            ],
            app_cells: [30, 100]
                .map(|apps| AppCell {
                    store: "etcd2:h:1".to_owned(),
                    apps,
                    write_seconds: Spread::of(&[0.5]),
                    ..AppCell::default()
                })
                .to_vec(),
            ..RecordsDetails::default()
        };
        let rows = rows(&details);
        let shown: Vec<(&str, Option<f64>)> = rows.iter().map(|row| (row.what.as_str(), row.measured)).collect();
        assert_eq!(
            shown,
            [
                ("etcd2:h:1, records of 128 bytes written, 1 in flight", Some(100.0)),
                ("etcd2:h:1, records of 128 bytes written, 30 in flight", Some(2_000.0)),
                ("etcd2:h:1, records of 4096 bytes written, 30 in flight", Some(1_000.0)),
                ("etcd2:h:1, records of 128 bytes read, 30 in flight", Some(8_000.0)),
                ("etcd2:h:1, WRITE of 100 apps", Some(500.0)),
                ("etcd2:h:1, READ of 100 apps", None),
                ("etcd2:h:1, DELETE of 100 apps", None),
            ]
        );
        assert!(
            rows.iter()
                .all(|row| row.published.is_none() && row.why.contains("synced on 2 nodes"))
        );
        assert!(super::rows(&RecordsDetails::default()).is_empty());
    }
}
