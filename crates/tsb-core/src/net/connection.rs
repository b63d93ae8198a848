//! One accepted connection, as its ingest thread handles it: read, decode, apply, answer, close.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use rtrb::Consumer;
use tokio::io::ReadBuf;

use super::address::Address;
use super::answers::Answers;
use super::cpu::Meter;
use super::ingest::{Ingest, Intake, IntakeSink};
use super::milepost::{Arrival, Milepost, Mileposts, Timing};
use super::options::ListenOptions;
use super::piece_size::PieceSize;
use super::read_buffer::{PartialRecord, ReadBuffer};
use super::stats::{Counters, add};
use super::stream::Stream;
use crate::batch::Batch;
use crate::series::{SeriesId, SeriesKey};
use crate::time::Clock;
use crate::wire::{Malformed, Next, NotAdmitted, Peer, Sink};

/// A connection whose next bytes are read this long after the last were applied had a pause. Tokio
/// does not tell: after a short read it asks the system first whether there is more.
const PAUSE_NS: u64 = 1_000_000;

/// State that the threads of a listener share.
pub(super) struct Shared {
    pub(super) options: ListenOptions,
    pub(super) counters: Counters,
    pub(super) ingest: Box<dyn Ingest>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) mileposts: Option<Arc<Mileposts>>,
}

impl Shared {
    /// The shared state of a new listener.
    pub(super) fn new(
        options: ListenOptions,
        ingest: impl Ingest + 'static,
        clock: Arc<dyn Clock>,
        mileposts: Option<Arc<Mileposts>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            options,
            counters: Counters::default(),
            ingest: Box::new(ingest),
            clock,
            mileposts,
        })
    }

    /// Whether the limit of open connections is reached.
    pub(super) fn is_full(&self) -> bool {
        let open = self.counters.open_connections.load(Ordering::Acquire);
        open >= self.options.max_connections.max(1) as u64
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// The peer has closed and everything was read, or the last answer was sent.
    Eof,
    /// The connection broke.
    Broken,
    /// The decoder or the sink has failed.
    Fatal,
    /// A record is longer than the listener allows.
    Overlong,
    /// Nothing was decoded within the idle time-out: the peer sent nothing, or it took no answers and was not
    /// read.
    Idle,
    /// The listener stops.
    Cut,
    /// The decoder or the sink panicked.
    Panicked,
}

/// The listener's end of the connection's mileposts.
enum Claim {
    /// Not claimed yet: before the first byte arrives the emitter may not have laid them.
    Open,
    /// The sender is not in this process, or its operations are not timed.
    None,
    Some(Consumer<Milepost>),
}

/// One connection.
pub(super) struct Connection {
    // `None` once the socket has been taken back from tokio for the drain.
    pub(super) stream: Option<Stream>,
    pub(super) partial: PartialRecord,
    /// When its bytes were last decoded and applied, or when it was opened; on the listener's clock.
    pub(super) read_at: u64,
    pub(super) answers: Answers,
    /// Whether its decoder waits for work on another thread.
    pub(super) is_busy: bool,
    /// Whether it ends once its last answer is written.
    pub(super) is_ending: bool,
    peer: Address,
    waker: Waker,
    intake: Intake,
    claim: Claim,
    /// Number of bytes decoded so far.
    consumed: u64,
    /// When the next bytes to decode were read, or when their decoding began if other bytes of the
    /// same read came before. Used only where operations are timed.
    arrived_at: u64,
    /// Since when its bytes have been decoded and applied without a pause, on the listener's clock.
    busy_from: u64,
    /// When the last samples had been applied, on the same clock.
    applied_at: u64,
    piece_size: PieceSize,
}

impl Connection {
    pub(super) fn new(stream: Stream, peer: Address, waker: Waker, shared: &Shared) -> Self {
        let mut intake = shared.ingest.connect(&peer);
        intake.decoder.wake_with(&waker);
        Self {
            stream: Some(stream),
            is_busy: false,
            is_ending: false,
            partial: PartialRecord::default(),
            read_at: shared.clock.now(),
            answers: Answers::default(),
            intake,
            peer,
            waker,
            claim: Claim::Open,
            consumed: 0,
            arrived_at: 0,
            busy_from: 0,
            applied_at: 0,
            piece_size: PieceSize::new(),
        }
    }

    /// Reads into the buffer. `Ok(false)`: there is nothing to read now, and the waker is armed.
    pub(super) fn read(&mut self, read_buffer: &mut ReadBuffer, shared: &Shared) -> Result<bool, ConnectionEnd> {
        let Some(stream) = self.stream.as_mut() else {
            return Err(ConnectionEnd::Broken);
        };
        let room = read_buffer.room(shared.options.max_record_bytes);
        let mut buffer = ReadBuf::new(room.ok_or(ConnectionEnd::Overlong)?);
        let mut context = Context::from_waker(&self.waker);
        match stream.poll_read(&mut context, &mut buffer) {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(_)) => Err(ConnectionEnd::Broken),
            Poll::Ready(Ok(())) => match buffer.filled().len() {
                0 => Err(ConnectionEnd::Eof),
                count => {
                    read_buffer.filled(count);
                    self.arrived(count, shared);
                    Ok(true)
                }
            },
        }
    }

    /// Counts bytes that were just read, and records the time.
    pub(super) fn arrived(&mut self, count: usize, shared: &Shared) {
        add(&shared.counters.bytes, count as u64);
        if shared.mileposts.is_some() {
            self.arrived_at = shared.clock.now();
        }
    }

    /// Decodes the bytes that were read, applies the samples, and answers.
    pub(super) fn decode_and_apply(
        &mut self,
        read_buffer: &mut ReadBuffer,
        shared: &Shared,
        timing: &Mutex<Timing>,
        meter: &mut Meter,
    ) -> Result<(), ConnectionEnd> {
        // The decoder found no complete record in fewer bytes than this.
        let mut least = 0;
        loop {
            let unread = read_buffer.unread();
            let all = unread.len();
            let taken = match self.claim {
                Claim::Some(_) => self.piece_size.next(all, least),
                Claim::Open | Claim::None => all,
            };
            let mut sink = CountingSink::new(&mut *self.intake.sink, &shared.counters, meter);
            let decoded = self.intake.decoder.decode(&unread[..taken], &mut sink);
            sink.publish();
            let count = *decoded.as_ref().unwrap_or(&0);
            read_buffer.consume(count);
            self.consumed += count as u64;
            least = if count == 0 { taken * 2 } else { 0 };
            let rejected = self.apply(shared, timing)?;
            // The delivery of the remaining bytes ends now. The size offered counts and not the
            // size decoded: the last record of a piece is seldom complete, and pieces would never
            // grow.
            if count > 0 {
                self.piece_size
                    .took(taken, self.read_at.saturating_sub(self.arrived_at));
            }
            self.arrived_at = self.read_at;
            let next = self.answer(rejected);
            self.write_answers(shared);
            decoded.map_err(|_| ConnectionEnd::Fatal)?;
            match next {
                Next::More if taken == all => return Ok(()),
                Next::Over => {
                    self.is_ending = true;
                    return self.ended();
                }
                Next::Later => {
                    self.is_busy = true;
                    return Ok(());
                }
                Next::More | Next::Again => {}
            }
            if self.answers.are_held() {
                return Ok(());
            }
        }
    }

    /// The end of a connection whose last answer is written.
    pub(super) fn ended(&self) -> Result<(), ConnectionEnd> {
        if self.answers.waiting() > 0 {
            return Ok(());
        }
        Err(ConnectionEnd::Eof)
    }

    fn answer(&mut self, rejected: u64) -> Next {
        let peer = Peer {
            rejected,
            is_listening: self.answers.are_taken(),
        };
        self.intake.decoder.answer(peer, self.answers.room())
    }

    /// Writes the waiting answers, as far as the peer accepts them.
    pub(super) fn write_answers(&mut self, shared: &Shared) {
        if let Some(stream) = &mut self.stream {
            let mut context = Context::from_waker(&self.waker);
            let count = self.answers.write(stream, &mut context);
            add(&shared.counters.answer_bytes, count as u64);
            if count > 0 && self.answers.waiting() == 0 {
                self.intake.decoder.answers_taken();
            }
        }
    }

    fn apply(&mut self, shared: &Shared, timing: &Mutex<Timing>) -> Result<u64, ConnectionEnd> {
        let applied = self.intake.sink.apply(self.consumed);
        let now = shared.clock.now();
        self.read_at = now;
        let rejected = applied.map_err(|_| ConnectionEnd::Fatal)?;
        if let Claim::Open = self.claim {
            let claimed = shared.mileposts.as_ref().and_then(|all| all.claim(&self.peer));
            self.claim = claimed.map_or(Claim::None, Claim::Some);
        }
        if let Claim::Some(mileposts) = &mut self.claim {
            let mut timing = timing.lock().unwrap_or_else(PoisonError::into_inner);
            let arrival = Arrival {
                busy_from: self.busy_from,
                busy_until: self.applied_at,
                read: self.arrived_at,
            };
            timing.pass(mileposts, self.consumed, arrival, now);
        }
        if self.arrived_at.saturating_sub(self.applied_at) > PAUSE_NS {
            self.busy_from = self.arrived_at;
        }
        self.applied_at = now;
        Ok(rejected)
    }

    /// Ends a connection whose unread bytes are in the buffer.
    pub(super) fn end(
        mut self,
        end: ConnectionEnd,
        read_buffer: &mut ReadBuffer,
        shared: &Shared,
        timing: &Mutex<Timing>,
        meter: &mut Meter,
    ) {
        let counters = &shared.counters;
        let end = match end {
            ConnectionEnd::Eof | ConnectionEnd::Broken | ConnectionEnd::Idle | ConnectionEnd::Cut => {
                self.finish(end, read_buffer, shared, timing, meter)
            }
            ConnectionEnd::Overlong => {
                let problem = Malformed {
                    what: "record longer than the listener's limit",
                    bytes: read_buffer.unread(),
                };
                add(&counters.malformed, 1);
                counters.malformed(&problem);
                end
            }
            ConnectionEnd::Fatal | ConnectionEnd::Panicked => end,
        };
        add(&counters.undecoded_bytes, read_buffer.unread().len() as u64);
        add(&counters.untaken_answer_bytes, self.answers.waiting() as u64);
        read_buffer.clear();
        if let Some(sequence) = self.intake.decoder.sequence() {
            add(&counters.missing_frames, sequence.missing);
            add(&counters.repeated_frames, sequence.repeated);
        }
        if let Claim::Some(mileposts) = &mut self.claim {
            timing.lock().unwrap_or_else(PoisonError::into_inner).abandon(mileposts);
        }
        let counter = match end {
            ConnectionEnd::Eof => None,
            ConnectionEnd::Broken => Some(&counters.broken_connections),
            ConnectionEnd::Fatal => Some(&counters.fatal_closes),
            ConnectionEnd::Overlong => Some(&counters.overlong_closes),
            ConnectionEnd::Idle => Some(&counters.idle_closes),
            ConnectionEnd::Cut => Some(&counters.cut_connections),
            ConnectionEnd::Panicked => Some(&counters.panicked_connections),
        };
        if let Some(counter) = counter {
            add(counter, 1);
        }
        // Counted down before the socket closes, so that a peer that has seen the close finds a
        // free slot.
        counters.open_connections.fetch_sub(1, Ordering::AcqRel);
    }

    /// Tells the decoder that the input has ended, and applies the last samples.
    fn finish(
        &mut self,
        end: ConnectionEnd,
        read_buffer: &ReadBuffer,
        shared: &Shared,
        timing: &Mutex<Timing>,
        meter: &mut Meter,
    ) -> ConnectionEnd {
        let mut sink = CountingSink::new(&mut *self.intake.sink, &shared.counters, meter);
        self.intake.decoder.finish(read_buffer.unread(), &mut sink);
        sink.publish();
        match self.apply(shared, timing) {
            Ok(rejected) => {
                self.answer(rejected);
                self.write_answers(shared);
                end
            }
            Err(worse) => worse,
        }
    }
}

/// Counts the samples passed to a sink, and measures their CPU time in a measured turn. The counts
/// are published once per read.
pub(super) struct CountingSink<'a> {
    inner: &'a mut dyn IntakeSink,
    counters: &'a Counters,
    meter: Option<&'a mut Meter>,
    samples: u64,
    // By reason, in the order of `NotAdmitted::ALL`.
    refused: [u64; NotAdmitted::ALL.len()],
    unannounced: u64,
    malformed: u64,
}

impl<'a> CountingSink<'a> {
    pub(super) fn new(inner: &'a mut dyn IntakeSink, counters: &'a Counters, meter: &'a mut Meter) -> Self {
        Self {
            inner,
            counters,
            meter: meter.when_on(),
            samples: 0,
            refused: [0; NotAdmitted::ALL.len()],
            unannounced: 0,
            malformed: 0,
        }
    }

    pub(super) fn publish(self) {
        add(&self.counters.samples, self.samples);
        if self.refused != [0; NotAdmitted::ALL.len()] {
            self.counters.refused(self.refused);
        }
        if self.unannounced > 0 {
            add(&self.counters.unannounced, self.unannounced);
        }
        if self.malformed > 0 {
            add(&self.counters.malformed, self.malformed);
        }
    }
}

impl Sink for CountingSink<'_> {
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        self.inner.series(key)
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        self.samples += batch.len() as u64;
        let Some(meter) = &mut self.meter else {
            return self.inner.batch(batch);
        };
        meter.applying();
        self.inner.batch(batch);
        meter.applied();
    }

    fn refused(&mut self, why: NotAdmitted, samples: usize) {
        self.refused[why as usize] += samples as u64;
        self.inner.refused(why, samples);
    }

    fn unannounced(&mut self, samples: usize) {
        self.unannounced += samples as u64;
        self.inner.unannounced(samples);
    }

    fn malformed(&mut self, problem: &Malformed<'_>) {
        self.malformed += 1;
        self.counters.malformed(problem);
        self.inner.malformed(problem);
    }
}
