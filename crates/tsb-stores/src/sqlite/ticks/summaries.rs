//! Summaries that are being made: keeps the maxima of the generations whose chunks are written,
//! until the last one of a summary is.
//!
//! What was kept is gone when the file is closed: the summary made after that covers only the
//! generations since, and the chunks of those before are read.

use rusqlite::{Connection, params};

use super::view::key;
use crate::sqlite::summary::{Interval, SummaryEncoder, last_of};

const TABLE: &str = "CREATE TABLE summary(key INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT";

/// Upper bound of the kept maxima, in bytes. Where they need more, they are given up.
const MAX_BYTES: usize = 64 << 20;

/// The maxima of the generations that the next summary is for.
#[derive(Debug, Default)]
pub(super) struct KeptMaxima {
    generations: Vec<KeptGeneration>,
    encoder: SummaryEncoder,
    /// Whether the file has the table of summaries.
    pub(super) has_table: bool,
}

/// The maxima of one generation.
#[derive(Debug)]
struct KeptGeneration {
    number: i64,
    /// The number of the first series.
    first: u32,
    /// For each series from the first one on, the end of its intervals.
    ends: Vec<u32>,
    intervals: Vec<Interval>,
}

impl KeptGeneration {
    /// The number of the series after the last one.
    fn next(&self) -> u32 {
        self.first + self.ends.len() as u32
    }

    /// The intervals of a series. `None` if they are not known: a series after the last one had
    /// no samples.
    fn of(&self, series: u32) -> Option<&[Interval]> {
        let place = series.checked_sub(self.first)? as usize;
        let Some(end) = self.ends.get(place) else {
            return Some(&[]);
        };
        let from = if place == 0 { 0 } else { self.ends[place - 1] };
        Some(&self.intervals[from as usize..*end as usize])
    }

    fn bytes(&self) -> usize {
        self.ends.capacity() * size_of::<u32>() + self.intervals.capacity() * size_of::<Interval>()
    }
}

impl KeptMaxima {
    /// Takes the maxima of a series that moves into a chunk: keeps them, or writes a summary if
    /// this is the last generation of one. Series must be given in turn, those without samples
    /// too.
    pub(super) fn take(
        &mut self,
        connection: &Connection,
        generation: i64,
        series: u32,
        intervals: &[Interval],
    ) -> rusqlite::Result<()> {
        if last_of(generation) != generation {
            self.keep(generation, series, intervals);
            return Ok(());
        }
        let has_table = self.has_table;
        let Some(summary) = self.summary(generation, series, intervals) else {
            return Ok(());
        };
        if !has_table {
            connection.execute_batch(TABLE)?;
        }
        let mut insert = connection.prepare_cached("INSERT INTO summary VALUES (?1, ?2)")?;
        insert.execute(params![key(generation, series), summary])?;
        self.has_table = true;
        Ok(())
    }

    fn keep(&mut self, generation: i64, series: u32, intervals: &[Interval]) {
        self.generations
            .retain(|kept| last_of(kept.number) == last_of(generation) && kept.number <= generation);
        let bytes: usize = self.generations.iter().map(KeptGeneration::bytes).sum();
        if bytes > MAX_BYTES {
            self.generations.clear();
        }
        let in_turn = self
            .generations
            .last()
            .is_some_and(|kept| kept.number == generation && kept.next() == series);
        if !in_turn {
            self.generations.retain(|kept| kept.number != generation);
            self.generations.push(KeptGeneration {
                number: generation,
                first: series,
                ends: Vec::new(),
                intervals: Vec::new(),
            });
        }
        if let Some(kept) = self.generations.last_mut() {
            kept.intervals.extend_from_slice(intervals);
            kept.ends.push(kept.intervals.len() as u32);
        }
    }

    /// Encodes the summary of a series whose last generation has these intervals. `None` if it
    /// would be for one generation alone, or cannot be made.
    fn summary(&mut self, generation: i64, series: u32, intervals: &[Interval]) -> Option<&[u8]> {
        let mut known = 0;
        for (kept, number) in self.generations.iter().rev().zip((0..generation).rev()) {
            if kept.number != number || kept.of(series).is_none() {
                break;
            }
            known += 1;
        }
        let from = self.generations.len() - known;
        let kept = self.generations[from..].iter().filter_map(|kept| kept.of(series));
        if known == 0 {
            return None;
        }
        self.encoder
            .encode(key(generation, series), kept.chain(std::iter::once(intervals)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::summary::{SPAN, Summary};

    fn at(generation: i64) -> [Interval; 1] {
        [Interval {
            start: generation * 100,
            end: generation * 100 + 99,
            maximum: generation as f64,
        }]
    }

    /// The generations that a summary is for.
    fn covered(kept: &mut KeptMaxima, generation: i64, series: u32) -> Vec<i64> {
        let mut summary = Summary::default();
        if let Some(bytes) = kept.summary(generation, series, &at(generation)) {
            summary.decode(key(generation, series), bytes).unwrap();
        }
        let is_covered = |number: &i64| summary.of(*number, generation).is_some();
        (generation - SPAN..=generation).filter(is_covered).collect()
    }

    #[test]
    fn a_summary_is_for_the_generations_that_are_known_without_a_gap() {
        let mut kept = KeptMaxima::default();
        for generation in [3, 8, 10, 11, 12, 13, 14] {
            // After opening a file the first series have moved already.
            let first = if generation == 11 { 2 } else { 0 };
            for series in first..4 {
                let intervals = at(generation);
                kept.keep(generation, series, if series == 3 { &[] } else { &intervals });
            }
        }
        assert_eq!(covered(&mut kept, 15, 1), [12, 13, 14, 15]);
        assert_eq!(covered(&mut kept, 15, 2), [10, 11, 12, 13, 14, 15]);
        // A series that is newer than all of these has no samples in them.
        assert_eq!(covered(&mut kept, 15, 9), [10, 11, 12, 13, 14, 15]);
        kept.keep(16, 0, &at(16));
        assert_eq!(covered(&mut kept, 23, 0), [0i64; 0]);
    }

    #[test]
    fn the_maxima_kept_in_memory_are_bounded() {
        let (mut kept, many) = (KeptMaxima::default(), vec![at(1)[0]; 1 << 16]);
        for series in 0..200 {
            kept.keep(1, series, &many);
        }
        let bytes: usize = kept.generations.iter().map(KeptGeneration::bytes).sum();
        assert!(bytes <= MAX_BYTES * 2, "{bytes}");
        assert!(kept.generations[0].of(0).is_none() && kept.generations[0].of(199).is_some());
    }
}
