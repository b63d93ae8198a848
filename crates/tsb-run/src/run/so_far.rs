//! Reconstructs the results of an emitter that is stuck in a call into its store, from its
//! shared counters and from the schedule, which says which operations they count.
//!
//! It is less than the emitter knows itself: latencies cover only the intervals that had ended,
//! in the coarse cells of a plot, and CPU times are unknown.

use std::ops::Range;
use std::sync::atomic::Ordering;

use tsb_core::Timestamp;
use tsb_core::emit::{Counts, ExceptionKind, LiveWorker, Tally};
use tsb_core::latency::{Histogram, Recording, cell_highest};
use tsb_core::schedule::Frontier;

use super::in_flight::Completed;
use super::path::PassResult;
use super::run_context::RunContext;
use super::run_state::{RunState, StartedRun};
use crate::plan::Transport;

/// Upper bound of empty operations that are skipped to find the one that a worker is in.
const EMPTY_MAX: usize = 1 << 16;

/// The results of one worker.
struct WorkerPart {
    counts: Counts,
    issued: Vec<(u32, Range<u64>)>,
    exceptions: Vec<(u32, Range<u64>, ExceptionKind)>,
    exceptions_dropped: u64,
    /// Samples whose operation cannot be identified.
    unnamed: u64,
    /// Whether it has counted the samples that it never sent.
    has_ended: bool,
}

/// The results of the emitter that began at `start_ns`.
pub(super) fn driven(started: &StartedRun, state: &RunState, (start_ns, base): (u64, Timestamp)) -> PassResult {
    let context = &*started.context;
    let ended_ns = context.clock.now().saturating_sub(state.over.ago_ns());
    let until_ns = ended_ns.saturating_sub(start_ns);
    let until_ns = context.timetable.planned_ns().map_or(until_ns, |end| until_ns.min(end));
    let is_direct = context.plan.transport == Transport::Inproc;
    let in_flight = state.watch.in_flight();
    let writing = if is_direct && in_flight.is_none() {
        state.totals.calls.writing()
    } else {
        Vec::new()
    };
    let mut driven = PassResult {
        start_ns,
        elapsed_ns: until_ns,
        asked_ns: until_ns,
        issued: vec![0..0; context.workload.groups().len()],
        is_partial: true,
        ..PassResult::default()
    };
    let ranges = context.timetable.roster.split(context.plan.workers);
    for (index, (groups, live)) in ranges.into_iter().zip(started.live.workers()).enumerate() {
        let is_in_hand = writing.get(index).copied().unwrap_or(false);
        let window = in_flight.as_ref().and_then(|in_flight| in_flight.windows().get(index));
        let part = match window {
            Some(window) => in_flight_worker(context, live, groups, until_ns, window.completed()),
            None => worker(context, live, groups, until_ns, is_in_hand.then_some(base)),
        };
        driven.counts.merge(&part.counts);
        driven.unnamed_samples += part.unnamed;
        driven.exceptions.extend(part.exceptions);
        driven.exceptions_dropped += part.exceptions_dropped;
        for (group, ticks) in part.issued {
            driven.issued[group as usize] = ticks;
        }
    }
    if !is_direct {
        behind_a_listener(state, &mut driven);
    }
    let is_timed_by_workers = in_flight.is_none() && (is_direct || started.context.plan.transport.is_answered());
    times(started, state, is_timed_by_workers, &mut driven);
    driven.most_in_flight = in_flight.map_or(0, |in_flight| in_flight.most());
    driven
}

/// The results of one worker from its counters and its agenda. `in_hand` is set if it is inside
/// a write, and is the timestamp of the run's start.
fn worker(
    context: &RunContext,
    live: &LiveWorker,
    groups: Range<u32>,
    until_ns: u64,
    in_hand: Option<Timestamp>,
) -> WorkerPart {
    let has_ended = live.has_ended();
    let totals = live.totals();
    let mut agenda = context.timetable.agenda(groups.clone());
    let operations = usize::try_from(live.issued()).unwrap_or(usize::MAX);
    let last = operations.checked_sub(1).and_then(|last| agenda.nth(last));
    let in_hand = in_hand.and_then(|base| {
        let mut generator = context
            .workload
            .generator(groups.start as usize..groups.end as usize, base);
        let mut next = agenda.by_ref().take(EMPTY_MAX).map(|planned| {
            let samples = generator
                .operation(planned.slot.group as usize, planned.slot.tick)
                .len();
            (planned.slot, samples as u64)
        });
        next.find(|&(_, samples)| samples > 0)
    });
    let frontier = in_hand.map(|(slot, _)| slot).or(last.map(|planned| planned.slot));
    let frontier = frontier.map(Frontier::from);
    // The counters are read one by one and may disagree, so the answered samples decide.
    let answered = totals.accepted + totals.rejected;
    let handed_over = totals.samples.saturating_sub(totals.unknown);
    let mut counts = Counts {
        done: tally(totals.operations, if answered > 0 { answered } else { handed_over }),
        unknown: tally(0, totals.unknown),
        shed: tally(0, totals.shed),
        accepted: totals.accepted,
        rejected: totals.rejected,
        ..Counts::default()
    };
    if let Some((_, samples)) = in_hand {
        counts.unknown.add(samples);
    }
    let exceptions = in_hand.map(|(slot, _)| (slot.group, slot.tick..slot.tick + 1, ExceptionKind::Unknown));
    let part = WorkerPart {
        counts,
        issued: Vec::new(),
        exceptions: exceptions.into_iter().collect(),
        exceptions_dropped: 0,
        unnamed: live.excepted(),
        has_ended,
    };
    part.up_to(context, &mut agenda, groups, frontier, until_ns)
}

/// The results of one worker that hands its operations to a client, from its counters, its agenda
/// and what became of the operations. Those in flight are unknown, by name.
fn in_flight_worker(
    context: &RunContext,
    live: &LiveWorker,
    groups: Range<u32>,
    until_ns: u64,
    completed: Completed,
) -> WorkerPart {
    let has_ended = live.has_ended();
    let totals = live.totals();
    let mut agenda = context.timetable.agenda(groups.clone());
    let operations = usize::try_from(live.issued()).unwrap_or(usize::MAX);
    let last = operations.checked_sub(1).and_then(|last| agenda.nth(last));
    let issued = last.map(|planned| Frontier::from(planned.slot));
    let handed_over = completed.last.map(Frontier::from);
    if handed_over > issued {
        // The worker counts an operation when it has room for the next one.
        let _ = agenda
            .by_ref()
            .take(EMPTY_MAX)
            .find(|next| Some(next.slot) == completed.last);
    }
    let mut counts = completed.counts;
    // What the worker itself counts was never handed over.
    counts.shed.merge(tally(0, totals.shed));
    counts.unknown.merge(tally(0, totals.unknown));
    let named = completed.exceptions.into_iter();
    let part = WorkerPart {
        counts,
        issued: Vec::new(),
        exceptions: named
            .map(|exception| (exception.group, exception.ticks, exception.kind))
            .collect(),
        exceptions_dropped: completed.exceptions_dropped,
        unnamed: live.excepted(),
        has_ended,
    };
    part.up_to(context, &mut agenda, groups, issued.max(handed_over), until_ns)
}

impl WorkerPart {
    /// Adds what was issued up to `frontier`, which `agenda` has passed, and what was due by
    /// `until_ns` and not issued.
    fn up_to(
        mut self,
        context: &RunContext,
        agenda: &mut tsb_core::schedule::Agenda,
        groups: Range<u32>,
        frontier: Option<Frontier>,
        until_ns: u64,
    ) -> Self {
        if context.timetable.pace.is_open_loop() {
            let mut unsent = never_sent(context, agenda, groups.clone(), frontier, until_ns);
            if self.has_ended {
                unsent.samples = 0;
            }
            self.counts.shed.merge(unsent);
        }
        self.counts.due = self.counts.sent();
        self.counts.due.merge(self.counts.shed);
        let issued = groups.map(|group| (group, context.timetable.ticks_through(group, frontier)));
        self.issued = issued.collect();
        self
    }
}

const fn tally(operations: u64, samples: u64) -> Tally {
    Tally { operations, samples }
}

/// What was due by `until_ns` since the start, after what was issued.
fn never_sent(
    context: &RunContext,
    agenda: &mut tsb_core::schedule::Agenda,
    groups: Range<u32>,
    issued: Option<Frontier>,
    until_ns: u64,
) -> Tally {
    let (timetable, mut unsent) = (&context.timetable, Tally::default());
    let samples_of = |group: u32| {
        timetable
            .roster
            .groups()
            .get(group as usize)
            .map_or(0, |group| u64::from(group.samples))
    };
    if timetable.is_countable() {
        let Some(due_by) = timetable.due_by(until_ns) else {
            return unsent;
        };
        for group in groups {
            let due = timetable.ticks_through(group, Some(due_by));
            let issued = timetable.ticks_through(group, issued);
            let operations = due.end.saturating_sub(issued.end.max(due.start));
            unsent.merge(tally(operations, operations.saturating_mul(samples_of(group))));
        }
    } else {
        let due = agenda.take_while(|planned| planned.due_ns.is_some_and(|due| due <= until_ns));
        due.for_each(|planned| unsent.add(samples_of(planned.slot.group)));
    }
    let share = context.workload.sent_share();
    if share != 1.0 {
        unsent.samples = (unsent.samples as f64 * share).round() as u64;
    }
    unsent
}

/// With a wire, only the listener's side knows what the store has answered; all other samples
/// may be in transit, unread, or in the store.
fn behind_a_listener(state: &RunState, driven: &mut PassResult) {
    let counts = &mut driven.counts;
    let turned_away = state.watch.turned_away();
    let (accepted, rejected) = (
        state.totals.accepted.load(Ordering::Acquire),
        state.rejects.total() + turned_away,
    );
    let sent = counts.sent();
    let done = accepted + rejected;
    let samples = sent.samples.max(done);
    let due = tally(counts.due.operations, counts.due.samples + (samples - sent.samples));
    *counts = Counts {
        due,
        shed: counts.shed,
        done: tally(sent.operations, done),
        handed_over: Tally::default(),
        unknown: tally(0, samples - done),
        accepted,
        rejected,
    };
    driven.unnamed_samples += samples - done;
}

/// The latencies that are known without the emitter.
fn times(started: &StartedRun, state: &RunState, is_timed_by_workers: bool, driven: &mut PassResult) {
    let live = started.live.times();
    driven.lag = recording(&live.lag);
    if is_timed_by_workers {
        driven.response = recording(&live.response);
        driven.service = recording(&live.service);
    } else {
        state.watch.cut(started.context.clock.now());
        let timings = state.watch.take_timings();
        driven.response = timings.response.recording();
        driven.delivery = timings.delivery.recording();
        driven.service = timings.service.recording();
        driven.timed_samples = timings.samples;
    }
}

/// A histogram from coarse counts. Each time is recorded as the upper end of its cell, so none
/// is reported as shorter than it was.
fn recording(cells: &[u64]) -> Recording {
    let mut total = Histogram::new();
    let counted = cells.iter().enumerate().filter(|(_, count)| **count > 0);
    counted.for_each(|(cell, &count)| total.record_n(cell_highest(cell), count));
    Recording {
        total,
        intervals: Vec::new(),
    }
}
