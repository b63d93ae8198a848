//! Reads and decodes the log on a thread of its own, while earlier frames are applied.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rusqlite::params;
use tsb_core::Batch;

use crate::error::{Error, Result};
use crate::sqlite::file::Database;
use crate::sqlite::log::{Decoder, Piece};
use crate::sqlite::ticks::generations::frame_bytes;

/// Samples per handover, or slightly more: two MiB of values. Each handover may wake a thread,
/// which costs up to 100 us on a virtual machine.
const PARCEL: usize = 1 << 18;
/// Maximum number of parcels waiting.
const DEPTH: usize = 2;

/// The state at the end of the log.
#[derive(Debug)]
pub(super) struct Read {
    /// The key of the next frame.
    pub(super) seq: i64,
    /// Bytes of the frames.
    pub(super) bytes: u64,
    /// Holds the last value of each series.
    pub(super) decoder: Decoder,
}

/// Applies the frames with keys in `seqs`, batch by batch. A missing frame between two others is
/// an error. Series numbers must be below `series`.
pub(super) fn each(
    database: &Database,
    seqs: Range<i64>,
    series: u32,
    mut apply: impl FnMut(&Batch<'_>) -> Result<()>,
) -> Result<Read> {
    let (full, filled) = sync_channel(DEPTH);
    // Those waiting, one on each side of them.
    let (empty, emptied) = sync_channel(DEPTH + 2);
    let reader = Reader {
        database,
        series,
        full,
        emptied,
        parcel: Vec::new(),
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
    filled: Receiver<Vec<Piece>>,
    empty: &SyncSender<Vec<Piece>>,
    apply: &mut impl FnMut(&Batch<'_>) -> Result<()>,
) -> Result<()> {
    for parcel in filled {
        parcel.iter().try_for_each(|piece| apply(&piece.batch()))?;
        // The reader may have ended, or have enough of them.
        let _ = empty.try_send(parcel);
    }
    Ok(())
}

/// The reading thread.
struct Reader<'a> {
    database: &'a Database,
    series: u32,
    full: SyncSender<Vec<Piece>>,
    emptied: Receiver<Vec<Piece>>,
    parcel: Vec<Piece>,
    samples: usize,
    spare: Vec<Piece>,
}

impl Reader<'_> {
    fn run(mut self, seqs: Range<i64>) -> Result<Read> {
        let database = self.database;
        let mut read = Read {
            seq: seqs.start,
            bytes: 0,
            decoder: Decoder::default(),
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
            if seq != read.seq {
                return Err(database.corrupt(&format!("frame {} of the log is missing", read.seq)));
            }
            read.seq += 1;
            read.bytes += frame_bytes(frame.len());
            let decoded = read.decoder.frame(frame, self.series, |piece| self.take(piece));
            decoded.map_err(|what| database.corrupt(&format!("{what} (frame {seq} of the log)")))?;
        }
        self.hand_over();
        Ok(read)
    }

    fn take(&mut self, piece: &mut Piece) {
        let other = self.spare.pop().unwrap_or_default();
        self.samples += piece.len();
        self.parcel.push(std::mem::replace(piece, other));
        if self.samples >= PARCEL {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let next = self.emptied.try_recv().unwrap_or_default();
        self.spare.extend(next);
        self.samples = 0;
        // If the receiver is gone, it has met an error and reports it.
        let _ = self.full.send(std::mem::take(&mut self.parcel));
    }
}
