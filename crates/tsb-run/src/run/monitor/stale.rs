//! Measures the staleness of every series, in every kind of run.
//!
//! Timestamps are fleet time, ages are real time. At the fleet's own pace one follows from the
//! other. A schedule with a shape of its own says when each fleet time was due, and a closed
//! loop when it was reached: "now" is then the newest fleet time that was due or issued, and an
//! age is measured from the moment at which the newest visible timestamp was due or issued.

use std::ops::Range;

use tsb_core::schedule::Progress;
use tsb_core::staleness::Staleness;
use tsb_core::time::thread_cpu_ns;
use tsb_core::{SeriesId, Timestamp};

use super::asked::Asked;
use super::{MonitorInputs, horizon};
use crate::audit::NewestAnswers;

/// A poll that took this long is followed by a pause of 19 times as long: asking takes at most a
/// twentieth of the time, so it does not become the load of a server that answers slowly.
const PAUSES_PER_POLL: u64 = 19;

/// Buffers of one poll: the newest timestamp of each series, as the store states it.
#[derive(Debug)]
pub(super) struct NewestPoll {
    series: Vec<SeriesId>,
    newest: Vec<Option<Timestamp>>,
    // CPU time of this thread inside the store, in nanoseconds.
    asked_ns: u64,
    // When the next poll may begin, on the clock.
    next_ns: u64,
    // How long the slowest answer took.
    slowest_ns: u64,
}

impl NewestPoll {
    /// No answers yet.
    pub(super) fn new(inputs: &MonitorInputs) -> Self {
        let series = inputs.context.workload.catalog().len();
        Self {
            series: (0..series as u32).map(SeriesId).collect(),
            newest: vec![None; series],
            asked_ns: 0,
            next_ns: 0,
            slowest_ns: 0,
        }
    }

    /// Whether the pause after the last poll is over.
    pub(super) fn may_ask(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Asks the store; `None` if it returns an error.
    pub(super) fn ask(&mut self, inputs: &MonitorInputs) -> Option<()> {
        let clock = &inputs.context.clock;
        let (before, from_ns) = (thread_cpu_ns(), clock.now());
        let answer = inputs.store.newest(&self.series, &mut self.newest);
        self.asked_ns += thread_cpu_ns() - before;
        let now_ns = clock.now();
        let took_ns = now_ns.saturating_sub(from_ns);
        self.next_ns = now_ns.saturating_add(PAUSES_PER_POLL * took_ns);
        answer.ok()?;
        self.slowest_ns = self.slowest_ns.max(took_ns);
        if let Some(since) = inputs.context.since(inputs.base) {
            // A sample of an earlier run says nothing about this one.
            for newest in &mut self.newest {
                *newest = newest.filter(|newest| *newest >= since);
            }
        }
        Some(())
    }

    /// How long the slowest answer took, in nanoseconds.
    pub(super) const fn slowest_ns(&self) -> u64 {
        self.slowest_ns
    }

    /// CPU time of the store's answers, in nanoseconds.
    pub(super) fn asked_ns(&self) -> u64 {
        self.asked_ns
    }
}

/// The polls of a run.
#[derive(Debug)]
pub(super) struct StalenessPolls {
    staleness: Staleness,
    // The store's answers, for the audit.
    heard: NewestAnswers,
    // Per series: whether a sample was ever visible.
    seen: Vec<bool>,
    // For a closed loop: the groups of each worker, and the fleet time it has reached.
    workers: Vec<(Range<u32>, Progress)>,
}

/// Current fleet time of some groups, and how to convert it to an age.
enum Now<'a> {
    Paced {
        // Seconds of fleet time per second of real time.
        speed: f64,
        fleet_ns: u64,
    },
    Followed {
        progress: &'a Progress,
        elapsed_ns: u64,
    },
}

impl Now<'_> {
    /// The newest fleet time that is due; `None` before the first.
    fn fleet_ns(&self) -> Option<u64> {
        match self {
            Self::Paced { fleet_ns, .. } => Some(*fleet_ns),
            Self::Followed { progress, .. } => progress.fleet_ns(),
        }
    }

    /// Real time since `fleet_ns` was due.
    #[inline]
    fn age(&self, fleet_ns: u64) -> u64 {
        match self {
            Self::Paced { speed, fleet_ns: now } => (now.saturating_sub(fleet_ns) as f64 / speed) as u64,
            Self::Followed { progress, elapsed_ns } => elapsed_ns.saturating_sub(progress.wall_ns(fleet_ns)),
        }
    }
}

impl StalenessPolls {
    /// No polls yet.
    pub(super) fn new(inputs: &MonitorInputs) -> Self {
        let series = inputs.context.workload.catalog().len();
        let timetable = &inputs.context.timetable;
        let workers = if timetable.pace.is_open_loop() {
            Vec::new()
        } else {
            let ranges = timetable.roster.split(inputs.context.plan.workers);
            ranges.into_iter().map(|groups| (groups, Progress::default())).collect()
        };
        Self {
            staleness: Staleness::new(),
            heard: NewestAnswers::new(series),
            seen: vec![false; series],
            workers,
        }
    }

    /// Records the fleet time that a closed loop has reached. Cheap: called at every wake-up.
    pub(super) fn follow(&mut self, inputs: &MonitorInputs, elapsed_ns: u64) {
        for ((_, progress), live) in self.workers.iter_mut().zip(inputs.live.workers()) {
            progress.note(live.fleet_ns(), elapsed_ns);
        }
    }

    /// Whether samples are still due at `elapsed_ns`: after the plan's end nothing is stale.
    pub(super) fn is_wanted(inputs: &MonitorInputs, asked: Option<&Asked>, elapsed_ns: u64) -> bool {
        let planned_ns = inputs.context.timetable.planned_ns();
        !asked.is_some_and(Asked::has_ended) && planned_ns.is_none_or(|end| elapsed_ns <= end)
    }

    /// Measures every series that is alive at `elapsed_ns` since the start, which is when the store's
    /// answer was there. Returns the largest age, in nanoseconds of real time; `None` if no sample is due
    /// any more.
    pub(super) fn look(
        &mut self,
        inputs: &MonitorInputs,
        poll: &NewestPoll,
        asked: Option<&Asked>,
        elapsed_ns: u64,
    ) -> Option<u64> {
        let elapsed_ns = until_planned(inputs, elapsed_ns);
        self.observe_all(inputs, poll, asked, elapsed_ns, |worker| {
            !inputs.live.workers()[worker].has_ended()
        })
    }

    /// Whether there was no poll yet.
    pub(super) fn is_first(&self) -> bool {
        self.staleness.moments() == 0
    }

    /// The only poll of a run that was too short for a regular one.
    pub(super) fn look_first(
        &mut self,
        inputs: &MonitorInputs,
        poll: &NewestPoll,
        asked: Option<&Asked>,
        elapsed_ns: u64,
    ) {
        let elapsed_ns = until_planned(inputs, elapsed_ns);
        self.observe_all(inputs, poll, asked, elapsed_ns, |_| true);
    }

    fn observe_all(
        &mut self,
        inputs: &MonitorInputs,
        poll: &NewestPoll,
        asked: Option<&Asked>,
        elapsed_ns: u64,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Option<u64> {
        self.see(inputs, poll);
        let mut stalest_ns = None;
        for part in parts(&self.workers, inputs, asked) {
            if part.worker.is_some_and(|worker| !is_wanted(worker)) {
                continue;
            }
            let Some(now) = part.now(inputs, elapsed_ns) else {
                continue;
            };
            for group in part.groups {
                let oldest = observe(&mut self.staleness, inputs, &poll.newest, group as usize, &now);
                stalest_ns = stalest_ns.max(oldest);
            }
        }
        self.staleness.end_moment();
        stalest_ns
    }

    /// Counts the series that never became visible. Call it once, at the end.
    pub(super) fn end(&mut self, inputs: &MonitorInputs, asked: Option<&Asked>, elapsed_ns: u64) {
        let elapsed_ns = until_planned(inputs, elapsed_ns);
        let mut never = 0;
        let workload = &inputs.context.workload;
        for part in parts(&self.workers, inputs, asked) {
            let now = part.now(inputs, elapsed_ns);
            let Some(now_ns) = now.and_then(|now| now.fleet_ns()) else {
                continue;
            };
            for group in part.groups {
                let Some(tick) = workload.tick_at(group as usize, now_ns) else {
                    continue;
                };
                workload.begun(group as usize, tick, |ids, since| {
                    let unseen = ids.filter(|&id| !self.seen[id as usize]);
                    let owed = unseen.filter(|&id| workload.first_sent(SeriesId(id), since..tick + 1).is_some());
                    never += owed.count() as u64;
                });
            }
        }
        self.staleness.set_never_visible(never);
    }

    /// The staleness, and the store's answers.
    pub(super) fn finish(self) -> (Staleness, NewestAnswers) {
        (self.staleness, self.heard)
    }

    /// Records the store's latest answers.
    pub(super) fn see(&mut self, inputs: &MonitorInputs, poll: &NewestPoll) {
        horizon::record_answers(inputs, &poll.newest, &mut self.heard);
        for (seen, newest) in self.seen.iter_mut().zip(&poll.newest) {
            *seen |= newest.is_some();
        }
    }
}

/// Limits `elapsed_ns` to the planned end, after which nothing is due.
fn until_planned(inputs: &MonitorInputs, elapsed_ns: u64) -> u64 {
    let planned_ns = inputs.context.timetable.planned_ns();
    planned_ns.map_or(elapsed_ns, |planned| elapsed_ns.min(planned))
}

/// Groups that share one fleet time.
struct GroupPart<'a> {
    groups: Range<u32>,
    // For a closed loop: the worker that owns them.
    worker: Option<usize>,
    progress: Option<&'a Progress>,
}

impl<'a> GroupPart<'a> {
    fn now(&self, inputs: &MonitorInputs, elapsed_ns: u64) -> Option<Now<'a>> {
        match (self.progress, inputs.context.speed()) {
            (Some(progress), _) => Some(Now::Followed { progress, elapsed_ns }),
            (None, Some(speed)) => Some(Now::Paced {
                speed: speed.as_f64(),
                fleet_ns: speed.fleet_ns(elapsed_ns),
            }),
            (None, None) => None,
        }
    }
}

/// Divides the groups by the source of their fleet time.
fn parts<'a>(
    workers: &'a [(Range<u32>, Progress)],
    inputs: &MonitorInputs,
    asked: Option<&'a Asked>,
) -> Vec<GroupPart<'a>> {
    if workers.is_empty() {
        return vec![GroupPart {
            groups: 0..inputs.context.timetable.roster.groups().len() as u32,
            worker: None,
            progress: asked.and_then(Asked::progress),
        }];
    }
    let part = |(worker, (groups, progress)): (usize, &'a (Range<u32>, Progress))| GroupPart {
        groups: groups.clone(),
        worker: Some(worker),
        progress: Some(progress),
    };
    workers.iter().enumerate().map(part).collect()
}

/// Measures one group. Returns its largest age.
fn observe(
    staleness: &mut Staleness,
    inputs: &MonitorInputs,
    newest: &[Option<Timestamp>],
    group: usize,
    now: &Now<'_>,
) -> Option<u64> {
    let workload = &inputs.context.workload;
    let now_ns = now.fleet_ns()?;
    let tick = workload.tick_at(group, now_ns)?;
    let mut largest = None;
    // Cache: most series of a group have the same newest timestamp.
    let mut known = (u64::MAX, 0);
    let mut age_of = |fleet_ns: u64| {
        if known.0 != fleet_ns {
            known = (fleet_ns, now.age(fleet_ns));
        }
        known.1
    };
    workload.living(group, now_ns, |ids, since| {
        let first = workload.timestamp(group, since, inputs.base);
        let fleet_ns = |at: Timestamp| u64::try_from(at - inputs.base).unwrap_or(0);
        for id in ids {
            // A sample from before a series was reborn by churn says nothing about its present
            // life.
            let visible = newest[id as usize].filter(|newest| *newest >= first);
            let age = if let Some(visible) = visible {
                let age = age_of(fleet_ns(visible));
                staleness.visible(SeriesId(id), age);
                age
            } else {
                let Some(sent) = workload.first_sent(SeriesId(id), since..tick + 1) else {
                    continue;
                };
                let overdue = age_of(fleet_ns(workload.timestamp(group, sent, inputs.base)));
                staleness.unseen(SeriesId(id), overdue);
                overdue
            };
            largest = largest.max(Some(age));
        }
    });
    largest
}
