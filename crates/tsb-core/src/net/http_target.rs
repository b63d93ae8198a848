//! The emitter's end of an HTTP interface: one request per operation, on a persistent connection.

use std::fmt;
use std::sync::Arc;

use super::address::Address;
use super::error::NetError;
use super::http_exchange::{AnswerBytes, Deadline, RequestEncoder, outcome};
use super::options::EmitOptions;
use super::parker::{Interrupter, Parker};
use super::target::{Closing, TargetReport};
use super::target_connection::TargetConnection;
use crate::emit::{Operation, Outcome, Target};
use crate::time::Clock;
use crate::wire::Encoder;
use crate::wire::http::{Answer, Client};

/// Sends each operation as one request and waits for its answer, on the calling thread, which must
/// not be a tokio thread.
///
/// The status decides the outcome: accepted, rejected in part or as a whole, or unknown when no
/// answer came or it does not say which samples were accepted. If the server closes the connection
/// after an answer, the next operation connects again. After a loss this happens only with
/// [`EmitOptions::reconnect_after`], and operations due before that are shed.
pub struct HttpTarget {
    address: Address,
    clock: Arc<dyn Clock>,
    options: EmitOptions,
    client: Client,
    encoder: RequestEncoder,
    parker: Parker,
    out: Option<TargetConnection>,
    /// Whether the connection was lost, as opposed to closed by the server after an answer.
    is_lost: bool,
    attempted_at: u64,
    /// The current request.
    request: Vec<u8>,
    answer: AnswerBytes,
    report: TargetReport,
}

impl HttpTarget {
    /// Connects to `address`, and sends the request that the protocol needs before the first
    /// write. Must not be called on a tokio thread.
    ///
    /// # Errors
    /// [`NetError::Connect`], [`NetError::Start`] when there is no file descriptor to spare,
    /// or [`NetError::Answered`] when the server does not agree.
    pub fn connect(
        address: &Address,
        options: EmitOptions,
        client: Client,
        encoder: Box<dyn Encoder>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, NetError> {
        let parker = Parker::new()?;
        let out = TargetConnection::connect(&parker, address, &options, None)?;
        let report = TargetReport {
            connections: 1,
            granted: out.granted(),
            ..TargetReport::default()
        };
        let mut new = Self {
            address: address.clone(),
            attempted_at: clock.now(),
            clock,
            options,
            encoder: RequestEncoder::new(&client, encoder),
            parker,
            out: Some(out),
            is_lost: false,
            request: Vec::new(),
            answer: AnswerBytes::default(),
            report,
            client,
        };
        if let Some(prelude) = new.client.prelude() {
            new.request.extend_from_slice(prelude.as_bytes());
            let out = new.connection()?;
            let answer = new.exchange(out)?;
            if !(200..300).contains(&answer.status) {
                return Err(new.answered(answer.summary()));
            }
        }
        Ok(new)
    }

    /// What the target has done so far.
    pub fn report(&self) -> &TargetReport {
        &self.report
    }

    /// A handle that ends a blocked send from another thread.
    pub fn interrupter(&self) -> Interrupter {
        self.parker.interrupter()
    }

    /// Closes the connection. Every request has been answered by now.
    pub fn finish(mut self) -> TargetReport {
        if let Some(mut out) = self.out.take() {
            let closed = out.close(&self.parker, &*self.clock, self.options.close_timeout);
            self.report.closing = closed.unwrap_or(Closing::Lost);
        }
        self.report
    }

    fn answered(&self, what: String) -> NetError {
        let address = self.address.clone();
        NetError::Answered { address, what }
    }

    /// Writes the request and reads its answer. Any error ends the connection.
    fn exchange(&mut self, mut out: TargetConnection) -> Result<Answer, NetError> {
        let deadline = Deadline::new(&self.options, &*self.clock);
        let left = deadline.left(&*self.clock, &self.address)?;
        out.write(&self.request, &self.parker, &*self.clock, left, &mut self.report)?;
        self.answer.clear();
        loop {
            if let Some(answer) = self.answer.complete().map_err(|what| self.answered(what))? {
                self.out = answer.keeps_alive.then_some(out);
                return Ok(answer);
            }
            if self.parker.is_interrupted() {
                let address = self.address.clone();
                return Err(NetError::Interrupted { address });
            }
            let left = deadline.left(&*self.clock, &self.address)?;
            let read = out.read(&self.parker, left, self.answer.buffer());
            if read.map_err(|error| deadline.unanswered(error))? == 0 {
                return Err(self.answered("nothing, it closed the connection".to_owned()));
            }
        }
    }

    /// Takes the connection, or makes a new one.
    fn connection(&mut self) -> Result<TargetConnection, NetError> {
        self.out.take().map_or_else(|| self.reconnect(), Ok)
    }

    fn reconnect(&mut self) -> Result<TargetConnection, NetError> {
        let made = TargetConnection::connect(&self.parker, &self.address, &self.options, None);
        // The pause counts from the end of the attempt: otherwise a refusal that took long would
        // be followed by the next attempt at once.
        self.attempted_at = self.clock.now();
        let out = made?;
        self.report.connections += 1;
        self.report.granted = out.granted();
        self.is_lost = false;
        self.report.closing = Closing::Open;
        Ok(out)
    }

    /// Notes that there is no connection any more.
    fn lose(&mut self, error: NetError) {
        self.report.keep(error);
        self.report.closing = Closing::Lost;
        self.is_lost = true;
    }

    /// Whether there is a connection, or a new one may be attempted.
    fn can_send(&self) -> bool {
        let Some(pause) = self.options.reconnect_after else {
            return !self.is_lost;
        };
        !self.is_lost || self.clock.now().saturating_sub(self.attempted_at) >= pause.as_nanos() as u64
    }

    /// The outcome of an answered request of `samples` samples, of which `left_out` were not sent.
    fn outcome(&mut self, answer: &Answer, samples: u64, left_out: u64) -> Outcome {
        let (outcome, is_as_asked) = outcome(&self.client, answer, samples, left_out);
        if !is_as_asked {
            let error = self.answered(answer.summary());
            self.report.keep(error);
        }
        outcome
    }
}

impl Target for HttpTarget {
    fn send(&mut self, operation: &Operation<'_>) -> Outcome {
        let samples = operation.payload.len() as u64;
        if !self.can_send() {
            self.report.shed_samples += samples;
            return Outcome::Shed;
        }
        let out = match self.connection() {
            Ok(out) => out,
            Err(error) => {
                // Nothing was sent.
                self.lose(error);
                self.report.shed_samples += samples;
                return Outcome::Shed;
            }
        };
        self.report.operations += 1;
        self.report.samples += samples;
        let left_out = self.encoder.encode(&self.client, &operation.payload, &mut self.request);
        self.report.skipped_samples += left_out;
        if self.request.is_empty() {
            self.out = Some(out);
            return Outcome::Done {
                accepted: 0,
                rejected: samples as u32,
            };
        }
        match self.exchange(out) {
            Ok(answer) => self.outcome(&answer, samples, left_out),
            Err(error) => {
                self.lose(error);
                Outcome::Unknown
            }
        }
    }
}

impl fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTarget")
            .field("address", &self.address)
            .field("encoder", &self.encoder)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
