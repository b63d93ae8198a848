//! What the system does and no safe call asks for: files mapped into memory with a way to
//! write to them that a cut-short file cannot kill, writing out that is only begun, and faults.
//! The one place of this crate with `unsafe`; `write_all_at` and `sync_data` are the safe twins.
//!
//! A store to a mapping whose file was truncated raises SIGBUS and ends the process. So
//! nothing here stores: bytes are staged in memory of our own that is also a file
//! (`memfd`, sealed against shrinking), and the kernel copies them from there into the
//! mapping with one `preadv`, however many places they go to. Where a page is gone the
//! kernel says so, and it is an error like any other.
#![expect(
    unsafe_code,
    reason = "these have no safe form; docs/adr/019 and 074 have what they buy"
)]

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr::{NonNull, null_mut};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::preadv;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Has the system begin to write the changed pages of a file to its medium. Where the medium's
/// queue is full it waits for a place in it, and never for a write to end.
///
/// It promises nothing: whoever needs to know that the medium has them syncs, which then has
/// less to do. So an error is no concern either: the sync meets it, too.
pub(crate) fn begin_writeback(file: &File) {
    // SAFETY: the call takes no address, and the descriptor is open as long as `file` is
    // borrowed. A length of 0 means to the end of the file.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Page faults that this thread has met so far.
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

/// Bytes that are staged at once.
const STAGE: usize = 1 << 16;
/// Places that one call writes to; the system allows 1,024.
const PLACES: usize = 64;

/// A shared mapping of `length` bytes from the start of a file.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone and is not bound to a thread; nothing
// reads or writes through the pointer but the kernel, in `Stage::send`, which takes `&mut`.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives no access to the mapped bytes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes, which the file must have now. in [1, ..)
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

    /// The address of `length` bytes at `offset`, if the mapping has them.
    fn place(&self, offset: u64, length: usize) -> io::Result<*mut u8> {
        let offset = usize::try_from(offset).ok();
        let inside = offset.filter(|at| at.checked_add(length).is_some_and(|end| end <= self.length));
        let offset = inside.ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: `offset + length <= self.length`, so the result is within the mapping.
        Ok(unsafe { self.start.as_ptr().add(offset) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `length` are those of `mmap`, and nothing refers to the
        // mapping beyond this value. An error leaves it mapped, which is only a leak.
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.length) };
    }
}

/// Memory that is a file: what is put into it can be sent into mappings.
#[derive(Debug)]
pub(crate) struct Stage {
    file: File,
    memory: Mapping,
    used: usize,
    places: Vec<(*mut u8, usize)>,
}

// SAFETY: the pointers in `places` are only kept between `put` and `send`, which hold the
// mapping that they point into; they are plain addresses otherwise.
unsafe impl Send for Stage {}

impl Stage {
    pub(crate) fn new() -> io::Result<Self> {
        let file = memfd_create("tsb-rrd-stage", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, STAGE as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let file = File::from(file);
        Ok(Self {
            memory: Mapping::new(&file, STAGE)?,
            file,
            used: 0,
            places: Vec::with_capacity(PLACES),
        })
    }

    /// Writes `bytes` to `offset` of `mapping`, at the latest with [`Stage::send`] on the
    /// same mapping. Of two writes to one place the later wins.
    pub(crate) fn put(&mut self, mapping: &mut Mapping, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.used == STAGE || self.places.len() == PLACES {
                self.send(mapping)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(STAGE - self.used));
            let place = mapping.place(offset, now.len())?;
            // SAFETY: `used + now.len() <= STAGE`, the length of our own mapping, which
            // nobody else has and which its seal keeps from shrinking; `now` is elsewhere.
            unsafe {
                let free = self.memory.start.as_ptr().add(self.used);
                std::ptr::copy_nonoverlapping(now.as_ptr(), free, now.len());
            }
            self.places.push((place, now.len()));
            self.used += now.len();
            offset += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Has the kernel copy what was put into the mapping that it was put for.
    ///
    /// # Errors
    /// Where the file under the mapping has been cut short; some of it may be written.
    pub(crate) fn send(&mut self, mapping: &mut Mapping) -> io::Result<()> {
        let (start, end) = (
            mapping.start.as_ptr(),
            mapping.start.as_ptr().wrapping_add(mapping.length),
        );
        let mut slices: [IoSliceMut<'_>; PLACES] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let count = self.places.len();
        for (slice, &(place, length)) in slices.iter_mut().zip(&self.places) {
            if place < start || place.wrapping_add(length) > end {
                self.forget();
                return Err(io::ErrorKind::InvalidInput.into());
            }
            // SAFETY: within `mapping`, as just seen, which is borrowed mutably for as long
            // as the slices live; two places may overlap, but only the kernel writes, one
            // after the other, and nothing reads through the slices.
            *slice = IoSliceMut::new(unsafe { std::slice::from_raw_parts_mut(place, length) });
        }
        let result = preadv(&self.file, &mut slices[..count], 0);
        let wanted = self.used;
        self.forget();
        match result {
            Ok(copied) if copied == wanted => Ok(()),
            Ok(_) | Err(rustix::io::Errno::FAULT) => {
                let what = "the file was cut short while it was mapped";
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, what))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Drops what was put and not sent.
    pub(crate) fn forget(&mut self) {
        self.used = 0;
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// The same writes through a mapping and by `write_all_at`.
    #[test]
    fn it_writes_what_the_safe_twin_writes() {
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
        let mut stage = Stage::new().unwrap();
        let mut seed = 7_u64;
        for round in 0..300 {
            for _ in 0..=round % 90 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let length = (seed >> 40) as usize % if round % 50 == 0 { 100_000 } else { 40 };
                let offset = (seed >> 20) as usize % (LENGTH - length);
                let bytes = vec![(seed >> 33) as u8; length];
                stage.put(&mut mapping, offset as u64, &bytes).unwrap();
                plain.write_all_at(&bytes, offset as u64).unwrap();
            }
            stage.send(&mut mapping).unwrap();
        }
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert!(read("mapped") == read("plain"));
        let outside = stage.put(&mut mapping, LENGTH as u64 - 3, b"four").unwrap_err();
        assert_eq!(outside.kind(), io::ErrorKind::InvalidInput);
    }

    /// The same writes, synced in one go and written out before.
    #[test]
    fn writing_out_changes_no_byte() {
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
        let mut stage = Stage::new().unwrap();
        file.set_len(4_096).unwrap();
        stage.put(&mut mapping, 100, b"still there").unwrap();
        stage.send(&mut mapping).unwrap();
        stage.put(&mut mapping, 200, b"there").unwrap();
        stage.put(&mut mapping, 12_000, b"gone").unwrap();
        let error = stage.send(&mut mapping).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        stage.put(&mut mapping, 300, b"there").unwrap();
        stage.send(&mut mapping).unwrap();
    }
}
