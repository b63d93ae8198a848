//! What a listener counts: everything that came, and everything that did not get in.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::wire::{Malformed, NotAdmitted};

/// Examples kept of each kind of malformed record.
const EXAMPLES: usize = 3;
/// An example is cut to so many bytes.
const EXAMPLE_BYTES: usize = 200;
/// Kinds told apart; decoders use a few dozen fixed sentences at most.
const KINDS: usize = 256;

/// A listener's counts, live or final. Samples in it are those of the wire:
/// `received = malformed + refused + unannounced + handed over`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListenerStats {
    /// Connections taken; over datagrams: senders heard of.
    pub connections: u64,
    /// Connections open now.
    pub open_connections: u64,
    /// Connections closed at once because there were too many. Over datagrams there are none:
    /// see [`Self::forgotten_senders`].
    pub refused_connections: u64,
    /// Connections that could not be accepted (no file descriptor left, and the like).
    pub accept_errors: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes read and never decoded, because a connection ended or was closed before.
    pub undecoded_bytes: u64,
    /// Samples handed over to sinks.
    pub samples: u64,
    /// Well-formed samples of names that were not admitted: the sum of the next three.
    pub refused: u64,
    /// Of names beyond the limit of series.
    pub refused_series_limit: u64,
    /// Of names beyond the limit of bytes of names.
    pub refused_name_bytes: u64,
    /// Of names whose series the store could not define.
    pub refused_not_defined: u64,
    /// Well-formed samples whose series the sender never named.
    pub unannounced: u64,
    /// Malformed records.
    pub malformed: u64,
    /// The same by kind, with examples.
    pub malformed_kinds: Vec<MalformedKind>,
    /// Datagrams that came.
    pub datagrams: u64,
    /// Of these, datagrams with nothing in them.
    pub empty_datagrams: u64,
    /// Datagrams that did not come, by the waymarks of targets in the same process: known to
    /// the last when the listener has stopped.
    pub missing_datagrams: u64,
    /// Samples that did not come, by the numbers that the protocol gives them.
    pub missing_samples: u64,
    /// Senders of datagrams that said that nothing follows: of them the missing samples
    /// are known to the last.
    pub ended_senders: u64,
    /// Senders of datagrams that were forgotten to make room for others. Where samples are
    /// numbered, one that comes back is a new sender, of which what came before is missing.
    pub forgotten_senders: u64,
    /// Samples that came again and were not applied.
    pub repeated_samples: u64,
    /// What the kernel dropped because a receive buffer was full, in its own count: of
    /// datagrams, but of those that would have been handed over in one (GRO) as one.
    pub kernel_drops: u64,
    /// Those among them that no later datagram told of: they are from the kernel's table.
    pub untold_kernel_drops: u64,
    /// Frames that never came, by the sequence numbers of connections that have ended.
    pub missing_frames: u64,
    /// Frames that came again and were not applied, of connections that have ended.
    pub repeated_frames: u64,
    /// Bytes that were written back.
    pub answer_bytes: u64,
    /// Bytes of answers that a peer had not taken when its connection ended.
    pub untaken_answer_bytes: u64,
    /// Connections closed because a decoder or a sink could not go on.
    pub fatal_closes: u64,
    /// Connections closed because a record was longer than the limit of the listener.
    pub overlong_closes: u64,
    /// Connections closed because they brought nothing for too long.
    pub idle_closes: u64,
    /// Connections that broke (reset by the peer, and the like).
    pub broken_connections: u64,
    /// Connections closed because a codec or a sink panicked: a bug.
    pub panicked_connections: u64,
    /// Connections still open, or not read to the end, when the listener stopped.
    pub cut_connections: u64,
}

/// One kind of malformed record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MalformedKind {
    /// What is wrong with them.
    pub what: String,
    /// How many there were.
    pub count: u64,
    /// The first few, escaped, cut to 200 bytes.
    pub examples: Vec<String>,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// The live counts, shared by the threads of a listener. Each is added to once a
        /// read, not once a sample.
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: AtomicU64,)*
            kinds: Mutex<BTreeMap<&'static str, MalformedKind>>,
        }

        impl Counters {
            /// A copy of all counts. Each is right; together they may be a read apart.
            pub(super) fn snapshot(&self) -> ListenerStats {
                let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
                ListenerStats {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                    malformed_kinds: kinds.values().cloned().collect(),
                }
            }
        }
    };
}

counters!(
    connections,
    open_connections,
    refused_connections,
    accept_errors,
    bytes,
    undecoded_bytes,
    samples,
    refused,
    refused_series_limit,
    refused_name_bytes,
    refused_not_defined,
    unannounced,
    malformed,
    datagrams,
    empty_datagrams,
    missing_datagrams,
    missing_samples,
    ended_senders,
    forgotten_senders,
    repeated_samples,
    kernel_drops,
    untold_kernel_drops,
    missing_frames,
    repeated_frames,
    answer_bytes,
    untaken_answer_bytes,
    fatal_closes,
    overlong_closes,
    idle_closes,
    broken_connections,
    panicked_connections,
    cut_connections,
);

impl ListenerStats {
    /// Well-formed samples that were not handed over, each under why.
    pub fn turned_away(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let reasons = [
            (NotAdmitted::SeriesLimit.reason(), self.refused_series_limit),
            (NotAdmitted::NameBytes.reason(), self.refused_name_bytes),
            (NotAdmitted::Undefined.reason(), self.refused_not_defined),
            ("unannounced", self.unannounced),
        ];
        reasons.into_iter().filter(|(_, samples)| *samples > 0)
    }

    /// Everything that came, in samples; what is malformed counts as one.
    pub fn received(&self) -> u64 {
        self.samples + self.refused + self.unannounced + self.malformed
    }
}

impl Counters {
    /// Counts samples of names that were not admitted, by reason in the order of
    /// [`NotAdmitted::ALL`].
    pub(super) fn refused(&self, samples: [u64; NotAdmitted::ALL.len()]) {
        add(&self.refused, samples.iter().sum());
        for (why, samples) in NotAdmitted::ALL.into_iter().zip(samples) {
            let counter = match why {
                NotAdmitted::SeriesLimit => &self.refused_series_limit,
                NotAdmitted::NameBytes => &self.refused_name_bytes,
                NotAdmitted::Undefined => &self.refused_not_defined,
            };
            add(counter, samples);
        }
    }

    /// Counts one malformed record and keeps it if it is among the first of its kind.
    pub(super) fn malformed(&self, problem: &Malformed<'_>) {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = kinds.len() >= KINDS && !kinds.contains_key(problem.what);
        let what = if is_full { "of another kind" } else { problem.what };
        let kind = kinds.entry(what).or_insert_with(|| MalformedKind {
            what: what.to_owned(),
            count: 0,
            examples: Vec::new(),
        });
        kind.count += 1;
        if kind.examples.len() < EXAMPLES {
            let shown = &problem.bytes[..problem.bytes.len().min(EXAMPLE_BYTES)];
            kind.examples.push(shown.escape_ascii().to_string());
        }
    }
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_few_and_short() {
        let counters = Counters::default();
        let long = [b'\xff'; 10_000];
        for _ in 0..100 {
            counters.malformed(&Malformed {
                what: "no value",
                bytes: &long,
            });
        }
        let stats = counters.snapshot();
        let kind = &stats.malformed_kinds[0];
        assert_eq!((kind.count, kind.examples.len()), (100, EXAMPLES));
        assert_eq!(kind.examples[0].len(), EXAMPLE_BYTES * "\\xff".len());
    }
}
