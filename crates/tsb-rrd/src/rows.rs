//! Rows on their way to a file: where each run of them goes, and what it holds.

/// Row writes, archive by archive, each in the order in which they have to happen. A long
/// gap fills many rows with one value, so a run holds its row once, however often it is
/// written.
#[derive(Debug, Default)]
pub struct Rows {
    // One for each archive up to the last that got a row.
    archives: Vec<Runs>,
}

/// The rows of one archive.
#[derive(Debug, Default)]
struct Runs {
    runs: Vec<Run>,
    bytes: Vec<u8>,
}

/// `count` times the same bytes, side by side.
#[derive(Clone, Copy, Debug)]
struct Run {
    offset: u64,
    start: usize,
    length: usize,
    count: u64,
}

/// The most bytes of a repeated row that are written at once.
const CHUNK: usize = 1 << 16;

impl Rows {
    /// Forgets the rows, keeps the room.
    pub fn clear(&mut self) {
        for archive in &mut self.archives {
            archive.runs.clear();
            archive.bytes.clear();
        }
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.archives.iter().all(|archive| archive.runs.is_empty())
    }

    /// Starts a run of `count` equal rows of an archive at `offset`, which `bytes` make.
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

    /// Every write, in an order that is right: an offset in the file and bytes.
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
        // Row after row of one pass lie side by side: make one write of them.
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
