//! The newest timestamp that can have been sent to a series by now: no store can have a newer
//! one, since nothing is sent before it is due.

use tsb_core::Timestamp;
use tsb_core::workload::Group;

use super::Subject;
use crate::audit::Heard;

/// Fleet time and due times are rounded to whole nanoseconds, each for itself.
const ROUNDED_NS: u64 = 1_000;

/// Notes what the store said of the newest sample of every series. Call it after the answer
/// came, so that what was sent by now is all that the answer can be about.
pub(super) fn hear(subject: &Subject, newest: &[Option<Timestamp>], heard: &mut Heard) {
    let retention_ns = subject.store.capabilities().retention_ns;
    let of_all = newest.iter().flatten().max().copied();
    let kept_from = of_all.zip(retention_ns).map(|(newest, kept_ns)| newest + -kept_ns);
    let now = now(subject);
    for (index, group) in subject.stage.workload.groups().iter().enumerate() {
        let series = group.first.index()..group.first.index() + group.len as usize;
        let Some(answers) = newest.get(series) else { continue };
        let until = now.map(|now| until(subject, index, group, now));
        heard.note(group.first, answers, until, kept_from.unwrap_or(Timestamp::MIN));
    }
}

/// The time of the fleet. Absent where the pace of the run is not the fleet's.
fn now(subject: &Subject) -> Option<Timestamp> {
    let speed = subject.stage.speed()?;
    let elapsed_ns = subject.stage.clock.now().saturating_sub(subject.start_ns) + ROUNDED_NS;
    Some(subject.base + speed.fleet_ns(elapsed_ns) as i64)
}

/// The newest timestamp of a group that is due by `now`, with the jitter that it may have.
fn until(subject: &Subject, index: usize, group: &Group, now: Timestamp) -> Timestamp {
    let workload = &subject.stage.workload;
    let jitter_ns = workload.spec().jitter.max_ns as i64;
    // A recording has times of its own.
    if workload.window().is_some() {
        return now + jitter_ns;
    }
    let since_ns = now - workload.timestamp(index, 0, subject.base);
    let Ok(since_ns) = u64::try_from(since_ns) else {
        return Timestamp::MIN;
    };
    let tick = (since_ns / group.interval_ns).min(group.ticks.end.saturating_sub(1));
    workload.timestamp(index, tick, subject.base) + jitter_ns
}
