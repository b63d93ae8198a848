//! How late does a generator start its operations, and what does punctuality cost?
//!
//! ```text
//! cargo run --release -p tsb-bench --example pacing [SECONDS]
//! ```
//! 1,000 batches of 54 samples per second, paced in turn, round by round so that all see the
//! same load from neighbours, by tsb's emitter, by a loop that sleeps and then spins, by the
//! operating system's sleep alone, and by tokio's timers. Lateness is start minus due; CPU is
//! that of the thread. On a shared machine, the tail is caused by other tenants.
#![expect(clippy::print_stdout, reason = "the table is the result")]
#![expect(
    clippy::disallowed_methods,
    reason = "the table compares our clock with a bare sleep and a timer"
)]
#![expect(clippy::expect_used, reason = "the inputs are fixed and valid")]

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tsb_core::emit::{Live, Operation, Outcome, Run, Settings, Source, Worker, Writes, run};
use tsb_core::latency::Histogram;
use tsb_core::schedule::{Group, Pace, Roster, Slot, Speed, Timetable};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS, sharpen_timers, thread_cpu_ns};
use tsb_core::{Batch, SeriesId, Timestamp};

const SAMPLES: usize = 54;
const INTERVAL_NS: u64 = SECOND_NS / 1_000;
const ROUND_NS: u64 = SECOND_NS;
/// The same spinning time as the emitter's clock.
const SPIN_NS: u64 = 100_000;

/// Lateness and CPU time of one way of waiting.
#[derive(Default)]
struct Lateness {
    late: Histogram,
    cpu_ns: u64,
}

struct Row([f64; SAMPLES]);

impl Source for Row {
    type Kind = Writes;

    fn prepare(&mut self, slot: &Slot) -> Batch<'_> {
        Batch::tick(SeriesId(0), Timestamp(slot.offset_ns as i64), &self.0)
    }
}

fn emitter(result: &mut Lateness) {
    let timetable = Timetable {
        roster: Roster::new(vec![Group::new(INTERVAL_NS, 0, SAMPLES as u32)]).expect("a valid roster"),
        pace: Pace::Fleet(Speed::NATURAL),
        end_ns: Some(ROUND_NS),
        fleet_end_ns: None,
    };
    let worker = Worker {
        groups: 0..1,
        source: Row([1.0; SAMPLES]),
        target: |operation: &Operation<'_>| Outcome::Done {
            accepted: operation.payload.len() as u32,
            rejected: 0,
        },
    };
    let run_of = Run {
        clock: &MonotonicClock::new(),
        timetable: &timetable,
        stop: &AtomicBool::new(false),
        live: &Live::new(1),
        settings: Settings::default(),
    };
    let report = run(&run_of, vec![worker]).expect("a thread starts");
    result.late.merge(&report.latency.lag.total);
    result.cpu_ns += report.cpu().total_ns;
}

/// Runs a thread that only waits for each due time with `wait`.
fn bare(result: &mut Lateness, wait: impl Fn(&MonotonicClock, u64) + Sync) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sharpen_timers();
            let clock = MonotonicClock::new();
            let before = thread_cpu_ns();
            let start = clock.now() + 5_000_000;
            for n in 0..ROUND_NS / INTERVAL_NS {
                let due = start + n * INTERVAL_NS;
                wait(&clock, due);
                result.late.record(clock.now() - due);
            }
            result.cpu_ns += thread_cpu_ns() - before;
        });
    });
}

fn sleep_then_spin(clock: &MonotonicClock, due: u64) {
    let now = clock.now();
    if now + SPIN_NS < due {
        std::thread::sleep(Duration::from_nanos(due - now - SPIN_NS));
    }
    while clock.now() < due {
        std::hint::spin_loop();
    }
}

fn sleep(clock: &MonotonicClock, due: u64) {
    let left = due.saturating_sub(clock.now());
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left));
    }
}

fn timers(result: &mut Lateness) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let runtime = runtime.expect("a runtime starts");
            let before = thread_cpu_ns();
            runtime.block_on(async {
                let start = tokio::time::Instant::now() + Duration::from_millis(5);
                for n in 0..ROUND_NS / INTERVAL_NS {
                    let due = start + Duration::from_nanos(n * INTERVAL_NS);
                    tokio::time::sleep_until(due).await;
                    result.late.record(due.elapsed().as_nanos() as u64);
                }
            });
            result.cpu_ns += thread_cpu_ns() - before;
        });
    });
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10);
    let mut results: [Lateness; 4] = std::array::from_fn(|_| Lateness::default());
    for _ in 0..seconds {
        let [ours, spinning, sleeping, wheel] = &mut results;
        emitter(ours);
        bare(spinning, sleep_then_spin);
        bare(sleeping, sleep);
        timers(wheel);
    }
    let names = ["tsb emitter", "sleep, then spin", "sleep", "tokio timers"];
    println!("1,000 batches/s x {SAMPLES} samples, {seconds} s each, in turn; lateness in us");
    println!(
        "{:<18} {:>9} {:>9} {:>9} {:>9} {:>9}  {:>9}",
        "", "p50", "p90", "p99", "p99.9", "max", "CPU %"
    );
    for (name, Lateness { late, cpu_ns }) in names.iter().zip(&results) {
        let micros = |quantile| late.quantile(quantile).unwrap_or(0) as f64 / 1e3;
        let cpu = *cpu_ns as f64 / (seconds * ROUND_NS) as f64 * 100.0;
        println!(
            "{name:<18} {:>9.2} {:>9.2} {:>9.1} {:>9.1} {:>9.1}  {cpu:>9.2}",
            micros(0.5),
            micros(0.9),
            micros(0.99),
            micros(0.999),
            micros(1.0)
        );
    }
}
