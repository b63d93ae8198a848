//! One connection of an [`HttpPool`](super::HttpPool): a request and its answer at a time, on a
//! task that waits for neither on a thread.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::ReadBuf;
use tokio::time::timeout;

use super::address::Address;
use super::error::NetError;
use super::http_exchange::{AnswerBytes, Deadline};
use super::options::EmitOptions;
use super::stream::Stream;
use super::target::{Closing, TargetReport};
use crate::time::Clock;
use crate::wire::http::Answer;

/// Bytes of one read.
const READ: usize = 4096;

/// What the connections of a pool share.
#[derive(Debug)]
pub(super) struct PoolSettings {
    pub(super) address: Address,
    pub(super) options: EmitOptions,
    pub(super) clock: Arc<dyn Clock>,
}

/// A connection, or room for one.
#[derive(Debug)]
pub(super) struct HttpConnection {
    settings: Arc<PoolSettings>,
    stream: Option<Stream>,
    /// When it was lost or not made, on the run's clock.
    pub(super) lost_at: Option<u64>,
    /// The current request.
    pub(super) request: Vec<u8>,
    answer: AnswerBytes,
    received: Box<[u8; READ]>,
    pub(super) report: TargetReport,
}

impl HttpConnection {
    /// Room for a connection, which is not made yet.
    pub(super) fn new(settings: &Arc<PoolSettings>) -> Self {
        Self {
            settings: Arc::clone(settings),
            stream: None,
            lost_at: None,
            request: Vec::new(),
            answer: AnswerBytes::default(),
            received: Box::new([0; READ]),
            report: TargetReport::default(),
        }
    }

    /// Connects, unless it is connected.
    pub(super) async fn connect(&mut self) -> Result<(), NetError> {
        if self.stream.is_some() {
            return Ok(());
        }
        let address = &self.settings.address;
        let connected = Stream::connect(address, &self.settings.options).await;
        let (stream, _, granted) = connected.map_err(|source| NetError::Connect {
            address: address.clone(),
            source,
        })?;
        self.stream = Some(stream);
        self.lost_at = None;
        self.report.connections += 1;
        self.report.granted = granted;
        self.report.closing = Closing::Open;
        Ok(())
    }

    /// Closes the connection at once, because of an error.
    pub(super) fn lose(&mut self, error: NetError) {
        self.report.keep(error);
        self.report.closing = Closing::Lost;
        self.stream = None;
        // The pause counts from the end of the attempt: otherwise a refusal that took long would
        // be followed by the next attempt at once.
        self.lost_at = Some(self.settings.clock.now());
    }

    pub(super) fn answered(&self, what: String) -> NetError {
        let address = self.settings.address.clone();
        NetError::Answered { address, what }
    }

    /// Writes the request and reads its answer. After an error the connection must be lost.
    pub(super) async fn exchange(&mut self) -> Result<Answer, NetError> {
        let deadline = Deadline::new(&self.settings.options, &*self.settings.clock);
        self.write(deadline).await?;
        self.answer.clear();
        loop {
            if let Some(answer) = self.answer.complete().map_err(|what| self.answered(what))? {
                if !answer.keeps_alive {
                    self.stream = None;
                }
                return Ok(answer);
            }
            let left = deadline.left(&*self.settings.clock, &self.settings.address)?;
            let Self { stream, received, .. } = self;
            let Some(stream) = stream else {
                return Err(self.lost(ErrorKind::NotConnected.into()));
            };
            let read = within(left, poll_fn(|context| read_some(stream, context, received))).await;
            let read = self.outcome(read, left);
            let count = read.map_err(|error| deadline.unanswered(error))?;
            if count == 0 {
                return Err(self.answered("nothing, it closed the connection".to_owned()));
            }
            self.answer.buffer().extend_from_slice(&self.received[..count]);
        }
    }

    async fn write(&mut self, deadline: Deadline) -> Result<(), NetError> {
        let mut at = 0;
        while at < self.request.len() {
            let left = deadline.left(&*self.settings.clock, &self.settings.address)?;
            let Some(stream) = &mut self.stream else {
                return Err(self.lost(ErrorKind::NotConnected.into()));
            };
            let bytes = &self.request[at..];
            let written = within(left, poll_fn(|context| stream.poll_write(context, bytes))).await;
            let count = self.outcome(written, left)?;
            if count == 0 {
                return Err(self.lost(ErrorKind::WriteZero.into()));
            }
            self.report.written_bytes += count as u64;
            self.report.writes += 1;
            at += count;
        }
        Ok(())
    }

    fn outcome<T>(&self, done: Option<io::Result<T>>, limit: Option<Duration>) -> Result<T, NetError> {
        match done {
            Some(Ok(value)) => Ok(value),
            Some(Err(source)) => Err(self.lost(source)),
            None => Err(NetError::Stalled {
                address: self.settings.address.clone(),
                after_ms: limit.unwrap_or_default().as_millis() as u64,
            }),
        }
    }

    fn lost(&self, source: io::Error) -> NetError {
        NetError::Lost {
            address: self.settings.address.clone(),
            written_bytes: self.report.written_bytes,
            source,
        }
    }

    /// Shuts down the sending side, and reads until the peer closes or `until`, on the run's clock.
    pub(super) async fn close(mut self, until: u64) -> TargetReport {
        let Some(mut stream) = self.stream.take() else {
            return self.report;
        };
        let left = Duration::from_nanos(until.saturating_sub(self.settings.clock.now()));
        let received = &mut *self.received;
        let closing = async {
            poll_fn(|context| stream.poll_shutdown(context)).await?;
            loop {
                let read = poll_fn(|context| read_some(&mut stream, context, received));
                if read.await? == 0 {
                    return io::Result::Ok(());
                }
            }
        };
        self.report.closing = match within(Some(left), closing).await {
            Some(Ok(())) => Closing::Confirmed,
            Some(Err(_)) => Closing::Lost,
            None => Closing::TimedOut,
        };
        self.report
    }
}

/// Reads what is available into `into`; 0: the peer has closed.
fn read_some(stream: &mut Stream, context: &mut Context<'_>, into: &mut [u8; READ]) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(into);
    let polled = stream.poll_read(context, &mut buffer);
    polled.map_ok(|()| buffer.filled().len())
}

/// Waits for at most `limit`; `None` if that was too short.
async fn within<F: Future>(limit: Option<Duration>, future: F) -> Option<F::Output> {
    match limit {
        Some(limit) => timeout(limit, future).await.ok(),
        None => Some(future.await),
    }
}
