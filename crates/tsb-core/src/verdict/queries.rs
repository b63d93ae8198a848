//! The rules about queries that were asked while samples were written.

use super::rules::{Findings, share};
use super::{COMPARED_SHARE_MIN, Evidence, HELD_SHARE_MIN, Measured, Status};

/// The figures of one stream of queries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryEvidence {
    /// Its name.
    pub name: String,
    /// Queries due per second; `None` in a closed loop.
    pub asked_per_second: Option<f64>,
    /// Queries answered per second.
    pub held_per_second: f64,
    /// p99 of the time from due to asked, in nanoseconds.
    pub lag_p99_ns: u64,
    /// p99 of the part of it that arose while no query of its thread was inside the store.
    pub own_lag_p99_ns: u64,
    /// Answers that came.
    pub answers: u64,
    /// Of these, answers that are known to be right or wrong.
    pub judged: u64,
}

impl QueryEvidence {
    /// Whether its own threads, which choose and check, were late, and not the store.
    const fn is_late_itself(&self) -> bool {
        self.own_lag_p99_ns > self.lag_p99_ns / 2
    }
}

impl Evidence {
    pub(super) fn queries(&self, findings: &mut Findings) {
        for stream in &self.queries {
            let name = &stream.name;
            if let Some(asked) = stream.asked_per_second.filter(|asked| *asked > 0.0) {
                let held = stream.held_per_second;
                let (status, why) = if stream.is_late_itself() {
                    let why = "choosing and checking took the time; give more --query-workers or ask less often";
                    (Status::GeneratorLimited, why)
                } else {
                    (Status::StoreLimited, "the store took the time")
                };
                let what = format!("queries of {name} answered, of the asked rate");
                findings.weigh(
                    Measured::share_at_least(status, &what, held / asked, HELD_SHARE_MIN),
                    &format!(
                        "{held:.1} queries per second of {name} were answered of {asked:.1} asked: {{figure}}; {why}"
                    ),
                );
            }
            if let Some(judged) = share(stream.judged, stream.answers) {
                let what = format!("answers to {name} compared, of those that came");
                findings.weigh(
                    Measured::share_at_least(Status::Unverified, &what, judged, COMPARED_SHARE_MIN),
                    &format!(
                        "{} of {} answers to {name} could be judged, {{figure}}; samples that were lost or refused make the others undecidable",
                        stream.judged, stream.answers
                    ),
                );
            }
        }
    }

    /// How many answers were right, as the end of a sentence; empty without queries.
    pub(super) fn right_answers(&self) -> String {
        if self.queries.is_empty() {
            return String::new();
        }
        let answers: u64 = self.queries.iter().map(|stream| stream.judged).sum();
        format!(", {answers} answers to queries right")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(held: f64, own_lag_p99_ns: u64, judged: u64) -> super::super::Verdict {
        let counts = 1_000;
        Evidence {
            due: counts,
            sent: counts,
            received: counts,
            accepted: counts,
            compared: counts,
            verified: counts,
            queries: vec![QueryEvidence {
                name: "q1".to_owned(),
                asked_per_second: Some(100.0),
                held_per_second: held,
                lag_p99_ns: 1_000_000,
                own_lag_p99_ns,
                answers: 1_000,
                judged,
            }],
            ..Evidence::default()
        }
        .verdict()
    }

    #[test]
    fn a_stream_that_is_not_held_is_the_stores_or_the_generators_fault() {
        assert_eq!(verdict(99.0, 0, 1_000).status, Status::Valid);
        assert_eq!(verdict(98.9, 0, 1_000).status, Status::StoreLimited);
        assert_eq!(verdict(98.9, 500_000, 1_000).status, Status::StoreLimited);
        assert_eq!(verdict(98.9, 500_001, 1_000).status, Status::GeneratorLimited);
        assert!(verdict(98.9, 0, 1_000).reasons[0].contains("98.9 queries per second of q1"));
    }

    #[test]
    fn answers_that_nobody_can_judge_leave_a_run_unverified() {
        assert_eq!(verdict(100.0, 0, 990).status, Status::Valid);
        assert_eq!(verdict(100.0, 0, 989).status, Status::Unverified);
        assert!(verdict(100.0, 0, 1_000).reasons[0].contains("1000 answers to queries right"));
    }
}
