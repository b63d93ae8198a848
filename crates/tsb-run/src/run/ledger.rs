//! From what each side counted to the ledger of a run.
//!
//! The sides are independent: the emitter counted what it handed over, the listener what
//! came, the store what it took, and the audit what is there. What is derived is said.

mod settle;

use tsb_core::ledger::{Counter, Ledger};
use tsb_core::net::ListenerStats;
use tsb_core::report::{Exceptions, LedgerReport};
use tsb_core::wire::Protocol;
use tsb_core::workload::Workload;

pub use settle::{Elsewhere, settle};

use super::path::{Driven, Wire};
use super::rejects::Rejects;
use crate::audit::{Audit, Heard};
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
    /// Samples behind a listener of which a server never said what became of them.
    pub unsettled: u64,
    /// Samples that the store refused.
    pub rejects: &'a Rejects,
    /// What was read back.
    pub audit: Option<&'a Audit>,
    /// What the store said of its newest samples.
    pub heard: &'a Heard,
    /// What was sent.
    pub workload: &'a Workload,
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
        let mut ledger = LedgerReport {
            counts,
            violated,
            rejected_by_reason: reasons,
            ..LedgerReport::default()
        };
        if let Some(audit) = self.audit {
            settle(&self.elsewhere(), audit, &mut ledger);
        } else {
            let lies = self.heard.lies(emitted.unknown.samples > 0);
            ledger.violated.extend(lies.violations(self.workload));
        }
        let unbalanced = ledger.counts.violations();
        ledger.violated.extend(unbalanced.iter().map(ToString::to_string));
        ledger
    }

    /// Samples that never became part of a write.
    fn never_arrived(&self) -> u64 {
        self.lost_before_listener() + self.absent_behind_listener()
    }

    /// Of these, what the listener did not hand on.
    fn lost_before_listener(&self) -> u64 {
        self.wire().map_or(0, |(_, stats)| {
            let sent = self.driven.counts.sent().samples;
            let lost = sent.saturating_sub(stats.received());
            lost + stats.malformed + stats.refused + stats.unannounced
        })
    }

    /// Of the samples that never arrived, those that are in no operation of the exceptions.
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

    /// The same for a report, as far as it has names: a store is read back against it later.
    pub(super) fn exceptions(&self) -> Exceptions {
        let mut exceptions = Exceptions {
            never_arrived: self.never_arrived() + self.driven.unnamed_samples,
            never_arrived_unnamed: Some(self.never_arrived_unnamed() + self.driven.unnamed_samples),
            ..excepted(self.driven)
        };
        let (rejected, unnamed) = self.rejects.named();
        exceptions.add_rejected(rejected);
        exceptions.rejected_unnamed += unnamed;
        exceptions
    }

    /// Samples that may be missing in the store, and that nobody can name.
    pub(super) fn unnamed(&self) -> u64 {
        self.never_arrived_unnamed() + self.rejects.named().1 + self.driven.exceptions_dropped
    }

    /// What the store does not have to have, beyond what is known by name.
    fn elsewhere(&self) -> Elsewhere {
        let is_direct = self.driven.wire.is_none();
        Elsewhere {
            nameless: self.never_arrived() + self.rejects.named().1,
            is_guess: false,
            operations_unnamed: self.driven.exceptions_dropped,
            unknown: if is_direct {
                self.driven.counts.unknown.samples
            } else {
                0
            },
            absent_before: None,
        }
    }

    /// Without a wire of ours between, everything arrives; but a foreign server may not say
    /// so, and then only reading back settles it.
    fn direct(&self, sent: u64, counts: &mut Ledger) {
        let emitted = &self.driven.counts;
        let unknown = emitted.unknown.samples;
        if unknown == 0 {
            counts.set(Counter::Received, sent);
            return;
        }
        counts
            .set(Counter::Confirmed, emitted.accepted)
            .set(Counter::Refused, emitted.rejected)
            .set(Counter::Unknown, unknown);
    }

    /// Of the samples of which a server behind the listener never said what became of them:
    /// those that are not there, or all where nothing was read back. They were lost on the way.
    fn absent_behind_listener(&self) -> u64 {
        let elsewhere = self.lost_before_listener() + self.rejects.named().1;
        self.audit.map_or(self.unsettled, |audit| {
            let unexplained = audit.tally.missing.saturating_sub(elsewhere);
            unexplained.min(self.unsettled)
        })
    }

    /// What the answers said, and whether that is what the store did.
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
}

/// The operations that an emitter knows to be not sent, not answered or lost.
pub fn excepted(driven: &Driven) -> Exceptions {
    let mut exceptions = Exceptions {
        operations_unnamed: driven.exceptions_dropped,
        ..Exceptions::default()
    };
    exceptions.add_operations(&driven.exceptions);
    exceptions
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
