//! What is found out about a run when its report is there already.

use tsb_core::report::Run;
use tsb_core::verdict::Status;

/// Makes a run invalid for a reason that came after its verdict.
pub(super) fn condemn(run: &mut Run, reason: String) {
    worsen(run, Status::Invalid, reason);
}

/// Makes a run unverified for such a reason, unless it is worse already.
pub(super) fn doubt(run: &mut Run, reason: &str) {
    worsen(run, Status::Unverified, reason.to_owned());
}

fn worsen(run: &mut Run, status: Status, reason: String) {
    let verdict = &mut run.verdict;
    if verdict.status == Status::Valid {
        // What it says is why the run is valid.
        verdict.reasons.clear();
    }
    verdict.status = verdict.status.min(status);
    if !verdict.reasons.iter().any(|known| known.contains(&reason)) {
        verdict.reasons.insert(0, reason);
    }
}
