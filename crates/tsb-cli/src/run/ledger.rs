//! From what each side counted to the ledger of a run.
//!
//! The sides are independent: the emitter counted what it handed over, the listener what
//! came, the store what it took, and the audit what is there. What is derived is said.

use tsb_core::ledger::{Counter, Finding, FindingKind, Ledger};
use tsb_core::report::LedgerReport;
use tsb_core::wire::Protocol;

use super::path::Driven;
use super::rejects::Rejects;
use crate::audit::Audit;

/// What the counts are taken from.
#[derive(Debug)]
pub(super) struct Sides<'a> {
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
        if let Some(stats) = self.driven.wire.as_ref().and_then(|wire| wire.stats.as_ref()) {
            let received = stats.samples + stats.refused + stats.malformed;
            let lost = sent.saturating_sub(received);
            counts
                .set(Counter::LostInTransport, lost)
                .set(Counter::Received, received);
            counts.set(Counter::Malformed, stats.malformed);
            rejected += stats.refused;
            if stats.refused > 0 {
                reasons.insert("series_limit".to_owned(), stats.refused);
            }
            nameless = lost + stats.malformed + stats.refused;
            if lost > 0 {
                violated.push(format!(
                    "TCP delivers everything, and {lost} samples that were sent never came"
                ));
            }
        } else if self.driven.wire.is_none() {
            counts.set(Counter::Received, sent);
        }
        counts
            .set(Counter::Rejected, rejected)
            .set(Counter::Accepted, self.accepted);
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
        let Some(lost) = tally.missing.checked_sub(elsewhere) else {
            violated.push(format!(
                "{elsewhere} samples never reached the store, but only {} are missing in it",
                tally.missing
            ));
            return;
        };
        counts
            .set(Counter::Verified, tally.verified)
            .set(Counter::Superseded, tally.superseded);
        counts.set(Counter::Expired, tally.expired).set(Counter::Lost, lost);
        counts
            .set(Counter::Altered, tally.altered)
            .set(Counter::Duplicated, tally.duplicated);
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
pub(super) fn done_means(protocol: Option<Protocol>) -> String {
    match protocol {
        None => "the store acknowledged it".to_owned(),
        Some(protocol) => {
            format!("the store behind the listener took it ({protocol} acknowledges nothing: timed at the receiver)")
        }
    }
}
