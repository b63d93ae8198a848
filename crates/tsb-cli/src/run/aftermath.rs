//! What is found out about a run when its report is there already.

use tsb_core::report::Run;
use tsb_core::verdict::Status;

/// Makes a run invalid for a reason that came after its verdict.
pub(super) fn condemn(run: &mut Run, reason: String) {
    let verdict = &mut run.verdict;
    if verdict.status == Status::Valid {
        // What it says is why the run is valid.
        verdict.reasons.clear();
    }
    verdict.status = Status::Invalid;
    if !verdict.reasons.iter().any(|known| known.contains(&reason)) {
        verdict.reasons.insert(0, reason);
    }
}
