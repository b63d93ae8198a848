//! The capacity at several counts of workers or of requests in flight, and the law fitted to them.

use tsb_core::report::capacity::{CapacityReport, Scaling, ScalingLaw, ScalingPoint};
use tsb_core::stats::{COUNTS_MIN, Estimate, Scalability, quantile};

use super::drive::{CapacityRequest, find_capacity};
use super::judge::Objective;
use crate::controls::Controls;
use crate::draws::Draws;
use crate::error::Error;
use crate::plan::Plan;
use crate::run::MakeRun;
use crate::spec::Spec;
use crate::units;

/// A prediction is for this many times the highest count.
const PREDICTED_TIMES: u32 = 10;
/// Laws fitted for the interval of a prediction.
const DRAWS: u32 = 2_000;
/// Half the width of a 95 % interval, in standard deviations.
const HALF_WIDTH: f64 = 1.96;

/// What grows from search to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vary {
    /// [`Plan::workers`].
    Workers,
    /// [`Plan::in_flight`], with one worker unless the plan has more.
    InFlight,
}

impl Vary {
    /// The word in reports and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workers => "workers",
            Self::InFlight => "in-flight",
        }
    }

    /// A count with its noun.
    fn words(self, count: u32) -> String {
        counted(count, self.name())
    }

    /// The plan with a count.
    ///
    /// # Errors
    /// [`Error::Plan`] if it cannot be run so.
    fn at(self, plan: &Plan, count: u32) -> Result<Plan, Error> {
        if self == Self::InFlight && !is_answered_later(plan) {
            return Err(Error::plan("cannot vary the writes in flight")
                .because_of("each write ends before the next one of its worker is sent")
                .hint("use a client of a server, or --transport http, or vary the workers"));
        }
        let mut plan = plan.clone();
        match self {
            Self::Workers => plan.workers = count as usize,
            Self::InFlight => plan.in_flight = Some(count as usize),
        }
        plan.complete()
    }
}

/// A count of what [`Vary::name`] names, with its noun: `4 workers`, `64 in flight`.
pub fn counted(count: u32, of: &str) -> String {
    let noun = match of {
        "workers" if count == 1 => "worker",
        "in-flight" => "in flight",
        other => other,
    };
    format!("{} {noun}", units::count(u64::from(count)))
}

/// Whether a worker may send a write before the one before is answered.
fn is_answered_later(plan: &Plan) -> bool {
    plan.transport.is_answered() || !plan.transport.is_wire() && plan.stores.iter().all(Spec::is_async)
}

/// Searches for the capacity at each of `counts`, in their order, and fits the universal scalability
/// law to those that are found. The result is the search with the highest capacity, with
/// [`CapacityReport::scaling`].
///
/// # Errors
/// If a count cannot be planned, or the first probe cannot be made. A later failure ends the
/// searches with what is known, and is in the notes of the report.
pub fn find_scaling(
    request: &CapacityRequest,
    vary: Vary,
    counts: &[u32],
    objective: Objective<'_>,
    controls: &Controls,
    maker: &dyn MakeRun,
) -> Result<CapacityReport, Error> {
    let plans: Vec<(u32, Plan)> = counts
        .iter()
        .map(|&count| Ok((count, vary.at(&request.plan, count)?)))
        .collect::<Result<_, Error>>()?;
    let mut request = request.clone();
    let mut reports: Vec<(u32, CapacityReport)> = Vec::with_capacity(plans.len());
    let mut failure = None;
    for (count, plan) in plans {
        controls.progress(&format!("with {}", vary.words(count)));
        request.plan = plan;
        let report = match find_capacity(&request, objective, controls, maker) {
            Ok(report) => report,
            Err(error) if reports.is_empty() => return Err(error),
            Err(error) => {
                failure = Some(format!("the searches ended at {}: {error}", vary.words(count)));
                break;
            }
        };
        // The next search begins where this one ended, which spares it most of its bracket.
        if let Some(found) = report.capacity.found_per_second {
            request.search.first = (found.round() as u64).clamp(1, request.search.highest);
        }
        let is_interrupted = report.interrupted;
        reports.push((count, report));
        if is_interrupted {
            break;
        }
    }
    let mut report = join(reports, vary, request.search.seed)
        .ok_or_else(|| Error::plan("cannot search for a capacity without a count"))?;
    report.notes.extend(failure);
    Ok(report)
}

/// One report of several searches; `None` without a search.
fn join(reports: Vec<(u32, CapacityReport)>, vary: Vary, seed: u64) -> Option<CapacityReport> {
    let points: Vec<ScalingPoint> = reports
        .iter()
        .map(|(count, report)| ScalingPoint::new(*count, report.capacity.clone()))
        .collect();
    let started_at_ns = reports.first()?.1.started_at_ns;
    let took_seconds = reports.iter().map(|(_, report)| report.took_seconds).sum();
    let interrupted = reports.iter().any(|(_, report)| report.interrupted);
    let notes: Vec<String> = reports
        .iter()
        .flat_map(|(count, report)| {
            report
                .notes
                .iter()
                .map(|note| format!("{}: {note}", vary.words(*count)))
        })
        .collect();
    let best = reports.into_iter().max_by(|(_, one), (_, other)| {
        let found = |report: &CapacityReport| report.capacity.found_per_second.unwrap_or(0.0);
        found(one).total_cmp(&found(other))
    });
    let (count, mut report) = best?;
    let mut scaling = Scaling::default();
    vary.name().clone_into(&mut scaling.over);
    scaling.law = fit(&points, seed);
    scaling.points = points;
    report.scaling = Some(scaling);
    report.started_at_ns = started_at_ns;
    report.took_seconds = took_seconds;
    report.interrupted = interrupted;
    report.notes = vec![format!(
        "the capacity and the probes are those with {}",
        vary.words(count)
    )];
    report.notes.extend(notes);
    Some(report)
}

/// Fits the law to the capacities that were found; `None` for fewer than [`COUNTS_MIN`].
fn fit(points: &[ScalingPoint], seed: u64) -> Option<ScalingLaw> {
    let found: Vec<(f64, f64)> = points.iter().filter_map(ScalingPoint::found).collect();
    let law = Scalability::fit(&found)?;
    let highest = points
        .iter()
        .filter(|point| point.found().is_some())
        .map(|point| point.count)
        .max()?;
    let count = highest.saturating_mul(PREDICTED_TIMES);
    let predicted = predict(points, &law, f64::from(count), seed);
    Some(ScalingLaw::new(law, &found, count, predicted))
}

/// The throughput at a count by the law. Its interval comes from laws fitted to capacities that are
/// drawn from the intervals of the real ones.
fn predict(points: &[ScalingPoint], law: &Scalability, count: f64, seed: u64) -> Estimate {
    let mut draws = Draws::new(seed);
    let predictions: Vec<f64> = (0..DRAWS)
        .filter_map(|_| {
            let drawn: Vec<(f64, f64)> = points.iter().filter_map(|point| drawn(point, &mut draws)).collect();
            Some(Scalability::fit(&drawn)?.at(count))
        })
        .collect();
    let value = law.at(count);
    let end = |share| quantile(&predictions, share).unwrap_or(value);
    Estimate::new(value, end(0.025).min(value), end(0.975).max(value))
}

/// A capacity drawn from the interval of a real one, as if its logarithm were normal.
fn drawn(point: &ScalingPoint, draws: &mut Draws) -> Option<(f64, f64)> {
    let (count, found) = point.found()?;
    let (low, high) = (point.capacity.low_per_second?, point.capacity.high_per_second?);
    let deviation = (high / low).ln() / (2.0 * HALF_WIDTH);
    Some((count, found * (deviation * draws.normal()).exp()))
}

/// Why no law was fitted, if none was.
pub fn why_no_law(scaling: &Scaling) -> Option<String> {
    let found = scaling.points.iter().filter(|point| point.found().is_some()).count();
    scaling.law.is_none().then(|| {
        format!(
            "no law was fitted: a capacity was found at {found} of {} counts, and the fit takes {COUNTS_MIN}",
            scaling.points.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use tsb_core::report::capacity::Capacity;

    use super::*;
    use crate::plan::Transport;
    use tsb_core::wire::Protocol;

    fn searched(count: u32, found: Option<f64>) -> (u32, CapacityReport) {
        let mut report = CapacityReport::new(serde_json::Value::Null, 1, "rate", Vec::new());
        report.started_at_ns = i64::from(count);
        report.took_seconds = 2.0;
        report.notes.push("a note".to_owned());
        report.capacity = Capacity::default();
        report.capacity.found_per_second = found;
        report.capacity.low_per_second = found.map(|found| found * 0.98);
        report.capacity.high_per_second = found.map(|found| found * 1.02);
        (count, report)
    }

    /// 1,000 samples/s for one, 5 % of the work one at a time, 0.1 % for each pair.
    fn found_at(count: u32) -> f64 {
        let n = f64::from(count);
        1_000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.001 * n * (n - 1.0))
    }

    #[test]
    fn the_law_and_its_prediction_are_those_of_the_capacities() {
        let reports: Vec<_> = [1, 2, 4, 8, 16]
            .map(|count| searched(count, Some(found_at(count))))
            .into();
        let report = join(reports, Vary::Workers, 7).unwrap();
        let scaling = report.scaling.as_ref().unwrap();
        let law = scaling.law.as_ref().unwrap();
        assert!((law.parameters.contention - 0.05).abs() < 1e-6, "{law:?}");
        assert!((law.parameters.coherency - 0.001).abs() < 1e-6, "{law:?}");
        assert!(law.largest_deviation < 1e-9);
        assert_eq!(law.predicted_count, 160);
        let (predicted, truth) = (law.predicted_per_second, found_at(160));
        assert!((predicted.value - truth).abs() < 1e-3, "{predicted:?} {truth}");
        assert!(
            predicted.low < truth * 0.97 && predicted.high > truth * 1.03,
            "{predicted:?}"
        );
        assert_eq!((scaling.over.as_str(), scaling.points.len()), ("workers", 5));
        assert_eq!(report.capacity.found_per_second, Some(found_at(16)));
        assert_eq!((report.started_at_ns, report.took_seconds), (1, 10.0));
        assert_eq!(report.notes.len(), 6);
        assert_eq!(report.notes[0], "the capacity and the probes are those with 16 workers");
        assert_eq!(report.notes[1], "1 worker: a note");
        assert_eq!(why_no_law(scaling), None);
    }

    #[test]
    fn the_interval_of_a_prediction_covers_the_truth_in_95_of_100() {
        const TRIES: u64 = 400;
        let truth = found_at(160);
        let mut draws = Draws::new(3);
        let covered = (0..TRIES)
            .filter(|&seed| {
                let points: Vec<ScalingPoint> = [1, 2, 4, 8, 16]
                    .map(|count| {
                        // The interval of `searched` has this standard deviation.
                        let noise = (0.02 / HALF_WIDTH * draws.normal()).exp();
                        let (_, report) = searched(count, Some(found_at(count) * noise));
                        ScalingPoint::new(count, report.capacity)
                    })
                    .into();
                let predicted = fit(&points, seed).unwrap().predicted_per_second;
                (predicted.low..=predicted.high).contains(&truth)
            })
            .count();
        assert!((365..=395).contains(&covered), "{covered} of {TRIES}");
    }

    #[test]
    fn counts_without_a_capacity_are_no_points_of_the_law() {
        let reports = vec![
            searched(1, Some(found_at(1))),
            searched(2, Some(found_at(2))),
            searched(4, Some(found_at(4))),
            searched(8, None),
        ];
        let report = join(reports, Vary::InFlight, 7).unwrap();
        let scaling = report.scaling.unwrap();
        assert_eq!(scaling.law, None);
        let why = why_no_law(&scaling).unwrap();
        assert!(why.contains("3 of 4 counts"), "{why}");
        assert_eq!(report.capacity.found_per_second, Some(found_at(4)));
        assert!(join(Vec::new(), Vary::Workers, 7).is_none());
    }

    #[test]
    fn a_count_that_cannot_be_planned_is_refused() {
        let plan = Plan::default().complete().unwrap();
        assert_eq!(Vary::Workers.at(&plan, 4).unwrap().workers, 4);
        assert!(Vary::Workers.at(&plan, 0).is_err());
        // A store in process ends a write before it returns, and a wire of datagrams has no answers.
        for transport in [Transport::Inproc, Transport::Udp] {
            let plan = Plan {
                transport,
                ..plan.clone()
            };
            let refused = Vary::InFlight.at(&plan, 8).unwrap_err();
            assert!(format!("{refused:?}").contains("vary the workers"), "{refused:?}");
        }
        let plan = Plan {
            transport: Transport::Http,
            protocol: Protocol::Influx,
            ..plan
        };
        assert_eq!(Vary::InFlight.at(&plan, 8).unwrap().in_flight, Some(8));
    }
}
