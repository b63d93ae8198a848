//! Predictions of drains over a model of the disk, and the real runs that show how far off they are.

use std::collections::BTreeMap;
use std::path::Path;

use tsb_core::report::experiment::Figure;
use tsb_core::report::experiment::rrdcached::{Beyond, DrainCosts, EngineCosts, Prediction, Simulated, SimulatedHours};
use tsb_core::resource::Machine;
use tsb_core::time::{MonotonicClock, SECOND_NS, thread_cpu_ns};
use tsb_run::simulate::{DrainScenario, Drained, drain};

use super::engine::{Engine, EngineKind, Tuning};
use super::testbed::{STEP_S, Testbed};
use super::{Result, beyond, rounds, tuned};
use crate::args::RrdcachedArgs;
use crate::reproduce::say;

/// Number of files from which costs are taken.
const COST_FILES: usize = 1_000;
/// Values per file of the drains from which costs are taken, and of the predicted ones.
const COST_DEPTHS: [usize; 2] = [1, 40];
const DEPTHS: [usize; 3] = [1, 10, 60];
/// Seconds of predicted updates.
const FEED_S: u64 = 8;
/// Files, hours, timeout and jitter of what is simulated only; the first two with `--quick`.
const HOURS: [(usize, u64, u64, u64); 4] = [
    (10_000, 6, 60, 0),
    (10_000, 6, 300, 300),
    (60_000, 6, 300, 0),
    (60_000, 6, 300, 300),
];

/// Measured figures, by engine and name.
type Measured = BTreeMap<(&'static str, String), Vec<f64>>;

/// Takes costs, predicts drains of these numbers of files, and with `--check` measures the same.
pub(super) fn of(
    args: &RrdcachedArgs,
    counts: &[usize],
    kinds: &[EngineKind],
    testbed: &mut Testbed,
    folder: &Path,
    clock: &MonotonicClock,
) -> Result<Simulated> {
    let servers: Vec<EngineKind> = kinds.iter().copied().filter(|kind| kind.is_server()).collect();
    say(&args.experiment, "the disk");
    let device = crate::doctor::measure_device(folder)?;
    let cores = Machine::examine().cores;
    say(&args.experiment, &format!("costs, on {COST_FILES} files"));
    let costs = costs(&servers, (cores, args.rounds), testbed, folder, clock)?;
    let cpu_before = thread_cpu_ns();
    let predict = |scenario: &DrainScenario, costs: &DrainCosts| drain(scenario, costs, &device);
    let mut points = Vec::new();
    let mut hours = Vec::new();
    for engine in &costs {
        points.extend(predictions(counts, cores, engine, &predict));
        let asked = if args.experiment.quick { &HOURS[..2] } else { &HOURS[..] };
        hours.extend(asked.iter().map(|&asked| hour(asked, cores, engine, &predict)));
    }
    let cpu_seconds = (thread_cpu_ns() - cpu_before) as f64 / 1e9;
    if args.check {
        let measured = measure(args, &servers, counts, testbed, folder, clock)?;
        for point in &mut points {
            let key = measured
                .iter()
                .find(|((way, what), _)| *way == point.way && *what == point.what);
            let figure = key.and_then(|(_, values)| Figure::of(values));
            point.measured = figure.map(|figure| figure.mean);
            (point.low, point.high) = (
                figure.and_then(|figure| figure.low),
                figure.and_then(|figure| figure.high),
            );
            let error = point.measured.map(|measured| point.predicted / measured - 1.0);
            point.error = error.filter(|error| error.is_finite());
        }
    }
    Ok(Simulated {
        device,
        cores,
        cost_files: COST_FILES,
        costs,
        points,
        hours,
        cpu_seconds,
    })
}

/// The costs of each server, from small drains: warm ones for time on cores, and a cold one for
/// what reading costs beyond that.
fn costs(
    servers: &[EngineKind],
    (cores, turns): (usize, u32),
    testbed: &mut Testbed,
    folder: &Path,
    clock: &MonotonicClock,
) -> Result<Vec<EngineCosts>> {
    testbed.grow(COST_FILES, |_| ())?;
    let mut found: BTreeMap<&'static str, [Vec<f64>; 5]> = BTreeMap::new();
    for round in 0..turns {
        for &kind in servers {
            let [one, many, accept, read, answer] = found.entry(kind.name()).or_default();
            let engine = Engine::start(kind, testbed, folder, Tuning::default())?;
            let passes = rounds::of(&engine, testbed, clock, round)?;
            let cpu_us = |nth: usize| {
                passes
                    .iter()
                    .find(|pass| pass.nth == nth)
                    .map(|pass| pass.cpu_us_per_update)
            };
            if let Some((cold, warm)) = cpu_us(0).zip(cpu_us(3)) {
                read.push((cold - warm).max(0.0) * 1e3 / 3.0);
            }
            let warm = passes.iter().find(|pass| pass.nth == 3);
            answer.extend(warm.map(|pass| pass.accept_seconds * 1e9 / COST_FILES as f64));
            let mut client = engine.connect()?;
            for (depth, times) in COST_DEPTHS.into_iter().zip([one, many]) {
                let drained = beyond::drain(&engine, &mut client, testbed, clock, depth)?;
                times.push(drained.drain_seconds * 1e9);
                accept.push(drained.accept_seconds * 1e9 / (COST_FILES * depth) as f64);
            }
            drop(client);
            engine.stop()?;
        }
    }
    let shared = cores.clamp(1, Tuning::default().threads) as f64 / COST_FILES as f64;
    let of_engine = |&kind: &EngineKind| {
        let times = found.remove(kind.name()).unwrap_or_default();
        let [one, many, accept, read, answer] = times.map(median);
        let (one, many) = (one * shared, many * shared);
        let value = ((many - one) / (COST_DEPTHS[1] - COST_DEPTHS[0]) as f64).max(0.0);
        let is_ours = kind == EngineKind::Ours;
        EngineCosts {
            way: kind.name().to_owned(),
            costs: DrainCosts {
                accept_ns: accept as u64,
                write_ns: (one - value * COST_DEPTHS[0] as f64).max(0.0) as u64,
                value_ns: value as u64,
                read_ns: read as u64,
                files_at_once: if is_ours { 256 } else { 1 },
                is_in_seconds: !is_ours,
            },
            answer_ns: answer as u64,
        }
    };
    Ok(servers.iter().map(of_engine).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn drain_of(files: usize, updates: usize, cores: usize) -> DrainScenario {
    DrainScenario {
        files,
        updates: updates as u64,
        interval_ns: 0,
        data_step_s: STEP_S as u64,
        timeout_ns: 3_600 * SECOND_NS,
        cores,
        ..DrainScenario::default()
    }
}

fn feed_of(files: usize, (timeout_s, jitter_s): (u64, u64), cores: usize) -> DrainScenario {
    DrainScenario {
        interval_ns: tuned::TICK_NS,
        is_spread: false,
        timeout_ns: timeout_s * SECOND_NS,
        jitter_ns: jitter_s * SECOND_NS,
        ..drain_of(files, (FEED_S * SECOND_NS / tuned::TICK_NS) as usize, cores)
    }
}

// The names of what is predicted and measured.

fn drain_name(files: usize, depth: usize) -> String {
    format!("drain of {depth} values for each of {files} files, warm")
}

fn sync_name(files: usize, depth: usize) -> String {
    format!("sync after a drain of {depth} values for each of {files} files")
}

fn cold_name(files: usize) -> String {
    format!("accept and drain of one value for each of {files} files, cold")
}

fn feed_name((timeout_s, jitter_s): (u64, u64)) -> String {
    format!("values of a write, updates every 250 ms, -w {timeout_s} -z {jitter_s}")
}

fn predictions(
    counts: &[usize],
    cores: usize,
    engine: &EngineCosts,
    predict: &dyn Fn(&DrainScenario, &DrainCosts) -> Drained,
) -> Vec<Prediction> {
    let mut found = Vec::new();
    let mut add = |what: String, unit: &str, predicted: f64| {
        found.push(Prediction {
            what,
            way: engine.way.clone(),
            unit: unit.to_owned(),
            predicted,
            measured: None,
            low: None,
            high: None,
            error: None,
        });
    };
    for &files in counts {
        for depth in DEPTHS {
            let drained = predict(&drain_of(files, depth, cores), &engine.costs);
            add(drain_name(files, depth), "s", drained.drain_ns() as f64 / 1e9);
            add(sync_name(files, depth), "s", drained.sync_ns() as f64 / 1e9);
        }
        let cold = DrainScenario {
            is_cold: true,
            ..drain_of(files, 1, cores)
        };
        let alone = DrainCosts {
            accept_ns: engine.answer_ns,
            ..engine.costs
        };
        let drained = predict(&cold, &alone);
        add(cold_name(files), "s", drained.drained_at_ns as f64 / 1e9);
    }
    for pace in tuned::PACES {
        let fed = predict(&feed_of(COST_FILES, pace, cores), &engine.costs);
        let written = fed.accepted - fed.left;
        add(
            feed_name(pace),
            "values",
            written as f64 / fed.writes_before_drain.max(1) as f64,
        );
    }
    found
}

fn hour(
    (files, hours, timeout_s, jitter_s): (usize, u64, u64, u64),
    cores: usize,
    engine: &EngineCosts,
    predict: &dyn Fn(&DrainScenario, &DrainCosts) -> Drained,
) -> SimulatedHours {
    let minute = DrainScenario {
        files,
        updates: hours * 60,
        interval_ns: 60 * SECOND_NS,
        data_step_s: 60,
        timeout_ns: timeout_s * SECOND_NS,
        jitter_ns: jitter_s * SECOND_NS,
        cores,
        is_cold: true,
        ..DrainScenario::default()
    };
    let drained = predict(&minute, &engine.costs);
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    SimulatedHours {
        way: engine.way.clone(),
        files,
        hours,
        timeout_seconds: timeout_s,
        jitter_seconds: jitter_s,
        coalescing: drained.coalescing(),
        wait_max_seconds: seconds(drained.wait_max_ns),
        queued_most: drained.queued_max,
        core_share: seconds(drained.core_ns) / seconds(drained.synced_at_ns.max(1)),
        device_share: seconds(drained.device_busy_ns) / seconds(drained.synced_at_ns.max(1)),
        drain_seconds: seconds(drained.drain_ns()),
        sync_seconds: seconds(drained.sync_ns()),
        fingerprint: format!("{:016x}", drained.fingerprint),
    }
}

/// Makes the real runs of all predictions, each engine once per round.
fn measure(
    args: &RrdcachedArgs,
    servers: &[EngineKind],
    counts: &[usize],
    testbed: &mut Testbed,
    folder: &Path,
    clock: &MonotonicClock,
) -> Result<Measured> {
    let mut found = Measured::new();
    for round in 0..args.rounds {
        for &kind in servers {
            let mut add = |what: String, value: f64| found.entry((kind.name(), what)).or_default().push(value);
            for &files in counts {
                testbed.grow(files, |made| say(&args.experiment, &format!("{made} of {files} files")))?;
                let what = format!("real runs, round {}, {files} files, {}", round + 1, kind.name());
                say(&args.experiment, &what);
                let engine = Engine::start(kind, testbed, folder, Tuning::default())?;
                let passes = rounds::of(&engine, testbed, clock, round)?;
                if let Some(cold) = passes.first() {
                    add(cold_name(files), cold.accept_seconds + cold.drain_seconds);
                }
                let mut client = engine.connect()?;
                for depth in DEPTHS {
                    let drained = beyond::drain(&engine, &mut client, testbed, clock, depth)?;
                    add(drain_name(files, depth), drained.drain_seconds);
                    add(sync_name(files, depth), drained.sync_seconds);
                }
                drop(client);
                engine.stop()?;
            }
            testbed.grow(COST_FILES, |_| ())?;
            for pace in tuned::PACES {
                if let Beyond::Feed { coalescing, .. } = tuned::feed(kind, pace, FEED_S, testbed, folder, clock)? {
                    add(feed_name(pace), coalescing);
                }
            }
        }
    }
    Ok(found)
}
