//! The hosts of a run that several shared, as rows of text for terminal and page.

use tsb_core::report::{HostEnd, HostReport, Run};
use tsb_run::units::{count, nanos};

use super::lines::Lines;

/// The headings of [`row`].
pub(super) const COLUMNS: [&str; 7] = ["host", "ended", "series", "sent", "accepted", "clock", "verdict"];

/// A host as texts, one for each heading.
pub(super) fn row(host: &HostReport) -> Vec<String> {
    vec![
        host.name.clone(),
        ended(host).to_owned(),
        count(host.series),
        count(host.sent),
        count(host.accepted),
        clock(host),
        host.verdict.status.to_string(),
    ]
}

const fn ended(host: &HostReport) -> &'static str {
    match host.ended {
        HostEnd::Reported => "reported",
        _ => "lost",
    }
}

/// How far its clock was from the leader's.
fn clock(host: &HostReport) -> String {
    let sign = if host.offset_ns < 0 { "-" } else { "" };
    format!(
        "{sign}{} +- {}",
        nanos(host.offset_ns.unsigned_abs()),
        nanos(host.uncertainty_ns)
    )
}

/// The lines of the terminal; nothing for a run of one process.
pub(super) fn text(run: &Run, lines: &mut Lines) {
    if run.hosts.is_empty() {
        return;
    }
    lines.heading("Hosts");
    for host in &run.hosts {
        lines.sentence(format!(
            "{}: {}, {}, {} series, {} samples sent, {} accepted, leader's clock minus its own {}",
            host.name,
            ended(host),
            host.verdict.status,
            count(host.series),
            count(host.sent),
            count(host.accepted),
            clock(host),
        ));
    }
}
