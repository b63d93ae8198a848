//! One stream of queries as operations of the emitter: a source that chooses each query before it
//! is due and checks the answer to the one before, and a target that asks the store.

use std::cell::RefCell;
use std::sync::Arc;

use tsb_core::emit::{Kind, Operation, Outcome, Payload, Source, Target};
use tsb_core::schedule::Slot;
use tsb_core::time::Clock;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{Error as StoreError, Store, TimeRange};

use super::answer::QueryAnswer;
use super::check::{AnswerCheck, AnsweredQuery};
use super::choice::QueryChoice;
use super::known::KnownSamples;
use crate::plan::QueryShape;
use crate::run::calls::WriterState;
use crate::run::sink::SinkTotals;

/// Rows of answers that one thread keeps to judge them when the run is over: 16 MiB.
const KEPT_ROWS_MAX: usize = 1 << 20;
/// Answers that one thread keeps to judge them when the run is over.
const KEPT_MAX: usize = 10_000;

/// Queries, as a kind of operation.
pub(super) enum Queries {}

impl Kind for Queries {
    type Payload<'a> = QueryPayload<'a>;
}

/// A query, and where its answer goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryPayload<'a> {
    shape: QueryShape,
    ids: &'a [SeriesId],
    range: TimeRange,
    answer: &'a RefCell<QueryAnswer>,
}

impl Payload for QueryPayload<'_> {
    /// A query counts as one, and one that has nothing to ask for is not sent.
    fn samples(&self) -> u64 {
        u64::from(!self.ids.is_empty())
    }
}

/// What became of the queries of a thread, beyond what the emitter counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::run) struct QueryTally {
    /// Queries that were due while there was nothing to ask for.
    pub(in crate::run) early: u64,
    /// Answers that came.
    pub(in crate::run) answers: u64,
    /// Rows in them.
    pub(in crate::run) rows: u64,
    /// Of these answers, those that were right.
    pub(in crate::run) right: u64,
    /// Answers that differ from what was sent and were not kept to be judged.
    pub(in crate::run) not_kept: u64,
}

/// An answer that differs from what was sent. When the run is over it is known which samples were
/// refused, and then it is judged.
#[derive(Debug)]
pub(super) struct DifferingAnswer {
    /// When the check found it, in nanoseconds since the run began.
    pub(super) after_ns: u64,
    ids: Vec<SeriesId>,
    range: TimeRange,
    kept_from: Timestamp,
    handed_over: Timestamp,
    /// As it came.
    pub(super) answer: QueryAnswer,
}

impl DifferingAnswer {
    /// What it has to agree with.
    pub(super) fn asked(&self) -> AnsweredQuery<'_> {
        AnsweredQuery {
            ids: &self.ids,
            range: self.range,
            kept_from: self.kept_from,
            handed_over: self.handed_over,
        }
    }
}

/// Chooses the queries of one thread, and checks their answers.
#[derive(Debug)]
pub(super) struct QuerySource<'a> {
    clock: &'a dyn Clock,
    start_ns: u64,
    choice: QueryChoice<'a>,
    known: &'a KnownSamples,
    check: AnswerCheck<'a>,
    shape: QueryShape,
    retention_ns: Option<i64>,
    ids: Vec<SeriesId>,
    range: TimeRange,
    answer: RefCell<QueryAnswer>,
    tally: QueryTally,
    differing: Vec<DifferingAnswer>,
    kept_rows: usize,
}

/// What a thread found out about its answers.
#[derive(Debug)]
pub(super) struct CheckedAnswers {
    /// How many there were.
    pub(super) tally: QueryTally,
    /// Those that differ from what was sent.
    pub(super) differing: Vec<DifferingAnswer>,
}

impl<'a> QuerySource<'a> {
    /// A source of queries that `choice` chooses and `check` checks, in a run that began at
    /// `start_ns` on `clock`.
    pub(super) fn new(
        (clock, start_ns): (&'a dyn Clock, u64),
        choice: QueryChoice<'a>,
        known: &'a KnownSamples,
        check: AnswerCheck<'a>,
        (shape, retention_ns): (QueryShape, Option<i64>),
    ) -> Self {
        Self {
            clock,
            start_ns,
            choice,
            known,
            check,
            shape,
            retention_ns,
            ids: Vec::new(),
            range: TimeRange::ALL,
            answer: RefCell::default(),
            tally: QueryTally::default(),
            differing: Vec::new(),
            kept_rows: 0,
        }
    }

    /// Checks the last answer, and returns what was found out.
    pub(super) fn finish(mut self) -> CheckedAnswers {
        self.check_answer();
        CheckedAnswers {
            tally: self.tally,
            differing: self.differing,
        }
    }

    /// Checks the answer to the query before, if it came.
    fn check_answer(&mut self) {
        let answer = self.answer.get_mut();
        if !std::mem::take(&mut answer.is_whole) {
            return;
        }
        let rows = answer.len();
        self.tally.answers += 1;
        self.tally.rows += rows as u64;
        let handed_over = self.known.handed_over();
        let kept_from = self.retention_ns.map(|retention_ns| handed_over + -retention_ns);
        let asked = AnsweredQuery {
            ids: &self.ids,
            range: self.range,
            kept_from: kept_from.unwrap_or(Timestamp::MIN),
            handed_over,
        };
        if self.check.mistake(&asked, answer, None).is_none() {
            self.tally.right += 1;
            return;
        }
        self.kept_rows += rows;
        if self.kept_rows > KEPT_ROWS_MAX || self.differing.len() >= KEPT_MAX {
            self.kept_rows -= rows;
            self.tally.not_kept += 1;
            return;
        }
        self.differing.push(DifferingAnswer {
            after_ns: self.clock.now().saturating_sub(self.start_ns),
            kept_from: asked.kept_from,
            handed_over,
            range: self.range,
            ids: self.ids.clone(),
            answer: answer.clone(),
        });
    }
}

impl Source for QuerySource<'_> {
    type Kind = Queries;

    fn prepare(&mut self, slot: &Slot) -> QueryPayload<'_> {
        self.check_answer();
        self.ids.clear();
        if let Some(range) = self.choice.choose(slot, &mut self.ids) {
            self.range = range;
        } else {
            self.ids.clear();
            self.tally.early += 1;
        }
        self.answer.get_mut().begin(self.ids.len());
        QueryPayload {
            shape: self.shape,
            ids: &self.ids,
            range: self.range,
            answer: &self.answer,
        }
    }
}

/// Asks the store, in the thread that calls it.
#[derive(Debug)]
pub(super) struct QueryTarget {
    store: Arc<dyn Store>,
    call: Arc<WriterState>,
    totals: Arc<SinkTotals>,
    /// The first time that a server did not answer.
    pub(super) silence: Option<StoreError>,
}

impl QueryTarget {
    /// A target whose calls into `store` are tracked by `totals`.
    pub(super) fn new(store: Arc<dyn Store>, totals: Arc<SinkTotals>) -> Self {
        Self {
            store,
            call: totals.calls.reader(),
            totals,
            silence: None,
        }
    }
}

impl Target<Queries> for QueryTarget {
    fn send(&mut self, operation: &Operation<'_, Queries>) -> Outcome {
        let QueryPayload {
            shape,
            ids,
            range,
            answer,
        } = operation.payload;
        let asked = {
            let _call = self.call.begin();
            answer.borrow_mut().ask(&*self.store, shape, ids, range)
        };
        match asked {
            Ok(()) => Outcome::Done {
                accepted: 1,
                rejected: 0,
            },
            // A server may come back: what is due later is asked again.
            Err(error @ (StoreError::Unknown { .. } | StoreError::Unanswered { .. })) => {
                self.silence.get_or_insert(error);
                Outcome::Unknown
            }
            Err(error @ StoreError::Unreachable { .. }) => {
                self.silence.get_or_insert(error);
                Outcome::Shed
            }
            Err(error) => {
                self.totals.fail(error);
                Outcome::Fatal
            }
        }
    }
}
