//! Computes the newest timestamp that can have been sent to a series by now. Nothing is sent
//! before it is due, so a store that answers with a newer one is wrong.

use tsb_core::Timestamp;
use tsb_core::workload::SeriesGroup;

use super::MonitorInputs;
use crate::audit::NewestAnswers;

/// Tolerance: fleet times and due times are rounded to whole nanoseconds independently.
const ROUNDED_NS: u64 = 1_000;

/// Records the store's answers about the newest sample of every series. Call it after the answer
/// has arrived: the horizon of that moment then covers everything the answer can contain.
pub(super) fn record_answers(inputs: &MonitorInputs, newest: &[Option<Timestamp>], heard: &mut NewestAnswers) {
    let retention_ns = inputs.store.capabilities().retention_ns;
    let of_all = newest.iter().flatten().max().copied();
    let kept_from = of_all.zip(retention_ns).map(|(newest, kept_ns)| newest + -kept_ns);
    let now = now(inputs);
    for (index, group) in inputs.context.workload.groups().iter().enumerate() {
        let series = group.first.index()..group.first.index() + group.len as usize;
        let Some(answers) = newest.get(series) else { continue };
        let until = now.map(|now| until(inputs, index, group, now));
        heard.note(group.first, answers, until, kept_from.unwrap_or(Timestamp::MIN));
    }
}

/// Current fleet time; `None` if the run does not keep the fleet's own pace.
fn now(inputs: &MonitorInputs) -> Option<Timestamp> {
    let speed = inputs.context.speed()?;
    let elapsed_ns = inputs.context.clock.now().saturating_sub(inputs.start_ns) + ROUNDED_NS;
    Some(inputs.base + speed.fleet_ns(elapsed_ns) as i64)
}

/// The newest timestamp of a group that is due by `now`, plus the largest possible jitter.
fn until(inputs: &MonitorInputs, index: usize, group: &SeriesGroup, now: Timestamp) -> Timestamp {
    let workload = &inputs.context.workload;
    let jitter_ns = workload.spec().jitter.max_ns as i64;
    // Recorded timestamps do not follow the ticks.
    if workload.window().is_some() {
        return now + jitter_ns;
    }
    let since_ns = now - workload.timestamp(index, 0, inputs.base);
    let Ok(since_ns) = u64::try_from(since_ns) else {
        // What was written before the run is older than its beginning.
        let has_history = inputs.context.plan.preload_ns.is_some();
        return if has_history {
            inputs.base + jitter_ns
        } else {
            Timestamp::MIN
        };
    };
    let tick = (since_ns / group.interval_ns).min(group.ticks.end.saturating_sub(1));
    workload.timestamp(index, tick, inputs.base) + jitter_ns
}
