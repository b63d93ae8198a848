//! The questions of a canary: which there are, when each is due, and how they were answered.

use std::collections::BTreeMap;

use tsb_core::latency::{Histogram, Quantiles};
use tsb_core::report::canary::CanaryQuestion;

const HOUR_NS: i64 = 3_600_000_000_000;
/// The longest range of a random question, and of one about doubtful samples.
pub(super) const RANDOM_NS: i64 = HOUR_NS;

/// What an answer was like; the worst of its samples counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AnswerOutcome {
    /// Everything in it was right.
    Right,
    /// It lacked a sample that had to be visible and was in no answer yet.
    Late,
    /// A sample was lost, altered, invented or duplicated, or was in an earlier answer and not in this
    /// one.
    Wrong,
}

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QuestionKind {
    /// Everything within the time that the canary looks back, once.
    Start,
    /// The newest timestamp of each series.
    Newest,
    /// What was written since everything before was settled.
    Fresh,
    /// Older samples that were missing or had another value in the last answer about them.
    Doubtful,
    /// The last hour.
    Hour,
    /// The last day.
    Day,
    /// The last week.
    Week,
    /// Some time of up to an hour, of one series or all.
    Random,
}

/// A question with a period of its own, and when it is due.
#[derive(Clone, Copy, Debug)]
struct Periodic {
    kind: QuestionKind,
    every_s: u32,
    due_s: u32,
}

/// The questions, their periods, and their answers.
#[derive(Debug)]
pub(super) struct Questions {
    periodic: Vec<Periodic>,
    answers: BTreeMap<QuestionKind, Answers>,
}

/// How a question was answered.
#[derive(Clone, Debug, Default)]
struct Answers {
    right: u64,
    late: u64,
    wrong: u64,
    failed: u64,
    times: CallTimes,
}

/// How long the calls of one kind took.
#[derive(Clone, Debug, Default)]
pub struct CallTimes {
    histogram: Histogram,
    sum_ns: u128,
}

impl CallTimes {
    /// Adds a call.
    pub(super) fn add(&mut self, time_ns: u64) {
        self.histogram.record(time_ns);
        self.sum_ns += u128::from(time_ns);
    }

    /// The times.
    pub const fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// The sum of all times, in nanoseconds.
    pub const fn sum_ns(&self) -> u128 {
        self.sum_ns
    }
}

impl QuestionKind {
    /// The word in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Newest => "newest",
            Self::Fresh => "fresh",
            Self::Doubtful => "doubtful",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Random => "random",
        }
    }

    /// How far back a question about a fixed time reaches, in nanoseconds.
    pub(super) const fn reaches_ns(self) -> Option<i64> {
        match self {
            Self::Hour => Some(HOUR_NS),
            Self::Day => Some(24 * HOUR_NS),
            Self::Week => Some(7 * 24 * HOUR_NS),
            _ => None,
        }
    }
}

impl Questions {
    /// The questions of a canary that looks back this far. One about a day is left out where the
    /// canary looks back an hour, since it would be the same.
    pub(super) fn new(keeps_ns: i64) -> Self {
        let periods = [
            (QuestionKind::Hour, 60, 0),
            (QuestionKind::Random, 60, 0),
            (QuestionKind::Day, 3_600, HOUR_NS),
            (QuestionKind::Week, 6 * 3_600, 24 * HOUR_NS),
        ];
        let asked = periods.into_iter().filter(|(.., longer_than)| keeps_ns > *longer_than);
        let periodic = asked.map(|(kind, every_s, _)| Periodic {
            kind,
            every_s,
            due_s: every_s,
        });
        let periodic: Vec<Periodic> = periodic.collect();
        let others = [
            QuestionKind::Start,
            QuestionKind::Newest,
            QuestionKind::Fresh,
            QuestionKind::Doubtful,
        ];
        let kinds = periodic.iter().map(|periodic| periodic.kind).chain(others);
        Self {
            answers: kinds.map(|kind| (kind, Answers::default())).collect(),
            periodic,
        }
    }

    /// The questions that are due, each once however late it is.
    pub(super) fn due(&mut self, elapsed_s: u32) -> Vec<QuestionKind> {
        let due = self.periodic.iter_mut().filter(|periodic| periodic.due_s <= elapsed_s);
        due.map(|periodic| {
            periodic.due_s = elapsed_s + periodic.every_s;
            periodic.kind
        })
        .collect()
    }

    /// Notes an answer, and the time that it took.
    pub(super) fn answered(&mut self, kind: QuestionKind, outcome: AnswerOutcome, time_ns: u64) {
        let answers = self.answers.entry(kind).or_default();
        *match outcome {
            AnswerOutcome::Right => &mut answers.right,
            AnswerOutcome::Late => &mut answers.late,
            AnswerOutcome::Wrong => &mut answers.wrong,
        } += 1;
        answers.times.add(time_ns);
    }

    /// Notes a question that was not answered.
    pub(super) fn failed(&mut self, kind: QuestionKind) {
        self.answers.entry(kind).or_default().failed += 1;
    }

    /// The times of the answers, by the name of the question.
    pub(super) fn times(&self) -> impl Iterator<Item = (&'static str, &CallTimes)> {
        self.answers.iter().map(|(kind, answers)| (kind.name(), &answers.times))
    }

    /// The answers by the name of the question.
    pub(super) fn report(&self) -> BTreeMap<String, CanaryQuestion> {
        let answers = self.answers.iter();
        answers
            .map(|(kind, answers)| {
                let time = Quantiles::new(answers.times.histogram());
                let question = CanaryQuestion::new([answers.right, answers.late, answers.wrong, answers.failed], time);
                (kind.name().to_owned(), question)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_due_once_however_late_and_not_where_it_says_nothing_new() {
        let week_ns = 7 * 24 * HOUR_NS;
        let mut questions = Questions::new(week_ns);
        assert_eq!(questions.due(59), []);
        assert_eq!(questions.due(60), [QuestionKind::Hour, QuestionKind::Random]);
        assert_eq!(questions.due(119), []);
        let late = questions.due(100_000);
        assert_eq!(
            late,
            [
                QuestionKind::Hour,
                QuestionKind::Random,
                QuestionKind::Day,
                QuestionKind::Week
            ]
        );
        assert_eq!(questions.due(100_001), []);
        let mut brief = Questions::new(HOUR_NS);
        assert_eq!(brief.due(1_000_000), [QuestionKind::Hour, QuestionKind::Random]);
    }

    #[test]
    fn answers_are_counted_by_question() {
        let mut questions = Questions::new(HOUR_NS);
        questions.answered(QuestionKind::Newest, AnswerOutcome::Right, 5);
        questions.answered(QuestionKind::Newest, AnswerOutcome::Late, 6);
        questions.answered(QuestionKind::Newest, AnswerOutcome::Wrong, 7);
        questions.failed(QuestionKind::Newest);
        let report = questions.report();
        let newest = report["newest"];
        assert_eq!((newest.right, newest.late, newest.wrong, newest.failed), (1, 1, 1, 1));
        assert_eq!((newest.answer.count, newest.answer.max_ns), (3, Some(7)));
        // Those that were not asked are there with zeros.
        assert_eq!(report.len(), 6);
        assert_eq!(report["doubtful"], CanaryQuestion::default());
    }
}
