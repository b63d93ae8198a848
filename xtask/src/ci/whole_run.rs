//! Runs `tsb` without arguments and checks its report as a program would read it.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Outcome;
use crate::shell::{capture_any, cargo};

/// Verdicts that a sound build may give. The machine decides between them: a busy one
/// gives NOISY, a slow one GENERATOR-LIMITED, which is also exit code 3.
const SOUND: &[&str] = &["VALID", "NOISY", "STORE-LIMITED", "GENERATOR-LIMITED"];

/// Runs the program and checks exit code, ledger and verdict of its report.
pub(super) fn check() -> Result<Outcome> {
    println!("$ cargo run --release -- --format json");
    let (code, text) = capture_any(&mut cargo(&["run", "--release", "--quiet", "--", "--format", "json"]))?;
    if text.trim().is_empty() {
        bail!("the program printed no report (exit code {code:?})");
    }
    let report: Value = serde_json::from_str(&text).context("the report is not JSON")?;
    let notes: Result<Vec<String>> = runs(&report).iter().map(|run| judge(code, run)).collect();
    Ok(Outcome::Passed(notes?.join("; ")))
}

/// The runs of a report: a report of one run may be that run itself.
pub(super) fn runs(report: &Value) -> &[Value] {
    match report["runs"].as_array() {
        Some(runs) => runs,
        None => std::slice::from_ref(report),
    }
}

/// A note about a sound report, or what is wrong with it.
pub(super) fn judge(code: Option<i32>, report: &Value) -> Result<String> {
    let ledger = &report["ledger"];
    println!("verdict {}\nledger {ledger}", report["verdict"]);
    if ledger["balanced"] != true {
        bail!("the ledger does not balance: {ledger}");
    }
    let count = |name: &str| ledger[name].as_u64();
    let accepted = count("accepted").context("the ledger has no accepted samples")?;
    let verified = count("verified").context("the ledger has no verified samples")?;
    // In the step that had not ended, or that is unknown, where a store consolidates.
    let in_no_row = ["unconsolidated", "unrepresented", "uncompared"].map(|name| count(name).unwrap_or_default());
    let in_no_row: u64 = in_no_row.iter().sum();
    if verified == 0 || verified + in_no_row != accepted {
        bail!("{verified} of {accepted} accepted samples are verified");
    }
    let status = report["verdict"]["status"]
        .as_str()
        .context("the report has no verdict")?;
    // A short run into a store that consolidates has most of its samples in open steps.
    let is_mostly_open = status == "UNVERIFIED" && in_no_row * 100 > accepted;
    if !SOUND.contains(&status) && !is_mostly_open {
        bail!("verdict {status}: {}", report["verdict"]["reasons"]);
    }
    let expected = if status == "GENERATOR-LIMITED" { 3 } else { 0 };
    if code != Some(expected) {
        bail!("verdict {status} with exit code {code:?}, expected {expected}");
    }
    Ok(format!("{status}, {verified} samples verified"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(status: &str, verified: u64, balanced: bool) -> Value {
        serde_json::json!({
            "ledger": {"accepted": 100, "verified": verified, "balanced": balanced},
            "verdict": {"status": status, "reasons": []},
        })
    }

    #[test]
    fn a_sound_report_passes_and_an_unsound_one_does_not() {
        assert_eq!(
            judge(Some(0), &report("VALID", 100, true)).ok(),
            Some("VALID, 100 samples verified".to_owned())
        );
        assert!(judge(Some(3), &report("GENERATOR-LIMITED", 100, true)).is_ok());
        assert!(judge(Some(0), &report("GENERATOR-LIMITED", 100, true)).is_err());
        assert!(judge(Some(3), &report("INVALID", 100, true)).is_err());
        assert!(judge(Some(0), &report("UNVERIFIED", 100, true)).is_err());
        assert!(judge(Some(0), &report("VALID", 99, true)).is_err());
        assert!(judge(Some(0), &report("VALID", 100, false)).is_err());
        let mut consolidating = report("UNVERIFIED", 90, true);
        consolidating["ledger"]["unconsolidated"] = 7.into();
        consolidating["ledger"]["unrepresented"] = 3.into();
        assert!(judge(Some(0), &consolidating).is_ok());
        let mut consolidated = report("UNVERIFIED", 99, true);
        consolidated["ledger"]["unconsolidated"] = 1.into();
        assert!(judge(Some(0), &consolidated).is_err());
        assert!(judge(Some(1), &report("VALID", 100, true)).is_err());
        assert!(judge(Some(0), &serde_json::json!({})).is_err());
    }

    #[test]
    fn a_report_of_one_run_and_one_of_several_are_both_read() {
        let one = report("VALID", 100, true);
        assert_eq!(runs(&one), std::slice::from_ref(&one));
        let several = serde_json::json!({"runs": [one, one]});
        assert_eq!(runs(&several).len(), 2);
    }
}
