//! The emitter's end of a connection, over TCP or a Unix socket.

use std::fmt;
use std::sync::Arc;

use super::address::Address;
use super::error::NetError;
use super::milepost::{Milepost, Mileposts};
use super::options::{EmitOptions, Granted};
use super::parker::{Interrupter, Parker};
use super::target_connection::TargetConnection;
use crate::emit::{Operation, Outcome, Target};
use crate::time::Clock;
use crate::wire::Encoder;

/// A large operation is encoded in pieces of this many samples, each written as soon as it fills
/// the buffer: the bytes of 54,000 text samples would leave the cache before the kernel copied
/// them, and the receiver would see the first sample only after the last was encoded.
const PIECE: usize = 2048;

/// Number of errors kept in a report; all are counted.
const ERRORS_KEPT: usize = 16;

/// Creates an encoder for a connection: a protocol may have to start anew on each.
type MakeEncoder = Box<dyn FnMut() -> Box<dyn Encoder> + Send>;

/// Encodes operations and writes them to a connection, on the thread that calls it.
///
/// The thread must not be a tokio thread. It encodes into one reused buffer, and writes it when it
/// is full or when [`Target::idle`] asks for it. If the socket accepts no more, the thread blocks
/// until it does: this is back-pressure, and shows as lag of the operations behind.
///
/// After a loss the current operation is [`Outcome::Unknown`], later ones are [`Outcome::Shed`];
/// see [`EmitOptions::reconnect_after`].
pub struct StreamTarget {
    address: Address,
    clock: Arc<dyn Clock>,
    options: EmitOptions,
    mileposts: Option<Arc<Mileposts>>,
    make_encoder: MakeEncoder,
    encoder: Box<dyn Encoder>,
    out: Option<TargetConnection>,
    parker: Parker,
    buffer: Vec<u8>,
    /// Samples in the buffer that belong to operations reported as sent.
    buffered_samples: u64,
    /// Samples that the encoders of earlier connections left out.
    skipped_before: u64,
    attempted_at: u64,
    report: TargetReport,
}

/// What a target did: live from [`StreamTarget::report`], final from [`StreamTarget::finish`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TargetReport {
    /// Operations encoded.
    pub operations: u64,
    /// Samples encoded.
    pub samples: u64,
    /// Samples among them that the protocol cannot carry and that were left out.
    pub skipped_samples: u64,
    /// Bytes that the kernel accepted.
    pub written_bytes: u64,
    /// System calls that wrote them.
    pub writes: u64,
    /// Datagrams that the kernel accepted.
    pub datagrams: u64,
    /// Datagrams that one call may carry; 0 in a stream, 1 without segmentation.
    pub segments: u64,
    /// How often the peer's machine reported that no process listens; datagrams sent before are
    /// lost.
    pub refusals: u64,
    /// Time in which the kernel accepted nothing, in nanoseconds: back-pressure.
    pub blocked_ns: u64,
    /// Connections made.
    pub connections: u64,
    /// Operations whose milepost found no room, and which are not timed.
    pub untimed: u64,
    /// Samples of operations reported as sent whose last byte was still in the buffer when the
    /// connection was lost.
    pub unsent_samples: u64,
    /// Samples of operations that were not encoded, for lack of a connection.
    pub shed_samples: u64,
    /// The first 16 errors.
    pub errors: Vec<NetError>,
    /// Number of errors.
    pub n_errors: u64,
    /// How the last connection ended.
    pub closing: Closing,
    /// The socket's buffer sizes.
    pub granted: Granted,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Closing {
    /// It is still open, or there is none.
    #[default]
    Open,
    /// The peer closed after the target did: it has read everything.
    Confirmed,
    /// Over datagrams there is no confirmation.
    Unconfirmed,
    /// The peer did not close within [`EmitOptions::close_timeout`].
    TimedOut,
    /// An [`Interrupter`] ended the wait.
    Interrupted,
    /// The connection was lost.
    Lost,
}

impl TargetReport {
    /// Counts an error, and keeps it if it is among the first.
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
    /// `make_encoder` is called for each connection. With `mileposts`, shared with the listener in
    /// the same process, the listener times the end of each operation; `clock` is the run's clock.
    /// Must not be called on a tokio thread.
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
        let out = TargetConnection::connect(&parker, address, &options, mileposts.as_deref())?;
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

    /// What the target has done so far.
    pub fn report(&self) -> &TargetReport {
        &self.report
    }

    /// A handle that ends a blocked send or finish from another thread.
    pub fn interrupter(&self) -> Interrupter {
        self.parker.interrupter()
    }

    /// Writes what is buffered, shuts down the sending side, and waits until the peer has read
    /// everything and closed in turn.
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
                late: operation.late_ns,
                start,
                encoded: self.clock.now(),
                samples: operation.payload.len() as u32,
                group: operation.slot.group,
                tick: operation.slot.tick,
            };
            self.report.untimed += u64::from(!out.queue(milepost));
        }
    }

    /// Writes the whole buffer. Returns `false` if the connection was lost.
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

    /// Records the loss of the connection and of the samples in the buffer.
    fn lose(&mut self, error: NetError) {
        self.report.keep(error);
        self.report.unsent_samples += self.buffered_samples;
        self.buffered_samples = 0;
        self.buffer.clear();
        self.out = None;
        self.report.closing = Closing::Lost;
    }

    /// Connects again if that is configured and its time has come.
    fn reconnect(&mut self, now: u64) {
        let Some(pause) = self.options.reconnect_after else {
            return;
        };
        if now.saturating_sub(self.attempted_at) < pause.as_nanos() as u64 {
            return;
        }
        let made = TargetConnection::connect(&self.parker, &self.address, &self.options, self.mileposts.as_deref());
        // The pause counts from the end of the attempt: otherwise a refusal that took long would
        // be followed by the next attempt at once.
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
        let start = operation.begun.unwrap_or_else(|| self.clock.now());
        if self.out.is_none() {
            self.reconnect(start);
        }
        let batch = &operation.payload;
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
        // The milepost must be queued before the operation's last byte is sent: the listener looks
        // for it when it has read that byte.
        self.lay_milepost(operation, start);
        if self.is_full() && !self.flush() {
            return Outcome::Unknown;
        }
        // Counted only now: samples of an unknown outcome are not also counted as unsent.
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
