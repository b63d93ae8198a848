//! The rounds of each backend, and of each way, together.

use tsb_core::latency::Quantiles;
use tsb_core::report::experiment::Figure;
use tsb_core::report::experiment::mohawk::{
    ClassicRun, ClassicSummary, LoadRun, LoadSummary, MohawkDetails, ProcessLoad,
};

use super::TimesByWay;
use crate::mohawk::load::Way;
use crate::mohawk::processes::{Role, of_role};

/// CPU time is counted in ticks of 10 ms: less than ten of them are no figure. In seconds.
const CPU_MIN: f64 = 0.1;

/// Fills in the summaries, in the order of the backends.
pub(super) fn summarize(details: &mut MohawkDetails, backends: &[String], times: &TimesByWay) {
    for backend in backends {
        let runs: Vec<&ClassicRun> = details
            .as_it_was
            .iter()
            .filter(|run| run.backend.name == *backend)
            .collect();
        details.classic.extend(classic(&runs));
        for way in Way::ALL {
            let runs: Vec<&LoadRun> = details
                .corrected
                .iter()
                .filter(|run| run.backend.name == *backend && run.way == way.name())
                .collect();
            details.ways.extend(loaded(&runs, times));
        }
    }
}

/// The CPU time of a part; `None` if it did not take part.
fn cpu_seconds(processes: &[ProcessLoad], role: Role) -> Option<f64> {
    of_role(processes, role)
        .map(|load| load.cpu_seconds)
        .reduce(|a, b| a + b)
}

/// The most resident memory of a part that was seen.
fn rss_bytes(processes: &[ProcessLoad], role: Role) -> Option<f64> {
    let each = of_role(processes, role).map(|load| {
        let seen = load.moments.iter().map(|moment| moment.rss_bytes);
        seen.chain([load.rss_bytes]).max().unwrap_or_default() as f64
    });
    each.reduce(|a, b| a + b)
}

fn classic(runs: &[&ClassicRun]) -> Option<ClassicSummary> {
    let first = runs.first()?;
    let figure = |of: &dyn Fn(&ClassicRun) -> Option<f64>| {
        Figure::of(&runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>())
    };
    let agreed = |of: fn(&ClassicRun) -> u64| runs.iter().all(|run| of(run) == of(first)).then(|| of(first));
    Some(ClassicSummary {
        backend: first.backend.clone(),
        seconds: figure(&|run| Some(run.seconds)),
        client_cpu: figure(&|run| cpu_seconds(&run.processes, Role::Client)),
        endpoint_cpu: figure(&|run| cpu_seconds(&run.processes, Role::Endpoint)),
        database_cpu: figure(&|run| cpu_seconds(&run.processes, Role::Database)),
        endpoint_rss: figure(&|run| rss_bytes(&run.processes, Role::Endpoint)),
        database_rss: figure(&|run| rss_bytes(&run.processes, Role::Database)),
        write_ms: figure(&|run| (run.write.count > 0).then(|| 1e3 * run.write_seconds / run.write.count as f64)),
        rows: agreed(|run| run.rows),
        empty: agreed(|run| run.empty),
        rounds_right: runs.iter().filter(|run| run.wrong.is_empty()).count(),
        rounds: runs.len(),
    })
}

fn loaded(runs: &[&LoadRun], times: &TimesByWay) -> Option<LoadSummary> {
    let first = runs.first()?;
    let figure =
        |of: &dyn Fn(&LoadRun) -> Option<f64>| Figure::of(&runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>());
    let per_request = |role: Role| {
        figure(&move |run: &LoadRun| {
            let seconds = cpu_seconds(&run.processes, role).filter(|seconds| *seconds >= CPU_MIN)?;
            (run.sent > 0).then(|| 1e6 * seconds / run.sent as f64)
        })
    };
    let times = times.get(&(first.backend.name.clone(), first.way.clone()));
    Some(LoadSummary {
        backend: first.backend.clone(),
        way: first.way.clone(),
        requests_per_second: figure(&|run| Some(run.requests_per_second)),
        samples_per_second: figure(&|run| Some(run.samples_per_second)),
        write: times.map(|times| Quantiles::new(&times.write)).unwrap_or_default(),
        read: times.map(|times| Quantiles::new(&times.read)).unwrap_or_default(),
        client_us: per_request(Role::Client),
        endpoint_us: per_request(Role::Endpoint),
        database_us: per_request(Role::Database),
        confirmed: runs.iter().map(|run| run.confirmed).sum(),
        verified: runs.iter().map(|run| run.verified).sum(),
        unanswered: runs.iter().map(|run| run.due - run.sent + run.failed).sum(),
        rounds: runs.len(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tsb_core::report::experiment::mohawk::{ProcessMoment, TestedBackend};

    use super::*;
    use crate::mohawk::experiment::Times;

    fn backend() -> TestedBackend {
        TestedBackend {
            name: "ring:".to_owned(),
            ..TestedBackend::default()
        }
    }

    fn process(role: &str, cpu_seconds: f64, rss: &[u64]) -> ProcessLoad {
        ProcessLoad {
            role: role.to_owned(),
            cpu_seconds,
            moments: rss
                .iter()
                .map(|rss_bytes| ProcessMoment {
                    rss_bytes: *rss_bytes,
                    ..ProcessMoment::default()
                })
                .collect(),
            ..ProcessLoad::default()
        }
    }

    #[test]
    fn rounds_are_means_and_parts_stay_apart() {
        let run = |round: u32, rows: u64| ClassicRun {
            backend: backend(),
            round,
            rows,
            seconds: 2.0 + f64::from(round),
            processes: vec![
                process("client", 1.0, &[]),
                process("endpoint", 0.5, &[5, 9, 7]),
                process("database", 0.25, &[3]),
                process("database", 0.25, &[4]),
            ],
            ..ClassicRun::default()
        };
        let mut details = MohawkDetails {
            as_it_was: vec![run(0, 998), run(1, 998)],
            ..MohawkDetails::default()
        };
        details.as_it_was[1].wrong.push("x".to_owned());
        let mut differ = details.clone();
        differ.as_it_was[1].rows = 997;
        let names = ["sqlite:".to_owned(), "ring:".to_owned()];
        summarize(&mut details, &names, &HashMap::new());
        let [summary] = &details.classic[..] else {
            panic!("{details:?}")
        };
        assert_eq!((summary.rows, summary.rounds_right, summary.rounds), (Some(998), 1, 2));
        assert_eq!(summary.seconds.unwrap().mean, 2.5);
        assert_eq!(summary.endpoint_cpu.unwrap().mean, 0.5);
        assert_eq!(summary.database_cpu.unwrap().mean, 0.5);
        assert_eq!(summary.endpoint_rss.unwrap().mean, 9.0);
        assert_eq!(summary.database_rss.unwrap().mean, 7.0);
        assert_eq!(summary.write_ms, None);
        summarize(&mut differ, &names, &HashMap::new());
        assert_eq!(differ.classic[0].rows, None, "rounds that differ have no common number");
    }

    #[test]
    fn what_was_due_and_not_answered_is_counted_over_the_rounds() {
        let run = LoadRun {
            backend: backend(),
            way: "open".to_owned(),
            due: 100,
            sent: 90,
            failed: 3,
            processes: vec![process("endpoint", 0.18, &[]), process("client", 0.09, &[])],
            ..LoadRun::default()
        };
        let mut details = MohawkDetails {
            corrected: vec![run.clone(), run],
            ..MohawkDetails::default()
        };
        let mut times = Times::default();
        times.write.record_n(1_000, 30);
        let key = ("ring:".to_owned(), "open".to_owned());
        summarize(&mut details, &["ring:".to_owned()], &HashMap::from([(key, times)]));
        let [summary] = &details.ways[..] else {
            panic!("{details:?}")
        };
        assert_eq!((summary.unanswered, summary.rounds, summary.write.count), (26, 2, 30));
        assert!((summary.endpoint_us.unwrap().mean - 2_000.0).abs() < 1e-9);
        assert_eq!(summary.client_us, None, "nine ticks are no figure");
    }
}
