//! Reads and decodes the log on a thread of its own, while earlier frames are applied.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rusqlite::params;
use tsb_core::Batch;

use crate::error::{Error, Result};
use crate::sqlite::file::Database;
use crate::sqlite::log::{DecodedBatch, FrameDecoder};
use crate::sqlite::ticks::generations::frame_bytes;

/// Samples per handover, or slightly more: two MiB of values. Each handover may wake a thread,
/// which costs up to 100 us on a virtual machine.
const HANDOVER_SAMPLES: usize = 1 << 18;
/// Maximum number of handovers waiting.
const HANDOVERS: usize = 2;

/// The state at the end of the log.
#[derive(Debug)]
pub(super) struct LogEnd {
    /// The key of the next frame.
    pub(super) seq: i64,
    /// Bytes of the frames.
    pub(super) bytes: u64,
    /// Holds the last value of each series.
    pub(super) decoder: FrameDecoder,
}

/// Applies the frames with keys in `seqs`, batch by batch. A missing frame between two others is
/// an error. Series numbers must be below `series`.
pub(super) fn for_each_batch(
    database: &Database,
    seqs: Range<i64>,
    series: u32,
    mut apply: impl FnMut(&Batch<'_>) -> Result<()>,
) -> Result<LogEnd> {
    let (full, filled) = sync_channel(HANDOVERS);
    // Those waiting, one on each side of them.
    let (empty, emptied) = sync_channel(HANDOVERS + 2);
    let reader = LogReader {
        database,
        series,
        full,
        emptied,
        batches: Vec::new(),
        samples: 0,
        spare: Vec::new(),
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("tsb-sqlite-replay".to_owned());
        let reading = thread
            .spawn_scoped(scope, || reader.run(seqs))
            .map_err(|error| Error::Backend {
                action: "start the thread that reads the log".to_owned(),
                source: error.into(),
            })?;
        apply_all(filled, &empty, &mut apply)?;
        reading.join().unwrap_or_else(|_| {
            Err(Error::Poisoned {
                cause: "the thread that reads the log panicked".to_owned(),
            })
        })
    })
}

fn apply_all(
    filled: Receiver<Vec<DecodedBatch>>,
    empty: &SyncSender<Vec<DecodedBatch>>,
    apply: &mut impl FnMut(&Batch<'_>) -> Result<()>,
) -> Result<()> {
    for batches in filled {
        batches.iter().try_for_each(|batch| apply(&batch.batch()))?;
        // The reader may have ended, or have enough of them.
        let _ = empty.try_send(batches);
    }
    Ok(())
}

/// The reading thread.
struct LogReader<'a> {
    database: &'a Database,
    series: u32,
    full: SyncSender<Vec<DecodedBatch>>,
    emptied: Receiver<Vec<DecodedBatch>>,
    batches: Vec<DecodedBatch>,
    samples: usize,
    spare: Vec<DecodedBatch>,
}

impl LogReader<'_> {
    fn run(mut self, seqs: Range<i64>) -> Result<LogEnd> {
        let database = self.database;
        let mut end = LogEnd {
            seq: seqs.start,
            bytes: 0,
            decoder: FrameDecoder::default(),
        };
        let connection = database.reader()?;
        let sql = "SELECT seq, frame FROM tick WHERE seq >= ?1 AND seq < ?2 ORDER BY seq";
        let mut statement = database.done("read the log of", connection.prepare(sql))?;
        let mut rows = database.done("read the log of", statement.query(params![seqs.start, seqs.end]))?;
        while let Some(row) = database.done("read the log of", rows.next())? {
            let fields = row
                .get::<_, i64>(0)
                .and_then(|seq| Ok((seq, row.get_ref(1)?.as_blob()?)));
            let (seq, frame) = database.done("read the log of", fields)?;
            if seq != end.seq {
                return Err(database.corrupt(&format!("frame {} of the log is missing", end.seq)));
            }
            end.seq += 1;
            end.bytes += frame_bytes(frame.len());
            let decoded = end.decoder.frame(frame, self.series, |batch| self.take(batch));
            decoded.map_err(|what| database.corrupt(&format!("{what} (frame {seq} of the log)")))?;
        }
        self.hand_over();
        Ok(end)
    }

    fn take(&mut self, batch: &mut DecodedBatch) {
        let other = self.spare.pop().unwrap_or_default();
        self.samples += batch.len();
        self.batches.push(std::mem::replace(batch, other));
        if self.samples >= HANDOVER_SAMPLES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let next = self.emptied.try_recv().unwrap_or_default();
        self.spare.extend(next);
        self.samples = 0;
        // If the receiver is gone, it has met an error and reports it.
        let _ = self.full.send(std::mem::take(&mut self.batches));
    }
}
