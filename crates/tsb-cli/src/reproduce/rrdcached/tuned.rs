//! Measures the effect of a server's options: drains by number of write threads, and how writes
//! spread and values coalesce by timeout and jitter under continuous updates.

use std::path::Path;

use tsb_core::report::experiment::rrdcached::Beyond;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use super::beyond;
use super::engine::{Engine, EngineKind, Tuning};
use super::testbed::Testbed;
use super::{Result, failed};

/// Numbers of write threads.
const THREADS: [usize; 3] = [1, 2, 4];
/// Values pending per file before these drains.
const DEPTH: usize = 10;
/// Timeouts and jitters, in seconds.
pub(super) const PACES: [(u64, u64); 3] = [(1, 0), (1, 1), (2, 2)];
/// Length of the updates in seconds, and interval between two updates of all files.
const FEED_S: u64 = 8;
const FEED_QUICK_S: u64 = 3;
pub(super) const TICK_NS: u64 = SECOND_NS / 4;

/// Makes all measurements, for each server.
pub(super) fn all(
    servers: &[EngineKind],
    testbed: &mut Testbed,
    folder: &Path,
    clock: &MonotonicClock,
    is_quick: bool,
) -> Result<Vec<Beyond>> {
    let mut found = Vec::new();
    for threads in THREADS {
        for &kind in servers {
            found.push(drain(kind, threads, testbed, folder, clock)?);
        }
    }
    // These last as long as they last, whatever the machine.
    let (paces, feed_s) = if is_quick {
        (&PACES[1..2], FEED_QUICK_S)
    } else {
        (&PACES[..], FEED_S)
    };
    for &pace in paces {
        for &kind in servers {
            found.push(feed(kind, pace, feed_s, testbed, folder, clock)?);
        }
    }
    Ok(found)
}

fn drain(
    kind: EngineKind,
    threads: usize,
    testbed: &mut Testbed,
    folder: &Path,
    clock: &MonotonicClock,
) -> Result<Beyond> {
    let tuning = Tuning {
        threads,
        ..Tuning::default()
    };
    let engine = Engine::start(kind, testbed, folder, tuning)?;
    let drain = beyond::drain(&engine, &mut engine.connect()?, testbed, clock, DEPTH)?;
    engine.stop()?;
    Ok(Beyond::Threads { threads, drain })
}

/// Updates every file every 250 ms for `feed_s` seconds.
pub(super) fn feed(
    kind: EngineKind,
    (timeout_s, jitter_s): (u64, u64),
    feed_s: u64,
    testbed: &mut Testbed,
    folder: &Path,
    clock: &MonotonicClock,
) -> Result<Beyond> {
    let tuning = Tuning {
        timeout_s,
        jitter_s,
        ..Tuning::default()
    };
    let engine = Engine::start(kind, testbed, folder, tuning)?;
    let talk = |error: std::io::Error| failed("talk to", &engine.socket, &error);
    let mut client = engine.connect()?;
    let started = clock.now();
    let (mut ticks, mut queued_max) = (0, 0);
    let (mut before, mut written_max) = (0, 0);
    while clock.now() - started < feed_s * SECOND_NS {
        beyond::fill(&mut client, &engine, testbed, 1)?;
        ticks += 1;
        let counters = client.counters().map_err(talk)?;
        queued_max = queued_max.max(counters.queued);
        written_max = written_max.max(counters.values - before);
        before = counters.values;
        clock.wait_until(started + ticks * TICK_NS);
    }
    let fed = client.counters().map_err(talk)?;
    let drain_started = clock.now();
    client.ask(&["FLUSHALL"]).map_err(talk)?;
    let all = client.await_written(ticks * testbed.len() as u64).map_err(talk)?;
    let found = Beyond::Feed {
        way: kind.name().to_owned(),
        files: testbed.len(),
        seconds: feed_s,
        timeout_seconds: timeout_s,
        jitter_seconds: jitter_s,
        coalescing: fed.values as f64 / fed.passes.max(1) as f64,
        queued_most: queued_max,
        values_written_in_a_tick_most: written_max,
        values_left: all.values - fed.values,
        drain_seconds: (clock.now() - drain_started) as f64 / 1e9,
    };
    engine.stop()?;
    Ok(found)
}
