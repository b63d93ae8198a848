//! A generator that gets no CPU says so. Alone in its file, because it takes the CPU from
//! every test that runs at the same time.

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::Value;
use tsb_core::time::{Clock, MonotonicClock};

/// Threads at the usual priority that want each core, while the generator has a lower one.
const BURNERS_A_CORE: usize = 4;
/// How long they do at most: the generator sends for two seconds, once it has begun.
const BURN_NS: u64 = 8_000_000_000;

#[test]
fn a_generator_starved_of_cpu_is_generator_limited() {
    let clock = MonotonicClock::new();
    let is_over = AtomicBool::new(false);
    let burners = BURNERS_A_CORE * std::thread::available_parallelism().unwrap().get();
    let output = std::thread::scope(|scope| {
        for _ in 0..burners {
            scope.spawn(|| {
                while clock.now() < BURN_NS && !is_over.load(Relaxed) {
                    black_box((0..1_000_u64).sum::<u64>());
                }
            });
        }
        let arguments = [
            "-n",
            "10",
            env!("CARGO_BIN_EXE_tsb"),
            "run",
            "--quiet",
            "--format",
            "json",
        ];
        let fleet = [
            "--workload",
            "mix",
            "--series",
            "1080",
            "--interval",
            "20ms",
            "--rate",
            "54k",
        ];
        let rest = ["--transport", "inproc", "--duration", "2s", "--no-calibrate"];
        let mut generator = Command::new("nice");
        generator.args(arguments).args(fleet).args(rest).stdin(Stdio::null());
        let output = generator.output();
        is_over.store(true, Relaxed);
        output.unwrap()
    });
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = report["runs"].get(0).unwrap_or(&report);
    assert_eq!(
        report["verdict"]["status"], "GENERATOR-LIMITED",
        "{}",
        report["verdict"]
    );
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(report["ledger"]["balanced"], true, "{}", report["ledger"]);
}
