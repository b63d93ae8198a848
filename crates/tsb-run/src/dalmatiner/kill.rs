//! The loss window: what a target loses that is killed with points in its memory.

use std::time::Duration;

use tsb_core::report::experiment::dalmatiner::{DalmatinerPlan, KillRun};
use tsb_core::time::{Clock, SECOND_NS};
use tsb_core::workload::Workload;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{Query, Refusals, Store, TimeRange};

use super::feed::workload;
use super::opened::OpenTarget;
use crate::error::Error;
use crate::run::exactness;

/// How long the last sample may take until a query returns it.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_NS: u64 = SECOND_NS / 50;

/// Writes the feed faster than it is due, kills our endpoint when it has taken the last sample, and
/// opens its files. No log protects what waits in the cache of the original.
///
/// # Errors
/// If the target does not take the feed, or cannot be opened again.
pub(super) fn kill(
    opened: &mut OpenTarget<'_>,
    (asked, round): (&DalmatinerPlan, u32),
    clock: &dyn Clock,
) -> Result<KillRun, Error> {
    let failed = |what: &str, why: String| Error::unreachable(what.to_owned()).because_of(why);
    let feed = Workload::new(&workload(asked, asked.killed_series))
        .map_err(|error| Error::plan("cannot make the feed of a kill").because(&error))?;
    let base = Timestamp::from_secs(clock.wall().as_secs() - asked.killed_seconds.cast_signed());
    let definitions = feed.catalog().definitions();
    let store = opened.connect()?;
    let written = store
        .define(&definitions)
        .map_err(|error| error.to_string())
        .and_then(|()| write(&*store, &feed, base, asked.killed_seconds));
    let taken = written.map_err(|why| failed("cannot write the feed of a kill", why))?;
    wait_for_last(&*store, &feed, base, asked.killed_seconds, clock)
        .map_err(|why| failed("cannot see that it has taken the feed", why))?;
    let capabilities = store.capabilities();
    let tested = opened.tested(capabilities.acknowledges, &exactness(capabilities.exactness));
    opened.kill()?;
    // The client's connection is gone with the endpoint.
    drop(store);
    let spec = opened.files_spec()?;
    let store = spec.open().map_err(|error| Error::opening(&spec, &error))?;
    store
        .define(&definitions)
        .map_err(|error| failed("cannot define the series after a kill", error.to_string()))?;
    let kept = kept(&*store, &feed, base).map_err(|why| failed("cannot read what a kill left", why))?;
    store
        .close()
        .map_err(|error| failed("cannot close what a kill left", error.to_string()))?;
    let end = base + (asked.killed_seconds * SECOND_NS).cast_signed();
    let longest_ns = kept
        .iter()
        .map(|(_, newest)| end - newest.map_or(base, |at| at + SECOND_NS.cast_signed()));
    Ok(KillRun {
        target: tested,
        round,
        taken,
        lost: taken.saturating_sub(kept.iter().map(|(samples, _)| samples).sum()),
        longest_loss_seconds: longest_ns.max().unwrap_or(0).max(0).cast_unsigned() / SECOND_NS,
    })
}

/// Writes whole seconds, and no two of one metric in a message. Returns the samples.
fn write(store: &dyn Store, feed: &Workload, base: Timestamp, seconds: u64) -> Result<u64, String> {
    let groups = feed.groups();
    let mut generator = feed.generator(0..groups.len(), base);
    let (mut taken, mut refused) = (0, Refusals::new());
    for tick in 0..seconds {
        for group in 0..groups.len() {
            let batch = generator.operation(group, tick);
            let ack = store.write(&batch, &mut refused).map_err(|error| error.to_string())?;
            if ack.rejected > 0 {
                return Err("a sample was refused".to_owned());
            }
            taken += ack.accepted as u64;
        }
    }
    Ok(taken)
}

/// Waits until a query returns the last sample of the last series: samples of one connection are
/// taken in order.
fn wait_for_last(
    store: &dyn Store,
    feed: &Workload,
    base: Timestamp,
    seconds: u64,
    clock: &dyn Clock,
) -> Result<(), String> {
    let groups = feed.groups();
    let last = groups.last().ok_or("the feed is empty")?;
    let id = SeriesId(last.first.0 + last.len - 1);
    let at = feed.timestamp(groups.len() - 1, seconds - 1, base);
    let until = clock.now() + PATIENCE.as_nanos() as u64;
    while clock.now() < until {
        let mut is_there = false;
        let range = TimeRange { start: at, end: at + 1 };
        let query = Query {
            series: &[id],
            range,
            resample: None,
        };
        store
            .query(&query, &mut |_, times, _| {
                is_there |= times.contains(&at);
                std::ops::ControlFlow::Continue(())
            })
            .map_err(|error| error.to_string())?;
        if is_there {
            return Ok(());
        }
        clock.wait_until(clock.now() + LOOK_NS);
    }
    Err(format!("its last sample is not there after {} s", PATIENCE.as_secs()))
}

/// The number of samples of each series that are there, and the time of the newest.
fn kept(store: &dyn Store, feed: &Workload, base: Timestamp) -> Result<Vec<(u64, Option<Timestamp>)>, String> {
    let ids: Vec<SeriesId> = (0..feed.catalog().len() as u32).map(SeriesId).collect();
    let mut kept = vec![(0, None); ids.len()];
    let query = Query {
        series: &ids,
        range: TimeRange {
            start: base,
            end: Timestamp::MAX,
        },
        resample: None,
    };
    let answered = store.query(&query, &mut |id, times, _| {
        if let Some((samples, newest)) = kept.get_mut(id.0 as usize) {
            *samples += times.len() as u64;
            *newest = times.last().copied().or(*newest);
        }
        std::ops::ControlFlow::Continue(())
    });
    answered.map(|()| kept).map_err(|error| error.to_string())
}
