//! Measurements that the publication lacks: coalescing, batch sizes, the latency of a flush
//! during a drain, and the cost of a journal.

use std::path::Path;

use tsb_core::latency::Histogram;
use tsb_core::report::experiment::rrdcached::{Beyond, Drain, TimeQuantiles};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_stores::write_cache::SyncPolicy;

use super::client::Client;
use super::engine::{Engine, EngineKind, Tuning};
use super::testbed::{STEP_S, Testbed};
use super::{Result, failed};

/// Values pending per file before a drain.
const DEPTHS: [usize; 3] = [1, 10, 60];
/// Commands per batch.
const BATCHES: [usize; 3] = [10, 100, 1_000];
/// Timed flushes during a drain, and timed acknowledgements.
const FLUSHES: usize = 200;
const ACKS: usize = 1_000;

/// Makes all measurements, for each server.
pub(super) fn all(
    servers: &[EngineKind],
    testbed: &mut Testbed,
    folder: &Path,
    clock: &MonotonicClock,
    is_quick: bool,
) -> Result<Vec<Beyond>> {
    let mut found = Vec::new();
    let depths = if is_quick { &DEPTHS[..2] } else { &DEPTHS[..] };
    for &kind in servers {
        testbed.align()?;
        let engine = Engine::start(kind, testbed, folder, Tuning::default())?;
        let mut client = engine.connect()?;
        for &depth in depths {
            found.push(Beyond::Depth(drain(&engine, &mut client, testbed, clock, depth)?));
        }
        for size in BATCHES {
            found.push(batches(&engine, &mut client, testbed, clock, size)?);
        }
        found.push(flushes(&engine, &mut client, testbed, clock)?);
        engine.stop()?;
    }
    let policies: [(&str, EngineKind, Option<SyncPolicy>); 6] = [
        ("no journal", EngineKind::Ours, None),
        ("none", EngineKind::Ours, Some(SyncPolicy::None)),
        ("1s", EngineKind::Ours, Some(SyncPolicy::Interval(SECOND_NS))),
        ("group", EngineKind::Ours, Some(SyncPolicy::Group)),
        ("each", EngineKind::Ours, Some(SyncPolicy::Each)),
        ("its journal, never synced", EngineKind::Daemon, Some(SyncPolicy::None)),
    ];
    for (name, kind, journal) in policies.into_iter().filter(|(_, kind, _)| servers.contains(kind)) {
        found.push(acks(name, kind, journal, testbed, folder, clock)?);
    }
    Ok(found)
}

/// Sends `depth` updates for every file, one step apart, in batches of 1,000 commands.
pub(super) fn fill(client: &mut Client, engine: &Engine, testbed: &mut Testbed, depth: usize) -> Result<()> {
    let mut lines = vec![String::new(); testbed.len()];
    for _ in 0..depth {
        testbed.begin_pass(STEP_S);
        for (index, line) in lines.iter_mut().enumerate() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&testbed.update_text(index));
        }
    }
    let path = |index: usize| testbed.path(index).display().to_string();
    let updates: Vec<(String, String)> = lines
        .into_iter()
        .enumerate()
        .map(|(index, line)| (path(index), line))
        .collect();
    for some in updates.chunks(1_000) {
        client
            .batch(some)
            .map_err(|error| failed("fill", &engine.socket, &error))?;
    }
    Ok(())
}

/// Measures from the first accepted value until all values are in the files and synced.
pub(super) fn drain(
    engine: &Engine,
    client: &mut Client,
    testbed: &mut Testbed,
    clock: &MonotonicClock,
    depth: usize,
) -> Result<Drain> {
    testbed.align()?;
    testbed.sync()?;
    let talk = |error: std::io::Error| failed("talk to", &engine.socket, &error);
    let before = client.counters().map_err(talk)?;
    let (cpu, started) = (engine.cpu_ns(), clock.now());
    fill(client, engine, testbed, depth)?;
    let filled = clock.now();
    client.ask(&["FLUSHALL"]).map_err(talk)?;
    let values = (testbed.len() * depth) as u64;
    let after = client.await_written(before.values + values).map_err(talk)?;
    let drained = clock.now();
    testbed.sync()?;
    let synced = clock.now();
    let passes = (after.passes - before.passes).max(1);
    Ok(Drain {
        way: engine.kind.name().to_owned(),
        files: testbed.len(),
        values_per_file: depth,
        coalescing: (after.values - before.values) as f64 / passes as f64,
        accept_seconds: (filled - started) as f64 / 1e9,
        drain_seconds: (drained - filled) as f64 / 1e9,
        sync_seconds: (synced - drained) as f64 / 1e9,
        values_per_second: values as f64 * 1e9 / (synced - started) as f64,
        cpu_us_per_value: (engine.cpu_ns() - cpu) as f64 / 1e3 / values as f64,
    })
}

fn batches(
    engine: &Engine,
    client: &mut Client,
    testbed: &mut Testbed,
    clock: &MonotonicClock,
    size: usize,
) -> Result<Beyond> {
    let talk = |error: std::io::Error| failed("talk to", &engine.socket, &error);
    let before = client.counters().map_err(talk)?;
    testbed.begin_pass(1);
    let updates: Vec<(String, String)> = (0..testbed.len())
        .map(|index| (testbed.path(index).display().to_string(), testbed.update_text(index)))
        .collect();
    let started = clock.now();
    for some in updates.chunks(size) {
        client.batch(some).map_err(talk)?;
    }
    let accepted = clock.now();
    client.ask(&["FLUSHALL"]).map_err(talk)?;
    client
        .await_written(before.values + testbed.len() as u64)
        .map_err(talk)?;
    Ok(Beyond::Batch {
        way: engine.kind.name().to_owned(),
        files: testbed.len(),
        batch: size,
        accepted_per_second: testbed.len() as f64 * 1e9 / (accepted - started) as f64,
    })
}

/// Times FLUSH of one file while all files are drained, as a graph page would send it.
fn flushes(engine: &Engine, client: &mut Client, testbed: &mut Testbed, clock: &MonotonicClock) -> Result<Beyond> {
    let talk = |error: std::io::Error| failed("talk to", &engine.socket, &error);
    let before = client.counters().map_err(talk)?;
    fill(client, engine, testbed, 10)?;
    let mut other = engine.connect()?;
    client.ask(&["FLUSHALL"]).map_err(talk)?;
    let mut times = Histogram::new();
    let count = FLUSHES.min(testbed.len());
    for turn in 0..count {
        // From the end of the queue, where it would wait longest.
        let path = testbed.path(testbed.len() - 1 - turn * (testbed.len() / count));
        let started = clock.now();
        other.ask(&["FLUSH", &path.to_string_lossy()]).map_err(talk)?;
        times.record(clock.now() - started);
    }
    client
        .await_written(before.values + (testbed.len() * 10) as u64)
        .map_err(talk)?;
    Ok(Beyond::Flush {
        way: engine.kind.name().to_owned(),
        files: testbed.len(),
        flushes: count,
        times: TimeQuantiles {
            p50_us: us(&times, 0.5),
            p90_us: us(&times, 0.9),
            p99_us: us(&times, 0.99),
            p999_us: None,
        },
    })
}

/// Times acknowledgements, one update at a time.
fn acks(
    name: &str,
    kind: EngineKind,
    journal: Option<SyncPolicy>,
    testbed: &mut Testbed,
    folder: &Path,
    clock: &MonotonicClock,
) -> Result<Beyond> {
    let tuning = Tuning {
        journal,
        ..Tuning::default()
    };
    let engine = Engine::start(kind, testbed, folder, tuning)?;
    let talk = |error: std::io::Error| failed("talk to", &engine.socket, &error);
    let mut client = engine.connect()?;
    let mut times = Histogram::new();
    let count = ACKS.min(testbed.len());
    testbed.begin_pass(1);
    for index in 0..testbed.len() {
        let (path, reading) = (testbed.path(index).display().to_string(), testbed.update_text(index));
        let started = clock.now();
        client.ask(&["UPDATE", &path, &reading]).map_err(talk)?;
        if index < count {
            times.record(clock.now() - started);
        }
    }
    client.ask(&["FLUSHALL"]).map_err(talk)?;
    client.await_written(testbed.len() as u64).map_err(talk)?;
    engine.stop()?;
    Ok(Beyond::Ack {
        way: kind.name().to_owned(),
        policy: name.to_owned(),
        acks: count,
        times: TimeQuantiles {
            p50_us: us(&times, 0.5),
            p90_us: None,
            p99_us: us(&times, 0.99),
            p999_us: us(&times, 0.999),
        },
    })
}

/// A quantile in microseconds, if enough values support it.
fn us(times: &Histogram, quantile: f64) -> Option<f64> {
    times.supported_quantile(quantile).map(|nanos| nanos as f64 / 1e3)
}
