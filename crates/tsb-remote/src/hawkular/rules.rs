//! What follows from the server and the options: what is kept of samples, what an ack is worth, and how a
//! read has to ask.

use std::time::Duration;

use tsb_core::{Durability, Timestamp};
use tsb_stores::error::Result;
use tsb_stores::store::{Capabilities, Exactness, OnConflict, TimeRange};

use super::kept::KeptSamples;
use super::options::HawkularOptions;
use super::ring::Ring;
use super::status::{Mohawk, MohawkBackend, ServerKind};
use super::{MS_NS, spec_error};

/// The least time that may be asked for: Mohawk 0.15.4 takes 0 and 1 for "no time".
pub(super) const LEAST_MS: i64 = 2;
/// The first time of a sample. A read asks from one second earlier.
const FIRST_MS: i64 = 1_000;
/// The end of every range: the last whole second that a timestamp in nanoseconds can name.
pub(super) const LAST_MS: i64 = i64::MAX / MS_NS / SECOND_MS * SECOND_MS;
/// The times of samples.
pub(super) const TIMES: TimeRange = TimeRange {
    start: Timestamp(FIRST_MS * MS_NS),
    end: Timestamp(LAST_MS * MS_NS),
};
const SECOND_MS: i64 = 1_000;
/// Samples of a series per answer: a few hundred kilobytes of text.
const ROWS_MAX: i64 = 10_000;
/// Samples per answer: less than Mohawk's imitation and the HTTP client take.
const ANSWER_ROWS_MAX: i64 = 400_000;
/// Series per request.
const SERIES_MAX: i64 = 20;
const DAY: Duration = Duration::from_hours(24);

/// The rules of one server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) kept: KeptSamples,
    /// What every ack is worth.
    pub(super) acknowledges: Durability,
    pub(super) resolution_ns: i64,
    /// Whether it is Mohawk, which deletes samples of a range, and no gauge.
    pub(super) is_mohawk: bool,
    /// Whether its list of gauges shows their newest samples.
    pub(super) lists_newest: bool,
    slot_ns: i64,
    retention_ns: Option<i64>,
    /// Of a memory of slots.
    ring: Option<Ring>,
    /// Whether it answers in the other order than it is asked for.
    is_order_swapped: bool,
}

/// What a request asks for: milliseconds from `start` to before `end`, and how many samples of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) limit: i64,
    pub(super) order: &'static str,
}

impl Rules {
    /// # Errors
    /// [`Error::Spec`](tsb_stores::Error::Spec) for a backend that is not known, unless it is told what it
    /// keeps, and for fewer than two slots.
    pub(super) fn of(server: ServerKind, options: &HawkularOptions) -> Result<Self> {
        let Some(kept) = options.kept.or_else(|| kept_by(server)) else {
            return Err(spec_error(
                "this Mohawk has a backend that is not known here; say what it keeps, as kept=exact",
            ));
        };
        let slot_ns = options.slot.as_nanos() as i64;
        let retention = options.retention.or_else(|| retention_of(server));
        let retention_ns = retention.map(|retention| retention.as_nanos() as i64);
        let is_memory = is_of(server, MohawkBackend::Memory);
        let ring = if is_memory {
            Some(ring(slot_ns, retention_ns)?)
        } else {
            None
        };
        Ok(Self {
            kept,
            acknowledges: acknowledged_by(server),
            resolution_ns: match kept {
                KeptSamples::FirstOfSlot => slot_ns.max(MS_NS),
                _ if is_memory => SECOND_MS * MS_NS,
                _ => MS_NS,
            },
            is_mohawk: server != ServerKind::Hawkular,
            lists_newest: is_memory,
            slot_ns,
            retention_ns: ring.map_or(retention_ns, |ring| Some(ring.kept_ms() * MS_NS)),
            ring,
            is_order_swapped: matches!(
                server,
                ServerKind::Mohawk(Mohawk {
                    backend: MohawkBackend::Mongo,
                    is_old: true,
                    ..
                })
            ),
        })
    }

    /// Whether the client itself admits only samples that the server keeps.
    pub(super) const fn admits(&self) -> bool {
        matches!(self.kept, KeptSamples::FirstOfSlot | KeptSamples::Decimals)
    }

    /// Whether two samples of one timestamp stay.
    pub(super) fn keeps_copies(&self) -> bool {
        self.kept == KeptSamples::Copies
    }

    pub(super) fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(self.acknowledges, self.acknowledges);
        capabilities.exactness = match self.kept {
            KeptSamples::LastOfSlot => Exactness::OnePerSlot(self.slot_ns),
            KeptSamples::Decimals => Exactness::Decimals(6),
            KeptSamples::Exact | KeptSamples::FirstOfSlot | KeptSamples::Copies => Exactness::Exact,
        };
        if self.keeps_copies() {
            capabilities.duplicate = OnConflict::KeptBoth;
        }
        if self.admits() {
            capabilities.duplicate = OnConflict::Rejected;
            capabilities.late = OnConflict::Rejected;
        }
        capabilities.resolution_ns = self.resolution_ns;
        capabilities.special_values = false;
        capabilities.persistent = true;
        capabilities.retention_ns = self.retention_ns;
        // Nothing counts them.
        capabilities.counts_samples = false;
        capabilities
    }

    /// Of the newest samples that a list of gauges shows, in milliseconds, the first that a read shows, too.
    pub(super) fn visible_from(&self, newest_ms: i64) -> i64 {
        self.retention_ns
            .map_or(FIRST_MS, |kept_ns| newest_ms.saturating_sub(kept_ns / MS_NS))
    }

    /// The first and the last millisecond of a range that a sample can have; `None` if there is none.
    pub(super) fn bounds(range: TimeRange) -> Option<(i64, i64)> {
        let within = TimeRange {
            start: range.start.max(TIMES.start),
            end: range.end.min(TIMES.end),
        };
        within.whole_units(MS_NS)
    }

    /// The request for the first samples between two milliseconds, both included, and others beside them:
    /// some servers leave out the start, include the end, or cut times to seconds.
    pub(super) fn first(&self, (first, last): (i64, i64)) -> Window {
        let start = (first / SECOND_MS - 1) * SECOND_MS;
        let end = (last / SECOND_MS + 1) * SECOND_MS;
        let (start, end) = match self.ring {
            None => (start.max(LEAST_MS), end),
            Some(ring) => ring.asked(start, end),
        };
        Window {
            start,
            end,
            limit: self.rows_max(),
            order: self.order(false),
        }
    }

    /// The request for the newest sample.
    pub(super) fn newest(&self) -> Window {
        Window {
            start: LEAST_MS,
            end: LAST_MS,
            limit: 1,
            order: self.order(true),
        }
    }

    /// Samples of a series per answer. A ring is read at once: its answers are not in the order of time.
    fn rows_max(&self) -> i64 {
        self.ring
            .map_or(ROWS_MAX, |ring| (ring.rows_max() + 1).clamp(ROWS_MAX, ANSWER_ROWS_MAX))
    }

    /// Series per request that reads samples.
    pub(super) fn series_max(&self) -> usize {
        (ANSWER_ROWS_MAX / self.rows_max()).clamp(1, SERIES_MAX) as usize
    }

    const fn order(&self, is_newest_first: bool) -> &'static str {
        if is_newest_first == self.is_order_swapped {
            "ASC"
        } else {
            "DESC"
        }
    }
}

fn is_of(server: ServerKind, backend: MohawkBackend) -> bool {
    matches!(server, ServerKind::Mohawk(mohawk) if mohawk.backend == backend)
}

fn kept_by(server: ServerKind) -> Option<KeptSamples> {
    let ServerKind::Mohawk(mohawk) = server else {
        return Some(KeptSamples::Exact);
    };
    match mohawk.backend {
        MohawkBackend::Memory if mohawk.is_old => Some(KeptSamples::LastOfSlot),
        MohawkBackend::Memory => Some(KeptSamples::FirstOfSlot),
        MohawkBackend::Sqlite3 => Some(KeptSamples::Decimals),
        MohawkBackend::Mongo => Some(KeptSamples::Copies),
        MohawkBackend::Other => None,
    }
}

/// How long a server keeps samples that is not told anything else.
fn retention_of(server: ServerKind) -> Option<Duration> {
    match server {
        // Cassandra's time to live, counted from when a sample is written.
        ServerKind::Hawkular => Some(7 * DAY),
        ServerKind::Mohawk(mohawk) if mohawk.backend != MohawkBackend::Memory => None,
        ServerKind::Mohawk(mohawk) => Some(if mohawk.is_old { 7 * DAY } else { DAY }),
    }
}

/// What an ack is worth.
fn acknowledged_by(server: ServerKind) -> Durability {
    match server {
        ServerKind::Mohawk(mohawk) if !mohawk.reports => Durability::Unconfirmed,
        // A commit of its own, at SQLite's default level, FULL.
        ServerKind::Mohawk(mohawk) if mohawk.backend == MohawkBackend::Sqlite3 => Durability::Synced,
        // Of Hawkular, Cassandra's replicas have it in memory and in commit logs, which are synced later.
        ServerKind::Hawkular | ServerKind::Mohawk(_) => Durability::Volatile,
    }
}

fn ring(slot_ns: i64, retention_ns: Option<i64>) -> Result<Ring> {
    Ring::new(slot_ns / MS_NS, retention_ns.unwrap_or(0) / MS_NS)
        .ok_or_else(|| spec_error("retention holds less than two slots of slot"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mohawk(backend: MohawkBackend, is_old: bool) -> ServerKind {
        ServerKind::Mohawk(Mohawk {
            backend,
            is_old,
            reports: !is_old,
        })
    }

    fn rules(server: ServerKind) -> Rules {
        Rules::of(server, &HawkularOptions::default()).unwrap()
    }

    #[test]
    fn the_class_and_the_level_follow_from_the_server() {
        use {Durability as D, Exactness as E, MohawkBackend as B, OnConflict as O};
        for (server, level, exactness, duplicate, resolution_ms) in [
            (ServerKind::Hawkular, D::Volatile, E::Exact, O::Accepted, 1),
            (
                mohawk(B::Memory, true),
                D::Unconfirmed,
                E::OnePerSlot(30_000_000_000),
                O::Accepted,
                1_000,
            ),
            (mohawk(B::Memory, false), D::Volatile, E::Exact, O::Rejected, 30_000),
            (mohawk(B::Sqlite3, true), D::Unconfirmed, E::Decimals(6), O::Rejected, 1),
            (mohawk(B::Sqlite3, false), D::Synced, E::Decimals(6), O::Rejected, 1),
            (mohawk(B::Mongo, false), D::Volatile, E::Exact, O::KeptBoth, 1),
        ] {
            let found = rules(server).capabilities();
            assert_eq!((found.acknowledges, found.reaches), (level, level), "{server:?}");
            assert_eq!((found.exactness, found.duplicate), (exactness, duplicate), "{server:?}");
            assert_eq!(found.resolution_ns, resolution_ms * MS_NS, "{server:?}");
        }
    }

    #[test]
    fn what_is_told_goes_before_what_a_status_says() {
        let other = mohawk(MohawkBackend::Other, false);
        assert!(Rules::of(other, &HawkularOptions::default()).is_err());
        let told = HawkularOptions {
            kept: Some(KeptSamples::Exact),
            retention: Some(Duration::from_mins(5)),
            ..HawkularOptions::default()
        };
        let found = Rules::of(other, &told).unwrap().capabilities();
        assert_eq!(
            (found.exactness, found.retention_ns),
            (Exactness::Exact, Some(300_000_000_000))
        );
        let short = HawkularOptions {
            retention: Some(Duration::from_secs(59)),
            ..HawkularOptions::default()
        };
        assert!(Rules::of(mohawk(MohawkBackend::Memory, true), &short).is_err());
    }

    #[test]
    fn a_request_asks_for_more_than_its_range_and_never_for_time_0() {
        let rules = rules(ServerKind::Hawkular);
        let asked = |first, last| {
            let window = rules.first((first, last));
            (window.start, window.end)
        };
        assert_eq!(asked(1_500_001, 1_500_999), (1_499_000, 1_501_000));
        assert_eq!(asked(1_000, 1_000), (LEAST_MS, 2_000));
        assert_eq!(asked(1_000, LAST_MS - 1), (LEAST_MS, LAST_MS));
        assert_eq!(rules.newest().limit, 1);
        let orders = |rules: Rules| (rules.first((1_000, 1_000)).order, rules.newest().order);
        assert_eq!(orders(rules), ("ASC", "DESC"));
        assert_eq!(orders(self::rules(mohawk(MohawkBackend::Mongo, true))), ("DESC", "ASC"));
    }

    #[test]
    fn a_ring_is_read_in_one_answer_per_series() {
        let rules = rules(mohawk(MohawkBackend::Memory, true));
        assert_eq!((rules.rows_max(), rules.series_max()), (20_162, 19));
    }

    #[test]
    fn a_range_has_the_milliseconds_of_samples() {
        let of = |start, end| {
            Rules::bounds(TimeRange {
                start: Timestamp(start),
                end: Timestamp(end),
            })
        };
        assert_eq!(of(i64::MIN, i64::MAX), Some((FIRST_MS, LAST_MS - 1)));
        assert_eq!(of(2_000_000_001, 2_002_000_000), Some((2_001, 2_001)));
        assert_eq!(of(0, 1_000_000_000), None);
        assert_eq!(of(2_000_000_000, 2_000_000_000), None);
    }
}
