//! What does a metric cost in DalmatinerDB, Graphite and KairosDB? One stream for every target,
//! with everything read back, at the rate of the tables and at that of the headline.

pub(super) mod text;

use tsb_core::report::Written;
use tsb_core::report::experiment::dalmatiner::{DalmatinerDetails, DalmatinerPlan, Reproduction};
use tsb_core::report::experiment::{Experiment, ExperimentPlan};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::dalmatiner::{DalmatinerTarget, MISTAKES, Request, measure, rows};
use tsb_run::experiment::Folder;

use super::say;
use crate::args::DalmatinerArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outputs;
use crate::{interrupt, render};

/// The experiment's name.
pub(super) const NAME: &str = "dalmatiner";
/// A quick run begins nothing that would probably end after this many seconds.
const BUDGET_QUICK: u64 = 110;
/// Series of the history of a server that is given: two queries of seven.
const HISTORY_SERIES_OF_SERVERS: u64 = 14;
/// Series and seconds of the runs that are killed: a cache of half an hour would hold all of them.
const KILLED_SERIES: u64 = 1_000;
const KILLED_SECONDS: u64 = 600;
const KILLED_SECONDS_QUICK: u64 = 150;

/// Runs the experiment.
pub(super) fn command(args: &DalmatinerArgs) -> Result<Exit, Failure> {
    let common = &args.experiment;
    check_shares(args)?;
    let targets = targets(args)?;
    let plan = plan(args, &targets);
    let outputs = Outputs::of_experiment(common.format, common.out.as_deref(), common.html.as_deref())?;
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(Exit::Bug, "cannot find this program, whose ingest is the endpoint").because(&error)
    })?;
    let folder = Folder::make(&common.dir, "reproduce")?;
    let clock = MonotonicClock::new();
    let request = Request {
        plan: plan.clone(),
        targets,
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
            rows: rows(&details),
            mistakes: MISTAKES.map(str::to_owned).to_vec(),
            details,
        },
        plan: ExperimentPlan {
            experiment: NAME.to_owned(),
            is_quick: common.quick,
            asked: plan,
        },
    };
    outputs.write_with_page(
        &result,
        || text::page(&result),
        || render::html::dalmatiner_page(&result),
    )?;
    Ok(exit)
}

fn exit(details: &DalmatinerDetails) -> Exit {
    match (details.interrupted, details.is_right(), details.failures.is_empty()) {
        (true, _, _) => Exit::Interrupted,
        (false, false, _) => Exit::Invalid,
        (false, true, false) => Exit::Unreachable,
        (false, true, true) => Exit::Done,
    }
}

fn check_shares(args: &DalmatinerArgs) -> Result<(), Failure> {
    let shares = [("--skip", args.skip), ("--repeat", args.repeat), ("--late", args.late)];
    for (flag, share) in shares {
        if !(0.0..=1.0).contains(&share) {
            return Err(Failure::usage(format!("cannot use {flag} {share}")).because_of("a share is from 0 to 1"));
        }
    }
    if shares.iter().map(|(_, share)| share).sum::<f64>() > 1.0 {
        return Err(Failure::usage("cannot use these shares together")
            .because_of("--skip, --repeat and --late add up to more than 1"));
    }
    Ok(())
}

fn targets(args: &DalmatinerArgs) -> Result<Vec<DalmatinerTarget>, Failure> {
    let mut targets = Vec::new();
    for name in &args.targets {
        let found = DalmatinerTarget::named(name).ok_or_else(|| {
            Failure::usage(format!("cannot use --target {name}"))
                .because_of("there is no such target")
                .hint(format!(
                    "known are {}; --store takes the address of a server",
                    DalmatinerTarget::names().join("; ")
                ))
        })?;
        targets.push(found);
    }
    if targets.is_empty() {
        targets = DalmatinerTarget::usual();
    }
    for text in &args.stores {
        let spec = text.parse().map_err(|error| {
            Failure::usage(format!("cannot use --store {}", tsb_run::spec::redact_text(text))).because(&error)
        })?;
        targets.push(DalmatinerTarget::Given(spec));
    }
    let mut names: Vec<String> = targets.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    if names.len() < count {
        return Err(Failure::usage("cannot use a target twice")
            .because_of("each target takes part once")
            .hint("--rounds N repeats every target"));
    }
    Ok(targets)
}

fn plan(args: &DalmatinerArgs, targets: &[DalmatinerTarget]) -> DalmatinerPlan {
    let is_quick = args.experiment.quick;
    let series = match (args.series.is_empty(), is_quick) {
        (false, _) => args.series.clone(),
        (true, true) => vec![15_000],
        (true, false) => vec![15_000, 54_000],
    };
    DalmatinerPlan {
        seed: args.seed,
        targets: targets.iter().map(ToString::to_string).collect(),
        series,
        rounds: args.rounds.unwrap_or(if is_quick { 1 } else { 5 }),
        seconds: args.seconds.unwrap_or(if is_quick { 2 } else { 30 }),
        peak_seconds: args.peak_seconds.unwrap_or(if is_quick { 2 } else { 10 }),
        history_series: args.history_series.unwrap_or(if is_quick { 21 } else { 140 }),
        history_series_of_servers: HISTORY_SERIES_OF_SERVERS,
        repeats: if is_quick { 5 } else { 100 },
        killed_series: KILLED_SERIES,
        killed_seconds: if is_quick { KILLED_SECONDS_QUICK } else { KILLED_SECONDS },
        skipped: args.skip,
        repeated: args.repeat,
        late: args.late,
        as_it_was: args.as_it_was,
        budget_seconds: is_quick.then_some(BUDGET_QUICK),
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::report::experiment::dalmatiner::QueryRun;

    use super::*;

    #[test]
    fn a_wrong_answer_is_invalid_and_a_target_that_does_not_answer_unreachable() {
        let mut details = DalmatinerDetails::default();
        assert_eq!(exit(&details), Exit::Done);
        details.failures.push("x".to_owned());
        assert_eq!(exit(&details), Exit::Unreachable);
        details.queries.push(QueryRun {
            wrong: vec!["59 rows instead of 60".to_owned()],
            ..QueryRun::default()
        });
        assert_eq!(exit(&details), Exit::Invalid);
        details.interrupted = true;
        assert_eq!(exit(&details), Exit::Interrupted);
    }
}
