//! Runs the same writes with `tsb run`, and reads the costs from its report.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cases::Case;

/// CPU time per sample by part, in nanoseconds, from the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported {
    pub(crate) generator: f64,
    pub(crate) pacing: f64,
    pub(crate) store: f64,
    /// Upper bound, if the store's part is too small to be measured.
    pub(crate) below: Option<f64>,
    pub(crate) threads: f64,
    pub(crate) flush: f64,
    pub(crate) newest: f64,
    pub(crate) watching: f64,
    pub(crate) process: f64,
}

impl Reported {
    /// CPU time of the store in all threads.
    pub(crate) fn of_store(&self) -> f64 {
        self.store + self.threads + self.flush
    }

    /// Sum of all parts.
    pub(crate) fn sum(&self) -> f64 {
        self.generator + self.pacing + self.store + self.threads + self.flush + self.newest + self.watching
    }
}

/// One run in process, as fast as the store accepts.
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
