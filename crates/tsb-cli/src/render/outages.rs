//! The outages of a store in one sentence, for the text and the page.

use tsb_core::report::experiment::hm9000::OutageRun;
use tsb_core::stats::{median, quantile};

/// Quantiles of how long a store took to recover and of how long it was silent, and what was lost.
pub fn outages_in_short(run: &OutageRun) -> String {
    let count = run.outages.len();
    let recovered: Vec<f64> = run
        .outages
        .iter()
        .filter_map(|outage| outage.recovered_after_seconds)
        .collect();
    let silence: Vec<f64> = run.outages.iter().map(|outage| outage.silence_seconds).collect();
    let recovery = if recovered.len() < count {
        format!(
            "in {} of {count} outages heartbeats were overdue until the next one",
            count - recovered.len()
        )
    } else {
        format!(
            "recovered after {} at the median, {} at the p90, {} at the most, of {count} outages",
            seconds(median(&recovered)),
            seconds(quantile(&recovered, 0.9)),
            seconds(quantile(&recovered, 1.0)),
        )
    };
    let failure = run
        .failure
        .as_ref()
        .map_or_else(String::new, |failure| format!("; the outages ended early: {failure}"));
    format!(
        "{}: {recovery}; silent for {} at the median, {} at the most; {} acknowledged instances lost{failure}",
        run.run.store,
        seconds(median(&silence)),
        seconds(quantile(&silence, 1.0)),
        run.run.lost,
    )
}

fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1} s"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::report::experiment::hm9000::Outage;

    fn run(recovered: &[Option<f64>]) -> OutageRun {
        let outage = |&recovered_after_seconds: &Option<f64>| Outage {
            recovered_after_seconds,
            silence_seconds: 1.5,
            ..Outage::default()
        };
        OutageRun {
            outages: recovered.iter().map(outage).collect(),
            ..OutageRun::default()
        }
    }

    #[test]
    fn quantiles_are_of_all_outages_or_of_none() {
        let text = outages_in_short(&run(&[Some(0.0), Some(2.0), Some(4.0)]));
        assert!(
            text.contains("2.0 s at the median, 3.6 s at the p90, 4.0 s at the most, of 3"),
            "{text}"
        );
        let text = outages_in_short(&run(&[Some(0.0), None]));
        assert!(text.contains("in 1 of 2 outages") && !text.contains("p90"), "{text}");
    }
}
