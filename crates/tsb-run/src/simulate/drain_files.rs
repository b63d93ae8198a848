//! The files of a simulated drain: what waits for each, and which pages a write touches.

use std::collections::VecDeque;

/// Step of the files, in seconds.
const STEP_S: u64 = 300;
/// Steps of a row, and rows, of the archives for each of two consolidation functions.
const ARCHIVES: [(u64, u64); 4] = [(1, 1_440), (6, 1_008), (24, 1_344), (288, 2_500)];
const FUNCTIONS: u64 = 2;
/// Bytes of a row of two values, and of the header before the rows.
const ROW_BYTES: u64 = 16;
const HEADER_BYTES: u64 = 2_912;
const PAGE_BYTES: u64 = 4_096;
const HEADER_PAGE: u16 = 0;
/// Time of the last update before the scenario, in seconds: early in a period of two hours.
const START_S: u64 = STEP_S + 10;

/// A file, and the values that wait for it.
#[derive(Clone, Debug, Default)]
pub(super) struct FileState {
    /// Values that wait.
    pub(super) pending: u32,
    /// When the oldest of them arrived, in nanoseconds.
    pub(super) oldest_ns: u64,
    /// From when on an arriving value makes the file due; `None`: it is not known.
    pub(super) due_ns: Option<u64>,
    pub(super) last_write_ns: u64,
    pub(super) is_queued: bool,
    pub(super) is_being_written: bool,
    /// Values that have been taken for writing.
    taken: u64,
    /// Pages in memory that the disk does not have.
    dirty: Vec<u16>,
    /// Pages in memory, if not all are.
    resident: Option<Vec<u16>>,
}

/// The pages of a write that have to be read: the header's first, since it says which rows follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PagesToRead {
    pub(super) header: u64,
    pub(super) rows: u64,
}

/// All files.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) states: Vec<FileState>,
    /// Seconds from a value of a file to the next.
    data_step_s: u64,
    /// Files with dirty pages, and since when, in order of time.
    dirty_since: VecDeque<(u64, u32)>,
}

impl Files {
    pub(super) fn new(count: usize, data_step_s: u64, is_cold: bool) -> Self {
        let file = FileState {
            resident: is_cold.then(Vec::new),
            ..FileState::default()
        };
        Self {
            states: vec![file; count],
            data_step_s,
            dirty_since: VecDeque::new(),
        }
    }

    /// Opens a file for its first update. Returns whether its header has to be read for that.
    pub(super) fn open(&mut self, index: u32) -> bool {
        let file = self.states.get_mut(index as usize);
        file.is_some_and(|file| file.load(HEADER_PAGE))
    }

    /// Takes `values` of a file for a write at `now`: their pages become dirty. Returns those that
    /// have to be read before.
    pub(super) fn take(&mut self, index: u32, values: u32, now: u64) -> PagesToRead {
        let Some(file) = self.states.get_mut(index as usize) else {
            return PagesToRead::default();
        };
        let step = |value: u64| (START_S + value * self.data_step_s) / STEP_S;
        let (before, after) = (step(file.taken), step(file.taken + u64::from(values)));
        file.taken += u64::from(values);
        if file.dirty.is_empty() {
            self.dirty_since.push_back((now, index));
        }
        let mut read = PagesToRead::default();
        read.header += u64::from(file.touch(HEADER_PAGE));
        let mut archive_at = HEADER_BYTES;
        for function in 0..FUNCTIONS {
            for (steps, rows) in ARCHIVES {
                let ended = (after / steps - before / steps).min(rows);
                // Each file begins at a row of its own.
                let place = u64::from(index) * 2_654_435_761 + function * 97 + steps * 7;
                let first = (place + before / steps) % rows;
                for row in 0..ended {
                    let at = archive_at + (first + row) % rows * ROW_BYTES;
                    read.rows += u64::from(file.touch((at / PAGE_BYTES) as u16));
                }
                archive_at += rows * ROW_BYTES;
            }
        }
        read
    }

    /// Pages of files that have been dirty since `before` or longer, which are clean now, and the
    /// number of those files.
    pub(super) fn clean(&mut self, before: u64) -> (u64, u64) {
        let (mut pages, mut files) = (0, 0);
        while let Some(&(since, index)) = self.dirty_since.front()
            && since <= before
        {
            self.dirty_since.pop_front();
            if let Some(file) = self.states.get_mut(index as usize) {
                pages += file.dirty.len() as u64;
                files += 1;
                file.dirty.clear();
            }
        }
        (pages, files)
    }
}

impl FileState {
    /// Changes a page. Returns whether it has to be read first.
    fn touch(&mut self, page: u16) -> bool {
        if !self.dirty.contains(&page) {
            self.dirty.push(page);
        }
        self.load(page)
    }

    /// Brings a page into memory. Returns whether it has to be read for that.
    fn load(&mut self, page: u16) -> bool {
        match &mut self.resident {
            Some(resident) if !resident.contains(&page) => {
                resident.push(page);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published facts: a write within a step dirties the header's page, one that ends a step
    /// two rows' pages more, and every half hour two more.
    #[test]
    fn pages_of_a_write_are_the_documents() {
        let mut files = Files::new(1, 1, true);
        assert_eq!(files.take(0, 1, 7), PagesToRead { header: 1, rows: 0 });
        assert_eq!(files.clean(6), (0, 0));
        assert_eq!(files.clean(7), (1, 1));
        let mut files = Files::new(3, STEP_S, true);
        assert_eq!(files.take(2, 1, 0), PagesToRead { header: 1, rows: 2 });
        assert_eq!(files.clean(0), (3, 1));
        // Three more values end no half hour; the next does. All rows are on the pages that were read.
        assert_eq!(files.take(2, 3, 1), PagesToRead::default());
        assert_eq!(files.take(2, 1, 2), PagesToRead { header: 0, rows: 2 });
        assert_eq!(files.clean(2), (5, 1));
    }

    #[test]
    fn warm_files_are_not_read_and_long_queues_take_several_pages() {
        let mut files = Files::new(3, STEP_S, false);
        assert_eq!(files.take(2, 600, 0), PagesToRead::default());
        let (pages, _) = files.clean(0);
        // 600 rows of two archives on three or four pages each, 100 of two, 25 and 2 of two.
        assert!((13..=19).contains(&pages), "{pages}");
    }
}
