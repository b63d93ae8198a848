//! What a store says its newest samples are, held against what was sent and what is there.
//!
//! Staleness is taken from these answers, so a store that answers "now" would look fresh.
//! While a run goes on, [`Heard`] keeps the largest answer of each series, and notices one
//! that lies in the future or goes back; when the run is read back, [`Heard::check`] holds it
//! against the newest sample that was sent and the newest one that is there. Pure.

use tsb_core::workload::Workload;
use tsb_core::{SeriesId, Timestamp};

/// Series named of each kind of wrong answer; the others are counted.
const NAMED_MAX: usize = 5;

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Newer than anything that could have been sent by then.
    Ahead {
        /// The answer.
        said: Timestamp,
        /// The newest that could have been sent.
        sent: Timestamp,
    },
    /// Older than an earlier answer.
    Back {
        /// The answer; absent: there is no sample.
        said: Option<Timestamp>,
        /// The earlier one.
        before: Timestamp,
    },
    /// The store says that it accepted something newer than anything that was sent.
    Accepted {
        /// The answer.
        said: Timestamp,
        /// The newest that was sent; absent: nothing was.
        sent: Option<Timestamp>,
    },
    /// Not the newest sample that a query returns.
    Unlike {
        /// The answer; absent: there is no sample.
        said: Option<Timestamp>,
        /// The newest sample of the query; absent: there is none.
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

/// Series with a wrong answer: the first by name, the others as a count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lies {
    named: Vec<(SeriesId, Wrong)>,
    series: u64,
}

impl Lies {
    /// One more series.
    pub fn push(&mut self, series: SeriesId, wrong: Wrong) {
        self.series += 1;
        let place = self.named.partition_point(|(named, _)| *named < series);
        if place < NAMED_MAX {
            self.named.insert(place, (series, wrong));
            self.named.truncate(NAMED_MAX);
        }
    }

    /// Adds those of other series.
    pub fn merge(&mut self, other: Self) {
        let named = other.named.len() as u64;
        for (series, wrong) in other.named {
            self.push(series, wrong);
        }
        self.series += other.series - named;
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.series == 0
    }

    /// As violations of the ledger, with the keys of the series.
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
            lines.push(format!("and `newest` was wrong of {more} more series"));
        }
        lines
    }
}

/// The answers that were given while a run went on.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    largest: Vec<Option<Timestamp>>,
    // Whether a series is among the lies already: each is named once.
    is_wrong: Vec<bool>,
    lies: Lies,
    went_back: Lies,
}

impl Heard {
    /// Nothing yet, of this number of series.
    pub fn new(series: usize) -> Self {
        Self {
            largest: vec![None; series],
            is_wrong: vec![false; series],
            ..Self::default()
        }
    }

    /// One answer for the series from `first` on. `until` is the newest timestamp that can have
    /// been sent to them by then; absent where nobody knows, since the pace of the run is not
    /// the fleet's. What is older than `kept_from` may be gone.
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
                self.lies.push(series, Wrong::Ahead { said, sent });
            } else if let Some(before) = before.filter(|_| said < before)
                // A series whose last sample is older than the retention has none any more.
                && (said.is_some() || before >= kept_from)
            {
                *is_wrong = true;
                self.went_back.push(series, Wrong::Back { said, before });
            }
        }
    }

    /// What is wrong with the answers of one series, now that it is read back. `sent` is the
    /// newest that was sent, `said` the answer of now, `found` the newest that a query
    /// returns, `kept_from` where the retention begins.
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

    /// What was wrong already while the run went on. Where operations have no known outcome,
    /// a server may have shown what it never kept, so that going back is no lie.
    pub fn lies(&self, has_unknown: bool) -> Lies {
        let mut lies = self.lies.clone();
        if !has_unknown {
            lies.merge(self.went_back.clone());
        }
        lies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "every answer may be absent")]
    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp::from_secs(seconds))
    }

    fn heard(answers: &[Option<Timestamp>], until: Option<Timestamp>, kept_from_s: i64) -> Heard {
        let mut heard = Heard::new(3);
        for answer in answers {
            let kept_from = Timestamp::from_secs(kept_from_s);
            heard.note(SeriesId(1), &[*answer, at(1_000)], until, kept_from);
        }
        heard
    }

    #[test]
    fn an_answer_from_the_future_is_ahead_and_one_of_now_is_not() {
        assert!(heard(&[at(10)], at(1_000), 0).lies(false).is_empty());
        let lies = heard(&[at(1_001), at(1_002)], at(1_000), 0).lies(true);
        let (said, sent) = (Timestamp::from_secs(1_001), Timestamp::from_secs(1_000));
        assert_eq!(lies.named, [(SeriesId(1), Wrong::Ahead { said, sent })]);
        assert_eq!(lies.series, 1);
        // Where the pace is not the fleet's, only the end tells.
        assert!(heard(&[at(1_001)], None, 0).lies(false).is_empty());
    }

    #[test]
    fn an_answer_that_goes_back_is_a_lie_but_for_retention_and_unknown_outcomes() {
        for said in [at(9), None] {
            let before = Timestamp::from_secs(10);
            let lies = heard(&[at(10), said], at(1_000), 0);
            assert_eq!(lies.lies(false).named, [(SeriesId(1), Wrong::Back { said, before })]);
            assert!(lies.lies(true).is_empty());
        }
        assert!(
            heard(&[None, at(10), at(10), at(11)], at(1_000), 0)
                .lies(false)
                .is_empty()
        );
        // What is older than 900 may be gone.
        assert!(heard(&[at(10), None], at(1_000), 900).lies(false).is_empty());
        assert!(!heard(&[at(10), at(9)], at(1_000), 900).lies(false).is_empty());
        assert!(!heard(&[at(900), None], at(1_000), 900).lies(false).is_empty());
    }

    #[test]
    fn what_was_said_is_held_against_what_was_sent_and_what_is_there() {
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
        let mut lies = Lies::default();
        let wrong = Wrong::Unlike {
            said: at(1),
            found: None,
        };
        (0..7).rev().for_each(|id| lies.push(SeriesId(id), wrong));
        let mut other = Lies::default();
        other.push(SeriesId(1), wrong);
        other.merge(lies);
        let lines = other.violations(&workload);
        assert_eq!(lines.len(), NAMED_MAX + 1, "{lines:?}");
        let key = workload.catalog().key(SeriesId(0)).unwrap();
        assert!(lines[0].starts_with(&format!("newest of {key} (#0): ")), "{lines:?}");
        assert!(lines[0].ends_with("and a query returns no sample"), "{lines:?}");
        assert_eq!(lines[NAMED_MAX], "and `newest` was wrong of 3 more series");
        let mut heard = Heard::new(1);
        heard.note(SeriesId(0), &[at(5)], at(4), Timestamp::MIN);
        assert_eq!(heard.check(SeriesId(0), at(4), at(5), at(5), Timestamp::MIN), None);
    }
}
