//! From what each side counted to the ledger of a run.
//!
//! The sides are independent: the emitter counted what it handed over, the listener what
//! came, the store what it took, and the audit what is there. What is derived is said.

use tsb_core::ledger::{Counter, Finding, FindingKind, Ledger};
use tsb_core::net::ListenerStats;
use tsb_core::report::LedgerReport;
use tsb_core::wire::Protocol;

use super::path::{Driven, Wire};
use super::rejects::Rejects;
use crate::audit::Audit;
use crate::plan::Transport;

/// What the counts are taken from.
#[derive(Debug)]
pub(super) struct Sides<'a> {
    /// What is between them.
    pub transport: Transport,
    /// Whether the kernel may take several datagrams for one (GRO).
    pub merges: bool,
    /// What is spoken there.
    pub protocol: Protocol,
    /// The emitter and the listener.
    pub driven: &'a Driven,
    /// Samples that the store took.
    pub accepted: u64,
    /// Samples that the store refused.
    pub rejects: &'a Rejects,
    /// What was read back.
    pub audit: Option<&'a Audit>,
}

impl Sides<'_> {
    /// The ledger, with everything that does not add up in words.
    pub(super) fn ledger(&self) -> LedgerReport {
        let mut counts = Ledger::new();
        let mut violated = Vec::new();
        let emitted = &self.driven.counts;
        let sent = emitted.sent().samples;
        counts
            .set(Counter::Due, emitted.due.samples)
            .set(Counter::Shed, emitted.shed.samples);
        counts.set(Counter::Sent, sent);
        let mut reasons = self.rejects.by_reason();
        let mut rejected = self.rejects.total();
        // Samples that never became part of a write and that nobody can name.
        let mut nameless = 0;
        if let Some((wire, stats)) = self.wire() {
            let received = stats.received();
            let lost = sent.saturating_sub(received);
            self.on_the_way(wire, stats, lost, &mut counts, &mut violated);
            counts.set(Counter::Received, received);
            counts.set(Counter::Malformed, stats.malformed);
            for (reason, samples) in stats.turned_away() {
                reasons.insert(reason.to_owned(), samples);
            }
            rejected += stats.refused + stats.unannounced;
            nameless = lost + stats.malformed + stats.refused + stats.unannounced;
        }
        let mut accepted = self.accepted;
        if self.driven.wire.is_none() {
            accepted += self.direct(sent, &mut counts);
        }
        counts.set(Counter::Rejected, rejected).set(Counter::Accepted, accepted);
        if self.transport.is_answered() {
            self.answered(&mut counts, &mut violated);
        }
        let mut losses = Vec::new();
        if let Some(audit) = self.audit {
            self.audited(audit, nameless, &mut counts, &mut violated);
            losses = audit.findings.as_slice().to_vec();
        }
        violated.extend(counts.violations().iter().map(ToString::to_string));
        LedgerReport {
            counts,
            violated,
            rejected_by_reason: reasons,
            losses: named(losses, counts.count(Counter::Lost) == 0),
        }
    }

    /// Without a wire of ours between, everything arrives; but a foreign server may not say
    /// so. Returns how many samples it took and never answered for.
    fn direct(&self, sent: u64, counts: &mut Ledger) -> u64 {
        let emitted = &self.driven.counts;
        let unknown = emitted.unknown.samples;
        if unknown == 0 {
            counts.set(Counter::Received, sent);
            return 0;
        }
        counts
            .set(Counter::Confirmed, emitted.accepted)
            .set(Counter::Refused, emitted.rejected)
            .set(Counter::Unknown, unknown);
        // Only reading back settles it.
        let Some(audit) = self.audit else { return 0 };
        let absent = audit.absent.min(unknown);
        counts.set(Counter::LostInTransport, absent);
        counts.set(Counter::Received, sent - absent);
        unknown - absent
    }

    /// What the answers said, and whether that is what the store did.
    fn answered(&self, counts: &mut Ledger, violated: &mut Vec<String>) {
        let emitted = &self.driven.counts;
        counts
            .set(Counter::Confirmed, emitted.accepted)
            .set(Counter::Refused, emitted.rejected);
        let unknown = emitted.unknown.samples;
        counts.set(Counter::Unknown, unknown);
        let settled = emitted.accepted..=emitted.accepted + unknown;
        if !settled.contains(&self.accepted) {
            violated.push(format!(
                "{} samples were confirmed and {unknown} unknown, and the store took {}",
                emitted.accepted, self.accepted
            ));
        }
    }

    fn wire(&self) -> Option<(&Wire, &ListenerStats)> {
        let wire = self.driven.wire.as_ref()?;
        Some((wire, wire.stats.as_ref()?))
    }

    /// What was lost between the sockets, and whether everybody who counted it agrees.
    fn on_the_way(
        &self,
        wire: &Wire,
        stats: &ListenerStats,
        lost: u64,
        counts: &mut Ledger,
        violated: &mut Vec<String>,
    ) {
        if !self.transport.may_lose() {
            counts.set(Counter::LostInTransport, lost);
            if lost > 0 {
                let name = self.transport.name();
                violated.push(format!(
                    "{name} delivers everything, and {lost} samples that were sent never came"
                ));
            }
            return;
        }
        let datagrams = wire.sent_datagrams.saturating_sub(stats.datagrams);
        // The kernel counts datagrams, or units of up to so many: in samples it is known if
        // all that are lost are of its counting.
        let a_unit = if self.merges { wire.segments.max(1) } else { 1 };
        let drops = stats.kernel_drops;
        let is_kernels = datagrams > 0 && (drops..=drops.saturating_mul(a_unit)).contains(&datagrams);
        let (kernel, transport) = if is_kernels { (lost, 0) } else { (0, lost) };
        counts
            .set(Counter::KernelDropped, kernel)
            .set(Counter::LostInTransport, transport);
        // Where a sender's end was lost as well, its last burst is not in the numbers.
        let is_known = stats.ended_senders == stats.connections;
        let agrees = if is_known {
            stats.missing_samples == lost
        } else {
            stats.missing_samples <= lost
        };
        if self.protocol.facts().sequenced && !agrees {
            violated.push(format!(
                "{lost} samples that were sent never came, and by the numbers in the protocol {} are missing",
                stats.missing_samples
            ));
        }
        if wire.are_marked && wire.untimed == wire.lost_operations && stats.missing_datagrams != datagrams {
            violated.push(format!(
                "{datagrams} datagrams that were sent never came, and by the waymarks {} are missing",
                stats.missing_datagrams
            ));
        }
    }

    fn audited(&self, audit: &Audit, nameless: u64, counts: &mut Ledger, violated: &mut Vec<String>) {
        let tally = &audit.tally;
        let sent = counts.count(Counter::Sent);
        if audit.sent != sent && self.driven.exceptions.is_empty() {
            violated.push(format!(
                "the emitter sent {sent} samples, and the audit knows of {}",
                audit.sent
            ));
        }
        // Of the samples that are missing, some never reached the store: the others are lost.
        let (_, unnamed_rejects) = self.rejects.named();
        let elsewhere = nameless + unnamed_rejects;
        // A sample that was lost on the way and sent twice, or has expired by now, is not missing.
        let lossy = if self.transport.may_lose() { elsewhere } else { 0 };
        let covered = lossy.saturating_sub(tally.missing);
        let superseded = tally.superseded.saturating_sub(covered);
        let expired = tally.expired.saturating_sub(covered - (tally.superseded - superseded));
        let covered = (tally.superseded - superseded) + (tally.expired - expired);
        let Some(lost) = (tally.missing + covered).checked_sub(elsewhere) else {
            violated.push(format!(
                "{elsewhere} samples never reached the store, but only {} are missing in it",
                tally.missing
            ));
            return;
        };
        counts
            .set(Counter::Verified, tally.verified)
            .set(Counter::Superseded, superseded);
        counts.set(Counter::Expired, expired).set(Counter::Lost, lost);
        counts
            .set(Counter::Altered, tally.altered)
            .set(Counter::Duplicated, tally.duplicated);
        if tally.unconsolidated > 0 {
            counts.set(Counter::Unconsolidated, tally.unconsolidated);
        }
    }
}

/// Where the store lost nothing, what is missing was lost on the way.
fn named(mut findings: Vec<Finding>, is_transport: bool) -> Vec<Finding> {
    if is_transport {
        let missing = findings.iter_mut().filter(|finding| finding.kind == FindingKind::Lost);
        missing.for_each(|finding| finding.kind = FindingKind::LostInTransport);
    }
    findings
}

/// What ends an operation, in words for the report.
pub(super) fn done_means(protocol: Option<Protocol>, transport: Transport) -> String {
    match protocol {
        Some(_) if transport.is_answered() => {
            "the answer to its request came, which is given when the store has taken it".to_owned()
        }
        None => "the store acknowledged it".to_owned(),
        Some(protocol) => {
            format!("the store behind the listener took it ({protocol} acknowledges nothing: timed at the receiver)")
        }
    }
}
