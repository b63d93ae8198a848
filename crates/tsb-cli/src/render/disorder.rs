//! What was left out of the feed of DalmatinerDB's benchmark, or changed in it, for the text and the page.

use tsb_core::report::experiment::dalmatiner::DalmatinerPlan;

/// Sentences; none if every target got every sample once and in time.
pub fn disorder(plan: &DalmatinerPlan) -> Vec<String> {
    let mut sentences = Vec::new();
    if plan.as_it_was {
        sentences.push(
            "As it was: Graphite got one sample in five, as the original feed sent it; its figures are of those."
                .to_owned(),
        );
    }
    let shares = [
        (plan.skipped, "were skipped"),
        (plan.repeated, "were sent twice"),
        (plan.late, "were sent one second late"),
    ];
    for (share, what) in shares {
        if share > 0.0 {
            sentences.push(format!("{:.1} % of the samples {what}.", share * 100.0));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_says_what_is_not_as_it_should_be() {
        let plan = DalmatinerPlan::default();
        assert!(disorder(&plan).is_empty());
        let plan = DalmatinerPlan {
            as_it_was: true,
            skipped: 0.02,
            late: 0.125,
            ..plan
        };
        let text = disorder(&plan).join(" ");
        for words in [
            "one sample in five",
            "2.0 % of the samples were skipped",
            "12.5 % of the samples were sent one",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }
}
