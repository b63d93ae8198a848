//! The life of a place at a server: made by a run, measured, refused when it is not empty,
//! appended to, and removed.

use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::time::SECOND_NS;
use tsb_core::verdict::Status;
use tsb_run::place::{Place, RoundPlace};
use tsb_run::spec::Spec;
use tsb_run::{AskedRate, Controls, Error, Plan, Transport, run_plan};
use tsb_stores::conformance::libtest_mimic::Failed;

/// A short run of the fleet's own pace.
fn run(spec: &Spec, append: bool) -> Result<Run, Error> {
    let mut plan = Plan {
        stores: vec![spec.clone()],
        transport: Transport::Inproc,
        duration_ns: Some(SECOND_NS / 2),
        rate: AskedRate::Natural,
        calibrate: false,
        append,
        ..Plan::default()
    };
    plan.workload.series = Some(54);
    plan.workload.interval_ns = Some(SECOND_NS / 10);
    let ended = run_plan(&plan.complete()?, &Controls::default(), &tsb_run::open);
    ended.map(|finished| finished.run)
}

fn holds(what: &str, is_so: bool) -> Result<(), Failed> {
    if is_so {
        Ok(())
    } else {
        Err(format!("not so: {what}").into())
    }
}

fn failed(error: &Error) -> Failed {
    let hint = error.explanation().hint().unwrap_or_default().to_owned();
    format!("{error}; {hint}").into()
}

/// Everything that the run sent was read back.
fn is_sound(run: &Run) -> Result<(), Failed> {
    let counts = &run.ledger.counts;
    let verified = counts.count(Counter::Verified);
    let is_whole = verified > 0 && verified == counts.count(Counter::Accepted);
    holds(
        &format!("{:?}, {counts:?}", run.verdict),
        is_whole && run.verdict.status != Status::Invalid,
    )
}

/// Leads a place through its life; `shell` runs the command that removes it.
pub(crate) fn of_a_place(spec: &str, shell: impl Fn(&str) -> Result<(), Failed>) -> Result<(), Failed> {
    of(spec, true, shell)
}

/// The same at a server that cannot be asked how much it holds.
pub(crate) fn of_an_uncounted_place(spec: &str, shell: impl Fn(&str) -> Result<(), Failed>) -> Result<(), Failed> {
    of(spec, false, shell)
}

fn of(spec: &str, is_counted: bool, shell: impl Fn(&str) -> Result<(), Failed>) -> Result<(), Failed> {
    let spec: Spec = spec.parse()?;
    let place = Place::of(&spec)
        .map_err(|error| failed(&error))?
        .ok_or("it has a place")?;
    let first = run(&spec, false).map_err(|error| failed(&error))?;
    is_sound(&first)?;
    let reported = first.place.as_ref().ok_or("the report names the place")?;
    holds(
        "the place has a size where that is known",
        reported.bytes.is_some_and(|bytes| bytes > 0) == is_counted,
    )?;
    holds("it is not empty", !place.is_empty().map_err(|error| failed(&error))?)?;

    let command = place.remove_command().ok_or("a command removes it")?;
    let refused = run(&spec, false).err().ok_or("a second run is refused")?;
    let hint = refused.explanation().hint().unwrap_or_default();
    holds(hint, hint.contains(&command) && hint.contains("--append"))?;
    holds(
        "what it holds is said",
        refused.to_string().contains("it already holds"),
    )?;

    let second = run(&spec, true).map_err(|error| failed(&error))?;
    is_sound(&second)?;
    let earlier = second.place.as_ref().and_then(|place| place.earlier);
    let accepted = first.ledger.counts.count(Counter::Accepted);
    holds(
        &format!("{earlier:?} are the {accepted} of the first run"),
        earlier.is_some_and(|earlier| earlier.samples == is_counted.then_some(accepted)),
    )?;
    holds("no size is given", second.size.is_none())?;

    place.remove().map_err(|error| failed(&error))?;
    holds("it is removed", place.is_empty().map_err(|error| failed(&error))?)?;
    place.remove().map_err(|error| failed(&error))?;
    is_sound(&run(&spec, false).map_err(|error| failed(&error))?)?;
    shell(&command)?;
    holds(
        "the command removes it",
        place.is_empty().map_err(|error| failed(&error))?,
    )?;

    let round = RoundPlace::new(&spec, 3).map_err(|error| failed(&error))?;
    is_sound(&run(round.spec(), false).map_err(|error| failed(&error))?)?;
    let own = round.place().cloned().ok_or("a round has a place")?;
    let again = RoundPlace::new(&spec, 3)
        .err()
        .ok_or("one that is not empty is refused")?;
    holds(&again.to_string(), again.to_string().contains("round 3"))?;
    holds(
        "a refused round removes nothing",
        !own.is_empty().map_err(|error| failed(&error))?,
    )?;
    round.remove().map_err(|error| failed(&error))?;
    holds("a round is removed", own.is_empty().map_err(|error| failed(&error))?)
}
