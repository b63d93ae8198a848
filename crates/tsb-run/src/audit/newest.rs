//! Checks a store's answers to "what is your newest sample" against what was sent and what is
//! stored.
//!
//! Staleness is computed from these answers, so a store that always answered "now" would look
//! fresh. During a run, [`NewestAnswers`] keeps the largest answer for each series and notices answers
//! that lie in the future or go backwards; when the run is read back, [`NewestAnswers::check`] compares
//! it with the newest sample that was sent and the newest one stored. Pure: no I/O, no clock.

use tsb_core::workload::Workload;
use tsb_core::{SeriesId, Timestamp};

/// Number of series that are listed by name; further ones are only counted.
const NAMED_MAX: usize = 5;

/// The way in which an answer is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// Newer than any sample that could have been sent by then.
    Ahead {
        /// The answer.
        said: Timestamp,
        /// The newest timestamp that could have been sent.
        sent: Timestamp,
    },
    /// Older than an earlier answer for the same series.
    Back {
        /// The answer; absent if the store said that it has no sample.
        said: Option<Timestamp>,
        /// The earlier answer.
        before: Timestamp,
    },
    /// The store says that it accepted something newer than anything that was sent.
    Accepted {
        /// The answer.
        said: Timestamp,
        /// The newest timestamp that was sent; absent if nothing was.
        sent: Option<Timestamp>,
    },
    /// Different from the newest sample that a query returns.
    Unlike {
        /// The answer; absent if the store said that it has no sample.
        said: Option<Timestamp>,
        /// The newest sample that the query returned; absent if it returned none.
        found: Option<Timestamp>,
    },
}

impl Wrong {
    fn words(self) -> String {
        let words = |at: Option<Timestamp>| at.map_or("no sample".to_owned(), |at| at.to_string());
        match self {
            Self::Ahead { said, sent } => {
                format!("the store said that its newest sample is of {said}, and nothing newer than {sent} was sent")
            }
            Self::Back { said, before } => format!(
                "the store said that its newest sample is of {before}, and later that it is {}",
                words(said)
            ),
            Self::Accepted { said, sent } => format!(
                "the store says that the newest sample it accepted is of {said}, and the newest that was sent is {}",
                words(sent)
            ),
            Self::Unlike { said, found } => format!(
                "the store says that its newest sample is {}, and a query returns {}",
                words(said),
                words(found)
            ),
        }
    }
}

/// Series with a wrong answer: the first few by name, the others as a count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrongAnswers {
    named: Vec<(SeriesId, Wrong)>,
    series: u64,
}

impl WrongAnswers {
    /// Adds a series.
    pub fn push(&mut self, series: SeriesId, wrong: Wrong) {
        self.series += 1;
        let place = self.named.partition_point(|(named, _)| *named < series);
        if place < NAMED_MAX {
            self.named.insert(place, (series, wrong));
            self.named.truncate(NAMED_MAX);
        }
    }

    /// Adds the entries of `other`, which concern other series.
    pub fn merge(&mut self, other: Self) {
        let named = other.named.len() as u64;
        for (series, wrong) in other.named {
            self.push(series, wrong);
        }
        self.series += other.series - named;
    }

    /// Whether no answer was wrong.
    pub const fn is_empty(&self) -> bool {
        self.series == 0
    }

    /// One sentence per named series, with its key, for the violations of the ledger.
    pub fn violations(&self, workload: &Workload) -> Vec<String> {
        let name = |id: SeriesId| {
            let key = workload.catalog().key(id);
            key.map_or_else(|| format!("series {id}"), |key| format!("{key} ({id})"))
        };
        let named = self.named.iter();
        let mut lines: Vec<String> = named
            .map(|&(id, wrong)| format!("newest of {}: {}", name(id), wrong.words()))
            .collect();
        let more = self.series - self.named.len() as u64;
        if more > 0 {
            lines.push(format!("and answers about {more} more series were wrong"));
        }
        lines
    }
}

/// The answers that a store gave during a run.
#[derive(Clone, Debug, Default)]
pub struct NewestAnswers {
    largest: Vec<Option<Timestamp>>,
    // Whether a series is in `wrong_answers` or `went_back` already: each is listed once.
    is_wrong: Vec<bool>,
    wrong_answers: WrongAnswers,
    went_back: WrongAnswers,
}

impl NewestAnswers {
    /// No answers yet, for this number of series.
    pub fn new(series: usize) -> Self {
        Self {
            largest: vec![None; series],
            is_wrong: vec![false; series],
            ..Self::default()
        }
    }

    /// Records an answer for the series from `first` on. `until` is the newest timestamp that
    /// can have been sent to them by then; absent if that cannot be computed because the run
    /// does not keep the fleet's own pace. Samples older than `kept_from` may have expired.
    pub fn note(
        &mut self,
        first: SeriesId,
        newest: &[Option<Timestamp>],
        until: Option<Timestamp>,
        kept_from: Timestamp,
    ) {
        let places = self.largest.iter_mut().zip(&mut self.is_wrong).skip(first.index());
        for (index, (&said, (largest, is_wrong))) in newest.iter().zip(places).enumerate() {
            let series = SeriesId(first.0 + index as u32);
            let before = std::mem::replace(largest, (*largest).max(said));
            if *is_wrong {
                continue;
            }
            if let Some((said, sent)) = said.zip(until).filter(|(said, sent)| said > sent) {
                *is_wrong = true;
                self.wrong_answers.push(series, Wrong::Ahead { said, sent });
            } else if let Some(before) = before.filter(|_| said < before)
                // If the last sample of a series is older than the retention, "no sample" is a
                // correct answer.
                && (said.is_some() || before >= kept_from)
            {
                *is_wrong = true;
                self.went_back.push(series, Wrong::Back { said, before });
            }
        }
    }

    /// Checks the answers for one series when it is read back. `sent` is the newest timestamp
    /// that was sent, `said` the store's current answer, `found` the newest timestamp that a
    /// query returns, `kept_from` the start of the retention.
    pub fn check(
        &self,
        series: SeriesId,
        sent: Option<Timestamp>,
        said: Option<Timestamp>,
        found: Option<Timestamp>,
        kept_from: Timestamp,
    ) -> Option<Wrong> {
        if self.is_wrong.get(series.index()).copied().unwrap_or(false) {
            return None;
        }
        let largest = self.largest.get(series.index()).copied().flatten();
        let ahead = said.max(largest).filter(|_| said.max(largest) > sent);
        if let Some(said) = ahead {
            let sent = sent.unwrap_or(Timestamp::MIN);
            return Some(Wrong::Ahead { said, sent });
        }
        if said != found {
            return Some(Wrong::Unlike { said, found });
        }
        let before = largest.filter(|before| said.is_none_or(|said| said < *before) && *before >= kept_from);
        before.map(|before| Wrong::Back { said, before })
    }

    /// The wrong answers noticed during the run. If some operations have no known outcome
    /// (`has_unknown`), a server may have shown samples that it never kept, and an answer that
    /// goes backwards is not counted as wrong.
    pub fn wrong_answers(&self, has_unknown: bool) -> WrongAnswers {
        let mut wrong_answers = self.wrong_answers.clone();
        if !has_unknown {
            wrong_answers.merge(self.went_back.clone());
        }
        wrong_answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "every answer may be absent")]
    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp::from_secs(seconds))
    }

    fn heard(answers: &[Option<Timestamp>], until: Option<Timestamp>, kept_from_s: i64) -> NewestAnswers {
        let mut heard = NewestAnswers::new(3);
        for answer in answers {
            let kept_from = Timestamp::from_secs(kept_from_s);
            heard.note(SeriesId(1), &[*answer, at(1_000)], until, kept_from);
        }
        heard
    }

    #[test]
    fn an_answer_from_the_future_is_ahead_and_one_of_now_is_not() {
        assert!(heard(&[at(10)], at(1_000), 0).wrong_answers(false).is_empty());
        let wrong_answers = heard(&[at(1_001), at(1_002)], at(1_000), 0).wrong_answers(true);
        let (said, sent) = (Timestamp::from_secs(1_001), Timestamp::from_secs(1_000));
        assert_eq!(wrong_answers.named, [(SeriesId(1), Wrong::Ahead { said, sent })]);
        assert_eq!(wrong_answers.series, 1);
        // Where the pace is not the fleet's, only the end tells.
        assert!(heard(&[at(1_001)], None, 0).wrong_answers(false).is_empty());
    }

    #[test]
    fn an_answer_that_goes_back_is_a_lie_but_for_retention_and_unknown_outcomes() {
        for said in [at(9), None] {
            let before = Timestamp::from_secs(10);
            let wrong_answers = heard(&[at(10), said], at(1_000), 0);
            assert_eq!(
                wrong_answers.wrong_answers(false).named,
                [(SeriesId(1), Wrong::Back { said, before })]
            );
            assert!(wrong_answers.wrong_answers(true).is_empty());
        }
        assert!(
            heard(&[None, at(10), at(10), at(11)], at(1_000), 0)
                .wrong_answers(false)
                .is_empty()
        );
        // What is older than 900 may be gone.
        assert!(heard(&[at(10), None], at(1_000), 900).wrong_answers(false).is_empty());
        assert!(!heard(&[at(10), at(9)], at(1_000), 900).wrong_answers(false).is_empty());
        assert!(!heard(&[at(900), None], at(1_000), 900).wrong_answers(false).is_empty());
    }

    #[test]
    fn newest_is_compared_with_sent_and_stored_samples() {
        let heard = heard(&[at(10)], at(1_000), 0);
        let check = |sent, said, found| heard.check(SeriesId(1), sent, said, found, Timestamp::MIN);
        assert_eq!(check(at(10), at(10), at(10)), None);
        assert_eq!(check(at(12), at(12), at(12)), None);
        let ahead = |said, sent| {
            Some(Wrong::Ahead {
                said: Timestamp::from_secs(said),
                sent,
            })
        };
        assert_eq!(check(at(9), at(9), at(9)), ahead(10, Timestamp::from_secs(9)));
        assert_eq!(check(at(12), at(13), at(12)), ahead(13, Timestamp::from_secs(12)));
        assert_eq!(check(None, None, None), ahead(10, Timestamp::MIN));
        let (said, found) = (at(11), at(12));
        assert_eq!(check(at(12), said, found), Some(Wrong::Unlike { said, found }));
        let said = at(9);
        let before = Timestamp::from_secs(10);
        assert_eq!(check(at(12), said, said), Some(Wrong::Back { said, before }));
        let gone = |kept_from| heard.check(SeriesId(1), at(10), None, None, Timestamp::from_secs(kept_from));
        assert_eq!(gone(11), None);
        assert_eq!(gone(10), Some(Wrong::Back { said: None, before }));
    }

    #[test]
    fn a_lie_is_named_once_and_by_key() {
        let spec = tsb_core::workload::WorkloadSpec {
            series: Some(108),
            ..tsb_core::workload::WorkloadSpec::new("mix".parse().unwrap(), 1)
        };
        let workload = Workload::new(&spec).unwrap();
        let mut wrong_answers = WrongAnswers::default();
        let wrong = Wrong::Unlike {
            said: at(1),
            found: None,
        };
        (0..7).rev().for_each(|id| wrong_answers.push(SeriesId(id), wrong));
        let mut other = WrongAnswers::default();
        other.push(SeriesId(1), wrong);
        other.merge(wrong_answers);
        let lines = other.violations(&workload);
        assert_eq!(lines.len(), NAMED_MAX + 1, "{lines:?}");
        let key = workload.catalog().key(SeriesId(0)).unwrap();
        assert!(lines[0].starts_with(&format!("newest of {key} (#0): ")), "{lines:?}");
        assert!(lines[0].ends_with("and a query returns no sample"), "{lines:?}");
        assert_eq!(lines[NAMED_MAX], "and answers about 3 more series were wrong");
        let mut heard = NewestAnswers::new(1);
        heard.note(SeriesId(0), &[at(5)], at(4), Timestamp::MIN);
        assert_eq!(heard.check(SeriesId(0), at(4), at(5), at(5), Timestamp::MIN), None);
    }
}
