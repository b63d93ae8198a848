//! `tsb capacity`: the highest load at which an objective holds.

use tsb_core::report::Run;
use tsb_core::report::capacity::{BrokenCondition, CapacityReport};
use tsb_run::capacity::{CapacityRequest, Find, SearchOptions, Vary, find_capacity, find_scaling};
use tsb_run::threshold::{Condition, Outcome};
use tsb_run::{Controls, Plan, units};

use crate::args::{CapacityArgs, FindWhat};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::live::Display;
use crate::output::Outputs;
use crate::{hosts, interrupt, plan, render};

/// Runs the command.
pub fn command(args: &CapacityArgs) -> Result<Exit, Failure> {
    let run = plan::with_file(&args.run)?;
    plan::no_effect::check_capacity(&run)?;
    let conditions = conditions(&args.slo)?;
    let scale = args.scale.as_deref().map(scale).transpose()?;
    if let Some((vary, _)) = &scale {
        plan::no_effect::check_scale(&run, *vary)?;
    }
    let find = match args.find {
        FindWhat::Rate => Find::Rate,
        FindWhat::Series => Find::Series,
    };
    let plan = find.prepare(&plan::load(&run)?)?;
    tsb_run::run::check_comparable(&plan)?;
    let request = CapacityRequest {
        search: bounds(args, find, &plan)?,
        plan,
        find,
        slo: conditions.iter().map(ToString::to_string).collect(),
    };
    let store_timeouts = crate::run::store_timeouts(run.store_timeout.as_deref())?;
    let outputs = Outputs::open(&run.output)?;
    let display = Display::lines(&run, &interrupt::signals())?;
    let controls = Controls {
        store_timeouts,
        ..display.controls()
    };
    let maker = hosts::maker(&args.hosts)?;
    let objective = |run: &Run| broken(&conditions, run);
    let report = match &scale {
        None => find_capacity(&request, &objective, &controls, &*maker)?,
        Some((vary, counts)) => find_scaling(&request, *vary, counts, &objective, &controls, &*maker)?,
    };
    drop(maker);
    outputs.write_with_page(
        &report,
        || render::capacity::text(&report, render::lines::terminal_width()),
        || render::html::capacity_page(&report),
    )?;
    Ok(exit_of(&report))
}

/// The conditions of `--slo`.
fn conditions(text: &str) -> Result<Vec<Condition>, Failure> {
    let failure = || Failure::usage(format!("cannot read --slo {text}"));
    let conditions = Condition::list(text).map_err(|error| {
        let failure = failure().because_of(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    if let Some(relative) = conditions.iter().find(|condition| condition.needs_baseline()) {
        return Err(failure()
            .because_of(format!("{relative} compares with another run, and a search has none"))
            .hint("give a limit with its unit, such as response.p99<50ms"));
    }
    if conditions.is_empty() {
        return Err(failure()
            .because_of("it has no condition")
            .hint("give one, such as response.p99<50ms"));
    }
    Ok(conditions)
}

/// What `--scale` varies, and its counts.
fn scale(text: &str) -> Result<(Vary, Vec<u32>), Failure> {
    const COUNTS_MAX: usize = 32;
    let failure = |why: &str| {
        Failure::usage(format!("cannot use --scale {text}"))
            .because_of(why)
            .hint("give --scale workers=1,2,4,8, or --scale in-flight=1,8,64")
    };
    let (of, counts) = text.split_once('=').ok_or_else(|| failure("it has no ="))?;
    let vary = [Vary::Workers, Vary::InFlight]
        .into_iter()
        .find(|vary| vary.name() == of)
        .ok_or_else(|| failure("it is workers or in-flight before the ="))?;
    let counts: Vec<u32> = counts
        .split(',')
        .map(|count| count.parse().ok().filter(|&count| count > 0))
        .collect::<Option<_>>()
        .ok_or_else(|| failure("each count is a whole number above 0"))?;
    if counts.len() > COUNTS_MAX {
        return Err(failure("it has more than 32 counts"));
    }
    if !counts.is_sorted_by(|one, next| one < next) {
        return Err(failure("each count is above the one before"));
    }
    Ok((vary, counts))
}

/// The conditions that do not hold in a run.
fn broken(conditions: &[Condition], run: &Run) -> Vec<BrokenCondition> {
    let broken = conditions.iter().filter_map(|condition| {
        let evaluation = condition.check(run, None);
        match evaluation.outcome {
            Outcome::True => None,
            Outcome::False => Some(BrokenCondition::new(condition.to_string(), evaluation.sentence)),
            Outcome::Absent => Some(BrokenCondition::absent(condition.to_string(), evaluation.sentence)),
        }
    });
    broken.collect()
}

/// The bounds of the search.
fn bounds(args: &CapacityArgs, find: Find, plan: &Plan) -> Result<SearchOptions, Failure> {
    let failure = |flag: &str, text: &str| Failure::usage(format!("cannot use --{flag} {text}"));
    let duration =
        |flag: &str, text: &str| units::parse_duration(text).map_err(|why| failure(flag, text).because_of(why));
    let tolerance = units::parse_probability(&args.tolerance)
        .map_err(|why| failure("tolerance", &args.tolerance).because_of(why))?;
    if tolerance <= 0.0 {
        return Err(failure("tolerance", &args.tolerance)
            .because_of("it is above 0")
            .hint("give --tolerance 5%"));
    }
    let highest = units::parse_count(&args.highest).map_err(|why| failure("highest", &args.highest).because_of(why))?;
    let highest = match find {
        Find::Rate => highest,
        Find::Series => highest.min(plan.max_series),
    };
    let first = find.first(plan)?;
    if highest < first {
        return Err(failure("highest", &args.highest)
            .because_of(format!("the search begins at {}", units::count(first)))
            .hint("give a lower --rate or --series to begin with"));
    }
    if args.max_probes == 0 || args.max_probes > 10_000 {
        return Err(failure("max-probes", &args.max_probes.to_string()).because_of("it is from 1 to 10000"));
    }
    Ok(SearchOptions {
        first,
        lowest: 1,
        highest,
        tolerance,
        probes_max: args.max_probes,
        time_max_ns: duration("max-time", &args.max_time)?,
        settle_ns: duration("rest", &args.rest)?,
        passes: !args.no_passes,
        seed: plan.workload.seed,
    })
}

/// 0 if a capacity was found, 3 if not, 130 if the search was interrupted.
fn exit_of(report: &CapacityReport) -> Exit {
    match (report.interrupted, report.capacity.found_per_second) {
        (true, _) => Exit::Interrupted,
        (false, Some(_)) => Exit::Done,
        (false, None) => Exit::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_and_wrong_ones_explained() {
        assert_eq!(scale("workers=1,2,4,8").unwrap(), (Vary::Workers, vec![1, 2, 4, 8]));
        assert_eq!(scale("in-flight=64").unwrap(), (Vary::InFlight, vec![64]));
        for (text, words) in [
            ("workers", "no ="),
            ("series=1,2", "workers or in-flight"),
            ("workers=1,,2", "whole number"),
            ("workers=0,1", "whole number"),
            ("workers=1,4,2", "above the one before"),
            ("workers=2,2", "above the one before"),
        ] {
            let failure = scale(text).unwrap_err().to_string();
            assert!(
                failure.contains(words) && failure.contains("--scale"),
                "{text}: {failure}"
            );
        }
    }

    #[test]
    fn an_objective_is_read_and_a_wrong_one_explained() {
        let read = conditions("staleness.p99<2s,response.p99<50ms,lost=0,rss<2GiB").unwrap();
        assert_eq!(read.len(), 4);
        for (slo, words) in [
            ("respons.p99<50ms", "response.p99"),
            ("response.p99<+10%", "compares with another run"),
            ("", ""),
        ] {
            let failure = conditions(slo).unwrap_err().to_string();
            assert!(failure.contains(words) && failure.contains("--slo"), "{slo}: {failure}");
        }
    }
}
