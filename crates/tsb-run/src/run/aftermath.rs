//! Changes the verdict of a finished report when something fails afterwards.

use tsb_core::report::Run;
use tsb_core::verdict::Status;

/// Marks a run as invalid, with the reason.
pub(super) fn condemn(run: &mut Run, reason: String) {
    worsen(run, Status::Invalid, reason);
}

/// Marks a run as unverified with the reason, unless its verdict is worse already.
pub(super) fn doubt(run: &mut Run, reason: &str) {
    worsen(run, Status::Unverified, reason.to_owned());
}

fn worsen(run: &mut Run, status: Status, reason: String) {
    let verdict = &mut run.verdict;
    if verdict.status == Status::Valid {
        // The reasons of a valid run say why it is valid; they no longer hold.
        verdict.reasons.clear();
    }
    verdict.status = verdict.status.min(status);
    if !verdict.reasons.iter().any(|known| known.contains(&reason)) {
        verdict.reasons.insert(0, reason);
    }
}
