//! The loop of one worker: prepare, wait, send, record.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::cpu::{AHEAD_NS, Phases, sleeps};
use super::live::LiveWorker;
use super::report::Ended;
use super::settings::Run;
use super::state::{OperationTimes, WorkerState};
use super::{Kind, Operation, Outcome, Payload as _, Source, Target};
use crate::schedule::{Agenda, Planned};
use crate::time::Clock;

/// The longest wait without a look at the stop flag.
const SLICE_NS: u64 = 50_000_000;

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

    /// Waits for an operation's due time.
    #[inline]
    fn wait_for(&self, due_ns: u64, phases: &mut Phases) -> Option<Ended> {
        let clock = self.run.clock;
        let now_ns = clock.now();
        if sleeps(due_ns.saturating_sub(now_ns)) {
            phases.before_sleep(clock);
            let ended = self.wait(due_ns.saturating_sub(AHEAD_NS));
            phases.slept(clock);
            if ended.is_some() {
                return ended;
            }
        } else {
            phases.generated(now_ns);
        }
        clock.wait_until(due_ns);
        None
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

    /// Adds to the worker's own lateness what it is late with the operation that comes next, for what
    /// is never sent because of it.
    fn late_at_the_end(&self, state: &mut WorkerState, free_ns: u64) {
        if let Some(due_ns) = state.pending.and_then(|planned| planned.due_ns) {
            let due_ns = self.start_ns.saturating_add(due_ns);
            state.own_ns += self.run.clock.now().saturating_sub(free_ns.max(due_ns));
        }
    }
}

/// Works through the agenda.
pub(super) fn drive<S: Source, T: Target<S::Kind>>(
    parts: &Parts<'_>,
    agenda: &mut Agenda,
    source: &mut S,
    target: &mut T,
    state: &mut WorkerState,
) -> Ended {
    let clock = parts.run.clock;
    let last_call_ns = parts.last_call_ns();
    if let Some(ended) = parts.wait_for(parts.start_ns, &mut state.phases) {
        return ended;
    }
    state.phases.calling(true, clock.now(), clock);
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
            free_ns = idle_before(due_ns, target, state, clock);
        }
        let payload = source.prepare(&slot);
        let wait_until_ns = due_ns.filter(|_| spare_ns > 0);
        if let Some(until_ns) = wait_until_ns
            && let Some(ended) = parts.wait_for(until_ns, &mut state.phases)
        {
            break ended;
        }
        let begun_ns = state.phases.calling(wait_until_ns.is_some(), clock.now(), clock);
        if begun_ns >= last_call_ns {
            break Ended::Planned;
        }
        state.own_ns += begun_ns.saturating_sub(free_ns.max(due_ns.unwrap_or(free_ns)));
        let samples = payload.samples();
        state.pending = None;
        state.issued = Some(slot.into());
        state.issued_operations += 1;
        if samples == 0 {
            continue;
        }
        state.in_flight = Some((slot, samples));
        let due = due_ns.unwrap_or(begun_ns);
        let late_ns = state.own_ns.min(begun_ns - due.min(begun_ns));
        let outcome = target.send(&Operation {
            payload,
            due,
            begun: Some(begun_ns),
            late_ns,
            slot,
        });
        let done_ns = clock.now();
        state.phases.called(done_ns, clock);
        let times = OperationTimes {
            due: due_ns,
            late: late_ns,
            begun: begun_ns,
            done: done_ns,
        };
        state.done(parts.live, slot, samples, outcome, times);
        (free_ns, state.end_ns) = (done_ns, done_ns);
        if outcome == Outcome::Fatal {
            break Ended::Fatal;
        }
    };
    parts.late_at_the_end(state, free_ns);
    if ended != Ended::Fatal {
        idle(target, &mut state.phases, clock);
    }
    ended
}

/// Lets the target do what it left for later, before an operation is due. Returns when it was done.
/// A worker that stood still since the target was free is late before it idles.
#[inline]
fn idle_before<K: Kind>(
    due_ns: Option<u64>,
    target: &mut impl Target<K>,
    state: &mut WorkerState,
    clock: &dyn Clock,
) -> u64 {
    let (free_ns, idle_ns) = idle(target, &mut state.phases, clock);
    let idle_from_ns = free_ns.saturating_sub(idle_ns);
    state.own_ns = idle_from_ns.saturating_sub(due_ns.unwrap_or(idle_from_ns));
    state.busy_ns += idle_ns;
    free_ns
}

/// Lets the target do what it left for later. Returns when it was done, and how long it took.
#[inline]
fn idle<K: Kind, T: Target<K>>(target: &mut T, phases: &mut Phases, clock: &dyn Clock) -> (u64, u64) {
    let from_ns = clock.now();
    phases.generated(from_ns);
    target.idle();
    let free_ns = clock.now();
    phases.called(free_ns, clock);
    (free_ns, free_ns.saturating_sub(from_ns))
}
