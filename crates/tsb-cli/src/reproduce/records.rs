//! How fast does a store of keys take records, by nodes, requests in flight and size? Each batch in a
//! fresh place, cells in random order, every value read back.

pub(super) mod text;

use std::ops::RangeInclusive;

use tsb_core::report::Written;
use tsb_core::report::experiment::records::{RecordsDetails, RecordsPlan, Reproduction};
use tsb_core::report::experiment::{Experiment, ExperimentPlan};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::experiment::Folder;
use tsb_run::hm9000::Layout;
use tsb_run::records::{APPS_IN_FLIGHT, MISTAKES, Request, measure, rows};

use super::keyed_layouts::layouts;
use super::say;
use crate::args::RecordsArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outputs;
use crate::{interrupt, render};

/// The experiment's name.
pub(super) const NAME: &str = "records";
/// Stores that need no server, and keep the bytes of a record.
const STORES: [&str; 2] = ["memory:", "sqlite:"];
/// What the original measured, and what a quick run does.
const IN_FLIGHT: [usize; 7] = [1, 5, 10, 15, 20, 25, 30];
const IN_FLIGHT_QUICK: [usize; 3] = [1, 10, 30];
const SIZES: [usize; 6] = [128, 256, 512, 1_024, 2_048, 4_096];
const SIZES_QUICK: [usize; 3] = [128, 1_024, 4_096];
const APPS: [usize; 6] = [30, 100, 300, 1_000, 3_000, 10_000];
const APPS_QUICK: [usize; 3] = [30, 300, 1_000];
/// A batch has at most this number of bytes: it is in memory three times, with the store and the answer.
const BATCH_BYTES_MAX: usize = 256 << 20;
/// A quick run begins nothing that would probably end after this many seconds.
const BUDGET_QUICK: u64 = 110;

/// Runs the experiment.
pub(super) fn command(args: &RecordsArgs) -> Result<Exit, Failure> {
    let common = &args.experiment;
    let layouts = layouts(&args.stores, &STORES, &args.etcd, "--samples")?;
    let plan = plan(args, &layouts)?;
    let outputs = Outputs::of_experiment(common.format, common.out.as_deref(), common.html.as_deref())?;
    let folder = Folder::make(&common.dir, "reproduce")?;
    let clock = MonotonicClock::new();
    let request = Request {
        plan: plan.clone(),
        layouts,
        folder: folder.path(),
        stop: interrupt::flag(),
    };
    let details = measure(&request, &mut |what| say(common, what));
    let exit = exit(&details);
    let result = Reproduction {
        written: Written::here(),
        plan: ExperimentPlan {
            experiment: NAME.to_owned(),
            is_quick: common.quick,
            asked: plan,
        },
        took_seconds: clock.now() as f64 / SECOND_NS as f64,
        experiment: Experiment {
            name: NAME.to_owned(),
            is_quick: common.quick,
            is_debug_build: cfg!(debug_assertions),
            rows: rows(&details),
            mistakes: MISTAKES.map(str::to_owned).to_vec(),
            details,
        },
    };
    outputs.write_with_page(&result, || text::page(&result), || render::html::records_page(&result))?;
    Ok(exit)
}

fn exit(details: &RecordsDetails) -> Exit {
    match (details.interrupted, details.is_right(), details.failures.is_empty()) {
        (true, _, _) => Exit::Interrupted,
        (false, false, _) => Exit::Invalid,
        (false, true, false) => Exit::Unreachable,
        (false, true, true) => Exit::Done,
    }
}

fn plan(args: &RecordsArgs, layouts: &[Layout]) -> Result<RecordsPlan, Failure> {
    let is_quick = args.experiment.quick;
    let either = |quick: &[usize], whole: &[usize]| if is_quick { quick.to_vec() } else { whole.to_vec() };
    let sizes = listed("--sizes", &args.sizes, either(&SIZES_QUICK, &SIZES), 1..=65_536)?;
    let records = args.records as usize;
    let largest = sizes.last().copied().unwrap_or_default();
    if records * largest > BATCH_BYTES_MAX {
        return Err(
            Failure::usage(format!("cannot use --records {records} with --sizes {largest}"))
                .because_of("a batch has at most 256 MiB"),
        );
    }
    Ok(RecordsPlan {
        seed: args.seed,
        stores: layouts.iter().map(ToString::to_string).collect(),
        in_flight: listed(
            "--in-flight",
            &args.in_flight,
            either(&IN_FLIGHT_QUICK, &IN_FLIGHT),
            1..=256,
        )?,
        sizes,
        records,
        apps: listed("--apps", &args.apps, either(&APPS_QUICK, &APPS), 1..=100_000)?,
        apps_in_flight: APPS_IN_FLIGHT,
        samples: args.samples,
        budget_seconds: is_quick.then_some(BUDGET_QUICK),
    })
}

/// The numbers that a flag was given, or else the usual ones, in ascending order and each once.
fn listed(flag: &str, given: &[usize], usual: Vec<usize>, range: RangeInclusive<usize>) -> Result<Vec<usize>, Failure> {
    let mut numbers = if given.is_empty() { usual } else { given.to_vec() };
    if let Some(number) = numbers.iter().find(|number| !range.contains(number)) {
        return Err(
            Failure::usage(format!("cannot use {flag} {number}")).because_of(format!(
                "it is from {} to {}",
                range.start(),
                range.end()
            )),
        );
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use tsb_core::report::experiment::records::{CheckedRead, RecordSample};

    use super::*;

    #[test]
    fn a_wrong_value_is_invalid_and_a_store_that_does_not_answer_unreachable() {
        let mut details = RecordsDetails::default();
        assert_eq!(exit(&details), Exit::Done);
        details.failures.push("x".to_owned());
        assert_eq!(exit(&details), Exit::Unreachable);
        details.samples.push(RecordSample {
            read: CheckedRead {
                wrong: 1,
                ..CheckedRead::default()
            },
            ..RecordSample::default()
        });
        assert_eq!(exit(&details), Exit::Invalid);
        details.interrupted = true;
        assert_eq!(exit(&details), Exit::Interrupted);
    }

    #[test]
    fn numbers_are_sorted_and_those_out_of_range_refused() {
        let listed = |given: &[usize]| listed("--sizes", given, vec![128, 256], 1..=4_096);
        assert_eq!(listed(&[]).unwrap(), [128, 256]);
        assert_eq!(listed(&[512, 1, 512]).unwrap(), [1, 512]);
        let error = listed(&[1, 4_097]).unwrap_err().to_string();
        assert!(
            error.contains("--sizes 4097") && error.contains("from 1 to 4096"),
            "{error}"
        );
    }
}
