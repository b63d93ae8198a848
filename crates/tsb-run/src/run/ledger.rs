//! Builds the ledger of a run from what each side counted.
//!
//! The sides are independent: the emitter counts what it handed over, the listener what arrived,
//! the store what it accepted, and the audit what is stored. A disagreement becomes a violation.

mod settle;

use tsb_core::ledger::{Counter, Ledger};
use tsb_core::net::ListenerStats;
use tsb_core::report::{Exceptions, LedgerReport};
use tsb_core::wire::Protocol;
use tsb_core::workload::Workload;

pub use settle::{ExpectedAbsent, settle};

use super::path::{PassResult, Wire};
use super::preload::Preloaded;
use super::rejects::Rejects;
use crate::audit::{Audit, NewestAnswers};
use crate::plan::Transport;

/// The counters of each side.
#[derive(Debug)]
pub(super) struct LedgerInputs<'a> {
    /// The transport between emitter and store.
    pub transport: Transport,
    /// Whether the kernel may take several datagrams for one (GRO).
    pub merges: bool,
    /// The wire protocol.
    pub protocol: Protocol,
    /// Counters of the emitter and the listener.
    pub driven: &'a PassResult,
    /// Samples that the store accepted.
    pub accepted: u64,
    /// Whether the store acknowledges nothing, so that only reading back settles what became of a
    /// sample.
    pub is_unconfirmed: bool,
    /// Samples that the listener handed to a server which never answered for them.
    pub unsettled: u64,
    /// Samples that the store refused.
    pub rejects: &'a Rejects,
    /// The audit, if the store was read back.
    pub audit: Option<&'a Audit>,
    /// The store's answers about its newest samples.
    pub heard: &'a NewestAnswers,
    /// Whether the store failed, after which a listener takes nothing more.
    pub has_store_failed: bool,
    /// What was written before the run.
    pub preloaded: Option<Preloaded>,
    /// The workload.
    pub workload: &'a Workload,
}

impl LedgerInputs<'_> {
    /// The ledger, with every contradiction as a sentence in `violated`.
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
        }
        let mut accepted = self.accepted;
        if self.unsettled > 0 {
            let absent = self.absent_behind_listener();
            let received = counts.count(Counter::Received).saturating_sub(absent);
            counts
                .set(Counter::Received, received)
                .add(Counter::LostInTransport, absent);
            accepted += self.unsettled - absent;
        }
        if self.driven.wire.is_none() {
            self.direct(sent, &mut counts);
        }
        counts.set(Counter::Rejected, rejected).set(Counter::Accepted, accepted);
        if self.transport.is_answered() {
            self.answered(&mut counts, &mut violated);
        }
        if let Some(preloaded) = &self.preloaded {
            preloaded.count(&mut counts);
            if self.is_settled_by_reading() {
                counts
                    .set(Counter::Confirmed, 0)
                    .add(Counter::Unknown, preloaded.accepted());
            }
        }
        let mut ledger = LedgerReport::default();
        ledger.counts = counts;
        ledger.violated = violated;
        ledger.rejected_by_reason = reasons;
        if let Some(audit) = self.audit {
            settle(&self.expected_absent(), audit, &mut ledger);
        } else {
            let wrong_answers = self.heard.wrong_answers(emitted.unknown.samples > 0);
            ledger.violated.extend(wrong_answers.violations(self.workload));
        }
        let unbalanced = ledger.counts.violations();
        ledger.violated.extend(unbalanced.iter().map(ToString::to_string));
        ledger
    }

    /// Samples that never became part of a write.
    fn never_arrived(&self) -> u64 {
        self.lost_before_listener() + self.absent_behind_listener()
    }

    /// Of these, samples that the listener did not hand to the store.
    fn lost_before_listener(&self) -> u64 {
        self.wire().map_or(0, |(_, stats)| {
            let sent = self.driven.counts.sent().samples;
            let lost = sent.saturating_sub(stats.received());
            lost + stats.malformed + stats.refused + stats.unannounced
        })
    }

    /// Of the samples that never arrived, those not covered by a named operation in the
    /// exceptions.
    fn never_arrived_unnamed(&self) -> u64 {
        let lost = self.wire().map_or(0, |(wire, stats)| {
            let sent = self.driven.counts.sent().samples;
            let lost = if wire.are_lost_named {
                0
            } else {
                sent.saturating_sub(stats.received())
            };
            lost + stats.malformed + stats.refused + stats.unannounced
        });
        lost + self.absent_behind_listener()
    }

    /// The exceptions for the report, against which the store can be read back later.
    pub(super) fn exceptions(&self) -> Exceptions {
        let mut exceptions = excepted(self.driven);
        exceptions.never_arrived = self.never_arrived() + self.driven.unnamed_samples;
        exceptions.never_arrived_unnamed = Some(self.never_arrived_unnamed() + self.driven.unnamed_samples);
        let (rejected, unnamed) = self.rejects.named();
        exceptions.add_rejected(rejected);
        exceptions.rejected_unnamed += unnamed;
        exceptions
    }

    /// Samples that may be missing in the store and cannot be identified.
    pub(super) fn unnamed(&self) -> u64 {
        self.never_arrived_unnamed() + self.rejects.named().1 + self.driven.exceptions_dropped
    }

    /// The samples that the store need not hold, beyond those known by name.
    fn expected_absent(&self) -> ExpectedAbsent {
        let is_direct = self.driven.wire.is_none();
        ExpectedAbsent {
            nameless: self.never_arrived() + self.rejects.named().1,
            is_guess: false,
            operations_unnamed: self.driven.exceptions_dropped,
            unknown: if is_direct { self.unknown() } else { 0 },
            absent_before: None,
        }
    }

    /// Whether samples went directly to a server that acknowledges nothing.
    fn is_settled_by_reading(&self) -> bool {
        self.is_unconfirmed && self.driven.wire.is_none()
    }

    /// Samples handed to a server that never said what became of them.
    fn unknown(&self) -> u64 {
        let emitted = &self.driven.counts;
        if !self.is_settled_by_reading() {
            return emitted.unknown.samples;
        }
        let preloaded = self.preloaded.map_or(0, |preloaded| preloaded.accepted());
        emitted.unknown.samples + emitted.accepted + preloaded
    }

    /// Without a listener of ours everything arrives. A foreign server may not confirm it, and
    /// then only reading back settles the outcome.
    fn direct(&self, sent: u64, counts: &mut Ledger) {
        let emitted = &self.driven.counts;
        let (confirmed, unknown) = if self.is_unconfirmed {
            (0, emitted.accepted + emitted.unknown.samples)
        } else {
            (emitted.accepted, emitted.unknown.samples)
        };
        if unknown == 0 {
            counts.set(Counter::Received, sent);
            return;
        }
        counts
            .set(Counter::Confirmed, confirmed)
            .set(Counter::Refused, emitted.rejected)
            .set(Counter::Unknown, unknown);
    }

    /// Of the samples that a server behind the listener never answered for: those that are not
    /// stored, or all if nothing was read back. They count as lost in transport.
    fn absent_behind_listener(&self) -> u64 {
        let expected_absent = self.lost_before_listener() + self.rejects.named().1;
        self.audit.map_or(self.unsettled, |audit| {
            let unexplained = audit.tally.missing.saturating_sub(expected_absent);
            unexplained.min(self.unsettled)
        })
    }

    /// Adds the answers' counts, and checks that they agree with what the store did.
    fn answered(&self, counts: &mut Ledger, violated: &mut Vec<String>) {
        let emitted = &self.driven.counts;
        counts
            .set(Counter::Confirmed, emitted.accepted)
            .set(Counter::Refused, emitted.rejected);
        let unknown = emitted.unknown.samples;
        counts.set(Counter::Unknown, unknown);
        let settled = emitted.accepted.saturating_sub(self.unsettled)..=emitted.accepted + unknown;
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

    /// Counts the samples lost between the sockets, and checks that all counters of them agree.
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
                violated.push(if self.has_store_failed {
                    format!("the store failed, and {lost} samples that were sent over {name} did not reach it")
                } else {
                    format!("{name} delivers everything, and {lost} samples that were sent never came")
                });
            }
            return;
        }
        let datagrams = wire.sent_datagrams.saturating_sub(stats.datagrams);
        // The kernel counts dropped datagrams, or merged units of up to `wire.segments`
        // datagrams. Its count can be given in samples only if it explains all lost datagrams.
        let a_unit = if self.merges { wire.segments.max(1) } else { 1 };
        let drops = stats.kernel_drops;
        let is_kernels = datagrams > 0 && (drops..=drops.saturating_mul(a_unit)).contains(&datagrams);
        let (kernel, transport) = if is_kernels { (lost, 0) } else { (0, lost) };
        counts
            .set(Counter::KernelDropped, kernel)
            .set(Counter::LostInTransport, transport);
        // If a sender's last message was lost as well, the gaps in the numbering miss its last
        // burst.
        let is_known = stats.ended_senders == stats.connections;
        let agrees = if is_known {
            stats.missing_samples == lost
        } else {
            stats.missing_samples <= lost
        };
        if self.protocol.capabilities().sequenced && !agrees {
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
}

/// The operations that the emitter knows to be unsent, unanswered or lost.
pub fn excepted(driven: &PassResult) -> Exceptions {
    let mut exceptions = Exceptions::default();
    exceptions.operations_unnamed = driven.exceptions_dropped;
    exceptions.add_operations(&driven.exceptions);
    exceptions
}

/// The event that ends an operation, as text for the report.
pub(super) fn done_means(protocol: Option<Protocol>, transport: Transport, is_unconfirmed: bool) -> String {
    match protocol {
        None if is_unconfirmed => {
            "the operating system took it for the connection (the server acknowledges nothing)".to_owned()
        }
        Some(_) if transport.is_answered() => {
            "the answer to its request came, which is given when the store has taken it".to_owned()
        }
        None => "the store acknowledged it".to_owned(),
        Some(protocol) => {
            format!("the store behind the listener took it ({protocol} acknowledges nothing: timed at the receiver)")
        }
    }
}
