//! The counts of a listener: everything that arrived, and what of it was not admitted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::wire::{Malformed, NotAdmitted};

/// Number of examples kept per kind of malformed record.
const EXAMPLES: usize = 3;
/// Maximum length of an example, in bytes.
const EXAMPLE_BYTES: usize = 200;
/// Maximum number of kinds; decoders use a few dozen fixed messages at most.
const KINDS: usize = 256;

/// The counts of a listener, live or final. Samples are as received: `received = samples +
/// refused + unannounced + malformed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListenerStats {
    /// Connections accepted; over datagrams, senders seen.
    pub connections: u64,
    /// Connections open at the moment.
    pub open_connections: u64,
    /// Connections closed at once because the limit was reached. Always 0 over datagrams: see
    /// [`Self::forgotten_senders`].
    pub refused_connections: u64,
    /// Failed attempts to accept or register a connection, for example for lack of file descriptors; over
    /// datagrams, failed receives.
    pub accept_errors: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes read and never decoded, because the connection ended first.
    pub undecoded_bytes: u64,
    /// Samples passed to sinks.
    pub samples: u64,
    /// Well-formed samples whose names were not admitted: the sum of the next three.
    pub refused: u64,
    /// Of these, refused at the limit of the number of series.
    pub refused_series_limit: u64,
    /// Of these, refused at the limit of memory for names.
    pub refused_name_bytes: u64,
    /// Of these, refused because the store could not define the series.
    pub refused_not_defined: u64,
    /// Well-formed samples whose series the sender never announced.
    pub unannounced: u64,
    /// Malformed records.
    pub malformed: u64,
    /// Malformed records by kind, with examples.
    pub malformed_kinds: Vec<MalformedKind>,
    /// Datagrams received.
    pub datagrams: u64,
    /// Of these, empty datagrams.
    pub empty_datagrams: u64,
    /// Datagrams that did not arrive, by the waymarks of targets in the same process; exact once
    /// the listener has stopped.
    pub missing_datagrams: u64,
    /// Samples that did not arrive, by the protocol's sequence numbers.
    pub missing_samples: u64,
    /// Senders of datagrams that announced the end of their data: for these the number of missing
    /// samples is exact.
    pub ended_senders: u64,
    /// Senders of datagrams that were evicted to make room for others. Where samples are numbered,
    /// an evicted sender that returns is new, and its earlier samples count as missing.
    pub forgotten_senders: u64,
    /// Samples that arrived again, or too late to decide, and were not applied.
    pub repeated_samples: u64,
    /// Datagrams that the kernel dropped because a receive buffer was full, in its own count:
    /// datagrams that GRO would have merged count as one.
    pub kernel_drops: u64,
    /// Of these, drops that no later datagram reported, only the kernel's table.
    pub untold_kernel_drops: u64,
    /// Frames that never arrived, by the sequence numbers of connections that have ended.
    pub missing_frames: u64,
    /// Frames that arrived again and were not applied, on connections that have ended.
    pub repeated_frames: u64,
    /// Bytes of answers written to peers.
    pub answer_bytes: u64,
    /// Bytes of answers that the socket had not accepted when the connection ended; answers dropped after a
    /// write error are not counted.
    pub untaken_answer_bytes: u64,
    /// Connections closed because a decoder or a sink failed.
    pub fatal_closes: u64,
    /// Connections closed because a record exceeded the listener's limit.
    pub overlong_closes: u64,
    /// Connections closed by the idle time-out.
    pub idle_closes: u64,
    /// Connections that broke (reset by the peer, and the like).
    pub broken_connections: u64,
    /// Connections closed because a codec or a sink panicked: a bug.
    pub panicked_connections: u64,
    /// Connections still open, or not read to the end, when the listener stopped.
    pub cut_connections: u64,
}

/// One kind of malformed record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MalformedKind {
    /// What is wrong with them.
    pub what: String,
    /// Number of records.
    pub count: u64,
    /// The first few, escaped, cut to 200 bytes.
    pub examples: Vec<String>,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// The live counts, shared by the threads of a listener. Threads add to them once per read
        /// and not once per sample.
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: AtomicU64,)*
            kinds: Mutex<BTreeMap<&'static str, MalformedKind>>,
        }

        impl Counters {
            /// A copy of all counts. Each is exact; together they may differ by one read.
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
    /// Numbers of well-formed samples that were not passed to a sink, each with its reason.
    pub fn turned_away(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let reasons = [
            (NotAdmitted::SeriesLimit.reason(), self.refused_series_limit),
            (NotAdmitted::NameBytes.reason(), self.refused_name_bytes),
            (NotAdmitted::Undefined.reason(), self.refused_not_defined),
            ("unannounced", self.unannounced),
        ];
        reasons.into_iter().filter(|(_, samples)| *samples > 0)
    }

    /// Everything received except repetitions, in samples; a malformed record counts as one.
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

    /// Counts one malformed record and keeps it as an example if it is among the first of its
    /// kind.
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
