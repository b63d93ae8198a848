//! The processes of a run, client, endpoint and database apart: their CPU time and memory, every
//! half second as the document recorded them, and over the whole run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tsb_core::report::experiment::mohawk::{ProcessLoad, ProcessMoment};
use tsb_core::resource::Process;
use tsb_core::time::{Clock, SECOND_NS};

/// Between two moments, as in the document.
const EVERY_NS: u64 = SECOND_NS / 2;

/// The part of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Endpoint,
    Database,
}

impl Role {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Endpoint => "endpoint",
            Self::Database => "database",
        }
    }
}

/// A process that takes part, and when it was started if the experiment did that.
#[derive(Clone, Debug)]
pub(super) struct Participant {
    pub(super) role: Role,
    pub(super) pid: u32,
    /// Since its start, and the time of that by the clock of the experiment.
    pub(super) life: Option<(Process, u64)>,
}

impl Participant {
    /// This process.
    pub(super) fn client() -> Self {
        Self {
            role: Role::Client,
            pid: std::process::id(),
            life: None,
        }
    }

    /// A process that the experiment has just started.
    pub(super) fn started(role: Role, pid: u32, clock: &dyn Clock) -> Self {
        Self {
            role,
            pid,
            life: Process::watch(pid).map(|process| (process, clock.now())),
        }
    }
}

/// A participant while it is watched.
struct Watched {
    process: Process,
    /// When the process was started, if that is what `process` counts from.
    started: Option<u64>,
    /// CPU time before the run, of that which `process` counts.
    before_ns: u64,
    /// CPU time in the run until the last reading, and the time of that.
    cpu_ns: u64,
    at_ns: u64,
    load: ProcessLoad,
}

impl Watched {
    /// `None` if the process does not exist. `start` of the run, in nanoseconds of the clock.
    fn new(participant: &Participant, start: u64) -> Option<Self> {
        let (process, started) = match &participant.life {
            Some((process, started)) => (process.clone(), Some(*started)),
            None => (Process::watch(participant.pid)?, None),
        };
        let before_ns = process.usage()?.cpu_ns();
        Some(Self {
            process,
            started,
            before_ns,
            cpu_ns: 0,
            at_ns: start,
            load: ProcessLoad {
                role: participant.role.name().to_owned(),
                ..ProcessLoad::default()
            },
        })
    }

    /// Reads it, `now` in nanoseconds of the clock, `start` of the run.
    fn look(&mut self, now: u64, start: u64) {
        // One that has ended keeps what it had.
        let Some(usage) = self.process.usage() else { return };
        let used = usage.cpu_ns().saturating_sub(self.before_ns);
        let since = now.saturating_sub(self.at_ns).max(1) as f64;
        let lifetime = self.started.map(|started| {
            let lived = now.saturating_sub(started).max(1) as f64;
            100.0 * usage.cpu_ns() as f64 / lived
        });
        self.load.moments.push(ProcessMoment {
            at_seconds: now.saturating_sub(start) as f64 / SECOND_NS as f64,
            cpu_percent: 100.0 * used.saturating_sub(self.cpu_ns) as f64 / since,
            lifetime_percent: lifetime,
            rss_bytes: usage.rss_bytes,
        });
        self.load.cpu_seconds = used as f64 / SECOND_NS as f64;
        self.load.rss_bytes = usage.rss_bytes;
        self.load.name.clone_from(&usage.name);
        (self.cpu_ns, self.at_ns) = (used, now);
    }
}

/// Runs `work` and watches the processes meanwhile. Its own thread sleeps in between, and is part
/// of the client.
pub(super) fn watched<T>(
    participants: &[Participant],
    clock: &dyn Clock,
    work: impl FnOnce() -> T,
) -> (T, Vec<ProcessLoad>) {
    let start = clock.now();
    let watched = participants.iter().filter_map(|one| Watched::new(one, start));
    let mut all: Vec<Watched> = watched.collect();
    let is_over = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let (all, is_over_flag) = (&mut all, &is_over);
        let watching = scope.spawn(move || {
            let mut next = start + EVERY_NS;
            while !is_over_flag.load(Ordering::Acquire) {
                let now = clock.now();
                if now >= next {
                    for watched in all.iter_mut() {
                        watched.look(now, start);
                    }
                    next += EVERY_NS;
                } else {
                    std::thread::park_timeout(Duration::from_nanos(next - now));
                }
            }
        });
        let end = Wake {
            is_over: &is_over,
            thread: watching.thread().clone(),
        };
        let result = work();
        drop(end);
        result
    });
    let now = clock.now();
    for watched in &mut all {
        watched.look(now, start);
    }
    (result, all.into_iter().map(|watched| watched.load).collect())
}

/// Ends the thread that watches, after a panic of the work too.
struct Wake<'a> {
    is_over: &'a AtomicBool,
    thread: std::thread::Thread,
}

impl Drop for Wake<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// What the process of a part used, if it took part.
pub(super) fn of_role(processes: &[ProcessLoad], role: Role) -> impl Iterator<Item = &ProcessLoad> {
    processes.iter().filter(move |load| load.role == role.name())
}

#[cfg(test)]
mod tests {
    use tsb_core::time::{MonotonicClock, process_cpu_ns};

    use super::*;

    #[test]
    fn this_process_is_seen_to_work_and_what_does_not_exist_is_absent() {
        let clock = MonotonicClock::new();
        let own = Participant {
            life: Some((Process::own().unwrap(), clock.now())),
            ..Participant::client()
        };
        let nobody = Participant {
            role: Role::Database,
            pid: u32::MAX,
            life: None,
        };
        let (before, start) = (process_cpu_ns(), clock.now());
        let ((), loads) = watched(&[own, nobody], &clock, || {
            // Other tests of this process use its CPU time too.
            while process_cpu_ns() - before < 60_000_000 || clock.now() - start < 60_000_000 {
                std::hint::spin_loop();
            }
        });
        let [load] = &loads[..] else { panic!("{loads:?}") };
        assert_eq!(load.role, "client");
        assert!(load.cpu_seconds >= 0.03 && load.rss_bytes > 100_000, "{load:?}");
        let last = load.moments.last().unwrap();
        assert!(
            last.lifetime_percent.unwrap() > 0.0 && last.at_seconds >= 0.03,
            "{last:?}"
        );
        assert_eq!(of_role(&loads, Role::Client).count(), 1);
        assert_eq!(of_role(&loads, Role::Database).count(), 0);
    }
}
