//! The rounds of each target together.

use tsb_core::report::experiment::Figure;
use tsb_core::report::experiment::dalmatiner::{DalmatinerDetails, DalmatinerPlan, TargetRun, TargetSummary};
use tsb_core::verdict::Status;

use crate::dalmatiner::feed::Load;

/// Fills in the summaries, in the order of the targets.
pub(super) fn summarize(details: &mut DalmatinerDetails, plan: &DalmatinerPlan) {
    for series in &plan.series {
        for target in &plan.targets {
            let of = |load: Load| -> Vec<&TargetRun> {
                let runs = details.feeds.iter();
                runs.filter(|run| run.target.name == *target && run.series == *series && run.load == load.name())
                    .collect()
            };
            let summary = summary(&of(Load::Feed), &of(Load::Peak), *series);
            details.summaries.extend(summary);
        }
    }
}

fn summary(feeds: &[&TargetRun], peaks: &[&TargetRun], series: u64) -> Option<TargetSummary> {
    let first = feeds.first().or(peaks.first())?;
    let figure =
        |of: fn(&TargetRun) -> Option<f64>| Figure::of(&feeds.iter().filter_map(|run| of(run)).collect::<Vec<_>>());
    // A loop that lost samples or failed has no rate.
    let rates = peaks.iter().filter(|run| run.verified == run.sent && run.sent > 0);
    Some(TargetSummary {
        target: first.target.clone(),
        series,
        rounds: feeds.len(),
        rounds_valid: feeds.iter().filter(|run| run.status == Status::Valid).count(),
        cpu_seconds_per_million: figure(|run| run.cpu_seconds_per_million),
        last_write_cpu_seconds: figure(|run| run.last_write_cpu_seconds),
        rss_bytes: figure(|run| run.rss_bytes.map(|bytes| bytes as f64)),
        page_cache_bytes: figure(|run| run.page_cache_bytes.map(|bytes| bytes as f64)),
        verified: feeds.iter().map(|run| run.verified).sum(),
        sent: feeds.iter().map(|run| run.sent).sum(),
        peak_per_second: Figure::of(&rates.map(|run| run.held_per_second).collect::<Vec<_>>()),
    })
}

#[cfg(test)]
mod tests {
    use tsb_core::latency::Quantiles;
    use tsb_core::report::experiment::dalmatiner::TestedTarget;

    use super::*;

    fn run(load: Load, sent: u64, verified: u64) -> TargetRun {
        TargetRun {
            target: TestedTarget {
                name: "x".to_owned(),
                ..TestedTarget::default()
            },
            round: 0,
            series: 10,
            load: load.name().to_owned(),
            status: Status::Valid,
            reasons: Vec::new(),
            due: sent,
            sent,
            verified,
            lost: sent - verified,
            altered: 0,
            held_per_second: sent as f64,
            cpu_seconds_per_million: (load == Load::Feed).then_some(sent as f64),
            last_write_cpu_seconds: None,
            client_cpu_seconds_per_million: None,
            rss_bytes: None,
            page_cache_bytes: None,
            response: Quantiles::default(),
        }
    }

    #[test]
    fn a_loop_that_lost_samples_has_no_highest_rate() {
        let mut details = DalmatinerDetails {
            feeds: vec![
                run(Load::Feed, 10, 10),
                run(Load::Feed, 20, 20),
                run(Load::Peak, 900, 899),
                run(Load::Peak, 500, 500),
            ],
            ..DalmatinerDetails::default()
        };
        let plan = DalmatinerPlan {
            targets: vec!["x".to_owned(), "y".to_owned()],
            series: vec![10, 20],
            ..DalmatinerPlan::default()
        };
        summarize(&mut details, &plan);
        let [summary] = &details.summaries[..] else {
            panic!("{:?}", details.summaries)
        };
        assert_eq!(summary.peak_per_second.map(|figure| figure.mean), Some(500.0));
        assert_eq!(summary.cpu_seconds_per_million.map(|figure| figure.mean), Some(15.0));
        assert_eq!((summary.rounds, summary.rounds_valid, summary.verified), (2, 2, 30));
        assert_eq!(summary.rss_bytes, None);
    }
}
