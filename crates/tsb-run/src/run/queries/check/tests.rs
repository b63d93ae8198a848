//! Answers of a store to questions about a fleet that was written up to a tick.

use std::sync::Arc;

use tsb_core::time::{MonotonicClock, SECOND_NS};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::throttle::{Throttle, ThrottleOptions};
use tsb_stores::{Refusals, Store};

use super::*;
use crate::plan::Plan;

const BASE: Timestamp = Timestamp::from_secs(1_700_000_000);
const TICKS: u64 = 300;

/// A fleet of which every sample up to a tick was written.
struct Written {
    context: RunContext,
    history: History,
    store: Arc<dyn Store>,
}

fn written(change: impl FnOnce(&mut Plan)) -> Written {
    let mut plan = Plan::default();
    plan.workload.series = Some(108);
    change(&mut plan);
    let context = RunContext::new(&plan.complete().unwrap(), 1).unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
    store.define(&context.workload.catalog().definitions()).unwrap();
    let groups = context.workload.groups().len();
    let mut generator = context.workload.generator(0..groups, BASE);
    let mut refused = Refusals::new();
    for tick in 0..TICKS {
        for group in 0..groups {
            let ack = store.write(&generator.operation(group, tick), &mut refused).unwrap();
            assert_eq!(ack.rejected, 0);
        }
    }
    let history = History::default();
    Written {
        context,
        history,
        store,
    }
}

fn shapes() -> [QueryShape; 6] {
    let (series, span_ns) = (3, 100 * SECOND_NS);
    [
        QueryShape::Last { series },
        QueryShape::Raw { series, span_ns },
        QueryShape::Outside {
            series,
            span_ns,
            below: 10.0,
            above: 90.0,
        },
        QueryShape::Statistics { series, span_ns },
        QueryShape::Steps {
            series,
            span_ns,
            step_ns: 7 * SECOND_NS,
            by: Consolidation::Average,
        },
        QueryShape::Steps {
            series,
            span_ns,
            step_ns: 7 * SECOND_NS,
            by: Consolidation::Max,
        },
    ]
}

const IDS: [SeriesId; 3] = [SeriesId(5), SeriesId(107), SeriesId(60)];

impl Written {
    /// The end of the samples whose operations have all been written.
    fn end(&self) -> Timestamp {
        let late = self.context.workload.late_ticks_max() as i64;
        BASE + (TICKS as i64 - late - 1) * SECOND_NS as i64
    }

    fn asked(&self, shape: QueryShape) -> AnsweredQuery<'static> {
        let end = self.end();
        let start = shape
            .span_ns()
            .map_or(Timestamp::MIN, |span_ns| end + -(span_ns as i64));
        AnsweredQuery {
            ids: &IDS,
            range: TimeRange { start, end },
            kept_from: Timestamp::MIN,
            handed_over: BASE + (TICKS as i64 + 2) * SECOND_NS as i64,
        }
    }

    fn answer(&self, shape: QueryShape) -> QueryAnswer {
        let asked = self.asked(shape);
        let mut answer = QueryAnswer::default();
        answer.begin(IDS.len());
        answer.ask(&*self.store, shape, &IDS, asked.range).unwrap();
        answer
    }

    fn mistake(&self, shape: QueryShape, answer: &QueryAnswer, absent: Option<&AbsentSamples>) -> Option<Mistake> {
        let mut check = AnswerCheck::new(&self.context, (BASE, &self.history), shape, &self.store.capabilities());
        check.mistake(&self.asked(shape), answer, absent)
    }
}

#[test]
fn right_answers_of_orderly_and_of_disordered_fleets_are_right() {
    let disordered = |plan: &mut Plan| {
        let disorder = &mut plan.workload.disorder;
        (
            disorder.late,
            disorder.missing,
            disorder.duplicate,
            disorder.out_of_order,
        ) = (0.05, 0.1, 0.05, 0.05);
        plan.workload.jitter = tsb_core::workload::Jitter::up_to(SECOND_NS / 3);
    };
    let churning = |plan: &mut Plan| {
        plan.workload.churn = Some(tsb_core::workload::Churn {
            mode: tsb_core::workload::ChurnMode::Steady {
                lifetime_ns: 50 * SECOND_NS,
            },
            horizon_ns: TICKS * SECOND_NS,
            unit: 54,
        });
    };
    for written in [written(|_| {}), written(disordered), written(churning)] {
        for shape in shapes() {
            let answer = written.answer(shape);
            assert_eq!(written.mistake(shape, &answer, None), None, "{shape:?}");
        }
    }
}

#[test]
fn one_wrong_row_is_named_with_what_was_expected() {
    let written = written(|_| {});
    for shape in shapes() {
        let right = written.answer(shape);
        assert!(right.rows.iter().all(|rows| !rows.is_empty()), "{shape:?}");
        let mut altered = right.clone();
        altered.rows[1].values[0] += 1.0;
        let mistake = written.mistake(shape, &altered, None).unwrap();
        assert_eq!(mistake.series, IDS[1], "{shape:?}");
        let expected = right.rows[1].values[0].to_string();
        assert!(mistake.expected.starts_with(&expected), "{mistake:?}");
        assert!(
            mistake.came.contains(&altered.rows[1].values[0].to_string()),
            "{mistake:?}"
        );

        let mut short = right.clone();
        short.rows[2].clear();
        assert_eq!(
            written.mistake(shape, &short, None).unwrap().series,
            IDS[2],
            "{shape:?}"
        );

        let mut stray = right.clone();
        stray.stray = Some(SeriesId(9));
        assert_eq!(
            written.mistake(shape, &stray, None).unwrap().series,
            SeriesId(9),
            "{shape:?}"
        );
    }
}

#[test]
fn a_newest_sample_is_neither_old_nor_never_sent() {
    let written = written(|_| {});
    let shape = QueryShape::Last { series: 3 };
    let right = written.answer(shape);
    let newest = right.newest[0].unwrap();
    for (at, words) in [
        (None, "no sample"),
        (Some(newest + -(5 * SECOND_NS as i64)), "the newest at"),
        (Some(newest + 1), "the newest at"),
        (Some(newest + 60 * SECOND_NS as i64), "the newest at"),
    ] {
        let mut wrong = right.clone();
        wrong.newest[0] = at;
        let mistake = written.mistake(shape, &wrong, None).unwrap();
        assert!(mistake.came.starts_with(words), "{mistake:?}");
    }
}

#[test]
fn refused_and_expired_samples_are_not_missed() {
    let written = written(|_| {});
    let shape = QueryShape::Raw {
        series: 3,
        span_ns: 100 * SECOND_NS,
    };
    let mut answer = written.answer(shape);
    let gone = answer.rows[0].times[0];
    answer.rows[0].times.remove(0);
    answer.rows[0].values.remove(0);
    assert!(written.mistake(shape, &answer, None).is_some());
    let named = NamedSamples::new(&[(IDS[0], gone)], &[], &[]);
    let absent = AbsentSamples { named, unnamed: 0 };
    assert_eq!(written.mistake(shape, &answer, Some(&absent)), None);

    let mut check = AnswerCheck::new(
        &written.context,
        (BASE, &written.history),
        shape,
        &written.store.capabilities(),
    );
    let asked = AnsweredQuery {
        kept_from: gone + 1,
        ..written.asked(shape)
    };
    assert_eq!(check.mistake(&asked, &answer, None), None);

    // A tick of its group that was never answered for is in doubt.
    let group = written.context.workload.group_of(IDS[0]).unwrap() as u32;
    let tick = ((gone - BASE) / SECOND_NS as i64) as u64;
    let named = NamedSamples::new(&[], &[], &[(group, tick..tick + 1)]);
    let absent = AbsentSamples { named, unnamed: 0 };
    assert!(check.mistake(&written.asked(shape), &answer, Some(&absent)).is_some());
    assert!(check.is_in_doubt(&written.asked(shape), &absent));
    assert!(!absent.is_empty() && AbsentSamples::default().is_empty());
}

#[test]
fn steps_that_may_have_lost_samples_to_retention_are_left_out() {
    let written = written(|_| {});
    let [.., shape] = shapes();
    let asked = written.asked(shape);
    let kept_from = asked.range.start + 10 * SECOND_NS as i64;
    let mut answer = written.answer(shape);
    // The first step has ended before, and the second reaches into what is kept.
    answer.rows[0].values[0] = -1.0;
    answer.rows[0].values[1] = -1.0;
    let mut check = AnswerCheck::new(
        &written.context,
        (BASE, &written.history),
        shape,
        &written.store.capabilities(),
    );
    let judged = |check: &mut AnswerCheck<'_>, answer: &QueryAnswer| {
        check.mistake(&AnsweredQuery { kept_from, ..asked }, answer, None)
    };
    let boundary = Timestamp(kept_from.0.div_euclid(7 * SECOND_NS as i64) * 7 * SECOND_NS as i64);
    assert_eq!(answer.rows[0].times[1].max(answer.rows[0].times[0]), boundary);
    assert_eq!(judged(&mut check, &answer), None);
    answer.rows[0].values[2] += 1.0;
    assert!(judged(&mut check, &answer).is_some());
}

#[test]
fn steps_are_consolidated_as_the_contract_says() {
    let mut samples = Columns::default();
    for (at, value) in [
        (-1, 4.0),
        (0, f64::NAN),
        (1, -1.0),
        (3, 3.0),
        (5, f64::NAN),
        (10, -0.0),
        (11, 0.0),
    ] {
        samples.push(Timestamp(at), value);
    }
    let nan = f64::NAN;
    for (by, expected) in [
        (Consolidation::Min, [4.0, -1.0, nan, 0.0]),
        (Consolidation::Max, [4.0, 3.0, nan, 0.0]),
        (Consolidation::Average, [4.0, 1.0, nan, 0.0]),
        (Consolidation::Sum, [4.0, 2.0, 0.0, 0.0]),
        (Consolidation::Count, [1.0, 3.0, 1.0, 2.0]),
        (Consolidation::First, [4.0, nan, nan, 0.0]),
        (Consolidation::Last, [4.0, 3.0, nan, 0.0]),
    ] {
        let mut rows = Columns::default();
        consolidate(&samples, 5, by, &mut rows);
        assert_eq!(rows.times, [-5, 0, 5, 10].map(Timestamp));
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&rows.values), bits(&expected), "{by:?}");
    }
}

#[test]
fn one_wrong_answer_in_ten_thousand_is_caught_for_every_kind() {
    let written = written(|_| {});
    let series = 2;
    let kinds = ["last", "q1", "range", "outside", "high-cpu", "stats", "difference"].map(|kind| {
        let parameters = match kind {
            "last" => "(series=2)",
            "difference" => "(span=20s,step=5s)",
            "q1" => "(series=2,span=20s,step=5s)",
            _ => "(series=2,span=20s)",
        };
        let kind: crate::plan::QueryKind = format!("{kind}{parameters}").parse().unwrap();
        kind.shape()
    });
    for shape in kinds {
        let options = ThrottleOptions {
            wrong_one_in: Some(10_000),
            ..ThrottleOptions::default()
        };
        let lying = Throttle::new(Arc::clone(&written.store), options, Arc::new(MonotonicClock::new())).unwrap();
        let asked = AnsweredQuery {
            ids: &IDS[..series],
            ..written.asked(shape)
        };
        let mut check = AnswerCheck::new(&written.context, (BASE, &written.history), shape, &lying.capabilities());
        let (mut answer, mut mistakes) = (QueryAnswer::default(), 0);
        for _ in 0..10_000 {
            answer.begin(series);
            answer.ask(&lying, shape, asked.ids, asked.range).unwrap();
            mistakes += usize::from(check.mistake(&asked, &answer, None).is_some());
        }
        let told = lying.faults().wrong.len();
        assert!(told >= 1, "{shape:?}");
        assert_eq!(mistakes, told, "{shape:?}");
    }
}

#[test]
fn the_difference_of_two_series_is_checked_by_its_steps_and_by_its_sum() {
    let written = written(|_| {});
    let shape = QueryShape::Difference {
        span_ns: 100 * SECOND_NS,
        step_ns: 7 * SECOND_NS,
        by: Consolidation::Average,
    };
    let asked = AnsweredQuery {
        ids: &IDS[..2],
        ..written.asked(shape)
    };
    let mut right = QueryAnswer::default();
    right.begin(2);
    right.ask(&*written.store, shape, asked.ids, asked.range).unwrap();
    let mut check = AnswerCheck::new(
        &written.context,
        (BASE, &written.history),
        shape,
        &written.store.capabilities(),
    );
    assert_eq!(check.mistake(&asked, &right, None), None);
    assert!(right.derived[0].len() > 10);
    let mut wrong = right.clone();
    wrong.rows[1].values[3] += 1.0;
    assert_eq!(check.mistake(&asked, &wrong, None).unwrap().series, IDS[1]);
    let mut wrong = right.clone();
    wrong.derived[0].values[3] += 1.0;
    assert_eq!(check.mistake(&asked, &wrong, None).unwrap().series, IDS[0]);
}
