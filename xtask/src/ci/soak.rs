//! Runs two hours of samples of 54,000 series, accelerated: every sample is read back, and
//! memory may grow only by what the store says it holds.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Outcome, whole_run};
use crate::shell::{capture_any, cargo};

/// What may come and go beside the store: buffers, histograms, the allocator's slack.
const SLACK_BYTES: f64 = 32e6;

const RUN: &[&str] = &[
    "run",
    "--release",
    "--quiet",
    "--",
    "run",
    "--quiet",
    "--workload",
    "mix",
    "--batch",
    "tick",
    "--transport",
    "inproc",
    "--rate",
    "max",
    "--fleet-time",
    "2h",
    "--no-calibrate",
    "--format",
    "json",
];

/// Runs it and checks its report.
pub(super) fn check() -> Result<Outcome> {
    println!("$ cargo {}", RUN.join(" "));
    let (code, text) = capture_any(&mut cargo(RUN))?;
    let report: Value = serde_json::from_str(&text).context("the report is not JSON")?;
    let [report] = whole_run::runs(&report) else {
        bail!("the report has not one run");
    };
    let sound = whole_run::judge(code, report)?;
    Ok(Outcome::Passed(format!("{sound}; {}", flat(report)?)))
}

/// A note about the growth of memory, or an error when it is more than the store's.
fn flat(report: &Value) -> Result<String> {
    let intervals = report["intervals"].as_array().context("the report has no intervals")?;
    let number = |value: &Value| value.as_f64().context("a figure is missing");
    let sealed = number(&report["cost"]["sealed_bytes_per_sample"])?;
    // By then every open row has been touched once.
    let first = intervals.len() / 4;
    let (Some(early), Some(late)) = (intervals.get(first), intervals.last()) else {
        bail!("the report has too few intervals");
    };
    let accepted = intervals[first + 1..]
        .iter()
        .map(|interval| number(&interval["accepted"]));
    let held = accepted.sum::<Result<f64>>()? * sealed;
    let grown = number(&late["rss_bytes"])? - number(&early["rss_bytes"])?;
    let note = format!(
        "memory grew by {:.1} MB while the store took {:.1} MB",
        grown / 1e6,
        held / 1e6
    );
    if grown > 1.1 * held + SLACK_BYTES {
        bail!("{note}");
    }
    Ok(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rss: [f64; 4]) -> Value {
        let intervals: Vec<Value> = rss
            .iter()
            .map(|rss| serde_json::json!({"accepted": 1_000_000_000_u64, "rss_bytes": rss * 1e6}))
            .collect();
        serde_json::json!({"cost": {"sealed_bytes_per_sample": 0.5}, "intervals": intervals})
    }

    #[test]
    fn memory_may_grow_with_the_store_only() {
        let note = flat(&report([100.0, 700.0, 1_200.0, 1_700.0])).expect("flat");
        assert_eq!(note, "memory grew by 1000.0 MB while the store took 1000.0 MB");
        assert!(flat(&report([100.0, 700.0, 1_200.0, 1_840.0])).is_err());
        assert!(flat(&serde_json::json!({"intervals": []})).is_err());
    }
}
