//! Runs put together: a point of the curve for each store and number of apps, and where each
//! store breaks.

use tsb_core::report::experiment::Figure;
use tsb_core::report::experiment::hm9000::{Break, CorrectedRun, CurvePoint, Hm9000Details};
use tsb_core::resource::Usage;

/// Fills in the curve and the breaks.
pub(super) fn summarize(details: &mut Hm9000Details, stores: &[String]) {
    for store in stores {
        let of_store = || details.runs.iter().filter(|run| run.store == *store);
        let mut sizes: Vec<usize> = of_store().map(|run| run.apps).collect();
        sizes.extend(
            details
                .as_it_was
                .iter()
                .filter(|run| run.store == *store)
                .map(|run| run.apps),
        );
        sizes.sort_unstable();
        sizes.dedup();
        let points: Vec<CurvePoint> = sizes
            .into_iter()
            .map(|apps| {
                point(
                    details,
                    store,
                    apps,
                    &of_store().filter(|run| run.apps == apps).collect::<Vec<_>>(),
                )
            })
            .collect();
        details.breaks.extend(break_of(store, &points, &details.runs));
        details.curve.extend(points);
    }
}

fn point(details: &Hm9000Details, store: &str, apps: usize, runs: &[&CorrectedRun]) -> CurvePoint {
    let figure =
        |of: fn(&CorrectedRun) -> Option<f64>| Figure::of(&runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>());
    let as_it_was = details
        .as_it_was
        .iter()
        .find(|run| run.store == store && run.apps == apps);
    CurvePoint {
        store: store.to_owned(),
        apps,
        document_fresh_at: as_it_was.and_then(|run| run.fresh_at_seconds),
        fresh_at: figure(|run| run.fresh_at_seconds),
        keys_per_second: figure(|run| Some(run.keys_per_second)),
        response_p90_ms: figure(|run| Some(run.response.p90_ns? as f64 / 1e6)),
        response_p99_ms: figure(|run| Some(run.response.p99_ns? as f64 / 1e6)),
        cpu_seconds_per_million: figure(cpu_seconds_per_million),
        rounds_kept: runs.iter().filter(|run| run.is_kept).count(),
        rounds: runs.len(),
    }
}

/// Of this process and the servers on this machine.
fn cpu_seconds_per_million(run: &CorrectedRun) -> Option<f64> {
    let own = run.own.as_ref()?;
    let all = run.servers.iter().chain([own]);
    let cpu_ns: u64 = all.map(Usage::cpu_ns).sum();
    (run.keys_acknowledged > 0).then(|| cpu_ns as f64 / 1e9 / (run.keys_acknowledged as f64 / 1e6))
}

fn break_of(store: &str, points: &[CurvePoint], runs: &[CorrectedRun]) -> Option<Break> {
    let measured = || points.iter().filter(|point| point.rounds > 0);
    measured().next()?;
    let has_broken = |point: &&CurvePoint| point.rounds_kept < point.rounds;
    let broke = measured().find(has_broken).map(|point| point.apps);
    let kept = measured().take_while(|point| !has_broken(point)).last();
    let reason = runs
        .iter()
        .filter(|run| run.store == store && Some(run.apps) == broke)
        .find_map(|run| run.broke.first());
    Some(Break {
        store: store.to_owned(),
        kept: kept.map(|point| point.apps),
        broke,
        why: reason
            .cloned()
            .unwrap_or_else(|| "it kept every number that was tried".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(apps: usize, round: u32, broke: &[&str]) -> CorrectedRun {
        CorrectedRun {
            store: "memory:".to_owned(),
            apps,
            round,
            keys_per_second: 100.0 + f64::from(round),
            is_kept: broke.is_empty(),
            broke: broke.iter().map(|text| (*text).to_owned()).collect(),
            ..CorrectedRun::default()
        }
    }

    #[test]
    fn a_store_breaks_at_the_smallest_number_that_one_round_did_not_keep() {
        let mut details = Hm9000Details {
            runs: vec![
                run(1_000, 0, &[]),
                run(1_000, 1, &[]),
                run(2_000, 0, &[]),
                run(2_000, 1, &["behind"]),
                run(4_000, 0, &["lost"]),
                run(4_000, 1, &["lost"]),
            ],
            ..Hm9000Details::default()
        };
        summarize(&mut details, &["memory:".to_owned(), "sqlite:".to_owned()]);
        let [found] = &details.breaks[..] else {
            panic!("{:?}", details.breaks)
        };
        assert_eq!(
            (found.kept, found.broke, found.why.as_str()),
            (Some(1_000), Some(2_000), "behind")
        );
        let kept: Vec<(usize, usize, usize)> = details
            .curve
            .iter()
            .map(|point| (point.apps, point.rounds_kept, point.rounds))
            .collect();
        assert_eq!(kept, [(1_000, 2, 2), (2_000, 1, 2), (4_000, 0, 2)]);
        let speed = details.curve[0].keys_per_second.unwrap();
        assert_eq!((speed.mean, speed.rounds), (100.5, 2));
        assert!(speed.low.unwrap() < 100.5);
    }
}
