//! Measurements that the publication lacks: coalescing, batch sizes, the latency of a flush
//! during a drain, and the cost of a journal.

use std::path::Path;

use tsb_core::latency::Histogram;
use tsb_core::report::experiment::{Beyond, Drain, TimeQuantiles};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_stores::write_cache::Sync;

use super::bed::{Bed, STEP_S};
use super::speaker::Speaker;
use super::way::{Journaled, Kind, Tuning, Way};
use super::{Tried, failed};

/// Values pending per file before a drain.
const DEPTHS: [usize; 3] = [1, 10, 60];
/// Commands per batch.
const BATCHES: [usize; 3] = [10, 100, 1_000];
/// Timed flushes during a drain, and timed acknowledgements.
const FLUSHES: usize = 200;
const ACKS: usize = 1_000;

/// Makes all measurements, for each server.
pub(super) fn all(
    servers: &[Kind],
    bed: &mut Bed,
    folder: &Path,
    clock: &MonotonicClock,
    is_quick: bool,
) -> Tried<Vec<Beyond>> {
    let mut found = Vec::new();
    let depths = if is_quick { &DEPTHS[..2] } else { &DEPTHS[..] };
    for &kind in servers {
        bed.align()?;
        let way = Way::start(kind, bed, folder, Tuning::default())?;
        let mut speaker = way.connect()?;
        for &depth in depths {
            found.push(Beyond::Depth(drain(&way, &mut speaker, bed, clock, depth)?));
        }
        for size in BATCHES {
            found.push(batches(&way, &mut speaker, bed, clock, size)?);
        }
        found.push(flushes(&way, &mut speaker, bed, clock)?);
        way.stop()?;
    }
    let policies: [(&str, Kind, Journaled); 6] = [
        ("no journal", Kind::Ours, None),
        ("none", Kind::Ours, Some(Sync::None)),
        ("1s", Kind::Ours, Some(Sync::Interval(SECOND_NS))),
        ("group", Kind::Ours, Some(Sync::Group)),
        ("each", Kind::Ours, Some(Sync::Each)),
        ("its journal, never synced", Kind::Daemon, Some(Sync::None)),
    ];
    for (name, kind, journal) in policies.into_iter().filter(|(_, kind, _)| servers.contains(kind)) {
        found.push(acks(name, kind, journal, bed, folder, clock)?);
    }
    Ok(found)
}

/// Sends `depth` updates for every file, one step apart, in batches of 1,000 commands.
pub(super) fn fill(speaker: &mut Speaker, way: &Way, bed: &mut Bed, depth: usize) -> Tried<()> {
    let mut lines = vec![String::new(); bed.len()];
    for _ in 0..depth {
        bed.turn(STEP_S);
        for (index, line) in lines.iter_mut().enumerate() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&bed.reading(index));
        }
    }
    let path = |index: usize| bed.path(index).display().to_string();
    let updates: Vec<(String, String)> = lines
        .into_iter()
        .enumerate()
        .map(|(index, line)| (path(index), line))
        .collect();
    for some in updates.chunks(1_000) {
        speaker
            .batch(some)
            .map_err(|error| failed("fill", &way.socket, &error))?;
    }
    Ok(())
}

/// Measures from the first accepted value until all values are in the files and synced.
pub(super) fn drain(
    way: &Way,
    speaker: &mut Speaker,
    bed: &mut Bed,
    clock: &MonotonicClock,
    depth: usize,
) -> Tried<Drain> {
    bed.align()?;
    bed.sync()?;
    let talk = |error: std::io::Error| failed("talk to", &way.socket, &error);
    let before = speaker.counters().map_err(talk)?;
    let (cpu, started) = (way.cpu_ns(), clock.now());
    fill(speaker, way, bed, depth)?;
    let filled = clock.now();
    speaker.ask(&["FLUSHALL"]).map_err(talk)?;
    let values = (bed.len() * depth) as u64;
    let after = speaker.await_written(before.values + values).map_err(talk)?;
    let drained = clock.now();
    bed.sync()?;
    let synced = clock.now();
    let passes = (after.passes - before.passes).max(1);
    Ok(Drain {
        way: way.kind.name().to_owned(),
        files: bed.len(),
        values_per_file: depth,
        coalescing: (after.values - before.values) as f64 / passes as f64,
        accept_seconds: (filled - started) as f64 / 1e9,
        drain_seconds: (drained - filled) as f64 / 1e9,
        sync_seconds: (synced - drained) as f64 / 1e9,
        values_per_second: values as f64 * 1e9 / (synced - started) as f64,
        cpu_us_per_value: (way.cpu_ns() - cpu) as f64 / 1e3 / values as f64,
    })
}

fn batches(way: &Way, speaker: &mut Speaker, bed: &mut Bed, clock: &MonotonicClock, size: usize) -> Tried<Beyond> {
    let talk = |error: std::io::Error| failed("talk to", &way.socket, &error);
    let before = speaker.counters().map_err(talk)?;
    bed.turn(1);
    let updates: Vec<(String, String)> = (0..bed.len())
        .map(|index| (bed.path(index).display().to_string(), bed.reading(index)))
        .collect();
    let started = clock.now();
    for some in updates.chunks(size) {
        speaker.batch(some).map_err(talk)?;
    }
    let accepted = clock.now();
    speaker.ask(&["FLUSHALL"]).map_err(talk)?;
    speaker.await_written(before.values + bed.len() as u64).map_err(talk)?;
    Ok(Beyond::Batch {
        way: way.kind.name().to_owned(),
        files: bed.len(),
        batch: size,
        accepted_per_second: bed.len() as f64 * 1e9 / (accepted - started) as f64,
    })
}

/// Times FLUSH of one file while all files are drained, as a graph page would send it.
fn flushes(way: &Way, speaker: &mut Speaker, bed: &mut Bed, clock: &MonotonicClock) -> Tried<Beyond> {
    let talk = |error: std::io::Error| failed("talk to", &way.socket, &error);
    let before = speaker.counters().map_err(talk)?;
    fill(speaker, way, bed, 10)?;
    let mut other = way.connect()?;
    speaker.ask(&["FLUSHALL"]).map_err(talk)?;
    let mut times = Histogram::new();
    let count = FLUSHES.min(bed.len());
    for turn in 0..count {
        // From the end of the queue, where it would wait longest.
        let path = bed.path(bed.len() - 1 - turn * (bed.len() / count));
        let started = clock.now();
        other.ask(&["FLUSH", &path.to_string_lossy()]).map_err(talk)?;
        times.record(clock.now() - started);
    }
    speaker
        .await_written(before.values + (bed.len() * 10) as u64)
        .map_err(talk)?;
    Ok(Beyond::Flush {
        way: way.kind.name().to_owned(),
        files: bed.len(),
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
    kind: Kind,
    journal: Journaled,
    bed: &mut Bed,
    folder: &Path,
    clock: &MonotonicClock,
) -> Tried<Beyond> {
    let tuning = Tuning {
        journal,
        ..Tuning::default()
    };
    let way = Way::start(kind, bed, folder, tuning)?;
    let talk = |error: std::io::Error| failed("talk to", &way.socket, &error);
    let mut speaker = way.connect()?;
    let mut times = Histogram::new();
    let count = ACKS.min(bed.len());
    bed.turn(1);
    for index in 0..bed.len() {
        let (path, reading) = (bed.path(index).display().to_string(), bed.reading(index));
        let started = clock.now();
        speaker.ask(&["UPDATE", &path, &reading]).map_err(talk)?;
        if index < count {
            times.record(clock.now() - started);
        }
    }
    speaker.ask(&["FLUSHALL"]).map_err(talk)?;
    speaker.await_written(bed.len() as u64).map_err(talk)?;
    way.stop()?;
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
