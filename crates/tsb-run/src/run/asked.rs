//! Refuses a rate so far above the generator's ceiling that the run would say nothing about the
//! store.

use tsb_core::schedule::{Pace, Schedule};
use tsb_core::time::SECOND_NS;

use super::run_context::RunContext;
use crate::error::Error;
use crate::units;

/// A rate above this multiple of the ceiling is refused. Below it the run is made, and may be
/// called GENERATOR-LIMITED.
const CEILINGS_MAX: f64 = 10.0;
/// Upper bound of operations per second that any machine can start: limits a schedule when no
/// ceiling was measured.
const OPERATIONS_MAX: f64 = 1e9;

/// The same for random arrivals, where each due time is drawn after the previous one.
const DRAWN_MAX: f64 = 1e7;

/// Checks the asked rate against the measured ceiling in samples per second, if there is one.
pub fn check(context: &RunContext, ceiling: Option<f64>) -> Result<(), Error> {
    let groups = context.workload.groups().len().max(1) as f64;
    let samples_per_operation = (context.workload.catalog().len() as f64 / groups).max(1.0);
    let asked = match &context.timetable.pace {
        Pace::Fleet(speed) => context.workload.samples_per_second() * speed.as_f64(),
        Pace::Shape(schedule) => {
            let end_ns = context.timetable.end_ns.unwrap_or(SECOND_NS);
            let operations = operations_per_second(schedule, end_ns, samples_per_operation);
            let is_drawn = matches!(schedule, Schedule::Poisson { .. });
            let most = if is_drawn { DRAWN_MAX } else { OPERATIONS_MAX };
            if operations > most {
                return Err(
                    refused(&format!("{} operations", units::scaled(operations))).because_of(format!(
                        "a schedule like this has at most {} operations per second",
                        units::scaled(most)
                    )),
                );
            }
            operations * samples_per_operation * context.timetable.roster.share_of_schedule()
        }
    };
    match ceiling {
        Some(ceiling) if asked > CEILINGS_MAX * ceiling => Err(refused(&format!("{} samples", units::scaled(asked)))
            .because_of(format!(
                "that is {} times this generator's ceiling of {} samples per second, as it was measured just now (at \
                 most {CEILINGS_MAX})",
                units::scaled(asked / ceiling),
                units::scaled(ceiling),
            ))),
        _ => Ok(()),
    }
}

fn refused(rate: &str) -> Error {
    Error::plan(format!("cannot send {rate} per second"))
        .hint("nothing was sent; --rate max sends as fast as the store answers")
}

/// Mean operations per second of a schedule until `end_ns`. Rates and bursts count samples;
/// random arrivals and recorded times have been converted to operations already.
fn operations_per_second(schedule: &Schedule, end_ns: u64, samples_per_operation: f64) -> f64 {
    let counted = || schedule.due_before(end_ns).unwrap_or(0) as f64 * SECOND_NS as f64 / end_ns.max(1) as f64;
    match schedule {
        Schedule::Poisson { rate, .. } => rate.as_per_second(),
        Schedule::Recorded(_) => counted(),
        _ => counted() / samples_per_operation,
    }
}
