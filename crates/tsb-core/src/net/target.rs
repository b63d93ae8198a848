//! The emitter's end of a connection, over TCP or a Unix socket.

use std::fmt;
use std::sync::Arc;

use super::address::Address;
use super::error::NetError;
use super::milepost::{Milepost, Mileposts};
use super::options::{EmitOptions, Granted};
use super::parker::{Interrupter, Parker};
use super::wire_out::WireOut;
use crate::emit::{Operation, Outcome, Target};
use crate::time::Clock;
use crate::wire::Encoder;

/// A large operation is encoded in pieces of so many samples, each written as soon as it
/// fills the buffer: the bytes of 54,000 samples of text would leave the cache before the
/// kernel copied them, and the receiver would wait for the last before it saw the first.
const PIECE: usize = 2048;

/// Errors kept in a report; all are counted.
const ERRORS_KEPT: usize = 16;

/// Makes an encoder for a connection: a protocol may have to introduce itself anew.
type MakeEncoder = Box<dyn FnMut() -> Box<dyn Encoder> + Send>;

/// Encodes operations and writes them to a connection, on the thread that calls it.
///
/// That thread must not be one of tokio's: it encodes into one buffer, used again and
/// again, and hands it to the kernel when it is full or when [`Target::idle`] says so. If
/// the kernel takes no more, the thread is parked until it does (back-pressure: the
/// operations behind are late, and their lag says so).
///
/// After a loss the operation at hand is [`Outcome::Unknown`], later ones are
/// [`Outcome::Shed`]; see [`EmitOptions::reconnect_after`].
pub struct StreamTarget {
    address: Address,
    clock: Arc<dyn Clock>,
    options: EmitOptions,
    mileposts: Option<Arc<Mileposts>>,
    make_encoder: MakeEncoder,
    encoder: Box<dyn Encoder>,
    out: Option<WireOut>,
    parker: Parker,
    buffer: Vec<u8>,
    /// Samples in the buffer, in operations that were said to be sent.
    buffered_samples: u64,
    /// Samples that the encoders of earlier connections left out.
    skipped_before: u64,
    attempted_at: u64,
    report: TargetReport,
}

/// What a target did; live by [`StreamTarget::report`], final by [`StreamTarget::finish`].
#[derive(Debug, Default)]
pub struct TargetReport {
    /// Operations encoded.
    pub operations: u64,
    /// Samples encoded.
    pub samples: u64,
    /// Samples among them that the protocol cannot carry, and that were left out.
    pub skipped_samples: u64,
    /// Bytes that the kernel took.
    pub written_bytes: u64,
    /// Calls of the kernel that took them.
    pub writes: u64,
    /// Datagrams that it took.
    pub datagrams: u64,
    /// Datagrams that one call may bring; 0 where there are none, 1 without segmentation.
    pub segments: u64,
    /// How often the peer's machine said that nobody listens; what was sent before is lost.
    pub refusals: u64,
    /// Time in which the kernel took nothing, in nanoseconds: back-pressure.
    pub blocked_ns: u64,
    /// Connections made.
    pub connections: u64,
    /// Operations that found no room for their milepost and are not timed.
    pub untimed: u64,
    /// Samples of operations that were said to be sent, but whose last byte never left
    /// the buffer because the connection was lost.
    pub unsent_samples: u64,
    /// Samples of operations that were not even encoded, for want of a connection.
    pub shed_samples: u64,
    /// What went wrong; the first 16.
    pub errors: Vec<NetError>,
    /// How often something went wrong.
    pub n_errors: u64,
    /// How the last connection ended.
    pub closing: Closing,
    /// The socket's buffers.
    pub granted: Granted,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// It is still open, or there is none.
    #[default]
    Open,
    /// The peer closed after we did: it has read everything.
    Confirmed,
    /// Datagrams: nobody can say.
    Unconfirmed,
    /// The peer did not close within [`EmitOptions::close_timeout`].
    TimedOut,
    /// Somebody interrupted the wait.
    Interrupted,
    /// The connection was lost.
    Lost,
}

impl TargetReport {
    /// Keeps an error, if it is one of the first.
    pub(super) fn keep(&mut self, error: NetError) {
        self.n_errors += 1;
        if self.errors.len() < ERRORS_KEPT {
            self.errors.push(error);
        }
    }
}

impl StreamTarget {
    /// Connects to `address`.
    ///
    /// `make_encoder` is called for each connection. With `mileposts`, shared with the
    /// listener in the same process, the end of each operation is timed there; `clock` is
    /// that of the run. Not to be called on a tokio thread.
    ///
    /// # Errors
    /// [`NetError::Connect`], or [`NetError::Start`] when there is no file descriptor to spare.
    pub fn connect(
        address: &Address,
        options: EmitOptions,
        mut make_encoder: impl FnMut() -> Box<dyn Encoder> + Send + 'static,
        clock: Arc<dyn Clock>,
        mileposts: Option<Arc<Mileposts>>,
    ) -> Result<Self, NetError> {
        let parker = Parker::new()?;
        let out = WireOut::connect(&parker, address, &options, mileposts.as_deref())?;
        let report = TargetReport {
            connections: 1,
            granted: out.granted(),
            ..TargetReport::default()
        };
        Ok(Self {
            address: address.clone(),
            attempted_at: clock.now(),
            clock,
            mileposts,
            encoder: make_encoder(),
            make_encoder: Box::new(make_encoder),
            out: Some(out),
            parker,
            buffer: Vec::with_capacity(options.flush_bytes * 2),
            buffered_samples: 0,
            skipped_before: 0,
            options,
            report,
        })
    }

    /// What was done so far.
    pub fn report(&self) -> &TargetReport {
        &self.report
    }

    /// Ends a blocked send or finish from another thread.
    pub fn interrupter(&self) -> Interrupter {
        self.parker.interrupter()
    }

    /// Writes what is buffered, says that nothing more comes, and waits until the peer
    /// has read it all and closed in turn.
    pub fn finish(mut self) -> TargetReport {
        self.flush();
        if let Some(mut out) = self.out.take() {
            let clock = &*self.clock;
            let closed = out.close(&self.parker, clock, self.options.close_timeout);
            self.report.closing = closed.unwrap_or_else(|error| {
                self.report.keep(error);
                Closing::Lost
            });
            if let Some(mileposts) = &self.mileposts {
                mileposts.forget(out.local());
            }
        }
        self.report
    }

    fn is_full(&self) -> bool {
        self.buffer.len() >= self.options.flush_bytes
    }

    fn lay_milepost(&mut self, operation: &Operation<'_>, start: u64) {
        if let Some(out) = self.out.as_mut() {
            let milepost = Milepost {
                from: 0,
                end: out.written() + self.buffer.len() as u64,
                due: operation.due,
                start,
                samples: operation.batch.len() as u32,
                group: operation.slot.group,
                tick: operation.slot.tick,
            };
            self.report.untimed += u64::from(!out.lay(milepost));
        }
    }

    /// Writes the whole buffer. `false`: the connection is lost.
    fn flush(&mut self) -> bool {
        let Some(out) = self.out.as_mut() else {
            return false;
        };
        let written = out.write(
            &self.buffer,
            &self.parker,
            &*self.clock,
            self.options.stall_timeout,
            &mut self.report,
        );
        self.buffer.clear();
        match written {
            Ok(()) => {
                self.buffered_samples = 0;
                true
            }
            Err(error) => {
                self.lose(error);
                false
            }
        }
    }

    /// The connection is gone, and what is buffered with it.
    fn lose(&mut self, error: NetError) {
        self.report.keep(error);
        self.report.unsent_samples += self.buffered_samples;
        self.buffered_samples = 0;
        self.buffer.clear();
        self.out = None;
        self.report.closing = Closing::Lost;
    }

    /// Connects anew if that is wanted and its time has come.
    fn reconnect(&mut self, now: u64) {
        let Some(pause) = self.options.reconnect_after else {
            return;
        };
        if now.saturating_sub(self.attempted_at) < pause.as_nanos() as u64 {
            return;
        }
        let made = WireOut::connect(&self.parker, &self.address, &self.options, self.mileposts.as_deref());
        // Counted from its end: a slow refusal must not be followed by the next at once.
        self.attempted_at = self.clock.now();
        match made {
            Ok(out) => {
                self.skipped_before = self.report.skipped_samples;
                self.encoder = (self.make_encoder)();
                self.report.connections += 1;
                self.report.closing = Closing::Open;
                self.report.granted = out.granted();
                self.out = Some(out);
            }
            Err(error) => self.report.keep(error),
        }
    }
}

impl Target for StreamTarget {
    fn send(&mut self, operation: &Operation<'_>) -> Outcome {
        let start = self.clock.now();
        if self.out.is_none() {
            self.reconnect(start);
        }
        let batch = &operation.batch;
        let samples = batch.len() as u64;
        if self.out.is_none() {
            self.report.shed_samples += samples;
            return Outcome::Shed;
        }
        self.report.operations += 1;
        self.report.samples += samples;
        let mut from = 0;
        while batch.len() - from > PIECE {
            self.encoder.encode(&batch.slice(from..from + PIECE), &mut self.buffer);
            from += PIECE;
            if self.is_full() && !self.flush() {
                return Outcome::Unknown;
            }
        }
        self.encoder.encode(&batch.slice(from..batch.len()), &mut self.buffer);
        self.report.skipped_samples = self.skipped_before + self.encoder.skipped();
        // Before its last byte can leave: whoever reads that looks for the milepost.
        self.lay_milepost(operation, start);
        if self.is_full() && !self.flush() {
            return Outcome::Unknown;
        }
        // Only now: the samples of an unknown outcome are not unsent as well.
        if !self.buffer.is_empty() {
            self.buffered_samples += samples;
        }
        Outcome::Sent
    }

    fn idle(&mut self) {
        if !self.buffer.is_empty() {
            self.flush();
        }
    }
}

impl fmt::Debug for StreamTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamTarget")
            .field("address", &self.address)
            .field("encoder", &self.encoder)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
