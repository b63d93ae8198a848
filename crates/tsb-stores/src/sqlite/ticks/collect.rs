//! Collects the parts of one series: of the head, the aging generation and the chunks, or the
//! maxima of summaries in place of chunks.
//!
//! Which maxima may stand for samples is only known once all parts are there: a later write may
//! lie in the time of an earlier one. Where it does, the parts of the generations concerned are
//! collected again, without maxima.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::{CachedStatement, Connection, OptionalExtension};

use super::TickShared;
use super::read::Snapshot;
use super::view::{Generation, View, generation_of, key, rank};
use crate::block::{Columns, HOUR, Part, PartData, Steps, Wanted, clusters};
use crate::error::Result;
use crate::sqlite::chunk;
use crate::sqlite::summary::{Summary, last_of};

/// What is asked of one series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// The number of the series.
    pub(super) number: u32,
    pub(super) range: (i64, i64),
    pub(super) wanted: Wanted,
}

impl Asked {
    /// What is wanted of a generation.
    fn of(&self, generation: i64, decoded: &[i64]) -> Wanted {
        if decoded.contains(&generation) {
            Wanted::Samples
        } else {
            self.wanted
        }
    }
}

impl TickShared {
    /// Collects the parts of a series in a range, sorted by start.
    pub(super) fn collect(&self, asked: Asked, snapshot: &mut Snapshot<'_>, parts: &mut Vec<Part>) -> Result<()> {
        // The generations whose samples are needed, although only maxima are asked for.
        let mut decoded = Vec::new();
        loop {
            self.collect_parts(asked, &decoded, snapshot, parts)?;
            let before = decoded.len();
            decoded.extend(overlapped_maxima(parts));
            if decoded.len() == before {
                return Ok(());
            }
        }
    }

    fn collect_parts(
        &self,
        asked: Asked,
        decoded: &[i64],
        snapshot: &mut Snapshot<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        // Read memory first: whatever moves out of it meanwhile is in the snapshot taken
        // afterwards.
        let view = loop {
            let view = self.view()?;
            collect_memory(&view, asked, decoded, parts)?;
            // If the view has changed, the former head may have left memory before it was read:
            // try again.
            if Arc::ptr_eq(&view, &self.view()?) {
                break view;
            }
        };
        let mut generations = view
            .generations
            .iter()
            .filter(|one| one.overlaps(asked.range))
            .peekable();
        if generations.peek().is_some() {
            // Before the snapshot is taken, which then has the table.
            let has_summaries = asked.wanted.maxima().is_some() && self.has_summaries.load(Ordering::Acquire);
            let newest = view.generations.last().map_or(0, |last| last.number);
            let mut reader = ChunkReader::new(self, snapshot.fresh()?, newest, has_summaries)?;
            for generation in generations {
                let maxima = asked.of(generation.number, decoded).maxima();
                if !reader.summarized(generation, asked, maxima, parts)? {
                    reader.chunk(generation.number, asked.number, (asked.range, maxima), parts)?;
                }
            }
        }
        parts.sort_by_key(|part| part.start);
        Ok(())
    }
}

/// Reads chunks and summaries of one series.
struct ChunkReader<'a> {
    shared: &'a TickShared,
    connection: &'a Connection,
    chunks: CachedStatement<'a>,
    has_summaries: bool,
    /// The newest generation that has chunks.
    newest: i64,
    summary: Summary,
    /// The last generation of the summary that was read last.
    last: i64,
}

impl<'a> ChunkReader<'a> {
    fn new(shared: &'a TickShared, connection: &'a Connection, newest: i64, has_summaries: bool) -> Result<Self> {
        let chunks = connection.prepare_cached("SELECT data FROM chunk WHERE key = ?1");
        Ok(Self {
            shared,
            chunks: shared.database.done("read", chunks)?,
            connection,
            has_summaries,
            newest,
            summary: Summary::default(),
            last: -1,
        })
    }

    /// Appends the maxima of a generation from a summary. Returns false, without an effect, if
    /// its chunk must be read: there is no summary, the range ends within the generation, or a
    /// step within an interval.
    fn summarized(
        &mut self,
        generation: &Generation,
        asked: Asked,
        maxima: Option<Steps>,
        into: &mut Vec<Part>,
    ) -> Result<bool> {
        let last = last_of(generation.number);
        let (start, end) = asked.range;
        let may_be = |steps: &Steps| {
            // Intervals are an hour long, and lie within their generation.
            let whole = generation.oldest >= start && generation.newest < end;
            whole && steps.step_ns() >= HOUR && last <= self.newest
        };
        let Some(mut steps) = maxima.filter(may_be) else {
            return Ok(false);
        };
        if last != self.last {
            self.read_summary(last, asked.number)?;
        }
        let Some(intervals) = self.summary.of(generation.number, last) else {
            return Ok(false);
        };
        let before = into.len();
        for interval in intervals {
            if interval.maximum.is_nan() || !steps.same(interval.start, interval.end) {
                into.truncate(before);
                return Ok(false);
            }
            into.push(Part {
                rank: rank(generation.number),
                ..Part::of_maximum(interval.start, interval.end, interval.maximum)
            });
        }
        Ok(true)
    }

    fn read_summary(&mut self, last: i64, number: u32) -> Result<()> {
        self.summary.clear();
        self.last = last;
        if !self.has_summaries {
            return Ok(());
        }
        let (summary, key) = (&mut self.summary, key(last, number));
        let statement = self
            .connection
            .prepare_cached("SELECT data FROM summary WHERE key = ?1");
        let read = statement.and_then(|mut statement| {
            statement.query_row([key], |row| Ok(summary.decode(key, row.get_ref(0)?.as_blob()?)))
        });
        match self.shared.database.done("read", read.optional())? {
            None | Some(Ok(())) => Ok(()),
            Some(Err(what)) => Err(self.shared.database.corrupt(&format!(
                "{what} (summary {key}, series number {number} up to generation {last})"
            ))),
        }
    }

    /// Appends the parts of a chunk in a range; nothing if there is no such chunk.
    fn chunk(
        &mut self,
        generation: i64,
        number: u32,
        (range, maxima): ((i64, i64), Option<Steps>),
        into: &mut Vec<Part>,
    ) -> Result<()> {
        let read = self.chunks.query_row([key(generation, number)], |row| {
            Ok(chunk::take(
                row.get_ref(0)?.as_blob()?,
                range,
                rank(generation),
                maxima,
                into,
            ))
        });
        match self.shared.database.done("read", read.optional())? {
            None | Some(Ok(())) => Ok(()),
            Some(Err(what)) => Err(self.shared.database.corrupt(&format!(
                "{what} (chunk {}, series number {number} of generation {generation})",
                key(generation, number)
            ))),
        }
    }
}

/// Appends the blocks of one chunk that overlap a range; nothing if there is no such chunk.
pub(super) fn take_chunk(
    shared: &TickShared,
    connection: &Connection,
    generation: i64,
    number: u32,
    range: (i64, i64),
    into: &mut Vec<Part>,
) -> Result<()> {
    ChunkReader::new(shared, connection, 0, false)?.chunk(generation, number, (range, None), into)
}

fn collect_memory(view: &View, asked: Asked, decoded: &[i64], parts: &mut Vec<Part>) -> Result<()> {
    parts.clear();
    let head = view.generations.last().map_or(1, |last| last.number + 1);
    view.head
        .take(asked.number, asked.range, asked.of(head, decoded), parts)?;
    raise_ranks(parts, head);
    let overlaps = |number: i64| {
        let generation = view.generations.iter().rfind(|one| one.number == number);
        generation.is_none_or(|generation| generation.overlaps(asked.range))
    };
    if let Some(aging) = view.aging.as_ref().filter(|aging| overlaps(aging.number)) {
        let from = parts.len();
        let wanted = asked.of(aging.number, decoded);
        aging.store.take(asked.number, asked.range, wanted, parts)?;
        raise_ranks(&mut parts[from..], aging.number);
    }
    Ok(())
}

/// Adds the rank of a generation to its parts.
fn raise_ranks(parts: &mut [Part], generation: i64) {
    for part in parts {
        part.rank += rank(generation);
    }
}

/// The generations with a maximum that another part overlaps in time; each may occur more than
/// once. `parts` must be sorted by start.
fn overlapped_maxima(parts: &[Part]) -> impl Iterator<Item = i64> {
    let overlapping = clusters(parts).filter(|cluster| cluster.len() > 1).flatten();
    let maxima = overlapping.filter(|part| matches!(part.data, PartData::Maximum(_)));
    maxima.map(|part| generation_of(part.rank))
}

/// The timestamps of parts within a range, sorted.
pub(super) fn times(parts: &[Part], (start, end): (i64, i64)) -> Vec<i64> {
    let (mut all, mut columns) = (Vec::new(), Columns::default());
    for part in parts {
        match &part.data {
            PartData::Sealed(block, column) => all.extend_from_slice(block.read(*column, &mut columns).0),
            PartData::Open(times, _) => all.extend_from_slice(times),
            PartData::Maximum(_) => {}
        }
    }
    all.retain(|at| (start..end).contains(at));
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether a part holds a sample of this time.
pub(super) fn holds(parts: &[Part], at: i64) -> bool {
    let mut columns = Columns::default();
    parts.iter().any(|part| match &part.data {
        PartData::Sealed(block, column) => block.holds(*column, at, &mut columns),
        PartData::Open(times, _) => times.binary_search(&at).is_ok(),
        PartData::Maximum(_) => false,
    })
}
