//! Refuses a rate that lies so far above what can be sent that the run would say nothing.

use tsb_core::schedule::{Pace, Schedule};
use tsb_core::time::SECOND_NS;

use super::stage::Stage;
use crate::error::Error;
use crate::units;

/// A rate of more than this many ceilings is refused: up to it a run is made, and called
/// GENERATOR-LIMITED.
const CEILINGS_MAX: f64 = 10.0;
/// No machine starts more operations per second than this: it bounds a schedule whose
/// ceiling was not measured.
const OPERATIONS_MAX: f64 = 1e9;

/// The same where the time of each operation is drawn, and only known after the one before.
const DRAWN_MAX: f64 = 1e7;

/// Checks the asked rate against the measured ceiling, in samples per second, if there is one.
pub fn check(stage: &Stage, ceiling: Option<f64>) -> Result<(), Error> {
    let groups = stage.workload.groups().len().max(1) as f64;
    let samples_per_operation = (stage.workload.catalog().len() as f64 / groups).max(1.0);
    let asked = match &stage.timetable.pace {
        Pace::Fleet(speed) => stage.workload.samples_per_second() * speed.as_f64(),
        Pace::Shape(schedule) => {
            let end_ns = stage.timetable.end_ns.unwrap_or(SECOND_NS);
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
            operations * samples_per_operation
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

/// The mean rate of a schedule until `end_ns`. A rate and a burst count samples; arrivals at
/// random and recorded times are those of operations by now.
fn operations_per_second(schedule: &Schedule, end_ns: u64, samples_per_operation: f64) -> f64 {
    let counted = || schedule.due_before(end_ns).unwrap_or(0) as f64 * SECOND_NS as f64 / end_ns.max(1) as f64;
    match schedule {
        Schedule::Poisson { rate, .. } => rate.as_per_second(),
        Schedule::Recorded(_) => counted(),
        _ => counted() / samples_per_operation,
    }
}
