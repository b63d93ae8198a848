//! What was due by the end of a run and was never sent.
//!
//! A rate far beyond what can be sent leaves more operations behind than there is time to
//! count one by one: they are calculated, except for Poisson arrivals, which are counted.

use super::report::Ended;
use super::state::WorkerState;
use super::worker::Parts;
use crate::schedule::{Agenda, Frontier, Planned};

/// Operations counted between two looks at the stop flag.
const STOP_CHECK: u64 = 1 << 12;

/// Counts what was due by the end and never issued. Returns how the worker ended: a stop
/// during the count leaves the rest uncounted, so that run was cut short.
pub(super) fn settle(parts: &Parts<'_>, agenda: &mut Agenda, ended: Ended, state: &mut WorkerState) -> Ended {
    if ended != Ended::Planned {
        // What is due until now is counted, so the run lasted until now.
        state.end_ns = state.end_ns.max(parts.run.clock.now());
    }
    let ended = if parts.run.timetable.pace.is_open_loop() {
        count_unsent(parts, agenda, ended, state)
    } else {
        ended
    };
    state.publish(parts.live, 0);
    parts.live.end();
    ended
}

fn count_unsent(parts: &Parts<'_>, agenda: &mut Agenda, ended: Ended, state: &mut WorkerState) -> Ended {
    let timetable = parts.run.timetable;
    let until_ns = if ended == Ended::Planned {
        u64::MAX
    } else {
        state.end_ns.saturating_sub(parts.start_ns)
    };
    let pending = state.pending.take();
    if !timetable.is_countable() {
        return count_one_by_one(parts, pending.into_iter().chain(agenda), until_ns, ended, state);
    }
    let Some(frontier) = timetable.due_by(until_ns) else {
        return ended;
    };
    for group in parts.groups.clone() {
        let due = timetable.ticks_through(group, Some(frontier));
        let issued = timetable.ticks_through(group, state.issued);
        let never_issued = due.end.saturating_sub(issued.end.max(due.start));
        if never_issued > 0 {
            let samples = timetable
                .roster
                .groups()
                .get(group as usize)
                .map_or(0, |group| group.samples);
            state.never_sent(never_issued, u64::from(samples));
        }
    }
    // Without an end in time, the last that was issued says until when something was due.
    let ends_ns = timetable
        .planned_ns()
        .into_iter()
        .chain((until_ns < u64::MAX).then_some(until_ns));
    state.due_through(frontier, parts.start_ns.saturating_add(ends_ns.min().unwrap_or(0)));
    ended
}

fn count_one_by_one(
    parts: &Parts<'_>,
    left: impl Iterator<Item = Planned>,
    until_ns: u64,
    ended: Ended,
    state: &mut WorkerState,
) -> Ended {
    let groups = parts.run.timetable.roster.groups();
    let was_stopped = parts.is_stopped().is_some();
    let due = left.take_while(|planned| planned.due_ns.is_some_and(|due| due <= until_ns));
    for (counted, planned) in (1u64..).zip(due) {
        let samples = groups.get(planned.slot.group as usize).map_or(0, |group| group.samples);
        state.never_sent(1, u64::from(samples));
        let due_ns = parts.start_ns.saturating_add(planned.due_ns.unwrap_or(0));
        state.due_through(Frontier::from(planned.slot), due_ns);
        if !was_stopped
            && counted.is_multiple_of(STOP_CHECK)
            && let Some(stopped) = parts.is_stopped()
        {
            return if ended == Ended::Planned { stopped } else { ended };
        }
    }
    ended
}
