//! Rows to be written to a file, as runs of equal rows with their offsets.

/// Row writes by archive, each in the order in which they must happen. A long gap fills many rows
/// with one value, so a run stores its row once, however often it is written.
#[derive(Debug, Default)]
pub struct Rows {
    // One entry per archive, up to the last archive with a row.
    archives: Vec<Runs>,
}

/// The row writes of one archive.
#[derive(Debug, Default)]
struct Runs {
    runs: Vec<Run>,
    bytes: Vec<u8>,
}

/// The same row, `count` times in a row.
#[derive(Clone, Copy, Debug)]
struct Run {
    offset: u64,
    start: usize,
    length: usize,
    count: u64,
}

/// Maximum bytes per write of a repeated row.
const CHUNK: usize = 1 << 16;

impl Rows {
    /// Removes all rows and keeps the allocations.
    pub fn clear(&mut self) {
        for archive in &mut self.archives {
            archive.runs.clear();
            archive.bytes.clear();
        }
    }

    /// Whether there are no rows to write.
    pub fn is_empty(&self) -> bool {
        self.archives.iter().all(|archive| archive.runs.is_empty())
    }

    /// Adds a run of `count` equal rows of an archive at `offset`; `bytes` are the parts of the
    /// row.
    pub(crate) fn push<'a>(
        &mut self,
        archive: usize,
        (offset, count): (u64, u64),
        bytes: impl Iterator<Item = &'a [u8]>,
    ) {
        if self.archives.len() <= archive {
            self.archives.resize_with(archive + 1, Runs::default);
        }
        self.archives[archive].push(offset, count, bytes);
    }

    /// Calls `write` with an offset in the file and bytes for each write, in a valid order.
    ///
    /// # Errors
    /// The first error of `write`.
    pub fn write<E>(&self, mut write: impl FnMut(u64, &[u8]) -> Result<(), E>) -> Result<(), E> {
        for Runs { runs, bytes } in &self.archives {
            for run in runs {
                let bytes = &bytes[run.start..run.start + run.length];
                if run.count == 1 {
                    write(run.offset, bytes)?;
                } else {
                    fill(run, bytes, &mut write)?;
                }
            }
        }
        Ok(())
    }
}

impl Runs {
    fn push<'a>(&mut self, offset: u64, count: u64, bytes: impl Iterator<Item = &'a [u8]>) {
        let start = self.bytes.len();
        bytes.for_each(|bytes| self.bytes.extend_from_slice(bytes));
        let length = self.bytes.len() - start;
        // Consecutive rows of one pass are adjacent in the file: combine them into one write.
        if count == 1
            && let Some(last) = self.runs.last_mut()
            && last.count == 1
            && last.offset + last.length as u64 == offset
        {
            last.length += length;
            return;
        }
        self.runs.push(Run {
            offset,
            start,
            length,
            count,
        });
    }
}

fn fill<E>(run: &Run, row: &[u8], write: &mut impl FnMut(u64, &[u8]) -> Result<(), E>) -> Result<(), E> {
    let at_once = (CHUNK / row.len().max(1)).max(1).min(run.count as usize);
    let chunk = row.repeat(at_once);
    let (mut offset, mut left) = (run.offset, run.count);
    while left > 0 {
        let rows = left.min(at_once as u64);
        let length = rows as usize * row.len();
        write(offset, &chunk[..length])?;
        offset += length as u64;
        left -= rows;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_written_together_and_repeats_in_chunks() {
        let mut rows = Rows::default();
        // Two archives take turns, as they do when every step ends a row of both.
        for index in 0..2 {
            rows.push(0, (100 + index * 8, 1), [&b"aaaa"[..], b"bbbb"].into_iter());
            rows.push(1, (900_000 + index * 4, 1), [&b"dddd"[..]].into_iter());
        }
        rows.push(0, (300, 20_000), [&b"cccccccc"[..]].into_iter());
        let mut written = Vec::new();
        rows.write(|offset, bytes| {
            written.push((offset, bytes.len()));
            Ok::<_, ()>(())
        })
        .unwrap();
        assert_eq!(
            written,
            [
                (100, 16),
                (300, 65_536),
                (65_836, 65_536),
                (131_372, 28_928),
                (900_000, 8)
            ]
        );
        rows.clear();
        assert!(rows.is_empty());
    }
}
