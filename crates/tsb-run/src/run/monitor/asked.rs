//! What the plan has asked by now: samples due, and how far fleet time has come.
//!
//! It follows the timetable in due time and not in the time in which things were sent, so a
//! schedule that climbs is seen to climb, kept or not. Where the fleet keeps its own pace, what
//! is due is calculated; a schedule of another shape is gone through, as the emitter does.

use tsb_core::schedule::{Agenda, Pace, Planned, Progress};

use crate::run::stage::Stage;

/// Operations that are gone through in one call, a tenth of a second's work at most: of a
/// schedule beyond all that can be sent, the rest comes later.
const AT_ONCE: usize = 1 << 22;

/// The plan up to a moment.
#[derive(Debug)]
pub(super) struct Asked {
    way: Way,
    due_samples: u64,
    // Samples that were told of already.
    told: f64,
    sent_share: f64,
}

#[derive(Debug)]
enum Way {
    /// The tick behind the last that was counted of each group.
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
    /// Nothing is due yet; `None` for a closed loop, which asks nothing.
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

    /// Goes on to what is due by `elapsed_ns` since the start, so that [`Self::progress`] is of
    /// that moment. Where fleet time has a pace there is nothing to do.
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

    /// Samples that fell due since the last call.
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

    /// When which fleet time was due, where the pace does not say it.
    pub(super) fn progress(&self) -> Option<&Progress> {
        match &self.way {
            Way::Calculated(_) => None,
            Way::Walked(walked) => Some(&walked.progress),
        }
    }

    /// Whether a schedule has come to its end.
    pub(super) fn has_ended(&self) -> bool {
        matches!(&self.way, Way::Walked(walked) if walked.next.is_none())
    }
}
