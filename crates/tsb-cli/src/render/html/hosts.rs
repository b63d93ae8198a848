//! The section of the hosts that shared a run.

use super::PageRun;
use super::markup::Markup;
use crate::render::hosts;

/// The section; nothing if each run is of one process.
pub(super) fn section(shown: &[PageRun<'_>], page: &mut Markup) {
    let shared = || shown.iter().filter(|run| !run.run.hosts.is_empty());
    if shared().next().is_none() {
        return;
    }
    page.section(
        "hosts",
        "Hosts",
        "Each sent a part of the fleet and read it back. All figures of the run are of all hosts together, from their \
         added counts and histograms. Clock: the leader's minus the host's before the run, and how far the true \
         difference may be from that.",
    );
    for run in shared() {
        page.run_heading(run);
        page.table("hosts", &hosts::COLUMNS, run.run.hosts.iter().map(hosts::row));
    }
    page.end_section();
}
