//! Compares stores, or settings of one: from arguments to sides, and from rounds to results.

use std::sync::Arc;

use tsb_core::report::{ComparedSide, ComparisonEnd, RoundsPlan, Run, SideComparison, StoreThreshold};
use tsb_core::time::SECOND_NS;
use tsb_core::verdict::Status;
use tsb_run::compare::{Side, compare};
use tsb_run::run::MakeRun;
use tsb_run::spec::Typed;
use tsb_run::threshold::Threshold;
use tsb_run::{Controls, Message, Observer, RoundInfo, units};

use crate::args::{DocumentFormat, RunArgs, SidesArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Target, document, first_failure, print};
use crate::plan::{self, Plan};
use crate::render::html::sides_page;
use crate::render::names::letter;
use crate::render::sides;
use crate::{credentials, interrupt, say};

/// Default of `--rounds`.
const ROUNDS: u32 = 30;
/// Default of `--budget`, in nanoseconds.
const BUDGET_NS: u64 = 300 * SECOND_NS;
/// Default of `--enough`.
const ENOUGH: f64 = 0.02;
/// Default of `--duration`, in nanoseconds.
const DURATION_NS: u64 = 5 * SECOND_NS;
/// Intervals of a run in which a warm-up is looked for, unless `--report-interval` is given.
const INTERVALS: u64 = 20;
/// Shortest interval that is chosen, in nanoseconds.
const INTERVAL_LEAST_NS: u64 = SECOND_NS / 20;

/// Where the result goes.
#[derive(Debug)]
pub(super) struct Results {
    /// The form on stdout.
    pub format: DocumentFormat,
    /// The JSON document.
    pub out: Option<Target>,
    /// The page.
    pub page: Option<Target>,
}

/// Compares the stores in rounds and writes the result.
pub(super) fn command(
    (stores, maker): (&[Typed], &dyn MakeRun),
    args: &SidesArgs,
    thresholds: &[Threshold],
    results: &Results,
) -> Result<Exit, Failure> {
    let (sides, plan) = (sides_of(stores, args)?, rounds_plan(stores, args)?);
    let with_baseline = thresholds.iter().find(|threshold| threshold.condition.needs_baseline());
    if let Some(threshold) = with_baseline.filter(|_| sides.len() == 1) {
        return Err(
            Failure::usage(format!("cannot use the condition {}", threshold.condition))
                .because_of("one side has nothing to compare with")
                .hint("give an absolute limit, or a second store"),
        );
    }
    let signals = interrupt::signals();
    let controls = Controls {
        stops: signals.stops.clone(),
        observer: Arc::new(Lines { quiet: args.quiet }),
        sockets: std::env::temp_dir(),
        ..Controls::default()
    };
    let save = |comparison: &SideComparison| {
        if let Some(target) = &results.out {
            // A failure is reported by the last write.
            let _ = document(comparison).and_then(|json| target.write(json.as_bytes()));
        }
    };
    let compared = compare(&sides, plan, &controls, maker, &save)?;
    let (mut comparison, failed) = (compared.comparison, compared.failed);
    comparison.thresholds = check(&comparison, thresholds);
    let mut is_passed = true;
    for one in &comparison.thresholds {
        is_passed &= crate::thresholds::tell(&format!("{}: ", one.store), std::slice::from_ref(&one.threshold));
    }
    write(&comparison, results)?;
    let exit = match exit_of(&comparison) {
        Exit::Done if !is_passed => Exit::Crossed,
        exit => exit,
    };
    match failed {
        Some(error) if exit != Exit::Invalid => Err(error.into()),
        failed => {
            if let Some(error) = failed {
                say::failure(Failure::from(error));
            }
            Ok(exit)
        }
    }
}

/// Holds every side but the first against the first; a single side against nothing. The figures are
/// medians of whole runs.
fn check(comparison: &SideComparison, thresholds: &[Threshold]) -> Vec<StoreThreshold> {
    let runs = |name: &str| -> Vec<&Run> {
        let of_side = |run: &&Run| run.label.as_deref() == Some(name);
        comparison.runs.iter().filter(of_side).collect()
    };
    let (baseline, others) = match comparison.sides.as_slice() {
        [only] => (Vec::new(), std::slice::from_ref(only)),
        [first, others @ ..] => (runs(&first.name), others),
        [] => return Vec::new(),
    };
    let of_side = |side: &ComparedSide| {
        let measured = runs(&side.name);
        let one = |threshold: &Threshold| StoreThreshold {
            store: side.name.clone(),
            threshold: threshold.check_rounds(&measured, &baseline),
        };
        thresholds.iter().map(one).collect::<Vec<_>>()
    };
    others.iter().flat_map(of_side).collect()
}

/// Writes the result to all outputs. Each is tried, even if another failed.
fn write(comparison: &SideComparison, results: &Results) -> Result<(), Failure> {
    let json = document(comparison)?;
    let file = results.out.as_ref().map(|target| target.write(json.as_bytes()));
    let page = results
        .page
        .as_ref()
        .map(|target| target.write(sides_page(comparison).as_bytes()));
    let shown = match results.format {
        DocumentFormat::Json => json,
        DocumentFormat::Text => sides::text(comparison),
    };
    let all = [file, page, Some(print(shown.as_bytes()))].into_iter().flatten();
    first_failure(all.filter_map(Result::err))
}

/// The exit code, as that of a run: INVALID first, then an interruption, then GENERATOR-LIMITED.
fn exit_of(comparison: &SideComparison) -> Exit {
    let any = |status| comparison.runs.iter().any(|run| run.verdict.status == status);
    if any(Status::Invalid) {
        Exit::Invalid
    } else if comparison.ended == ComparisonEnd::Stopped {
        Exit::Interrupted
    } else if any(Status::GeneratorLimited) {
        Exit::Invalid
    } else {
        Exit::Done
    }
}

fn rounds_plan(stores: &[Typed], args: &SidesArgs) -> Result<RoundsPlan, Failure> {
    match (stores.len(), args.repeat) {
        (1, None) => {
            return Err(
                Failure::usage("cannot compare one side").hint("name a second store, or repeat this one: --repeat 5")
            );
        }
        (many, Some(_)) if many > 1 => {
            return Err(Failure::usage(format!("cannot repeat {many} sides"))
                .because_of("--repeat runs one side")
                .hint("give --rounds"));
        }
        _ => {}
    }
    let read =
        |flag: &str, text: &str, why: String| Failure::usage(format!("cannot read {flag} {text}")).because_of(why);
    let budget_ns = match args.budget.as_deref() {
        Some(text) => units::parse_duration(text).map_err(|why| read("--budget", text, why))?,
        None => BUDGET_NS,
    };
    let enough = match args.enough.as_deref() {
        Some(text) => units::Unit::Share
            .parse(text)
            .map_err(|why| read("--enough", text, why))?,
        None => ENOUGH,
    };
    Ok(RoundsPlan {
        seed: sides_seed(args)?,
        rounds_max: args.rounds.or(args.repeat).unwrap_or(ROUNDS),
        budget_ns,
        enough,
        rank_unequal: args.rank_unequal,
    })
}

/// The order of the runs follows from the seed of the samples.
fn sides_seed(args: &SidesArgs) -> Result<u64, Failure> {
    let all: Vec<&Typed> = args.set.iter().filter(|set| side_of(set).is_none()).collect();
    let run = run_args(args, all, None);
    Ok(plan::load(&run)?.workload.seed)
}

fn run_args(args: &SidesArgs, set: Vec<&Typed>, store: Option<&Typed>) -> RunArgs {
    let mut options = args.options.clone();
    options.store = store.cloned().into_iter().collect();
    RunArgs {
        options,
        plan: args.plan.clone(),
        set: set.into_iter().cloned().collect(),
        ..RunArgs::default()
    }
}

/// The number of the side that a `--set` is for, and the rest of it.
fn side_of(set: &Typed) -> Option<(usize, &str)> {
    let (side, rest) = set.expose().split_once(':')?;
    match side.as_bytes() {
        [byte] if byte.is_ascii_alphabetic() => Some((usize::from(byte.to_ascii_lowercase() - b'a'), rest)),
        _ => None,
    }
}

fn sides_of(stores: &[Typed], args: &SidesArgs) -> Result<Vec<Side>, Failure> {
    if let Some(store) = args.options.store.first() {
        return Err(Failure::usage(format!("cannot use --store {store} here"))
            .because_of("the sides are the arguments")
            .hint(format!("tsb compare {store} ANOTHER")));
    }
    if args.options.append == Some(true) {
        return Err(Failure::usage("cannot use --append here").because_of("every run begins in a fresh place"));
    }
    for set in &args.set {
        if let Some((side, _)) = side_of(set).filter(|(side, _)| *side >= stores.len()) {
            return Err(Failure::usage(format!("cannot use --set {set}")).because_of(format!(
                "there is no side {}, only {} of them",
                letter(side),
                stores.len()
            )));
        }
    }
    stores
        .iter()
        .enumerate()
        .map(|(index, store)| side(index, store, args))
        .collect()
}

fn side(index: usize, store: &Typed, args: &SidesArgs) -> Result<Side, Failure> {
    let all = args.set.iter().filter(|set| side_of(set).is_none()).collect();
    let own: Vec<Typed> = args
        .set
        .iter()
        .filter_map(side_of)
        .filter(|(side, _)| *side == index)
        .map(|(_, rest)| Typed::from(rest))
        .collect();
    let mut run = run_args(args, all, Some(store));
    let is_set = |key: &str| {
        let has_key = |set: &Typed| set.expose().split_once('=').is_some_and(|(name, _)| name == key);
        args.set.iter().any(has_key) || own.iter().any(has_key)
    };
    let is_timed = run.options.duration.is_some()
        || run.options.fleet_time.is_some()
        || run.plan.is_some()
        || is_set("duration")
        || is_set("fleet-time");
    if !is_timed {
        run.options.duration = Some(units::exact_duration(DURATION_NS));
    }
    let mut plan = plan::load_side(&run, &own)?;
    if args.options.report_interval.is_none() && args.plan.is_none() && !is_set("report-interval") {
        plan.report_interval_ns = interval_ns(&plan);
    }
    plan.stores = plan
        .stores
        .iter()
        .map(credentials::complete)
        .collect::<Result<_, _>>()?;
    let mut about = plan.stores.first().map(ToString::to_string).unwrap_or_default();
    for set in &own {
        about = format!("{about}, {set}");
    }
    Ok(Side {
        name: letter(index),
        about,
        plan,
    })
}

/// The interval in which a run of this length is looked at.
fn interval_ns(plan: &Plan) -> u64 {
    let most = plan.report_interval_ns;
    let fraction = plan.duration_ns.map_or(most, |ns| ns / INTERVALS);
    fraction.max(INTERVAL_LEAST_NS).min(most)
}

/// Prints rounds, notes and warnings to stderr; the lines of each run would hide them.
#[derive(Debug)]
struct Lines {
    quiet: bool,
}

impl Observer for Lines {
    fn round(&self, round: &RoundInfo<'_>) {
        if !self.quiet {
            let RoundInfo {
                round,
                rounds_max,
                run,
                runs,
                side,
                ..
            } = round;
            say::line(format_args!(
                "round {round} of at most {rounds_max}, run {run} of {runs}: {side}"
            ));
        }
    }

    fn message(&self, message: Message<'_>) {
        if let Message::Warning(text) = message {
            say::warning(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(texts: &[&str]) -> Vec<Typed> {
        texts.iter().map(|text| Typed::from(*text)).collect()
    }

    fn with_sets(sets: &[&str]) -> SidesArgs {
        SidesArgs {
            set: typed(sets),
            ..SidesArgs::default()
        }
    }

    #[test]
    fn what_is_set_for_one_side_is_not_set_for_the_other() {
        let stores = typed(&["memory:", "memory:"]);
        let mut args = with_sets(&["b:workers=2", "seed=9"]);
        args.options.workers = Some(4);
        let sides = sides_of(&stores, &args).unwrap();
        assert_eq!((sides[0].plan.workers, sides[1].plan.workers), (4, 2));
        assert_eq!(
            (sides[0].about.as_str(), sides[1].about.as_str()),
            ("memory:", "memory:, workers=2")
        );
        assert!(sides.iter().all(|side| side.plan.workload.seed == 9));
        assert_eq!(rounds_plan(&stores, &args).unwrap().seed, 9);
        assert_eq!(sides[0].plan.duration_ns, Some(DURATION_NS));
        assert_eq!(sides[0].plan.report_interval_ns, DURATION_NS / INTERVALS);
    }

    #[test]
    fn a_duration_that_is_set_is_not_replaced_by_the_usual_one() {
        let stores = typed(&["memory:", "memory:"]);
        let sides = sides_of(&stores, &with_sets(&["duration=20s", "report-interval=2s"])).unwrap();
        for side in &sides {
            assert_eq!(side.plan.duration_ns, Some(20_000_000_000));
            assert_eq!(side.plan.report_interval_ns, 2_000_000_000);
        }
        let sides = sides_of(&stores, &with_sets(&["b:fleet-time=2h"])).unwrap();
        let fleet_times: Vec<_> = sides.iter().map(|side| side.plan.fleet_time_ns).collect();
        assert_eq!(fleet_times, [None, Some(7_200_000_000_000)]);
    }

    #[test]
    fn what_cannot_be_compared_is_refused_with_a_hint() {
        let said = |stores: &[&str], args: &SidesArgs| {
            let stores = typed(stores);
            let plan = rounds_plan(&stores, args).and_then(|_| sides_of(&stores, args).map(|_| ()));
            plan.unwrap_err().to_string()
        };
        assert!(said(&["memory:"], &SidesArgs::default()).contains("--repeat 5"));
        let repeated = SidesArgs {
            repeat: Some(3),
            ..SidesArgs::default()
        };
        assert!(said(&["memory:", "null:"], &repeated).contains("--rounds"));
        assert!(said(&["memory:", "null:"], &with_sets(&["c:workers=2"])).contains("no side C"));
        assert!(said(&["memory:", "null:"], &with_sets(&["b:wrkers=2"])).contains("workers"));
        let timed = SidesArgs {
            budget: Some("soon".to_owned()),
            ..SidesArgs::default()
        };
        assert!(said(&["memory:", "null:"], &timed).contains("--budget soon"));
    }
}
