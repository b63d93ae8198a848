//! The loop of one worker: prepare, wait, send, record.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::cpu::{CpuSampler, Sampled};
use super::live::LiveWorker;
use super::report::Ended;
use super::run::Run;
use super::state::{State, Times};
use super::{Operation, Outcome, Source, Target};
use crate::schedule::{Agenda, Planned};

/// The longest wait without a look at the stop flag.
const SLICE_NS: u64 = 50_000_000;
/// How long before the due time the CPU clock is read, where it is.
const AHEAD_NS: u64 = 5_000;

/// What a worker shares with others, or only reads.
pub(super) struct Parts<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) start_ns: u64,
    pub(super) abort: &'a AtomicBool,
    pub(super) live: &'a LiveWorker,
    pub(super) groups: Range<u32>,
}

impl Parts<'_> {
    #[inline]
    pub(super) fn is_stopped(&self) -> Option<Ended> {
        if self.run.stop.load(Relaxed) {
            Some(Ended::Stopped)
        } else if self.abort.load(Relaxed) {
            Some(Ended::Aborted)
        } else {
            None
        }
    }

    /// Waits until `until`, with a look at the stop flags now and then.
    #[inline]
    fn wait(&self, until: u64) -> Option<Ended> {
        let clock = self.run.clock;
        loop {
            let slice_end = clock.now().saturating_add(SLICE_NS);
            if until <= slice_end {
                clock.wait_until(until);
                return None;
            }
            clock.wait_until(slice_end);
            if let Some(ended) = self.is_stopped() {
                return Some(ended);
            }
        }
    }

    /// Waits for an operation's due time, if there is one to wait for; of a sampled
    /// operation, with its CPU reading.
    #[inline]
    fn wait_for(&self, due_ns: Option<u64>, sampled: Option<&mut Sampled>) -> Option<Ended> {
        let (due_ns, sampled) = match (due_ns, sampled) {
            (None, None) => return None,
            (Some(due_ns), None) => return self.wait(due_ns),
            (due_ns, Some(sampled)) => (due_ns, sampled),
        };
        let ended = due_ns.and_then(|due| self.wait(due.saturating_sub(AHEAD_NS)));
        CpuSampler::about_to_send(sampled);
        if ended.is_none()
            && let Some(due) = due_ns
        {
            self.run.clock.wait_until(due);
        }
        ended
    }

    /// When nothing may be sent any more, on the run's clock.
    fn last_call_ns(&self) -> u64 {
        let timetable = self.run.timetable;
        let grace_ns = if timetable.pace.is_open_loop() {
            self.run.settings.grace_ns
        } else {
            0
        };
        let end_ns = timetable.end_ns.map(|end| self.start_ns.saturating_add(end));
        end_ns.map_or(u64::MAX, |end| end.saturating_add(grace_ns))
    }
}

/// Works through the agenda.
pub(super) fn drive<S: Source, T: Target>(
    parts: &Parts<'_>,
    agenda: &mut Agenda,
    source: &mut S,
    target: &mut T,
    state: &mut State,
) -> Ended {
    let clock = parts.run.clock;
    let last_call_ns = parts.last_call_ns();
    if let Some(ended) = parts.wait(parts.start_ns) {
        return ended;
    }
    let mut free_ns = parts.start_ns;
    let ended = loop {
        if let Some(ended) = parts.is_stopped() {
            break ended;
        }
        state.pending = agenda.next();
        let Some(Planned { slot, due_ns }) = state.pending else {
            break Ended::Planned;
        };
        let due_ns = due_ns.map(|due| parts.start_ns.saturating_add(due));
        let spare_ns = due_ns.map_or(0, |due| due.saturating_sub(free_ns));
        if spare_ns > 0 {
            state.own_ns = 0;
            target.idle();
            let idle_from_ns = free_ns;
            free_ns = clock.now();
            state.busy_ns += free_ns.saturating_sub(idle_from_ns);
        }
        let mut sampled = state.cpu.begin(spare_ns, &slot);
        let batch = source.prepare(&slot);
        if let Some(sampled) = &mut sampled {
            state.cpu.prepared(sampled);
        }
        let wait_until_ns = due_ns.filter(|_| spare_ns > 0);
        if let Some(ended) = parts.wait_for(wait_until_ns, sampled.as_mut()) {
            break ended;
        }
        let begun_ns = clock.now();
        if begun_ns >= last_call_ns {
            break Ended::Planned;
        }
        state.own_ns += begun_ns.saturating_sub(free_ns.max(due_ns.unwrap_or(free_ns)));
        let samples = batch.len() as u64;
        state.pending = None;
        state.issued = Some(slot.into());
        if samples == 0 {
            continue;
        }
        state.in_flight = Some((slot, samples));
        let due = due_ns.unwrap_or(begun_ns);
        let outcome = target.send(&Operation { batch, due });
        let done_ns = clock.now();
        state.in_flight = None;
        if let Some(sampled) = sampled {
            state.cpu.sent(sampled);
        }
        let times = Times {
            due: due_ns,
            begun: begun_ns,
            done: done_ns,
        };
        state.end_interval(parts.live, done_ns);
        state.account(slot, samples, outcome, times);
        state.publish(parts.live, begun_ns.saturating_sub(due));
        (free_ns, state.end_ns) = (done_ns, done_ns);
        if outcome == Outcome::Fatal {
            break Ended::Fatal;
        }
    };
    if ended != Ended::Fatal {
        target.idle();
    }
    ended
}
