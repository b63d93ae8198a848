//! The only module with unsafe code: sealing and reading blocks with the widest vector
//! instructions that the processor has, and a memory-mapped page of a file.
//!
//! Sealing and reading are the portable code, compiled a second time with other target features;
//! there are no intrinsics.

#![expect(
    unsafe_code,
    reason = "calls a function compiled for instructions that were detected, and maps a page of a file"
)]

use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::block::{Block, Columns, Extreme, GROUP, Runs, Sealer};

/// Bytes of a [`Page`].
pub(crate) const PAGE: usize = 4096;

/// The first page of a file, mapped so that this process writes to it without a system call.
///
/// A written word is in the file at once, for every reader and after a kill. A power cut may
/// leave any earlier state. If another process truncates the file, or a copy-on-write file system
/// runs out of space, the next [`Page::set`] kills the process with `SIGBUS`.
#[derive(Debug)]
pub(crate) struct Page {
    start: NonNull<AtomicU64>,
}

// SAFETY: the memory is reached through atomics alone, and stays mapped until the value is
// dropped, whichever thread that is.
unsafe impl Send for Page {}
// SAFETY: as above; `set` takes `&self` and is an atomic store.
unsafe impl Sync for Page {}

impl Page {
    /// Maps the first page of a file that is open for reading and writing and holds at least
    /// [`PAGE`] bytes.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() < PAGE as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the system chooses a free address, so the new mapping overlaps no other memory.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )?
        };
        let start = NonNull::new(start.cast::<AtomicU64>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start })
    }

    /// Stores `value` in the word at `index`. The store is atomic: no reader sees a partial word.
    ///
    /// # Panics
    /// If the page has no such word.
    pub(crate) fn set(&self, index: usize, value: u64) {
        assert!(index < PAGE / size_of::<AtomicU64>(), "a word of the page");
        // SAFETY: the mapping begins at a page's boundary, so the word is aligned; the assertion
        // keeps it within; it lives as long as `self`, and everybody uses it as an atomic.
        let word = unsafe { self.start.add(index).as_ref() };
        word.store(value.to_le(), Ordering::Release);
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: start and length are those of `mmap`, and no reference outlives `set`. An error
        // leaves it mapped, which is only a leak.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), PAGE) };
    }
}

#[inline]
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("lzcnt")
}

/// [`Sealer::seal_portable`], compiled for wider vectors if the processor has them.
#[inline]
pub(crate) fn seal(sealer: &mut Sealer, rows: usize, columns: usize, gaps: u8) -> (Block, [f64; GROUP]) {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the function needs exactly the features that were just detected.
        return unsafe { seal_avx2(sealer, rows, columns, gaps) };
    }
    sealer.seal_portable(rows, columns, gaps)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,lzcnt")]
fn seal_avx2(sealer: &mut Sealer, rows: usize, columns: usize, gaps: u8) -> (Block, [f64; GROUP]) {
    sealer.seal_portable(rows, columns, gaps)
}

/// [`Block::read_portable`], compiled for wider vectors if the processor has them.
#[inline]
pub(crate) fn read<'a>(block: &Block, column: usize, out: &'a mut Columns) -> (&'a [i64], &'a [f64]) {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the function needs exactly the features that were just detected.
        return unsafe { read_avx2(block, column, out) };
    }
    block.read_portable(column, out)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,lzcnt")]
fn read_avx2<'a>(block: &Block, column: usize, out: &'a mut Columns) -> (&'a [i64], &'a [f64]) {
    block.read_portable(column, out)
}

/// [`Block::extremes_portable`], compiled for wider vectors if the processor has them.
#[inline]
pub(crate) fn extremes<'a>(
    block: &Block,
    column: usize,
    asked: (Extreme, Runs<'_>),
    out: &'a mut Columns,
) -> &'a [f64] {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the function needs exactly the features that were just detected.
        return unsafe { extremes_avx2(block, column, asked, out) };
    }
    block.extremes_portable(column, asked, out)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,lzcnt")]
fn extremes_avx2<'a>(block: &Block, column: usize, asked: (Extreme, Runs<'_>), out: &'a mut Columns) -> &'a [f64] {
    block.extremes_portable(column, asked, out)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    /// The safe twin: the same words by `write`.
    #[test]
    fn a_page_holds_what_writes_would_have_put_there() {
        let (mut mapped, mut written) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        for file in [&mut mapped, &mut written] {
            file.write_all(&[9; PAGE]).unwrap();
        }
        let page = Page::map(&mapped).unwrap();
        for (index, value) in [(0, 1), (4, u64::MAX), (511, 0x0102_0304_0506_0708), (4, 7)] {
            page.set(index, value);
            written.seek(io::SeekFrom::Start(index as u64 * 8)).unwrap();
            written.write_all(&value.to_le_bytes()).unwrap();
            let contents = [&mut mapped, &mut written].map(|file| {
                let mut bytes = Vec::new();
                file.rewind().unwrap();
                file.read_to_end(&mut bytes).unwrap();
                bytes
            });
            assert_eq!(contents[0], contents[1]);
        }
    }

    #[test]
    fn a_page_has_bounds_and_a_shorter_file_has_none() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0; PAGE - 1]).unwrap();
        assert!(Page::map(&file).is_err());
        file.write_all(&[0]).unwrap();
        let page = Page::map(&file).unwrap();
        let beyond = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| page.set(PAGE / 8, 1)));
        assert!(beyond.is_err());
    }

    /// Both are the same code, but one compiler bug in either would be silent.
    #[test]
    fn the_fast_and_the_portable_twin_agree() {
        let mut sealer = Box::new(Sealer::default());
        let mut random = 7u64;
        for rows in [1usize, 5, 64, 200, 256] {
            for kind in 0..8 {
                for row in 0..rows {
                    random = random
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    sealer.times[row] = row as i64 * 1_000_000_000 + (kind == 3) as i64 * (random >> 60) as i64;
                    sealer.present[row] = if kind == 5 { (random >> 40) as u8 | 1 } else { u8::MAX };
                    for column in 0..GROUP {
                        let noise = (random >> (20 + column)) % 1024;
                        sealer.columns[column][row] = match (kind + column) % 6 {
                            0 => 7.0,
                            1 => noise as f64,
                            2 => (row * 1000) as f64 + noise as f64,
                            3 => noise as f64 / 100.0,
                            4 => f64::from_bits(random),
                            _ => (row / 30) as f64,
                        };
                    }
                }
                let gaps = if kind == 5 { u8::MAX } else { 0 };
                let (portable, maxima) = sealer.seal_portable(rows, GROUP, gaps);
                let (fast, same) = seal(&mut sealer, rows, GROUP, gaps);
                assert_eq!(fast.bytes(), portable.bytes());
                assert_eq!(maxima.map(f64::to_bits), same.map(f64::to_bits));
                let (mut one, mut other) = (Columns::default(), Columns::default());
                let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                for column in 0..GROUP {
                    let (times, values) = read(&fast, column, &mut one);
                    let (same_times, same_values) = fast.read_portable(column, &mut other);
                    assert_eq!((times, bits(values)), (same_times, bits(same_values)));
                    if kind != 5 {
                        let ends = [rows.div_ceil(3) as u16, rows as u16];
                        let runs = Runs {
                            from: 0,
                            ends: if rows == 1 { &ends[1..] } else { &ends },
                        };
                        for extreme in [Extreme::Least, Extreme::Most] {
                            let expected = runs
                                .iter()
                                .map(|run| extreme.of_values(&values[run]))
                                .collect::<Vec<_>>();
                            let mut columns = Columns::default();
                            let found = bits(extremes(&fast, column, (extreme, runs), &mut columns));
                            assert_eq!(found, bits(&expected));
                            assert_eq!(
                                bits(fast.extremes_portable(column, (extreme, runs), &mut columns)),
                                found
                            );
                        }
                    }
                }
            }
        }
    }
}
