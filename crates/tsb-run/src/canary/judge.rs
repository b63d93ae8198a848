//! Holds one answer of a store against what is known of its samples, while it arrives.

use std::ops::Range;

use tsb_core::report::canary::FaultKind;
use tsb_core::{Durability, SeriesId, Timestamp};

use super::questions::AnswerOutcome;
use super::states::{KnownSample, SampleState, SampleStates};
use super::stream::{Stream, StreamPlace};
use super::tally::{CanaryTally, Fault};

/// How long a canary waits before it calls a sample something, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    /// From the acknowledgement until an answer must have it.
    pub(super) visible_s: u32,
    /// From the first answer that should have had it until it is lost.
    pub(super) lost_s: u32,
}

/// The moment of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// By the time of day.
    pub(super) wall: Timestamp,
    /// In seconds since the canary was started.
    pub(super) elapsed_s: u32,
}

/// What was asked: the samples of these series at these ticks.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) series: Range<u32>,
    pub(super) ticks: Range<i64>,
}

/// An answer on its way: rows arrive series by series, in the order of time.
#[derive(Debug)]
pub(super) struct AnswerJudge<'a> {
    stream: &'a Stream,
    states: &'a mut SampleStates,
    tally: &'a mut CanaryTally,
    asked: Asked,
    deadlines: Deadlines,
    now: Moment,
    question: &'static str,
    /// The first sample that no row has passed yet.
    at: StreamPlace,
    outcome: AnswerOutcome,
}

impl<'a> AnswerJudge<'a> {
    pub(super) fn new(
        (stream, states, tally): (&'a Stream, &'a mut SampleStates, &'a mut CanaryTally),
        question: &'static str,
        asked: Asked,
        deadlines: Deadlines,
        now: Moment,
    ) -> Self {
        let at = StreamPlace {
            tick: asked.ticks.start,
            series: asked.series.start,
        };
        Self {
            stream,
            states,
            tally,
            asked,
            deadlines,
            now,
            question,
            at,
            outcome: AnswerOutcome::Right,
        }
    }

    /// Takes a chunk of the answer.
    pub(super) fn take(&mut self, series: SeriesId, times: &[Timestamp], values: &[f64]) {
        if series.0 < self.at.series || !self.asked.series.contains(&series.0) {
            // Not one of those that were asked, or out of their order.
            self.outcome = AnswerOutcome::Wrong;
            return;
        }
        while self.at.series < series.0 {
            self.end_series();
        }
        for (&at, &value) in times.iter().zip(values) {
            self.row(at, value);
        }
    }

    /// Ends a whole answer. A fault that an earlier answer showed does not count against it again.
    pub(super) fn end(mut self) -> AnswerOutcome {
        while self.at.series < self.asked.series.end {
            self.end_series();
        }
        self.tally.end_answer();
        self.outcome
    }

    /// Ends an answer that broke off: what it does not have says nothing.
    pub(super) fn break_off(self) {
        self.tally.end_answer();
    }

    fn end_series(&mut self) {
        self.miss_until(self.asked.ticks.end);
        self.at = StreamPlace {
            tick: self.asked.ticks.start,
            series: self.at.series + 1,
        };
    }

    fn row(&mut self, at: Timestamp, value: f64) {
        let tick = self.stream.tick_at(at).filter(|tick| self.asked.ticks.contains(tick));
        let Some(tick) = tick else {
            self.stray(at, value);
            return;
        };
        if tick < self.at.tick {
            self.again(StreamPlace { tick, ..self.at }, value);
            return;
        }
        self.miss_until(tick);
        self.found(self.at, value);
        self.at.tick = tick + 1;
    }

    /// Takes all samples from the cursor to a tick as missing in the answer.
    fn miss_until(&mut self, tick: i64) {
        while self.at.tick < tick {
            self.missed(self.at);
            self.at.tick += 1;
        }
    }

    fn missed(&mut self, place: StreamPlace) {
        let Some(before) = self.states.get(place) else { return };
        let for_s = self.now.elapsed_s.saturating_sub(before.since_s);
        let mut known = before;
        // A sample that was in no answer yet may come later.
        let mut outcome = if before.was_seen {
            AnswerOutcome::Wrong
        } else {
            AnswerOutcome::Late
        };
        match before.state {
            SampleState::Expected if !before.was_seen && for_s < self.deadlines.visible_s => return,
            SampleState::Expected | SampleState::Suspect => {
                known.state = SampleState::Missing;
                known.since_s = self.now.elapsed_s;
            }
            SampleState::Missing if for_s >= self.deadlines.lost_s => {
                known.state = SampleState::Lost;
                outcome = AnswerOutcome::Wrong;
                self.count(FaultKind::Lost, place, before, None);
            }
            SampleState::Missing => {}
            _ => return,
        }
        self.outcome = self.outcome.max(outcome);
        self.states.put(place, known);
    }

    fn found(&mut self, place: StreamPlace, value: f64) {
        let Some(before) = self.states.get(place) else { return };
        let is_same = value.to_bits() == Stream::value(place).to_bits();
        let mut known = before;
        let kind = match (before.state, is_same) {
            (SampleState::Unwritten, _) => {
                known.state = SampleState::Invented;
                Some(FaultKind::Invented)
            }
            (SampleState::Invented | SampleState::Altered, _) | (SampleState::Lost, false) => return,
            (state, true) => {
                self.tally.samples.seen += u64::from(before.is_open());
                known.state = SampleState::Expected;
                known.was_seen = true;
                match state {
                    SampleState::Missing => Some(FaultKind::Late),
                    SampleState::Lost => Some(FaultKind::Returned),
                    _ => None,
                }
            }
            (SampleState::Suspect, false) => {
                known.state = SampleState::Altered;
                Some(FaultKind::Altered)
            }
            (_, false) => {
                self.outcome = AnswerOutcome::Wrong;
                known.state = SampleState::Suspect;
                None
            }
        };
        self.states.put(place, known);
        if let Some(kind) = kind {
            if !matches!(kind, FaultKind::Late | FaultKind::Returned) {
                self.outcome = AnswerOutcome::Wrong;
            }
            self.count(kind, place, before, Some(value));
        }
    }

    /// A second row of one sample.
    fn again(&mut self, place: StreamPlace, value: f64) {
        let Some(mut known) = self.states.get(place) else {
            return;
        };
        // Of an uncertain one, an earlier canary may have written the other.
        if known.is_acknowledged && !known.is_duplicated {
            known.is_duplicated = true;
            self.states.put(place, known);
            self.outcome = AnswerOutcome::Wrong;
            self.count(FaultKind::Duplicated, place, known, Some(value));
        }
    }

    /// A row at a time that the stream does not have, or that was not asked for.
    fn stray(&mut self, at: Timestamp, value: f64) {
        self.outcome = AnswerOutcome::Wrong;
        if self.tally.is_new_stray(self.at.series, at) {
            let mut fault = self.fault(FaultKind::Invented, self.at.series, at);
            fault.found = Some(value);
            self.tally.count(&fault);
        }
    }

    /// Counts a fault of a sample that was `known` so before.
    fn count(&mut self, kind: FaultKind, place: StreamPlace, known: KnownSample, found: Option<f64>) {
        if known.is_open() {
            match kind {
                FaultKind::Lost => self.tally.samples.lost_unseen += 1,
                FaultKind::Altered => self.tally.samples.altered_unseen += 1,
                _ => {}
            }
        }
        let mut fault = self.fault(kind, place.series, self.stream.time(place.tick));
        fault.durability = known.durability;
        fault.expected = (kind != FaultKind::Invented).then(|| Stream::value(place));
        fault.found = found;
        self.tally.count(&fault);
    }

    fn fault(&self, kind: FaultKind, series: u32, at: Timestamp) -> Fault {
        Fault {
            kind,
            series,
            at,
            noticed: self.now.wall,
            question: self.question,
            interval_ns: self.stream.interval_ns(),
            durability: Durability::Unconfirmed,
            expected: None,
            found: None,
        }
    }
}
