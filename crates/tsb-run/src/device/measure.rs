//! Measures a device through a file that is removed again.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tsb_core::report::device::{DeviceProfile, DeviceTimes, PAGE_BYTES};
use tsb_core::time::{Clock, SECOND_NS};

use crate::draws::Draws;

/// Bytes of a sequential request.
const SEQUENTIAL_BYTES: u64 = 1 << 20;
/// Sequential requests in flight.
const SEQUENTIAL_DEPTH: usize = 2;
/// One in this many pages is dirtied for a timed writeback, so that none has a dirty neighbour.
const SCATTER: u64 = 16;
/// Times that a distribution is made of, at most.
const TIMES_MAX: usize = 20_000;

/// What a measurement may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasureBounds {
    /// Size of the file, in bytes; rounded down to whole MiB, and at least 4 MiB. The file is
    /// written once, and then in part.
    pub file_bytes: u64,
    /// Longest time of each of the eight parts, in nanoseconds, after the file was filled once; a request
    /// in flight is awaited.
    pub part_ns: u64,
    /// Requests in flight where many are, in [1, 64].
    pub depth: usize,
}

impl Default for MeasureBounds {
    /// A file of 64 MiB, about four seconds, 16 in flight.
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            part_ns: SECOND_NS * 2 / 5,
            depth: 16,
        }
    }
}

/// Measures the device of a folder through a file that it makes there and removes.
///
/// # Errors
/// The first error of the file system.
pub fn measure(folder: &Path, bounds: MeasureBounds, clock: &dyn Clock) -> io::Result<DeviceProfile> {
    let path = folder.join(format!(".tsb-device-{}", std::process::id()));
    let buffered = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    let scratch = Scratch(path);
    let direct = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(&scratch.0);
    let is_direct = direct.is_ok();
    let probe = Probe {
        file: direct.or_else(|_| buffered.try_clone())?,
        buffered,
        bytes: (bounds.file_bytes.max(4 << 20)) >> 20 << 20,
        part_ns: bounds.part_ns,
        clock,
    };
    probe.profile(is_direct, bounds.depth.clamp(1, 64))
}

/// A file that is removed when the measurement ends.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // A file that cannot be removed is named by its folder.
        let _ = std::fs::remove_file(&self.0);
    }
}

struct Probe<'a> {
    /// Around the page cache, where the file system allows that.
    file: File,
    /// The same file through the page cache.
    buffered: File,
    bytes: u64,
    part_ns: u64,
    clock: &'a dyn Clock,
}

impl Probe<'_> {
    fn profile(&self, is_direct: bool, depth: usize) -> io::Result<DeviceProfile> {
        self.allocate()?;
        let write = |at: u64, buffer: &mut [u8]| self.file.write_all_at(buffer, at);
        let read = |at: u64, buffer: &mut [u8]| self.file.read_exact_at(buffer, at);
        let sync = |_: u64, buffer: &mut [u8]| {
            self.buffered.write_all_at(buffer, 0)?;
            self.buffered.sync_data()
        };
        Ok(DeviceProfile {
            is_direct,
            file_bytes: self.bytes,
            depth,
            read: self.times(read)?,
            write: self.times(write)?,
            sync: self.times(sync)?,
            reads_per_second: self.rate(depth, PAGE_BYTES, read)?,
            writes_per_second: self.rate(depth, PAGE_BYTES, write)?,
            read_bytes_per_second: self.rate(SEQUENTIAL_DEPTH, SEQUENTIAL_BYTES, read)? * SEQUENTIAL_BYTES,
            written_bytes_per_second: self.rate(SEQUENTIAL_DEPTH, SEQUENTIAL_BYTES, write)? * SEQUENTIAL_BYTES,
            writeback_pages_per_second: self.writeback()?,
        })
    }

    /// Fills the file, so that later writes need no new blocks.
    fn allocate(&self) -> io::Result<()> {
        let mut buffer = Aligned::new(SEQUENTIAL_BYTES);
        buffer.bytes().fill(0x5a);
        for at in (0..self.bytes).step_by(SEQUENTIAL_BYTES as usize) {
            self.file.write_all_at(buffer.bytes(), at)?;
        }
        self.buffered.sync_all()
    }

    /// Times of requests for random pages, one at a time.
    fn times(&self, request: impl Fn(u64, &mut [u8]) -> io::Result<()>) -> io::Result<DeviceTimes> {
        let mut buffer = Aligned::new(PAGE_BYTES);
        let mut draws = Draws::new(1);
        let (began, mut times) = (self.clock.now(), Vec::new());
        while times.is_empty() || (times.len() < TIMES_MAX && self.clock.now() - began < self.part_ns) {
            let at = draws.below(self.bytes / PAGE_BYTES) * PAGE_BYTES;
            let start = self.clock.now();
            request(at, buffer.bytes())?;
            times.push(self.clock.now() - start);
        }
        DeviceTimes::of(times).ok_or_else(|| io::Error::other("nothing was timed"))
    }

    /// Requests per second with `depth` in flight. Pages are random, larger requests sequential.
    fn rate(
        &self,
        depth: usize,
        bytes: u64,
        request: impl Fn(u64, &mut [u8]) -> io::Result<()> + Copy + Send + Sync,
    ) -> io::Result<u64> {
        let places = self.bytes / bytes;
        let began = self.clock.now();
        let requests = |thread: u64| {
            let mut buffer = Aligned::new(bytes);
            let (mut draws, mut done) = (Draws::new(thread), 0_u64);
            while done == 0 || self.clock.now() - began < self.part_ns {
                let place = match bytes {
                    PAGE_BYTES => draws.below(places),
                    _ => (places * thread / depth as u64 + done) % places,
                };
                request(place * bytes, buffer.bytes())?;
                done += 1;
            }
            io::Result::Ok(done)
        };
        let counts: Vec<io::Result<u64>> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..depth as u64)
                .map(|thread| scope.spawn(move || requests(thread)))
                .collect();
            let panicked = || Err(io::Error::other("a thread that measured has panicked"));
            started
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| panicked()))
                .collect()
        });
        let done = counts.into_iter().sum::<io::Result<u64>>()?;
        Ok(per_second(done, self.clock.now() - began))
    }

    /// Scattered dirty pages per second that a sync writes out.
    fn writeback(&self) -> io::Result<u64> {
        let mut buffer = Aligned::new(PAGE_BYTES);
        let (began, mut pages, mut synced_ns) = (self.clock.now(), 0, 0);
        let mut round = 0;
        while round == 0 || (self.clock.now() - began < self.part_ns && round < SCATTER) {
            buffer.bytes().fill(round as u8);
            for page in (round..self.bytes / PAGE_BYTES).step_by(SCATTER as usize) {
                self.buffered.write_all_at(buffer.bytes(), page * PAGE_BYTES)?;
                pages += 1;
            }
            let start = self.clock.now();
            self.buffered.sync_data()?;
            synced_ns += self.clock.now() - start;
            round += 1;
        }
        Ok(per_second(pages, synced_ns))
    }
}

fn per_second(count: u64, nanos: u64) -> u64 {
    (u128::from(count) * u128::from(SECOND_NS) / u128::from(nanos.max(1))).max(1) as u64
}

/// Bytes at an address that requests around the page cache may use.
struct Aligned {
    room: Vec<u8>,
    from: usize,
    len: usize,
}

impl Aligned {
    fn new(bytes: u64) -> Self {
        let room = vec![0; (bytes + PAGE_BYTES) as usize];
        let from = room.as_ptr().align_offset(PAGE_BYTES as usize).min(PAGE_BYTES as usize);
        Self {
            room,
            from,
            len: bytes as usize,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.room[self.from..self.from + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::time::MonotonicClock;

    #[test]
    fn a_small_file_is_measured_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let bounds = MeasureBounds {
            file_bytes: 4 << 20,
            part_ns: 2_000_000,
            depth: 2,
        };
        let profile = measure(folder.path(), bounds, &MonotonicClock::new()).unwrap();
        assert_eq!(
            (profile.impossible(), profile.depth, profile.file_bytes),
            (None, 2, 4 << 20)
        );
        assert!(profile.read.count > 0 && profile.sync.p50_ns > 0, "{profile:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let found = measure(
            Path::new("/no/such/folder"),
            MeasureBounds::default(),
            &MonotonicClock::new(),
        );
        assert_eq!(found.map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
    }
}
