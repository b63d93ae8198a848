//! Drives your own database with `tsb-core` alone: no tokio, no C code, no store of tsb.
//!
//! ```text
//! cargo run --release -p tsb-core --example own_closure
//! ```
//! A fleet of 20 hosts with 50 series each reports to a map behind a mutex, for two seconds,
//! from two workers. The output is what every tool of this kind should state: how long
//! operations waited from when they were *due*, whether the generator itself was late, and
//! whether acknowledged samples are stored.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::collections::HashMap;
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use tsb_core::emit::{Fill, Live, Operation, Outcome, Report, Run, Settings, Worker, run};
use tsb_core::latency::Summary;
use tsb_core::ledger::{Counter, Ledger};
use tsb_core::schedule::{Group, Pace, Roster, Slot, Speed, Timetable};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::{BatchBuf, SeriesId, Timestamp};

const HOSTS: u32 = 20;
const SERIES: u32 = 50;
const INTERVAL_NS: u64 = SECOND_NS / 10;

/// The database under test: yours goes here.
type Database = Mutex<HashMap<(SeriesId, Timestamp), f64>>;

/// When a host reports within the interval.
fn phase(host: u32) -> u64 {
    u64::from(host) * INTERVAL_NS / u64::from(HOSTS)
}

/// A value is a function of series and tick, so that it can be checked afterwards.
fn value(series: u32, tick: u64) -> f64 {
    f64::from(series) * 1e6 + tick as f64
}

/// A target: takes a batch, says what became of it.
fn insert(database: &Database, operation: &Operation<'_>) -> Outcome {
    let Ok(mut rows) = database.lock() else {
        return Outcome::Fatal;
    };
    for (series, at, value) in operation.payload.iter() {
        rows.insert((series, at), value);
    }
    Outcome::Done {
        accepted: operation.payload.len() as u32,
        rejected: 0,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let database = Database::default();
    let clock = MonotonicClock::new();
    let epoch = clock.wall();

    // Each host reports ten times a second, at a phase of its own.
    let groups = (0..HOSTS).map(|host| Group::new(INTERVAL_NS, phase(host), SERIES));
    let timetable = Timetable {
        roster: Roster::new(groups.collect())?,
        pace: Pace::Fleet(Speed::NATURAL),
        end_ns: Some(2 * SECOND_NS),
        fleet_end_ns: None,
    };

    // A worker prepares batches ahead of time; the closure sends them when they are due.
    let fill = |slot: &Slot, batch: &mut BatchBuf| {
        for series in slot.group * SERIES..(slot.group + 1) * SERIES {
            batch.push(
                SeriesId(series),
                epoch + slot.offset_ns as i64,
                value(series, slot.tick),
            );
        }
    };
    let workers = timetable.roster.split(2).into_iter().map(|groups| Worker {
        groups,
        source: Fill::new(fill),
        target: |operation: &Operation<'_>| insert(&database, operation),
    });
    let workers: Vec<_> = workers.collect();
    let report = run(
        &Run {
            clock: &clock,
            timetable: &timetable,
            stop: &AtomicBool::new(false),
            live: &Live::new(workers.len()),
            settings: Settings::default(),
        },
        workers,
    )?;

    let ledger = read_back(&report, &timetable, &database, epoch)?;
    println!("held       {:.0} samples/s", report.per_second(report.counts.accepted));
    println!("response   {}", line(&report.latency.response_summary()));
    println!("service    {}", line(&report.latency.service_summary()));
    println!("lag        {}", line(&report.latency.lag_summary()));
    for (counter, samples) in ledger.counts() {
        println!("{counter:<10} {samples}");
    }
    let violations = ledger.violations();
    match violations.first() {
        Some(violation) => Err(violation.to_string().into()),
        None if ledger.count(Counter::Lost) > 0 => Err("acknowledged samples are lost".into()),
        None => Ok(()),
    }
}

/// Looks up every sample that was acknowledged, and writes down what was there.
fn read_back<S, T>(
    report: &Report<S, T>,
    timetable: &Timetable,
    database: &Database,
    epoch: Timestamp,
) -> Result<Ledger, Box<dyn Error>> {
    let rows = database.lock().map_err(|_| "a worker panicked inside the database")?;
    let mut ledger = Ledger::new();
    ledger.set(Counter::Due, report.counts.due.samples);
    ledger.set(Counter::Shed, report.counts.shed.samples);
    ledger.set(Counter::Sent, report.counts.sent().samples);
    ledger.set(Counter::Received, report.counts.sent().samples);
    ledger.set(Counter::Accepted, report.counts.accepted);
    for counter in [Counter::Verified, Counter::Lost, Counter::Altered] {
        ledger.set(counter, 0);
    }
    for worker in &report.workers {
        for host in worker.groups.clone() {
            for tick in worker.issued_ticks(timetable, host) {
                let at = epoch + (phase(host) + tick * INTERVAL_NS) as i64;
                for series in host * SERIES..(host + 1) * SERIES {
                    let counter = match rows.get(&(SeriesId(series), at)) {
                        Some(found) if *found == value(series, tick) => Counter::Verified,
                        Some(_) => Counter::Altered,
                        None => Counter::Lost,
                    };
                    ledger.add(counter, 1);
                }
            }
        }
    }
    Ok(ledger)
}

/// Formats a summary; quantiles with too few operations are absent.
fn line(summary: &Summary) -> String {
    let names = ["p50", "p90", "p99", "p999", "max"];
    let values = [
        summary.p50_ns,
        summary.p90_ns,
        summary.p99_ns,
        summary.p999_ns,
        summary.max_ns,
    ];
    let shown = names.iter().zip(values).filter_map(|(name, value)| {
        let micros = value? as f64 / 1e3;
        Some(format!("{name} {micros:.1} us"))
    });
    shown.collect::<Vec<_>>().join(", ")
}
