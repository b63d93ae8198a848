//! What every exchange of an HTTP request and its answer needs: its time limits, and the bytes of
//! the answer received so far.

use std::time::Duration;

use super::address::Address;
use super::error::NetError;
use super::options::EmitOptions;
use crate::batch::Batch;
use crate::emit::Outcome;
use crate::time::Clock;
use crate::wire::Encoder;
use crate::wire::http::{Answer, BadAnswer, BodyPacker, Client, WriteOutcome};

/// Maximum number of interim answers, such as `100 Continue`, before the answer to a request.
const MAX_INTERIM: usize = 16;

/// The time limits of one request and its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    /// The limit of the whole exchange, and when it ends on the run's clock; `None` waits for
    /// ever.
    limit: Option<(Duration, u64)>,
    /// The longest time in which the peer may neither read nor send.
    pub(super) stall: Option<Duration>,
}

impl Deadline {
    pub(super) fn new(options: &EmitOptions, clock: &dyn Clock) -> Self {
        let until = |limit: Duration| (limit, clock.now().saturating_add(limit.as_nanos() as u64));
        Self {
            limit: options.answer_timeout.map(until),
            stall: options.stall_timeout,
        }
    }

    /// The longest time that the next wait may take.
    pub(super) fn left(self, clock: &dyn Clock, address: &Address) -> Result<Option<Duration>, NetError> {
        let Some((limit, until)) = self.limit else {
            return Ok(self.stall);
        };
        let left = Duration::from_nanos(until.saturating_sub(clock.now()));
        if left.is_zero() {
            return Err(NetError::Unanswered {
                address: address.clone(),
                after_ms: limit.as_millis() as u64,
            });
        }
        Ok(Some(self.stall.map_or(left, |stall| stall.min(left))))
    }

    /// Turns a timed-out wait for the answer into [`NetError::Unanswered`], with the limit that ended it.
    pub(super) fn unanswered(self, error: NetError) -> NetError {
        let limit_ms = self.limit.map(|(limit, _)| limit.as_millis() as u64);
        let stall_ms = self.stall.map(|stall| stall.as_millis() as u64);
        match error {
            NetError::Stalled { address, after_ms } => NetError::Unanswered {
                address,
                after_ms: limit_ms.filter(|_| stall_ms != Some(after_ms)).unwrap_or(after_ms),
            },
            other => other,
        }
    }
}

/// The bytes of the current answer received so far.
#[derive(Debug, Default)]
pub(super) struct AnswerBytes {
    bytes: Vec<u8>,
    interim: usize,
}

impl AnswerBytes {
    /// Forgets the last answer.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.interim = 0;
    }

    /// The buffer to which received bytes are appended.
    pub(super) const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The final answer; `None` if it is incomplete.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn complete(&mut self) -> Result<Option<Answer>, String> {
        loop {
            let read = Answer::read(&self.bytes).map_err(|BadAnswer(what)| what.to_owned())?;
            let Some((answer, length)) = read else { return Ok(None) };
            if answer.status >= 200 {
                return Ok(Some(answer));
            }
            // An interim answer; the final one follows.
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                return Err(format!("{} again and again, and nothing else", answer.status));
            }
            self.bytes.drain(..length);
        }
    }
}

/// The outcome of an answered request of `samples` samples, of which `left_out` were not sent, and
/// whether all that were sent were accepted.
pub(super) fn outcome(client: &Client, answer: &Answer, samples: u64, left_out: u64) -> (Outcome, bool) {
    let outcome = client.outcome(answer);
    let refused = match outcome {
        WriteOutcome::Taken { refused } => refused.saturating_add(left_out).min(samples),
        WriteOutcome::Refused => samples,
        WriteOutcome::Unknown => return (Outcome::Unknown, false),
    };
    let done = Outcome::Done {
        accepted: (samples - refused) as u32,
        rejected: refused as u32,
    };
    (done, outcome == WriteOutcome::Taken { refused: 0 })
}

/// Encodes samples into a request, and compresses its body as the client asks for it.
#[derive(Debug)]
pub(super) struct RequestEncoder {
    encoder: Box<dyn Encoder>,
    packer: BodyPacker,
}

impl RequestEncoder {
    pub(super) fn new(client: &Client, encoder: Box<dyn Encoder>) -> Self {
        Self {
            encoder,
            packer: client.packing().into(),
        }
    }

    /// Writes the request of `batch` into `out`, which it clears first. Returns the number of
    /// samples that the protocol cannot carry; if that is all of them, there is no request.
    pub(super) fn encode(&mut self, client: &Client, batch: &Batch<'_>, out: &mut Vec<u8>) -> u64 {
        let skipped = self.encoder.skipped();
        out.clear();
        client.begin(out);
        self.encoder.encode(batch, out);
        let left_out = self.encoder.skipped() - skipped;
        let body = client.body();
        if out.len() == body {
            out.clear();
            return left_out;
        }
        self.packer.pack(out, body);
        client.end(out);
        left_out
    }
}
