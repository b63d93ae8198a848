//! Notes what happens to the machine, to this process and in the store while operations run, from
//! counters that are read at every pulse of the noise thread. An event is known to the interval
//! between two readings.

use tsb_core::breakdown::EventLog;
use tsb_core::proc::{CpuTimes, Stat, stalled_ns};
use tsb_core::report::EventKind;
use tsb_core::resource::LATE_NS_MIN;
use tsb_core::time::SECOND_NS;
use tsb_stores::{Activity, ActivityKind};

/// Interval between two readings of the machine's CPU times, which count in ticks of 10 ms.
const STOLEN_EVERY_NS: u64 = SECOND_NS / 20;
/// Tasks that wait for storage this long between two readings are an event: shorter waits belong to
/// every write.
const STALL_NS_MIN: u64 = 1_000_000;

/// The counters of the operating system; a count that it does not report is absent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Readings {
    /// Page faults of this process with I/O.
    pub(super) major_faults: Option<u64>,
    /// Time in which some task of the machine waited for storage, in nanoseconds.
    pub(super) stalled_ns: Option<u64>,
}

impl Readings {
    /// The counters now.
    pub(super) fn read() -> Self {
        Self {
            major_faults: Stat::of(std::process::id()).map(|stat| stat.major_faults),
            stalled_ns: stalled_ns("io"),
        }
    }
}

/// Finds events in counters.
#[derive(Debug)]
pub(super) struct EventMonitor {
    log: EventLog,
    activities: Vec<Activity>,
    // What was counted at `at_ns`, activity by activity and kind by kind.
    counts: Vec<(u64, u64)>,
    readings: Readings,
    at_ns: u64,
    cpu: Option<CpuTimes>,
    cpu_at_ns: u64,
}

impl EventMonitor {
    /// Watches from `at_ns` of the run's clock on, when the counters were at `readings`.
    pub(super) fn since(at_ns: u64, activities: Vec<Activity>, readings: Readings) -> Self {
        Self {
            log: EventLog::default(),
            counts: counts(&activities).collect(),
            activities,
            readings,
            at_ns,
            cpu: CpuTimes::read(None),
            cpu_at_ns: at_ns,
        }
    }

    /// The noise thread was due at `due_ns` and woke up at `now_ns`; it had waited `waited_ns` for
    /// a CPU.
    pub(super) fn woke(&mut self, due_ns: u64, now_ns: u64, waited_ns: u64) {
        let late_ns = now_ns.saturating_sub(due_ns);
        if waited_ns > LATE_NS_MIN {
            self.log.add(EventKind::CpuWait, due_ns, now_ns);
        }
        if late_ns.saturating_sub(waited_ns) > LATE_NS_MIN {
            self.log.add(EventKind::Paused, due_ns, now_ns);
        }
    }

    /// The counters are at `readings` now.
    pub(super) fn look(&mut self, now_ns: u64, readings: Readings) {
        let before = std::mem::replace(&mut self.readings, readings);
        let grown = |now: Option<u64>, before: Option<u64>| {
            now.zip(before).map_or(0, |(now, before)| now.saturating_sub(before))
        };
        let from_ns = std::mem::replace(&mut self.at_ns, now_ns);
        if grown(readings.major_faults, before.major_faults) > 0 {
            self.log.add(EventKind::PageFaults, from_ns, now_ns);
        }
        if grown(readings.stalled_ns, before.stalled_ns) >= STALL_NS_MIN {
            self.log.add(EventKind::DiskStall, from_ns, now_ns);
        }
        let now: Vec<(u64, u64)> = counts(&self.activities).collect();
        let kinds = ActivityKind::ALL.iter().cycle();
        for ((kind, before), (begun, ended)) in kinds.zip(&self.counts).zip(&now) {
            // It goes on, or it has begun or ended since.
            if begun > ended || before != &(*begun, *ended) {
                self.log.add(event_of(*kind), from_ns, now_ns);
            }
        }
        self.counts = now;
        if now_ns.saturating_sub(self.cpu_at_ns) >= STOLEN_EVERY_NS {
            self.look_for_stolen(now_ns);
        }
    }

    fn look_for_stolen(&mut self, now_ns: u64) {
        let cpu = CpuTimes::read(None);
        let from_ns = std::mem::replace(&mut self.cpu_at_ns, now_ns);
        let before = std::mem::replace(&mut self.cpu, cpu);
        if let (Some(now), Some(before)) = (cpu, before)
            && now.steal > before.steal
        {
            self.log.add(EventKind::CpuStolen, from_ns, now_ns);
        }
    }

    /// All events.
    pub(super) fn finish(self) -> EventLog {
        self.log
    }
}

fn counts(activities: &[Activity]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let of_each = |activity| {
        ActivityKind::ALL
            .into_iter()
            .map(move |kind| Activity::counts(activity, kind))
    };
    activities.iter().flat_map(of_each)
}

fn event_of(kind: ActivityKind) -> EventKind {
    match kind {
        ActivityKind::Commit => EventKind::Commit,
        ActivityKind::Checkpoint => EventKind::Checkpoint,
        ActivityKind::Flush => EventKind::Flush,
        ActivityKind::HoldBack => EventKind::HeldBack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn kinds(log: &EventLog, from_ns: u64, until_ns: u64) -> Vec<EventKind> {
        log.during(from_ns, until_ns).iter().map(|one| one.kind).collect()
    }

    #[test]
    fn counters_that_grow_are_events_of_their_window() {
        let activity = Activity::new();
        let readings = |major_faults, stalled_ms| Readings {
            major_faults: Some(major_faults),
            stalled_ns: Some(stalled_ms * MS),
        };
        let mut monitor = EventMonitor::since(0, vec![activity.clone()], readings(5, 100));
        monitor.look(10 * MS, readings(5, 100));
        monitor.look(20 * MS, readings(6, 100));
        monitor.look(30 * MS, readings(6, 107));
        drop(activity.begin(ActivityKind::Checkpoint));
        monitor.look(40 * MS, readings(6, 107));
        // What goes on without an end in sight is seen while it does.
        let commit = activity.begin(ActivityKind::Commit);
        monitor.look(50 * MS, readings(6, 107));
        monitor.look(60 * MS, readings(6, 107));
        drop(commit);
        monitor.look(70 * MS, readings(6, 107));
        monitor.look(80 * MS, Readings::default());
        let log = monitor.finish();
        let of_window = |index: u64| kinds(&log, index * 10 * MS, (index + 1) * 10 * MS);
        assert_eq!(of_window(0), []);
        assert_eq!(of_window(1), [EventKind::PageFaults]);
        assert_eq!(of_window(2), [EventKind::DiskStall]);
        assert_eq!(of_window(3), [EventKind::Checkpoint]);
        assert_eq!(
            [4, 5, 6].map(of_window),
            [const { [EventKind::Commit] }; 3].map(Vec::from)
        );
        assert_eq!(of_window(7), []);
        assert_eq!(log.during(0, 80 * MS).iter().map(|one| one.events).sum::<u64>(), 4);
    }

    #[test]
    fn a_late_thread_waited_for_a_cpu_or_stood_still() {
        let mut monitor = EventMonitor::since(0, Vec::new(), Readings::default());
        monitor.woke(10 * MS, 11 * MS, 0);
        monitor.woke(20 * MS, 27 * MS, 6 * MS);
        monitor.woke(30 * MS, 330 * MS, MS);
        let log = monitor.finish();
        assert_eq!(kinds(&log, 0, 19 * MS), []);
        assert_eq!(kinds(&log, 19 * MS, 29 * MS), [EventKind::CpuWait]);
        assert_eq!(kinds(&log, 29 * MS, 400 * MS), [EventKind::Paused]);
        assert_eq!(log.during(29 * MS, 400 * MS)[0].overlap_ns, 300 * MS);
    }
}
