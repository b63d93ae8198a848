//! Messages: the parts in which a host sends its tick.
//!
//! A host with many series sends its tick in several messages, spread evenly over its interval
//! starting at its phase, like a collector that reads one source after another.

use std::ops::Range;

use super::fleet::FleetFile;
use super::spec::{BatchMode, Phase};

/// Maximum number of series per message; `None`: all series of the host.
pub(super) fn limit(batch: BatchMode, file: &FleetFile) -> Option<u32> {
    match batch {
        BatchMode::Host | BatchMode::Tick => None,
        BatchMode::Message => file.host.message,
        BatchMode::Series(limit) => Some(limit),
    }
}

/// One message of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The host's series in this message, as a range.
    pub(super) slots: Range<usize>,
    number: u32,
    of: u32,
}

/// Divides a host's series into as few messages as the limit allows, of equal size.
pub(super) fn cut(series: u32, limit: Option<u32>) -> impl Iterator<Item = Message> {
    let of = limit.map_or(1, |limit| series.div_ceil(limit.max(1))).max(1);
    let at = move |number: u32| (u64::from(series) * u64::from(number) / u64::from(of)) as usize;
    (0..of).map(move |number| Message {
        slots: at(number)..at(number + 1),
        number,
        of,
    })
}

impl Message {
    /// Due time within the interval, in nanoseconds; a multiple of `step_ns` unless that is 0.
    pub(super) fn phase(&self, mode: Phase, host_phase_ns: u64, interval_ns: u64, step_ns: u64) -> u64 {
        if mode == Phase::Aligned || self.number == 0 {
            return host_phase_ns;
        }
        let behind = u128::from(interval_ns) * u128::from(self.number) / u128::from(self.of);
        let phase = (u128::from(host_phase_ns) + behind) % u128::from(interval_ns);
        let phase = phase as u64;
        phase - phase % step_ns.clamp(1, interval_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_hold_all_series_once_and_are_spread_over_the_interval() {
        for (series, limit, count) in [
            (2_160, Some(50), 44),
            (54, Some(50), 2),
            (54, Some(54), 1),
            (9, None, 1),
            (5, Some(1), 5),
        ] {
            let messages: Vec<Message> = cut(series, limit).collect();
            assert_eq!(messages.len(), count, "{series} by {limit:?}");
            let all: Vec<usize> = messages.iter().flat_map(|message| message.slots.clone()).collect();
            assert_eq!(all, (0..series as usize).collect::<Vec<_>>());
            let sizes = messages.iter().map(|message| message.slots.len());
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
            assert!(limit.is_none_or(|limit| messages.iter().all(|message| message.slots.len() <= limit as usize)));
        }
        let phases = |mode, step| {
            cut(4, Some(1))
                .map(|message| message.phase(mode, 700, 1_000, step))
                .collect::<Vec<_>>()
        };
        assert_eq!(phases(Phase::Seeded, 0), [700, 950, 200, 450]);
        assert_eq!(phases(Phase::Seeded, 100), [700, 900, 200, 400]);
        assert_eq!(phases(Phase::Aligned, 0), [700; 4]);
    }
}
