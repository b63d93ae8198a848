//! The model: when a request is done, given what was measured.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tsb_core::report::device::{DeviceProfile, DeviceTimes, TIME_PARTS};
use tsb_core::time::SECOND_NS;

use crate::draws::Draws;

/// A request to a device, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A read.
    Read(u64),
    /// A write, done when the device has taken it; not synced.
    Write(u64),
}

/// A device in virtual time. The same profile, seed and requests give the same times.
///
/// A request waits for one of `depth` slots, then for the device, which takes requests in order at
/// the measured rates, and is done no earlier than its own time, which is drawn from the measured
/// ones. So one request at a time takes what one took, and many take what their rate allows.
#[derive(Clone, Debug)]
pub struct Device {
    profile: DeviceProfile,
    /// When each slot is free, in nanoseconds.
    slots: BinaryHeap<Reverse<u64>>,
    /// When the device can take the next request.
    taken_until: u64,
    /// When the last of all requests so far is done.
    done_at: u64,
    busy_ns: u64,
    draws: Draws,
}

impl Device {
    /// An idle device at time 0. A figure of 0 in the profile counts as 1.
    pub fn new(profile: &DeviceProfile, seed: u64) -> Self {
        Self {
            slots: std::iter::repeat_n(Reverse(0), profile.depth.max(1)).collect(),
            profile: profile.clone(),
            taken_until: 0,
            done_at: 0,
            busy_ns: 0,
            draws: Draws::new(seed),
        }
    }

    /// Submits a request at `now`, in nanoseconds, which must not be earlier than that of an
    /// earlier call. Returns when it is done.
    pub fn submit(&mut self, now: u64, request: Request) -> u64 {
        let Reverse(free_at) = self.slots.pop().unwrap_or(Reverse(0));
        let (times, per_second, bytes_per_second, bytes) = match request {
            Request::Read(bytes) => (
                self.profile.read,
                self.profile.reads_per_second,
                self.profile.read_bytes_per_second,
                bytes,
            ),
            Request::Write(bytes) => (
                self.profile.write,
                self.profile.writes_per_second,
                self.profile.written_bytes_per_second,
                bytes,
            ),
        };
        let transfer_ns = (SECOND_NS / per_second.max(1)).max(scaled(bytes, bytes_per_second));
        let began = self.take(now.max(free_at), transfer_ns);
        let latency_ns = self.draw(&times);
        let done = began + latency_ns.max(transfer_ns);
        self.done_at = self.done_at.max(done);
        self.slots.push(Reverse(done));
        done
    }

    /// Writes scattered dirty pages out of the page cache, as a kernel does: with as many in flight
    /// as it likes. Returns when the device has taken them.
    pub fn write_back(&mut self, now: u64, pages: u64) -> u64 {
        let write_ns = scaled(pages, self.profile.writeback_pages_per_second);
        let done = self.take(now, write_ns) + write_ns;
        self.done_at = self.done_at.max(done);
        done
    }

    /// A sync: waits for all requests so far, and then takes the time of a sync. Returns when it
    /// is done.
    pub fn sync(&mut self, now: u64) -> u64 {
        let from = now.max(self.done_at);
        let sync = self.profile.sync;
        let sync_ns = self.draw(&sync);
        self.busy_ns += sync_ns;
        self.done_at = from + sync_ns;
        self.done_at
    }

    /// Time in which the device moved data or synced, in nanoseconds.
    pub const fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// Occupies the device for `transfer_ns`. Returns from when on.
    fn take(&mut self, now: u64, transfer_ns: u64) -> u64 {
        let began = now.max(self.taken_until);
        self.taken_until = began + transfer_ns;
        self.busy_ns += transfer_ns;
        began
    }

    fn draw(&mut self, times: &DeviceTimes) -> u64 {
        let part = self.draws.below(TIME_PARTS as u64) as usize;
        times.parts_ns.get(part).copied().unwrap_or(times.max_ns)
    }
}

/// The time that `count` of something take at a rate, in nanoseconds.
fn scaled(count: u64, per_second: u64) -> u64 {
    let nanos = u128::from(count) * u128::from(SECOND_NS) / u128::from(per_second.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tsb_core::report::device::PAGE_BYTES;

    /// A disk as virtual machines have them.
    pub(crate) fn profile() -> DeviceProfile {
        DeviceProfile {
            is_direct: true,
            file_bytes: 1 << 26,
            depth: 16,
            read: DeviceTimes::of((60_000..100_000).step_by(20).collect()).unwrap(),
            write: DeviceTimes::constant(60_000),
            sync: DeviceTimes::constant(200_000),
            reads_per_second: 100_000,
            writes_per_second: 50_000,
            read_bytes_per_second: 2_000_000_000,
            written_bytes_per_second: 1_000_000_000,
            writeback_pages_per_second: 125_000,
        }
    }

    /// Reads pages with `in_flight` at a time. Returns reads per second.
    fn rate(in_flight: usize) -> u64 {
        let mut device = Device::new(&profile(), 1);
        let mut flying: BinaryHeap<Reverse<u64>> = std::iter::repeat_n(Reverse(0), in_flight).collect();
        let mut done = 0;
        for _ in 0..50_000 {
            let Reverse(now) = flying.pop().unwrap();
            done = device.submit(now, Request::Read(PAGE_BYTES));
            flying.push(Reverse(done));
        }
        50_000 * SECOND_NS / done
    }

    #[test]
    fn one_in_flight_is_bound_by_latency_and_many_by_the_rate() {
        // The mean of the times is 80 us.
        assert!((12_300..12_700).contains(&rate(1)), "{}", rate(1));
        // Four wait for each other a little.
        assert!((47_000..50_000).contains(&rate(4)), "{}", rate(4));
        // Sixteen would be 200,000 by latency: the device does 100,000.
        assert!((98_000..100_100).contains(&rate(16)), "{}", rate(16));
        // Beyond the slots nothing is gained.
        assert!((98_000..100_100).contains(&rate(64)), "{}", rate(64));
    }

    #[test]
    fn large_requests_are_bound_by_bandwidth() {
        let mut device = Device::new(&profile(), 1);
        let done = (0..100).map(|_| device.submit(0, Request::Write(1 << 20))).max();
        // 100 MiB at 1 GB/s.
        assert_eq!(done.map(|done| done / 1_000_000), Some(104));
        assert_eq!(device.busy_ns() / 1_000_000, 104);
    }

    #[test]
    fn a_sync_waits_for_what_was_submitted_and_write_back_takes_its_rate() {
        let mut device = Device::new(&profile(), 1);
        let written = device.write_back(0, 125_000);
        assert_eq!(written, SECOND_NS);
        assert_eq!(device.sync(5), SECOND_NS + 200_000);
        assert_eq!(device.sync(2 * SECOND_NS), 2 * SECOND_NS + 200_000);
        let done = device.submit(3 * SECOND_NS, Request::Write(PAGE_BYTES));
        assert_eq!(device.sync(3 * SECOND_NS), done + 200_000);
    }

    #[test]
    fn one_seed_is_one_device() {
        let times = |seed| {
            let mut device = Device::new(&profile(), seed);
            (0..1_000)
                .map(|at| device.submit(at * 1_000, Request::Read(PAGE_BYTES)))
                .collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
    }
}
