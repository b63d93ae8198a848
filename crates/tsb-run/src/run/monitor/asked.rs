//! Computes what the plan has asked for by now: samples due, and the fleet time reached.
//!
//! It follows due times, not the times at which samples were sent, so a rising schedule is shown
//! as rising whether the generator keeps up or not. At the fleet's own pace the number is
//! calculated; any other schedule is iterated, as the emitter does.

use tsb_core::schedule::{Agenda, Pace, Planned, Progress};

use crate::run::run_context::RunContext;

/// Upper bound of operations iterated in one call, about 0.1 s of work. The rest of a schedule
/// that is too dense comes in later calls.
const AT_ONCE: usize = 1 << 22;

/// What the plan has asked for so far.
#[derive(Debug)]
pub(super) struct Asked {
    due_count: DueCount,
    due_samples: u64,
    // Samples returned by [`Self::since`] so far.
    returned: f64,
    sent_share: f64,
}

#[derive(Debug)]
enum DueCount {
    /// Per group: one past the last tick that was counted.
    Calculated(Vec<u64>),
    Iterated(Box<IteratedSchedule>),
}

#[derive(Debug)]
struct IteratedSchedule {
    agenda: Agenda,
    next: Option<Planned>,
    progress: Progress,
}

impl Asked {
    /// Nothing is due yet. `None` for a closed loop, which has no due times.
    pub(super) fn new(context: &RunContext) -> Option<Self> {
        let timetable = &context.timetable;
        if !timetable.pace.is_open_loop() {
            return None;
        }
        let groups = timetable.roster.groups().len();
        let due_count = match timetable.pace {
            Pace::Fleet(_) => DueCount::Calculated(vec![0; groups]),
            Pace::Shape(_) => {
                let mut agenda = timetable.agenda(0..groups as u32);
                DueCount::Iterated(Box::new(IteratedSchedule {
                    next: agenda.next(),
                    agenda,
                    progress: Progress::default(),
                }))
            }
        };
        Some(Self {
            due_count,
            due_samples: 0,
            returned: 0.0,
            sent_share: context.workload.sent_share(),
        })
    }

    /// Iterates the schedule to `elapsed_ns` since the start, so that [`Self::progress`]
    /// describes that moment. Does nothing at the fleet's own pace.
    pub(super) fn advance(&mut self, context: &RunContext, elapsed_ns: u64) {
        let DueCount::Iterated(iterated) = &mut self.due_count else {
            return;
        };
        for _ in 0..AT_ONCE {
            let Some(Planned { slot, due_ns }) = iterated.next else {
                return;
            };
            let Some(due_ns) = due_ns.filter(|due| *due <= elapsed_ns) else {
                return;
            };
            self.due_samples += u64::from(context.workload.alive(slot.group as usize, slot.tick));
            iterated.progress.note(slot.offset_ns, due_ns);
            iterated.next = iterated.agenda.next();
        }
    }

    /// Samples that became due since the last call.
    pub(super) fn since(&mut self, context: &RunContext, elapsed_ns: u64) -> u64 {
        self.advance(context, elapsed_ns);
        if let DueCount::Calculated(ends) = &mut self.due_count
            && let Some(frontier) = context.timetable.due_by(elapsed_ns)
        {
            for (group, counted) in ends.iter_mut().enumerate() {
                let due = context.timetable.ticks_through(group as u32, Some(frontier));
                let from = due.start.max(*counted);
                if from < due.end {
                    self.due_samples += context.workload.samples_due(group, from..due.end);
                    *counted = due.end;
                }
            }
        }
        let due = self.due_samples as f64 * self.sent_share;
        let since = (due - self.returned).round();
        self.returned += since;
        since as u64
    }

    /// The due time of each fleet time; `None` at the fleet's own pace.
    pub(super) fn progress(&self) -> Option<&Progress> {
        match &self.due_count {
            DueCount::Calculated(_) => None,
            DueCount::Iterated(iterated) => Some(&iterated.progress),
        }
    }

    /// Whether an iterated schedule has ended.
    pub(super) fn has_ended(&self) -> bool {
        matches!(&self.due_count, DueCount::Iterated(iterated) if iterated.next.is_none())
    }
}
