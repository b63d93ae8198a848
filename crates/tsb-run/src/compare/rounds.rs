//! Runs the rounds.

use tsb_core::report::{ComparedSide, ComparisonEnd, RoundReport, RoundRun, RoundsPlan, Run, SideComparison};
use tsb_core::stats::order;
use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::verdict::Status;

use super::ratios::{are_clear, figures, ratios, summarize};
use super::steady::steady_run;
use super::unequal::{SideRuns, unequal};
use crate::controls::Controls;
use crate::error::Error;
use crate::observer::RoundInfo;
use crate::plan::Plan;
use crate::run::{MadeRun, MakeRun, run_in_round_place};

/// Rounds that are made whatever the budget: one alone has no interval.
const ROUNDS_LEAST: u32 = 2;
/// Most sides.
const SIDES_MAX: usize = 6;

/// One side of a comparison.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its name: `A` and so on.
    pub name: String,
    /// The store, and what is set for this side alone.
    pub about: String,
    /// Its plan, complete and of one store.
    pub plan: Plan,
}

/// A comparison, and what ended it early.
#[derive(Debug)]
pub struct Compared {
    /// What was measured.
    pub comparison: SideComparison,
    /// Why a run could not be made, if that ended the comparison.
    pub failed: Option<Error>,
}

/// Compares sides in rounds, whose runs `maker` makes. One side alone is repeated. `save` receives the comparison
/// after every run, so that a process that dies leaves what was measured.
///
/// # Errors
/// If the plan cannot be used, or the first run cannot be made: nothing was measured by then.
pub fn compare(
    sides: &[Side],
    plan: RoundsPlan,
    controls: &Controls,
    maker: &dyn MakeRun,
    save: &dyn Fn(&SideComparison),
) -> Result<Compared, Error> {
    check(sides, &plan)?;
    let clock = MonotonicClock::new();
    let about = sides
        .iter()
        .map(|side| ComparedSide::new(&side.name, &side.about))
        .collect();
    let mut comparison = SideComparison::here(plan, about);
    let mut longest_ns = 0;
    let mut failed = None;
    for round in 0..comparison.plan.rounds_max {
        let begun_ns = clock.now();
        if round >= ROUNDS_LEAST && begun_ns.saturating_add(longest_ns) > comparison.plan.budget_ns {
            comparison.ended = ComparisonEnd::Budget;
            break;
        }
        let made = run_round(sides, round, &mut comparison, controls, maker, save);
        comparison.took_ns = clock.now();
        longest_ns = longest_ns.max(comparison.took_ns - begun_ns);
        match made {
            Ok(true) => {}
            Ok(false) => {
                comparison.ended = ComparisonEnd::Stopped;
                break;
            }
            Err(error) if comparison.runs.is_empty() => return Err(error),
            Err(error) => {
                comparison.ended = ComparisonEnd::Failed;
                comparison
                    .notes
                    .push(format!("round {} was not completed: {error}", round + 1));
                failed = Some(error);
                break;
            }
        }
        conclude(&mut comparison);
        save(&comparison);
        if are_clear(sides.len(), &comparison.rounds, comparison.plan.enough) {
            comparison.ended = ComparisonEnd::Clear;
            break;
        }
    }
    conclude(&mut comparison);
    caveats(&mut comparison);
    Ok(Compared { comparison, failed })
}

fn check(sides: &[Side], plan: &RoundsPlan) -> Result<(), Error> {
    let refused = |cause: String| Error::plan("cannot compare these sides").because_of(cause);
    if sides.is_empty() || sides.len() > SIDES_MAX {
        return Err(refused(format!(
            "{} sides were given, and 1 to {SIDES_MAX} can be",
            sides.len()
        )));
    }
    if let Some(side) = sides.iter().find(|side| side.plan.stores.len() != 1) {
        return Err(refused(format!(
            "{} has {} stores, and needs one",
            side.name,
            side.plan.stores.len()
        )));
    }
    if let Some(side) = sides.iter().find(|side| side.plan.append) {
        return Err(refused(format!(
            "{} appends, and every run begins in a fresh place",
            side.name
        )));
    }
    if plan.rounds_max < ROUNDS_LEAST {
        return Err(Error::plan(format!("cannot compare in {} rounds", plan.rounds_max))
            .because_of("an interval takes at least two")
            .hint("give --rounds 6 or more"));
    }
    sides
        .iter()
        .try_for_each(|side| crate::run::check_comparable(&side.plan))
}

/// Runs one round; whether it is complete.
fn run_round(
    sides: &[Side],
    round: u32,
    comparison: &mut SideComparison,
    controls: &Controls,
    maker: &dyn MakeRun,
    save: &dyn Fn(&SideComparison),
) -> Result<bool, Error> {
    let order = match sides.len() {
        1 => vec![0],
        many => order(comparison.plan.seed, round, many),
    };
    let mut report = RoundReport::default();
    for (index, &side) in order.iter().enumerate() {
        let number = u32::try_from(comparison.runs.len()).unwrap_or(u32::MAX);
        controls.observer.round(&RoundInfo {
            round: round + 1,
            rounds_max: comparison.plan.rounds_max,
            run: index + 1,
            runs: order.len(),
            side: &sides[side].name,
        });
        let (mut made, leftover) = run_once(&sides[side].plan, number, round == 0, controls, maker)?;
        comparison.notes.extend(leftover);
        report.runs.push(round_run(side, &made));
        let interrupted = made.run.interrupted;
        made.run.label = Some(sides[side].name.clone());
        comparison.runs.push(without_distributions(made.run));
        save(comparison);
        if interrupted {
            return Ok(false);
        }
    }
    comparison.rounds.push(report);
    Ok(true)
}

/// Runs a plan in a place of its own, and removes it. Also a note if it could not be removed.
fn run_once(
    plan: &Plan,
    number: u32,
    is_first_round: bool,
    controls: &Controls,
    maker: &dyn MakeRun,
) -> Result<(MadeRun, Option<String>), Error> {
    let plan = Plan {
        // The ceiling is that of the generator, and does not change from round to round; hosts are measured each
        // time, so that every round is divided alike.
        calibrate: plan.calibrate && (is_first_round || maker.divides()),
        ..plan.clone()
    };
    let (made, place) = run_in_round_place(plan, number, controls, maker)?;
    let name = place.place().map(ToString::to_string).unwrap_or_default();
    let leftover = place
        .remove()
        .err()
        .map(|error| format!("{name} was not removed: {error}"));
    Ok((made, leftover))
}

fn round_run(side: usize, made: &MadeRun) -> RoundRun {
    let (run, part) = steady_run(made);
    let mut report = RoundRun::new(side, run.verdict.status);
    report.warm_up_ns = part.map(|part| part.warm_up_ns);
    report.is_steady = part.map(|part| part.is_steady);
    report.figures = figures(&run);
    report
}

/// A report without its complete distributions: of ten runs, nine tenths of a document.
fn without_distributions(mut run: Run) -> Run {
    run.latency.curves = None;
    for interval in &mut run.intervals {
        interval.response_cells = None;
    }
    run
}

/// Brings everything up to date that follows from the rounds.
fn conclude(comparison: &mut SideComparison) {
    summarize(&mut comparison.sides, &comparison.rounds);
    let Some(first) = comparison.runs.first() else { return };
    comparison.comparisons = ratios(&comparison.sides, &comparison.rounds, first);
    let named = comparison.sides.iter().map(|side| SideRuns {
        name: &side.name,
        runs: comparison.runs.iter().filter(|run| is_of(run, side)).collect(),
    });
    comparison.unequal = unequal(&named.collect::<Vec<_>>());
    comparison.is_ranked = comparison.unequal.is_empty() || comparison.plan.rank_unequal;
}

fn is_of(run: &Run, side: &ComparedSide) -> bool {
    run.label.as_ref() == Some(&side.name)
}

/// Notes on runs whose figures mean less than they seem to.
fn caveats(comparison: &mut SideComparison) {
    let runs: Vec<&RoundRun> = comparison.rounds.iter().flat_map(|round| &round.runs).collect();
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let mut notes = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let of_side = || runs.iter().filter(|run| run.side == index);
        let mut tell = |count: usize, what: &str| {
            if count > 0 {
                notes.push(format!("{count} of {} runs of {name} {what}", of_side().count()));
            }
        };
        let with = |status: Status| of_side().filter(|run| run.verdict == status).count();
        tell(with(Status::Noisy), "were NOISY: other work disturbed the machine");
        tell(
            with(Status::StoreLimited),
            "were STORE-LIMITED: the store did not keep up, so their response times grow with their length",
        );
        tell(
            with(Status::TransportLimited),
            "were TRANSPORT-LIMITED: samples were lost before the store",
        );
        let drifting = of_side().filter(|run| run.is_steady == Some(false)).count();
        tell(
            drifting,
            "were still drifting when they ended: give a longer --duration",
        );
        let short = of_side().filter(|run| run.is_steady.is_none()).count();
        tell(
            short,
            "had too few intervals to find a warm-up: give a longer --duration or a shorter --report-interval",
        );
    }
    comparison.notes.extend(notes);
}
