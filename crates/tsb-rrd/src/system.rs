//! System calls without a safe wrapper: mapping files, writing into a mapping without the risk of
//! SIGBUS on a truncated file, starting writeback, and counting page faults. The only module of
//! this crate with `unsafe`; `write_all_at` and `sync_data` are the safe counterparts.
//!
//! A store to a mapping whose file was truncated raises SIGBUS and ends the process. So this
//! module never stores to a mapping of an RRD file. Bytes are staged in memory that is also a file (`memfd`,
//! sealed against shrinking), and one `preadv` has the kernel copy them from there into the
//! mapping, to any number of places. If a page no longer exists, the kernel returns an ordinary
//! error.
#![expect(
    unsafe_code,
    reason = "these have no safe form; docs/adr/019 and 074 have what they buy"
)]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr::{NonNull, null_mut};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Asks the system to start writing a file's changed pages to storage. It waits for a place if the
/// device's queue is full, but never for a write to complete.
///
/// It gives no guarantee: a caller that needs one must sync afterwards, which then has less to do.
/// So errors are ignored; the sync will report them.
pub(crate) fn begin_writeback(file: &File) {
    // SAFETY: the call takes no address, and the descriptor is open as long as `file` is
    // borrowed. A length of 0 means to the end of the file.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Number of page faults of this thread so far.
pub(crate) fn faults() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes a `rusage` to where one has room, or nothing; it is made of
    // integers only, for which zeros are good.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    (usage.ru_minflt + usage.ru_majflt) as u64
}

/// Size of the staging buffer in bytes.
const STAGING_BYTES: usize = 1 << 16;
/// Maximum number of places per call; the system allows 1,024.
const PLACES: usize = 64;

/// A shared mapping of `length` bytes from the start of a file.
///
/// IMPORTANT: no reference, shared or exclusive, to a mapped byte may ever exist. Other
/// processes change these bytes at any time, and two places of one write may overlap: both
/// would be undefined behaviour, even for a reference that nothing reads through. So the
/// bytes are only named by raw pointers; those of an RRD file are touched by the kernel alone.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone and is not bound to a thread. The bytes of an RRD
// file are touched by the kernel alone, in `StagedWrites::send`, which holds `&mut`; those of the
// staging buffer also by `StagedWrites::put`, which holds `&mut` as well.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives no access to the mapped bytes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes, which the file must have at this time. in [1, ..)
    pub(crate) fn new(file: &File, length: usize) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the system's choice overlaps nothing.
        let start = unsafe {
            mmap(
                null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )?
        };
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// The place of `length` bytes at `offset`; an error if it is outside the mapping.
    fn place(&self, offset: u64, length: usize) -> io::Result<Place> {
        let offset = usize::try_from(offset).ok();
        let inside = offset.filter(|at| at.checked_add(length).is_some_and(|end| end <= self.length));
        let offset = inside.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Place { offset, length })
    }

    /// The address of a place of this mapping.
    fn address(&self, place: Place) -> *mut u8 {
        debug_assert!(place.offset + place.length <= self.length, "a place of another mapping");
        // SAFETY: `place` has found `offset + length <= self.length`, so the result is within
        // the mapping; `StagedWrites` uses the places of one mapping only.
        unsafe { self.start.as_ptr().add(place.offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `length` are those of `mmap`, and nothing refers to the
        // mapping beyond this value. An error leaves it mapped, which is only a leak.
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.length) };
    }
}

/// A range of one mapping. Only [`Mapping::place`] creates it.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: usize,
    length: usize,
}

/// The staging buffer: memory that is also a file, from which the kernel copies into mappings.
#[derive(Debug)]
pub(crate) struct StagingBuffer {
    file: File,
    memory: Mapping,
    used: usize,
    places: Vec<Place>,
}

impl StagingBuffer {
    pub(crate) fn new() -> io::Result<Self> {
        let file = memfd_create("tsb-rrd-stage", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, STAGING_BYTES as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let file = File::from(file);
        Ok(Self {
            memory: Mapping::new(&file, STAGING_BYTES)?,
            file,
            used: 0,
            places: Vec::with_capacity(PLACES),
        })
    }

    /// Connects the staging buffer with a mapping.
    pub(crate) fn to<'a>(&'a mut self, mapping: &'a mut Mapping) -> StagedWrites<'a> {
        StagedWrites { staging: self, mapping }
    }
}

/// A staging buffer connected with one mapping. Dropping it discards what was not sent.
#[derive(Debug)]
pub(crate) struct StagedWrites<'a> {
    staging: &'a mut StagingBuffer,
    mapping: &'a mut Mapping,
}

impl StagedWrites<'_> {
    /// Stages `bytes` for `offset` of the mapping; they are written by [`StagedWrites::send`] at the
    /// latest. Of two writes to the same place the later wins.
    pub(crate) fn put(&mut self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.staging.used == STAGING_BYTES || self.staging.places.len() == PLACES {
                self.send()?;
            }
            let staging = &mut *self.staging;
            let (now, later) = bytes.split_at(bytes.len().min(STAGING_BYTES - staging.used));
            let place = self.mapping.place(offset, now.len())?;
            // SAFETY: `used + now.len() <= STAGING_BYTES`, the length of our own mapping, which
            // no other code has and which its seal keeps from shrinking; `now` is elsewhere.
            unsafe {
                let free = staging.memory.start.as_ptr().add(staging.used);
                std::ptr::copy_nonoverlapping(now.as_ptr(), free, now.len());
            }
            staging.places.push(place);
            staging.used += now.len();
            offset += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Lets the kernel copy the staged bytes into the mapping.
    ///
    /// # Errors
    /// If the file under the mapping was truncated; some bytes may have been written.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        const NOWHERE: libc::iovec = libc::iovec {
            iov_base: null_mut(),
            iov_len: 0,
        };
        let mut vectors = [NOWHERE; PLACES];
        for (vector, &place) in vectors.iter_mut().zip(&self.staging.places) {
            vector.iov_base = self.mapping.address(place).cast::<c_void>();
            vector.iov_len = place.length;
        }
        let count = self.staging.places.len() as libc::c_int;
        // SAFETY: `count <= PLACES` vectors, each of bytes within the mapping, which is
        // borrowed by this value alone and stays mapped. They are raw: two may overlap, and
        // the kernel fills one after the other. Where the file is shorter than its mapping,
        // the kernel fails with EFAULT and raises no signal.
        let copied = unsafe { libc::preadv(self.staging.file.as_raw_fd(), vectors.as_ptr(), count, 0) };
        let error = (copied < 0).then(io::Error::last_os_error);
        let wanted = self.staging.used;
        self.discard();
        match error {
            None if copied as usize == wanted => Ok(()),
            Some(error) if error.raw_os_error() != Some(libc::EFAULT) => Err(error),
            _ => {
                let what = "the file was cut short while it was mapped";
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, what))
            }
        }
    }

    /// Discards the staged bytes.
    fn discard(&mut self) {
        self.staging.used = 0;
        self.staging.places.clear();
    }
}

impl Drop for StagedWrites<'_> {
    fn drop(&mut self) {
        self.discard();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// The same writes through a mapping and by `write_all_at`.
    #[test]
    fn it_writes_the_bytes_that_write_all_at_writes() {
        const LENGTH: usize = 300_000;
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            let file = File::options().read(true).write(true).create_new(true).open(path);
            let file = file.unwrap();
            file.set_len(LENGTH as u64).unwrap();
            file
        };
        let (mapped, plain) = (file("mapped"), file("plain"));
        let mut mapping = Mapping::new(&mapped, LENGTH).unwrap();
        let mut staging = StagingBuffer::new().unwrap();
        let mut seed = 7_u64;
        for round in 0..300 {
            let mut staged = staging.to(&mut mapping);
            for _ in 0..=round % 90 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let length = (seed >> 40) as usize % if round % 50 == 0 { 100_000 } else { 40 };
                let offset = (seed >> 20) as usize % (LENGTH - length);
                let bytes = vec![(seed >> 33) as u8; length];
                staged.put(offset as u64, &bytes).unwrap();
                plain.write_all_at(&bytes, offset as u64).unwrap();
            }
            staged.send().unwrap();
        }
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert!(read("mapped") == read("plain"));
        let outside = staging.to(&mut mapping).put(LENGTH as u64 - 3, b"four").unwrap_err();
        assert_eq!(outside.kind(), io::ErrorKind::InvalidInput);
    }

    /// A header and a row in it, written again and again before one call sends them all.
    #[test]
    fn of_overlapping_writes_the_later_wins_as_with_write_all_at() {
        const LENGTH: usize = 8_192;
        let (mapped, plain) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        for file in [&mapped, &plain] {
            file.set_len(LENGTH as u64).unwrap();
        }
        let (mut mapping, mut staging) = (Mapping::new(&mapped, LENGTH).unwrap(), StagingBuffer::new().unwrap());
        let mut staged = staging.to(&mut mapping);
        for turn in 0..PLACES as u8 * 3 {
            let (offset, length) = (u64::from(turn % 7) * 40, 90 + usize::from(turn % 5) * 60);
            let bytes = vec![turn + 1; length];
            staged.put(offset, &bytes).unwrap();
            plain.write_all_at(&bytes, offset).unwrap();
        }
        staged.send().unwrap();
        let read = |file: &File| {
            let mut bytes = vec![0; LENGTH];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        assert!(read(&mapped) == read(&plain));
    }

    #[test]
    fn staged_bytes_that_were_not_sent_are_discarded() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4_096).unwrap();
        let (mut mapping, mut staging) = (Mapping::new(&file, 4_096).unwrap(), StagingBuffer::new().unwrap());
        staging.to(&mut mapping).put(0, b"never").unwrap();
        let mut staged = staging.to(&mut mapping);
        staged.put(100, b"sent").unwrap();
        staged.send().unwrap();
        let mut bytes = [0; 104];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes[..100] == [0; 100] && bytes[100..] == *b"sent");
    }

    /// The same writes, synced in one go and written out before.
    #[test]
    fn starting_writeback_changes_no_byte() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, begin: bool| {
            let path = folder.path().join(name);
            let file = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&path)
                .unwrap();
            for page in 0..100_u64 {
                file.write_all_at(&[page as u8; 5_000], page * 7_919).unwrap();
                if begin {
                    begin_writeback(&file);
                }
            }
            file.sync_data().unwrap();
            std::fs::read(path).unwrap()
        };
        assert!(write("begun", true) == write("synced", false));
    }

    #[test]
    fn a_file_that_is_cut_short_is_an_error_and_no_crash() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(20_000).unwrap();
        let mut mapping = Mapping::new(&file, 20_000).unwrap();
        let mut staging = StagingBuffer::new().unwrap();
        file.set_len(4_096).unwrap();
        let mut staged = staging.to(&mut mapping);
        staged.put(100, b"still there").unwrap();
        staged.send().unwrap();
        staged.put(200, b"there").unwrap();
        staged.put(12_000, b"gone").unwrap();
        let error = staged.send().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        staged.put(300, b"there").unwrap();
        staged.send().unwrap();
    }
}
