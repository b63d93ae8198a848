//! Samples put together: a cell for each store, number of requests in flight and size, and one for
//! each store and number of apps.

use tsb_core::report::experiment::records::{
    AppCell, AppSample, BatchFigures, RecordCell, RecordSample, RecordsDetails, RecordsPlan, Spread,
};

/// Fills in the cells that have a sample, in the order of the plan.
pub(super) fn summarize(details: &mut RecordsDetails, plan: &RecordsPlan) {
    for store in &plan.stores {
        for &in_flight in &plan.in_flight {
            for &size in &plan.sizes {
                let of_cell = |sample: &&RecordSample| {
                    (sample.store.as_str(), sample.in_flight, sample.size) == (store.as_str(), in_flight, size)
                };
                let samples: Vec<&RecordSample> = details.samples.iter().filter(of_cell).collect();
                details.cells.extend(record_cell(&samples, plan.records));
            }
        }
        for &apps in &plan.apps {
            let of_cell = |sample: &&AppSample| sample.store == *store && sample.apps == apps;
            let samples: Vec<&AppSample> = details.app_samples.iter().filter(of_cell).collect();
            details.app_cells.extend(app_cell(&samples));
        }
    }
}

/// `None` without a sample.
fn record_cell(samples: &[&RecordSample], records: usize) -> Option<RecordCell> {
    let first = samples.first()?;
    let figures = |of: fn(&RecordSample) -> f64| {
        let seconds: Vec<f64> = samples.iter().map(|sample| of(sample)).collect();
        BatchFigures::of(&seconds, records, first.size)
    };
    Some(RecordCell {
        store: first.store.clone(),
        in_flight: first.in_flight,
        size: first.size,
        write: figures(|sample| sample.write_seconds),
        read: figures(|sample| sample.read_seconds),
        samples: samples.len(),
        samples_right: samples.iter().filter(|sample| sample.read.is_right()).count(),
    })
}

fn app_cell(samples: &[&AppSample]) -> Option<AppCell> {
    let first = samples.first()?;
    let spread = |of: fn(&AppSample) -> f64| {
        let seconds: Vec<f64> = samples.iter().map(|sample| of(sample)).collect();
        Spread::of(&seconds)
    };
    Some(AppCell {
        store: first.store.clone(),
        apps: first.apps,
        write_seconds: spread(|sample| sample.write_seconds),
        read_seconds: spread(|sample| sample.read_seconds),
        delete_seconds: spread(|sample| sample.delete_seconds),
        samples: samples.len(),
        samples_right: samples.iter().filter(|sample| sample.is_right()).count(),
    })
}

#[cfg(test)]
mod tests {
    use tsb_core::report::experiment::records::CheckedRead;

    use super::*;

    #[test]
    fn samples_of_a_cell_are_put_together_and_wrong_ones_are_counted() {
        let read = |wrong| CheckedRead {
            expected: 512,
            found: 512,
            wrong,
            ..CheckedRead::default()
        };
        let sample = |size, write_seconds, wrong| RecordSample {
            store: "memory:".to_owned(),
            in_flight: 5,
            size,
            write_seconds,
            read_seconds: 0.001,
            read: read(wrong),
            ..RecordSample::default()
        };
        let mut details = RecordsDetails {
            samples: vec![sample(128, 0.256, 0), sample(1_024, 1.0, 0), sample(128, 0.128, 1)],
            app_samples: vec![AppSample {
                store: "memory:".to_owned(),
                apps: 30,
                write_seconds: 2.0,
                ..AppSample::default()
            }],
            ..RecordsDetails::default()
        };
        let plan = RecordsPlan {
            stores: vec!["memory:".to_owned(), "sqlite:".to_owned()],
            in_flight: vec![1, 5],
            sizes: vec![128, 1_024],
            records: 512,
            apps: vec![30, 100],
            ..RecordsPlan::default()
        };
        summarize(&mut details, &plan);
        let cells: Vec<(usize, usize, usize)> = details
            .cells
            .iter()
            .map(|cell| (cell.size, cell.samples, cell.samples_right))
            .collect();
        assert_eq!(cells, [(128, 2, 1), (1_024, 1, 1)]);
        let rate = details.cells[0].write.unwrap().records_per_second;
        assert!(
            (rate.figure.mean - 3_000.0).abs() < 1e-9 && rate.figure.rounds == 2,
            "{rate:?}"
        );
        let [apps] = &details.app_cells[..] else {
            panic!("{:?}", details.app_cells)
        };
        assert_eq!((apps.apps, apps.samples, apps.samples_right), (30, 1, 1));
        assert_eq!(apps.write_seconds.unwrap().figure.mean, 2.0);
    }
}
