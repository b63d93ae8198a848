//! Refuses a rate that lies so far above what can be sent that the run would say nothing.

use tsb_core::schedule::{Pace, Schedule};
use tsb_core::time::SECOND_NS;

use super::stage::Stage;
use crate::failure::Failure;
use crate::units;

/// A rate of more than this many ceilings is refused: up to it a run is made, and called
/// GENERATOR-LIMITED.
const CEILINGS_MAX: f64 = 10.0;
/// No machine starts more operations per second than this: it bounds a schedule whose
/// ceiling was not measured.
const OPERATIONS_MAX: f64 = 1e9;

/// Checks the asked rate against the measured ceiling, in samples per second, if there is one.
pub(crate) fn check(stage: &Stage, ceiling: Option<f64>) -> Result<(), Failure> {
    let groups = stage.workload.groups().len().max(1) as f64;
    let samples_per_operation = (stage.workload.catalog().len() as f64 / groups).max(1.0);
    let asked = match &stage.timetable.pace {
        Pace::Fleet(speed) => stage.workload.samples_per_second() * speed.as_f64(),
        Pace::Shape(schedule) => {
            let operations = operations_per_second(schedule, stage.timetable.end_ns.unwrap_or(SECOND_NS));
            if operations > OPERATIONS_MAX {
                return Err(refused(&format!("{} operations", units::scaled(operations)))
                    .because_of("no machine starts more than 1 G operations per second"));
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

fn refused(rate: &str) -> Failure {
    Failure::usage(format!("cannot send {rate} per second"))
        .hint("nothing was sent; --rate max sends as fast as the store answers")
}

/// The mean rate of a schedule until `end_ns`.
fn operations_per_second(schedule: &Schedule, end_ns: u64) -> f64 {
    match schedule {
        Schedule::Poisson { rate, .. } => rate.as_per_second(),
        Schedule::Unpaced => 0.0,
        _ => due_by(schedule, end_ns) as f64 * SECOND_NS as f64 / end_ns.max(1) as f64,
    }
}

/// How many operations are due before `end_ns`, by halving.
fn due_by(schedule: &Schedule, end_ns: u64) -> u64 {
    let is_due = |n: u64| schedule.due(n).is_some_and(|due| due < end_ns);
    let (mut low, mut high) = (0, 1 << 56);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_due(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operations_of_a_schedule_are_counted_without_walking() {
        for (text, seconds, expected) in [
            ("constant:1000", 10, 1_000.0),
            ("steps:1000*10s,3000*10s", 20, 2_000.0),
            ("ramp:0..2000/10s", 10, 1_000.0),
            ("burst:5000/1s", 10, 5_000.0),
            ("poisson:700", 10, 700.0),
            ("max", 10, 0.0),
            ("recorded:0s,1ms,2ms", 3, 1.0),
            ("constant:1e12", 10, 1e12),
        ] {
            let Ok(schedule) = text.parse::<Schedule>() else {
                assert_eq!(text, "constant:1e12", "a schedule that the parser may refuse");
                continue;
            };
            let found = operations_per_second(&schedule, seconds * SECOND_NS);
            assert!((found - expected).abs() <= expected * 0.001, "{text}: {found}");
        }
    }
}
