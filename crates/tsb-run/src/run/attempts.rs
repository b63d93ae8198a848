//! Repeats a run while the machine disturbs it.

use std::sync::atomic::Ordering::Relaxed;

use tsb_core::report::{AttemptReport, Run};
use tsb_core::verdict::Status;

use super::engine::{OpenStore, run_plan};
use super::results::Finished;
use crate::controls::Controls;
use crate::error::Error;
use crate::place::Place;
use crate::plan::Plan;

/// Runs a plan of one store, and repeats it in an empty place as long as it is NOISY, at most
/// [`Controls::retry_noisy`] times. The last attempt counts; its report names the others.
///
/// # Errors
/// As [`run_plan`], if the first attempt could not be made.
pub(super) fn run_until_quiet(plan: &Plan, controls: &Controls, open: OpenStore<'_>) -> Result<Finished, Error> {
    // Its place holds samples of earlier runs, which are not ours to remove.
    let repetitions = if plan.append { 0 } else { controls.retry_noisy };
    let note = |text: &str| controls.note(text);
    repeat(
        repetitions,
        || run_plan(plan, controls, open),
        || empty(plan, controls),
        &note,
    )
}

/// Removes what an attempt stored, and what its journal says of it: its place was empty before it.
fn empty(plan: &Plan, controls: &Controls) -> Result<(), Error> {
    if controls.stops.stop.load(Relaxed) {
        return Err(Error::plan("a stop was asked for"));
    }
    if let Some(journal) = &controls.journal {
        journal.forget();
    }
    let store = plan.stores.first();
    let place = store.map_or(Ok(None), Place::of)?;
    place.map_or(Ok(()), |place| place.remove())
}

fn repeat(
    repetitions: u32,
    mut attempt: impl FnMut() -> Result<Finished, Error>,
    empty: impl Fn() -> Result<(), Error>,
    note: &dyn Fn(&str),
) -> Result<Finished, Error> {
    let mut finished = attempt()?;
    let mut earlier = Vec::new();
    for repetition in 1..=repetitions {
        if !is_repeated(&finished.run) {
            break;
        }
        if let Err(error) = empty() {
            finished
                .run
                .notes
                .push(format!("not repeated, although it is NOISY: {error}"));
            break;
        }
        let reason = finished.run.verdict.reasons.first().map_or("", String::as_str);
        note(&format!(
            "attempt {repetition} of at most {} was NOISY ({reason}): repeating it",
            repetitions + 1
        ));
        match attempt() {
            Ok(again) => {
                let before = std::mem::replace(&mut finished, again);
                earlier.push(AttemptReport::of(&before.run));
            }
            Err(error) => {
                finished.run.notes.push(format!(
                    "attempt {} could not be made: {error}; this is the report of the one before it, and what it had \
                     stored is removed",
                    repetition + 1
                ));
                break;
            }
        }
    }
    finished.run.attempts = earlier;
    Ok(finished)
}

fn is_repeated(run: &Run) -> bool {
    run.verdict.status == Status::Noisy && !run.interrupted
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use tsb_core::Durability;
    use tsb_core::report::{DurabilityReport, Latency, LedgerReport, Rate, Target};
    use tsb_core::staleness::Staleness;
    use tsb_core::verdict::Verdict;

    use super::*;

    fn finished(status: Status, held: f64) -> Finished {
        let run = Run::new(
            Target::new("memory", "inproc", "exact"),
            Verdict::new(status, vec!["why".to_owned()]),
            DurabilityReport::new(Durability::Volatile, 1),
            Rate::held(held),
            LedgerReport::default(),
            Latency::new("the store has returned"),
        );
        Finished {
            run,
            driven: Arc::default(),
            staleness: Staleness::new(),
            waits: None,
            queries: BTreeMap::new(),
        }
    }

    /// Makes attempts with these verdicts (`None`: it cannot be made), and counts how often the
    /// place was emptied.
    fn made(repetitions: u32, statuses: &[Option<Status>]) -> (Run, u32) {
        let (next, emptied) = (Cell::new(0), Cell::new(0));
        let attempt = || {
            let number = next.replace(next.get() + 1);
            let status = statuses[number].ok_or_else(|| Error::plan("cannot open it"))?;
            Ok(finished(status, number as f64))
        };
        let empty = || {
            emptied.set(emptied.get() + 1);
            Ok(())
        };
        (repeat(repetitions, attempt, empty, &|_| ()).unwrap().run, emptied.get())
    }

    #[test]
    fn a_noisy_run_is_repeated_and_the_last_attempt_counts() {
        use Status::{Noisy, StoreLimited, Valid};
        for (repetitions, statuses, held, attempts) in [
            (3, &[Some(Noisy), Some(Noisy), Some(Valid)][..], 2.0, 2),
            (1, &[Some(Noisy), Some(Noisy)], 1.0, 1),
            (0, &[Some(Noisy)], 0.0, 0),
            (3, &[Some(StoreLimited)], 0.0, 0),
        ] {
            let (run, emptied) = made(repetitions, statuses);
            assert_eq!((run.rate.held_per_second, run.attempts.len()), (held, attempts));
            assert_eq!(emptied as usize, attempts);
            assert!(run.attempts.iter().all(|attempt| attempt.verdict.status == Noisy));
        }
    }

    #[test]
    fn an_attempt_that_cannot_be_made_leaves_the_report_of_the_one_before() {
        let (run, _) = made(2, &[Some(Status::Noisy), None]);
        assert_eq!((run.rate.held_per_second, run.attempts.len()), (0.0, 0));
        assert!(
            run.notes[0].contains("attempt 2 could not be made: cannot open it"),
            "{:?}",
            run.notes
        );
    }

    #[test]
    fn what_cannot_be_removed_is_not_repeated() {
        let attempt = || Ok(finished(Status::Noisy, 1.0));
        let run = repeat(2, attempt, || Err(Error::plan("cannot remove it")), &|_| ())
            .unwrap()
            .run;
        assert!(
            run.attempts.is_empty() && run.notes[0].contains("cannot remove it"),
            "{:?}",
            run.notes
        );
        let interrupted = || {
            let mut finished = finished(Status::Noisy, 1.0);
            finished.run.interrupted = true;
            Ok(finished)
        };
        assert!(
            repeat(2, interrupted, || Ok(()), &|_| ())
                .unwrap()
                .run
                .attempts
                .is_empty()
        );
    }
}
