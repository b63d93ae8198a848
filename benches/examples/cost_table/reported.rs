//! The same writes by `tsb run`, as its report tells their cost.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cases::Case;

/// CPU time of a sample by part, in nanoseconds, as the report has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported {
    pub(crate) generator: f64,
    pub(crate) pacing: f64,
    pub(crate) store: f64,
    /// Where the store's part is too small to be told: less than this.
    pub(crate) below: Option<f64>,
    pub(crate) threads: f64,
    pub(crate) flush: f64,
    pub(crate) newest: f64,
    pub(crate) watching: f64,
    pub(crate) process: f64,
}

impl Reported {
    /// All that the store did for the samples: whichever thread did it.
    pub(crate) fn of_store(&self) -> f64 {
        self.store + self.threads + self.flush
    }

    /// All parts together.
    pub(crate) fn sum(&self) -> f64 {
        self.generator + self.pacing + self.store + self.threads + self.flush + self.newest + self.watching
    }
}

/// One run in process, as fast as the store takes it.
pub(crate) fn run(program: &str, case: &Case, number: usize) -> Reported {
    let output = Command::new(program)
        .args(["run", "--quiet", "--no-calibrate", "--no-verify", "--format", "json"])
        .args(["--workload", "mix", "--transport", "inproc", "--rate", "max"])
        .args(["--store", &case.spec(number), "--batch", &case.flag()])
        .args(["--series", &case.series.to_string()])
        .args(["--fleet-time", &format!("{}s", case.ticks)])
        .stderr(Stdio::inherit())
        .output()
        .expect("the program can be started");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let cost = |name: &str| {
        let place = format!("/cost/{name}_cpu_ns_per_sample");
        report.pointer(&place).and_then(Value::as_f64).unwrap_or(0.0)
    };
    Reported {
        generator: cost("generator"),
        pacing: cost("pacing"),
        store: cost("store"),
        below: report
            .pointer("/cost/store_cpu_below/ns_per_sample")
            .and_then(Value::as_f64),
        threads: cost("store_threads"),
        flush: cost("store_flush"),
        newest: cost("store_newest"),
        watching: cost("watching"),
        process: cost("process"),
    }
}
