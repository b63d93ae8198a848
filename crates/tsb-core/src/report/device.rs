//! What a storage device was measured to do: the parameters of a model of it.

use serde::{Deserialize, Serialize};

/// Number of equal parts into which measured times are divided.
pub const TIME_PARTS: usize = 20;

/// Bytes of a page, the unit of random reads and writes.
pub const PAGE_BYTES: u64 = 4_096;

/// A storage device, as measured through a file in one folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceProfile {
    /// Whether requests went around the page cache (`O_DIRECT`). Otherwise reads are the memory's.
    pub is_direct: bool,
    /// Size of the file that was read and written, in bytes.
    pub file_bytes: u64,
    /// Requests in flight for `reads_per_second` and `writes_per_second`, each from a thread of
    /// its own.
    pub depth: usize,
    /// A read of a page at a random place, one in flight.
    pub read: DeviceTimes,
    /// A write of a page at a random place, one in flight; not synced.
    pub write: DeviceTimes,
    /// A write of a page at the same place, and `fdatasync`.
    pub sync: DeviceTimes,
    /// Reads of random pages, with `depth` in flight.
    pub reads_per_second: u64,
    /// Writes of random pages, with `depth` in flight.
    pub writes_per_second: u64,
    /// Sequential reads of 1 MiB, with two in flight.
    pub read_bytes_per_second: u64,
    /// Sequential writes of 1 MiB, with two in flight.
    pub written_bytes_per_second: u64,
    /// Scattered dirty pages that one `fdatasync` writes out of the page cache.
    pub writeback_pages_per_second: u64,
}

impl DeviceProfile {
    /// The first figure that no device can have, by its name.
    pub fn impossible(&self) -> Option<&'static str> {
        let rates = [
            ("depth", self.depth as u64),
            ("reads_per_second", self.reads_per_second),
            ("writes_per_second", self.writes_per_second),
            ("read_bytes_per_second", self.read_bytes_per_second),
            ("written_bytes_per_second", self.written_bytes_per_second),
            ("writeback_pages_per_second", self.writeback_pages_per_second),
        ];
        let zero = rates.into_iter().find(|(_, rate)| *rate == 0);
        zero.map(|(name, _)| name)
    }
}

/// The distribution of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceTimes {
    /// Number of measured times.
    pub count: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 0.99 quantile.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The sorted times in twenty equal parts, and the mean of each part: their mean is the mean of
    /// all.
    pub parts_ns: [u64; TIME_PARTS],
}

impl DeviceTimes {
    /// The distribution of some times in nanoseconds; `None` if there are none.
    pub fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let at = |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1)));
        let (p50_ns, p99_ns, max_ns) = (*at(50)?, *at(99)?, *times.last()?);
        let part = |index: usize| {
            let from = times.len() * index / TIME_PARTS;
            let to = (times.len() * (index + 1) / TIME_PARTS).max(from + 1);
            let of_part = times.get(from..to).unwrap_or_default();
            of_part.iter().sum::<u64>() / of_part.len().max(1) as u64
        };
        Some(Self {
            count: times.len() as u64,
            p50_ns,
            p99_ns,
            max_ns,
            parts_ns: std::array::from_fn(part),
        })
    }

    /// A time that is always the same.
    pub const fn constant(nanos: u64) -> Self {
        Self {
            count: 1,
            p50_ns: nanos,
            p99_ns: nanos,
            max_ns: nanos,
            parts_ns: [nanos; TIME_PARTS],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_the_mean_and_quantiles_the_order() {
        let times = DeviceTimes::of((1..=2_000).rev().collect()).unwrap();
        assert_eq!(
            (times.count, times.p50_ns, times.p99_ns, times.max_ns),
            (2_000, 1_001, 1_981, 2_000)
        );
        assert_eq!(times.parts_ns[0], 50);
        assert_eq!(times.parts_ns.iter().sum::<u64>() / 20, 1_000);
        assert_eq!(DeviceTimes::of(Vec::new()), None);
        // Fewer times than parts: each is in some part.
        let few = DeviceTimes::of(vec![3, 1]).unwrap();
        assert_eq!((few.parts_ns[0], few.parts_ns[19]), (1, 3));
    }

    #[test]
    fn a_device_without_a_rate_is_impossible_and_an_unknown_field_is_refused() {
        let mut device = DeviceProfile {
            is_direct: true,
            file_bytes: 1 << 20,
            depth: 16,
            read: DeviceTimes::constant(80_000),
            write: DeviceTimes::constant(60_000),
            sync: DeviceTimes::constant(200_000),
            reads_per_second: 100_000,
            writes_per_second: 100_000,
            read_bytes_per_second: 1 << 30,
            written_bytes_per_second: 1 << 30,
            writeback_pages_per_second: 100_000,
        };
        assert_eq!(device.impossible(), None);
        device.writes_per_second = 0;
        assert_eq!(device.impossible(), Some("writes_per_second"));
        let mut json = serde_json::to_value(&device).unwrap();
        assert_eq!(serde_json::from_value::<DeviceProfile>(json.clone()).unwrap(), device);
        json["cache_bytes"] = 7.into();
        assert!(serde_json::from_value::<DeviceProfile>(json).is_err());
    }
}
