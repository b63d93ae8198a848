//! The least codec: 16 bytes a sample (id, second, value), for tests of the plumbing.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use super::super::{Address, Intake, IntakeSink, Registry};
use crate::batch::{Batch, BatchBuf};
use crate::series::{SeriesId, SeriesKey};
use crate::time::Timestamp;
use crate::wire::{Decoder, Encoder, Fatal, Malformed, NotAdmitted, Sequence, Sink};

/// Bytes of a record.
pub(super) const RECORD: usize = 16;
/// More names than this are refused.
pub(super) const MAX_SERIES: usize = 1_000;
/// This id is malformed.
pub(super) const BAD: u32 = u32::MAX;
/// This id ends the connection.
pub(super) const WORSE: u32 = u32::MAX - 1;
/// This id begins a record without end.
pub(super) const ENDLESS: u32 = u32::MAX - 2;
/// This id makes the sink panic.
pub(super) const PANIC: u32 = u32::MAX - 3;

pub(super) fn record(id: u32, second: u32, value: f64) -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    bytes[..4].copy_from_slice(&id.to_le_bytes());
    bytes[4..8].copy_from_slice(&second.to_le_bytes());
    bytes[8..].copy_from_slice(&value.to_le_bytes());
    bytes
}

#[derive(Debug)]
pub(super) struct FixedEncoder;

impl Encoder for FixedEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        for (id, at, value) in batch.iter() {
            out.extend_from_slice(&record(id.0, at.as_secs() as u32, value));
        }
    }

    fn skipped(&self) -> u64 {
        0
    }
}

#[derive(Debug, Default)]
pub(super) struct FixedDecoder {
    batch: BatchBuf,
}

impl Decoder for FixedDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        self.batch.clear();
        let mut consumed = 0;
        let mut verdict = Ok(());
        for record in bytes.chunks_exact(RECORD) {
            let id = u32::from_le_bytes(record[..4].try_into().unwrap());
            let second = u32::from_le_bytes(record[4..8].try_into().unwrap());
            let value = f64::from_le_bytes(record[8..].try_into().unwrap());
            match id {
                BAD => sink.malformed(&Malformed {
                    what: "bad id",
                    bytes: record,
                }),
                WORSE => {
                    verdict = Err(Fatal { what: "worse id" });
                    break;
                }
                ENDLESS => break,
                _ => self
                    .batch
                    .push(SeriesId(id), Timestamp::from_secs(i64::from(second)), value),
            }
            consumed += RECORD;
        }
        sink.batch(&self.batch.as_batch());
        verdict.map(|()| consumed)
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        if !rest.is_empty() {
            sink.malformed(&Malformed {
                what: "cut short",
                bytes: rest,
            });
        }
    }
}

/// What arrived, by series, in order of arrival.
pub(super) type Arrived = BTreeMap<u32, Vec<(u32, f64)>>;

/// Where samples go in the tests.
#[derive(Clone, Debug)]
pub(super) struct TestIngest {
    /// Everything that was applied.
    pub(super) arrived: Arc<Mutex<Arrived>>,
    /// Says how many samples each apply brought.
    events: mpsc::SyncSender<usize>,
    /// Locked by a test: nothing is applied.
    pub(super) gate: Arc<Mutex<()>>,
    /// The names of protocols that have some.
    pub(super) registry: Arc<Registry>,
}

impl TestIngest {
    pub(super) fn new() -> (Self, mpsc::Receiver<usize>) {
        let (events, seen) = mpsc::sync_channel(1 << 16);
        let test_ingest = Self {
            arrived: Arc::default(),
            events,
            gate: Arc::default(),
            registry: Arc::new(Registry::new(MAX_SERIES, |_, _| Ok::<(), String>(()))),
        };
        (test_ingest, seen)
    }

    /// An `Ingest` of whatever the decoders that `make` makes understand.
    pub(super) fn ingest<M>(&self, make: M) -> impl Fn(&Address) -> Intake + Send + Sync + use<M>
    where
        M: Fn() -> Box<dyn Decoder> + Send + Sync,
    {
        let test_ingest = Mutex::new(self.clone());
        move |_: &Address| Intake {
            decoder: make(),
            sink: Box::new(FixedSink {
                test_ingest: test_ingest.lock().unwrap().clone(),
                pending: Vec::new(),
            }),
        }
    }
}

#[derive(Debug)]
struct FixedSink {
    test_ingest: TestIngest,
    pending: Vec<(u32, u32, f64)>,
}

impl Sink for FixedSink {
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        self.test_ingest.registry.resolve(key)
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        for (id, at, value) in batch.iter() {
            assert_ne!(id.0, PANIC, "told to");
            self.pending.push((id.0, at.as_secs() as u32, value));
        }
    }

    fn refused(&mut self, _why: NotAdmitted, _samples: usize) {}

    fn unannounced(&mut self, _samples: usize) {}

    fn malformed(&mut self, _problem: &Malformed<'_>) {}
}

impl IntakeSink for FixedSink {
    fn apply(&mut self, _consumed: u64) -> Result<u64, Fatal> {
        let count = self.pending.len();
        let _open = self.test_ingest.gate.lock().unwrap();
        let mut arrived = self.test_ingest.arrived.lock().unwrap();
        for (id, second, value) in self.pending.drain(..) {
            arrived.entry(id).or_default().push((second, value));
        }
        drop(arrived);
        // The test may be over.
        let _ = self.test_ingest.events.send(count);
        Ok(0)
    }
}
