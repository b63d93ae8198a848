//! Measures the disk of a folder, for a model of it.

use std::path::Path;

use tsb_core::report::device::{DeviceProfile, DeviceTimes};
use tsb_core::time::MonotonicClock;
use tsb_run::device::MeasureBounds;
use tsb_run::units::nanos;

use super::{Level, MachineFinding, bytes};
use crate::exit::Exit;
use crate::failure::Failure;

/// Measures the disk of a folder, with the default bounds.
pub(crate) fn measure(dir: &Path) -> Result<DeviceProfile, Failure> {
    let measured = tsb_run::device::measure(dir, MeasureBounds::default(), &MonotonicClock::new());
    measured.map_err(|error| {
        Failure::new(
            Exit::Unreachable,
            format!("cannot measure the disk of {}", dir.display()),
        )
        .because(&error)
        .hint("name a folder that can be written to, with 64 MiB of room: --dir")
    })
}

pub(super) fn findings(device: &DeviceProfile) -> Vec<MachineFinding> {
    let depth = device.depth;
    let at_depth = |per_second: u64| format!("{per_second} per second with {depth} in flight");
    let reads = format!("{}; {}", times(&device.read), at_depth(device.reads_per_second));
    let writes = format!("{}; {}", times(&device.write), at_depth(device.writes_per_second));
    let bandwidth = format!(
        "{} read and {} written per second",
        bytes(device.read_bytes_per_second),
        bytes(device.written_bytes_per_second)
    );
    let writeback = format!("{} scattered pages per second", device.writeback_pages_per_second);
    vec![
        MachineFinding::ok("device read", reads, "a page of 4 KiB at a random place, one in flight").advise_if(
            !device.is_direct,
            Level::Warn,
            "this file system keeps its page cache in between: use --dir on a disk",
        ),
        MachineFinding::ok(
            "device write",
            writes,
            "a page of 4 KiB at a random place, one in flight, not synced",
        ),
        MachineFinding::ok(
            "device sync",
            times(&device.sync),
            "a page written and synced with fdatasync",
        ),
        MachineFinding::ok("device bandwidth", bandwidth, "1 MiB at a time, two in flight"),
        MachineFinding::ok(
            "device writeback",
            writeback,
            "dirty pages that one sync writes out of the page cache",
        ),
    ]
}

fn times(times: &DeviceTimes) -> String {
    format!(
        "p50 {}, p99 {}, max {} of {}",
        nanos(times.p50_ns),
        nanos(times.p99_ns),
        nanos(times.max_ns),
        times.count
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_name_times_and_rates_and_a_file_system_in_memory() {
        let mut device = DeviceProfile {
            is_direct: true,
            file_bytes: 1 << 26,
            depth: 16,
            read: DeviceTimes::constant(80_000),
            write: DeviceTimes::constant(60_000),
            sync: DeviceTimes::constant(200_000),
            reads_per_second: 100_000,
            writes_per_second: 90_000,
            read_bytes_per_second: 2 << 30,
            written_bytes_per_second: 1 << 30,
            writeback_pages_per_second: 125_000,
        };
        let found = findings(&device);
        let value = "p50 80.0 us, p99 80.0 us, max 80.0 us of 1; 100000 per second with 16 in flight";
        assert_eq!((found[0].value.as_str(), found[0].level), (value, Level::Ok));
        assert_eq!(found[3].value, "2.00 GiB read and 1.00 GiB written per second");
        device.is_direct = false;
        assert_eq!(findings(&device)[0].level, Level::Warn);
    }
}
