//! Computes what the plan has asked for by now: samples due, and the fleet time reached.
//!
//! It follows due times, not the times at which samples were sent, so a rising schedule is shown
//! as rising whether the generator keeps up or not. At the fleet's own pace the number is
//! calculated; any other schedule is iterated, as the emitter does.

use tsb_core::schedule::{Agenda, Pace, Planned, Progress};

use crate::run::stage::Stage;

/// Upper bound of operations iterated in one call, about 0.1 s of work. The rest of a schedule
/// that is too dense comes in later calls.
const AT_ONCE: usize = 1 << 22;

/// What the plan has asked for so far.
#[derive(Debug)]
pub(super) struct Asked {
    way: Way,
    due_samples: u64,
    // Samples returned by [`Self::since`] so far.
    told: f64,
    sent_share: f64,
}

#[derive(Debug)]
enum Way {
    /// Per group: one past the last tick that was counted.
    Calculated(Vec<u64>),
    Walked(Box<Walked>),
}

#[derive(Debug)]
struct Walked {
    agenda: Agenda,
    next: Option<Planned>,
    progress: Progress,
}

impl Asked {
    /// Nothing is due yet. `None` for a closed loop, which has no due times.
    pub(super) fn new(stage: &Stage) -> Option<Self> {
        let timetable = &stage.timetable;
        if !timetable.pace.is_open_loop() {
            return None;
        }
        let groups = timetable.roster.groups().len();
        let way = match timetable.pace {
            Pace::Fleet(_) => Way::Calculated(vec![0; groups]),
            Pace::Shape(_) => {
                let mut agenda = timetable.agenda(0..groups as u32);
                Way::Walked(Box::new(Walked {
                    next: agenda.next(),
                    agenda,
                    progress: Progress::default(),
                }))
            }
        };
        Some(Self {
            way,
            due_samples: 0,
            told: 0.0,
            sent_share: stage.workload.sent_share(),
        })
    }

    /// Iterates the schedule to `elapsed_ns` since the start, so that [`Self::progress`]
    /// describes that moment. Does nothing at the fleet's own pace.
    pub(super) fn advance(&mut self, stage: &Stage, elapsed_ns: u64) {
        let Way::Walked(walked) = &mut self.way else { return };
        for _ in 0..AT_ONCE {
            let Some(Planned { slot, due_ns }) = walked.next else {
                return;
            };
            let Some(due_ns) = due_ns.filter(|due| *due <= elapsed_ns) else {
                return;
            };
            self.due_samples += u64::from(stage.workload.alive(slot.group as usize, slot.tick));
            walked.progress.note(slot.offset_ns, due_ns);
            walked.next = walked.agenda.next();
        }
    }

    /// Samples that became due since the last call.
    pub(super) fn since(&mut self, stage: &Stage, elapsed_ns: u64) -> u64 {
        self.advance(stage, elapsed_ns);
        if let Way::Calculated(ends) = &mut self.way
            && let Some(frontier) = stage.timetable.due_by(elapsed_ns)
        {
            for (group, counted) in ends.iter_mut().enumerate() {
                let due = stage.timetable.ticks_through(group as u32, Some(frontier));
                let from = due.start.max(*counted);
                if from < due.end {
                    self.due_samples += stage.workload.samples_due(group, from..due.end);
                    *counted = due.end;
                }
            }
        }
        let due = self.due_samples as f64 * self.sent_share;
        let since = (due - self.told).round();
        self.told += since;
        since as u64
    }

    /// The due time of each fleet time; `None` at the fleet's own pace.
    pub(super) fn progress(&self) -> Option<&Progress> {
        match &self.way {
            Way::Calculated(_) => None,
            Way::Walked(walked) => Some(&walked.progress),
        }
    }

    /// Whether an iterated schedule has ended.
    pub(super) fn has_ended(&self) -> bool {
        matches!(&self.way, Way::Walked(walked) if walked.next.is_none())
    }
}
