//! Disorder: samples that are late, missing, doubled or swapped, and timestamps with jitter.
//!
//! Both are functions of (seed, series, tick), so the audit knows what was sent without a log.

use super::hash::{self, Purpose};
use super::spec::WorkloadSpec;
use super::value_model::Keys;
use crate::time::Timestamp;

/// The outcome of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleOutcome {
    /// Sent in the operation of its own tick.
    OnTime,
    /// Sent twice in the operation of its own tick.
    Twice,
    /// Sent in the operation of the next tick, directly after that tick's sample.
    Swapped,
    /// Sent this number of ticks later, after all other samples.
    Late(u64),
    /// Never sent.
    Missing,
}

/// The probabilities of each outcome, as thresholds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisorderModel {
    seed: u64,
    /// The id of series 0 in the whole fleet, by which it draws.
    first_series: u32,
    late: u64,
    missing: u64,
    twice: u64,
    swapped: u64,
    late_ticks: u64,
    /// Both are below 2^32, so that their products are 32x32->64 multiplications.
    jitter_steps: u32,
    jitter_step_ns: u32,
}

impl DisorderModel {
    pub(crate) fn new(spec: &WorkloadSpec, first_series: u32) -> Self {
        let disorder = &spec.disorder;
        let late = hash::threshold(disorder.late);
        let missing = late + hash::threshold(disorder.missing);
        let twice = missing + hash::threshold(disorder.duplicate);
        let step_ns = spec.jitter.step_ns.max(1).next_multiple_of(spec.resolution_ns);
        Self {
            seed: spec.seed,
            first_series,
            late,
            missing,
            twice,
            swapped: twice + hash::threshold(disorder.out_of_order),
            late_ticks: u64::from(disorder.late_ticks),
            jitter_steps: (spec.jitter.max_ns / step_ns + 1) as u32,
            jitter_step_ns: step_ns as u32,
        }
    }

    /// Whether any sample may be other than on time.
    pub(crate) fn any(&self) -> bool {
        self.swapped > 0
    }

    /// Whether any timestamp may differ from its tick's.
    pub(crate) fn jitters(&self) -> bool {
        self.jitter_steps > 1
    }

    /// Maximum age, in ticks, of a sample that is sent now.
    pub(crate) fn reach(&self) -> u64 {
        if self.late > 0 {
            self.late_ticks
        } else {
            u64::from(self.any())
        }
    }

    /// The key with which a series draws its outcomes.
    pub(crate) fn outcome_key(&self, series: u32) -> u64 {
        Keys::new(self.seed, self.first_series + series).of(Purpose::Disorder)
    }

    /// The key with which a series draws its jitter.
    pub(crate) fn jitter_key(&self, series: u32) -> u64 {
        Keys::new(self.seed, self.first_series + series).of(Purpose::Jitter)
    }

    /// The outcome of one tick's sample, in a series that is alive until `death`. A sample that
    /// could only be sent after that is sent on time instead.
    #[inline]
    pub(crate) fn of(&self, outcome_key: u64, tick: u64, tick_key: u64, death: u64) -> SampleOutcome {
        let draw = hash::draw(outcome_key, tick_key);
        if draw >= self.swapped {
            return SampleOutcome::OnTime;
        }
        let outcome = if draw < self.late {
            let mixed = hash::mix64(outcome_key ^ tick_key);
            SampleOutcome::Late(1 + ((u128::from(mixed) * u128::from(self.late_ticks)) >> 64) as u64)
        } else if draw < self.missing {
            SampleOutcome::Missing
        } else if draw < self.twice {
            SampleOutcome::Twice
        } else {
            SampleOutcome::Swapped
        };
        match outcome {
            SampleOutcome::Late(by) if tick.saturating_add(by) >= death => SampleOutcome::OnTime,
            SampleOutcome::Swapped if tick.saturating_add(1) >= death => SampleOutcome::OnTime,
            outcome => outcome,
        }
    }

    /// Whether any of these samples, `(series key, tick key)`, is not on time.
    #[inline]
    pub(crate) fn any_of(&self, samples: impl Iterator<Item = (u64, u64)>) -> bool {
        let limit = hash::TWO_52 + self.swapped as f64;
        // Counts rather than searches, because a count compiles to vector code.
        let hits: u64 = samples
            .map(|(key, tick)| u64::from(hash::draw_on_two_52(key, tick) < limit))
            .sum();
        hits > 0
    }

    /// A timestamp with its jitter added.
    #[inline(always)]
    pub(crate) fn jittered(&self, at: Timestamp, jitter_key: u64, tick_key: u64) -> Timestamp {
        let steps = (hash::draw(jitter_key, tick_key) * u64::from(self.jitter_steps)) >> 32;
        Timestamp(at.0.wrapping_add((steps * u64::from(self.jitter_step_ns)) as i64))
    }
}
