//! Which backend of Mohawk is fastest? As it was, with every row looked at; corrected: kept
//! connections, batches, several clients, and requests that are due at absolute times.

pub(super) mod text;

use tsb_core::report::Written;
use tsb_core::report::experiment::mohawk::{MohawkDetails, MohawkPlan, Reproduction};
use tsb_core::report::experiment::{Experiment, ExperimentPlan};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::experiment::Folder;
use tsb_run::mohawk::{MISTAKES, MohawkBackend, Request, measure, rows};

use super::say;
use crate::args::MohawkArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outputs;
use crate::{interrupt, render};

/// The experiment's name.
pub(super) const NAME: &str = "mohawk";
/// Samples of the feed with one per second: ten minutes, or five.
const FEED: u64 = 600;
const FEED_QUICK: u64 = 300;
/// A quick run begins nothing that would probably end after this many seconds.
const BUDGET_QUICK: u64 = 105;

/// Runs the experiment.
pub(super) fn command(args: &MohawkArgs) -> Result<Exit, Failure> {
    let common = &args.experiment;
    let backends = backends(args)?;
    let plan = plan(args, &backends);
    let outputs = Outputs::of_experiment(common.format, common.out.as_deref(), common.html.as_deref())?;
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(Exit::Bug, "cannot find this program, whose ingest is the endpoint").because(&error)
    })?;
    let folder = Folder::make(&common.dir, "reproduce")?;
    let clock = MonotonicClock::new();
    let request = Request {
        plan: plan.clone(),
        backends,
        program: &program,
        folder: folder.path(),
        stop: interrupt::flag(),
    };
    let details = measure(&request, &mut |what| say(common, what));
    let exit = exit(&details);
    let result = Reproduction {
        written: Written::here(),
        took_seconds: clock.now() as f64 / SECOND_NS as f64,
        experiment: Experiment {
            name: NAME.to_owned(),
            is_quick: common.quick,
            is_debug_build: cfg!(debug_assertions),
            rows: rows(&details, plan.count),
            mistakes: MISTAKES.map(str::to_owned).to_vec(),
            details,
        },
        plan: ExperimentPlan {
            experiment: NAME.to_owned(),
            is_quick: common.quick,
            asked: plan,
        },
    };
    outputs.write_with_page(&result, || text::page(&result), || render::html::mohawk_page(&result))?;
    Ok(exit)
}

fn exit(details: &MohawkDetails) -> Exit {
    match (details.interrupted, details.is_right(), details.failures.is_empty()) {
        (true, _, _) => Exit::Interrupted,
        (false, false, _) => Exit::Invalid,
        (false, true, false) => Exit::Unreachable,
        (false, true, true) => Exit::Done,
    }
}

fn backends(args: &MohawkArgs) -> Result<Vec<MohawkBackend>, Failure> {
    let mut backends: Vec<MohawkBackend> = Vec::new();
    for name in &args.backends {
        let found = MohawkBackend::EMBEDDED
            .into_iter()
            .find(|known| known.short_name() == name);
        let found = found.ok_or_else(|| {
            let known = MohawkBackend::EMBEDDED.map(|known| known.short_name());
            Failure::usage(format!("cannot use --backend {name}"))
                .because_of("there is no such backend")
                .hint(format!(
                    "known are {}; --mongo and --mohawk take addresses",
                    known.join(", ")
                ))
        })?;
        if backends.contains(&found) {
            return Err(Failure::usage(format!("cannot use --backend {name} twice"))
                .because_of("each backend takes part once")
                .hint("--rounds N repeats every backend"));
        }
        backends.push(found);
    }
    if backends.is_empty() {
        backends.extend(MohawkBackend::EMBEDDED);
    }
    backends.extend(args.mongo.clone().map(MohawkBackend::Mongo));
    backends.extend(args.mohawk.clone().map(MohawkBackend::Started));
    for backend in &backends {
        backend.check()?;
    }
    Ok(backends)
}

fn plan(args: &MohawkArgs, backends: &[MohawkBackend]) -> MohawkPlan {
    let is_quick = args.experiment.quick;
    MohawkPlan {
        seed: args.seed,
        backends: backends.iter().map(ToString::to_string).collect(),
        rounds: args.rounds.unwrap_or(if is_quick { 2 } else { 5 }),
        count: args.count,
        requests: args.requests.unwrap_or(if is_quick { 150 } else { 1_000 }),
        batch: args.batch.unwrap_or(if is_quick { 50 } else { 100 }),
        connections: args.connections,
        rate: args.rate.unwrap_or(if is_quick { 100 } else { 200 }),
        seconds: args.seconds.unwrap_or(if is_quick { 5 } else { 20 }),
        feed: if is_quick { FEED_QUICK } else { FEED },
        budget_seconds: is_quick.then_some(BUDGET_QUICK),
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::report::experiment::mohawk::ClassicRun;

    use super::*;

    #[test]
    fn a_wrong_row_is_invalid_and_a_backend_that_does_not_answer_unreachable() {
        let mut details = MohawkDetails::default();
        assert_eq!(exit(&details), Exit::Done);
        details.failures.push("x".to_owned());
        assert_eq!(exit(&details), Exit::Unreachable);
        details.as_it_was.push(ClassicRun {
            wrong: vec!["997 rows instead of 998".to_owned()],
            ..ClassicRun::default()
        });
        assert_eq!(exit(&details), Exit::Invalid);
        details.interrupted = true;
        assert_eq!(exit(&details), Exit::Interrupted);
    }
}
