//! The socket of a target: non-blocking writes, and a blocked thread when there is no room.

use std::io;
use std::time::Duration;

use rtrb::Producer;
use tokio::io::ReadBuf;

use super::address::Address;
use super::error::NetError;
use super::milepost::{Milepost, Mileposts};
use super::options::{EmitOptions, Granted};
use super::parker::{Parker, Waited};
use super::stream::Stream;
use super::target::{Closing, TargetReport};
use crate::time::Clock;

/// One connection of a target.
#[derive(Debug)]
pub(super) struct TargetConnection {
    stream: Stream,
    peer: Address,
    local: Address,
    granted: Granted,
    mileposts: Option<Producer<Milepost>>,
    written: u64,
}

impl TargetConnection {
    /// Connects; blocks the calling thread.
    pub(super) fn connect(
        parker: &Parker,
        address: &Address,
        options: &EmitOptions,
        mileposts: Option<&Mileposts>,
    ) -> Result<Self, NetError> {
        let connected = parker.block_on(Stream::connect(address, options));
        let (stream, local, granted) = connected.map_err(|source| NetError::Connect {
            address: address.clone(),
            source,
        })?;
        Ok(Self {
            stream,
            peer: address.clone(),
            granted,
            mileposts: mileposts.map(|all| all.sender(&local)),
            local,
            written: 0,
        })
    }

    pub(super) fn granted(&self) -> Granted {
        self.granted
    }

    pub(super) fn local(&self) -> &Address {
        &self.local
    }

    /// Number of bytes that the kernel has accepted on this connection.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Queues a milepost. Returns `false` if the queue is full.
    pub(super) fn queue(&mut self, milepost: Milepost) -> bool {
        let mileposts = self.mileposts.as_mut();
        mileposts.is_none_or(|mileposts| mileposts.push(milepost).is_ok())
    }

    /// Writes all of `bytes`.
    pub(super) fn write(
        &mut self,
        mut bytes: &[u8],
        parker: &Parker,
        clock: &dyn Clock,
        stall: Option<Duration>,
        report: &mut TargetReport,
    ) -> Result<(), NetError> {
        while !bytes.is_empty() {
            let stream = &mut self.stream;
            let mut blocked_at = None;
            let written = parker.wait(stall, |context| {
                let polled = stream.poll_write(context, bytes);
                if polled.is_pending() && blocked_at.is_none() {
                    blocked_at = Some(clock.now());
                }
                polled
            });
            if let Some(since) = blocked_at {
                report.blocked_ns += clock.now().saturating_sub(since);
            }
            let count = self.outcome(written, stall)?;
            self.written += count as u64;
            report.written_bytes += count as u64;
            report.writes += 1;
            bytes = bytes.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Appends what the peer sends next to `into`; 0: the peer has closed.
    pub(super) fn read(
        &mut self,
        parker: &Parker,
        limit: Option<Duration>,
        into: &mut Vec<u8>,
    ) -> Result<usize, NetError> {
        let mut answer = [0; 4096];
        let stream = &mut self.stream;
        let read = parker.wait(limit, |context| {
            let mut buffer = ReadBuf::new(&mut answer);
            let polled = stream.poll_read(context, &mut buffer);
            polled.map_ok(|()| buffer.filled().len())
        });
        let count = self.outcome(read, limit)?;
        into.extend_from_slice(&answer[..count]);
        Ok(count)
    }

    /// Shuts down the sending side, and reads until the peer closes.
    pub(super) fn close(&mut self, parker: &Parker, clock: &dyn Clock, limit: Duration) -> Result<Closing, NetError> {
        let until = clock.now().saturating_add(limit.as_nanos() as u64);
        let stream = &mut self.stream;
        let shut = parker.wait(Some(limit), |context| stream.poll_shutdown(context));
        self.outcome(shut, Some(limit))?;
        // Bytes that the peer still sends are discarded, whatever their number.
        let mut answer = [0; 4096];
        loop {
            let left = Duration::from_nanos(until.saturating_sub(clock.now()));
            let stream = &mut self.stream;
            let read = parker.wait(Some(left), |context| {
                let mut buffer = ReadBuf::new(&mut answer);
                let polled = stream.poll_read(context, &mut buffer);
                polled.map_ok(|()| buffer.filled().len())
            });
            match read {
                Waited::TimedOut => return Ok(Closing::TimedOut),
                Waited::Interrupted => return Ok(Closing::Interrupted),
                Waited::Ready(Ok(0)) => return Ok(Closing::Confirmed),
                Waited::Ready(Ok(_)) if left.is_zero() => return Ok(Closing::TimedOut),
                Waited::Ready(Ok(_)) => {}
                Waited::Ready(Err(source)) => return Err(self.lost(source)),
            }
        }
    }

    fn outcome<T>(&self, waited: Waited<io::Result<T>>, limit: Option<Duration>) -> Result<T, NetError> {
        let address = self.peer.clone();
        match waited {
            Waited::Ready(Ok(value)) => Ok(value),
            Waited::Ready(Err(source)) => Err(self.lost(source)),
            Waited::TimedOut => Err(NetError::Stalled {
                address,
                after_ms: limit.unwrap_or_default().as_millis() as u64,
            }),
            Waited::Interrupted => Err(NetError::Interrupted { address }),
        }
    }

    fn lost(&self, source: io::Error) -> NetError {
        NetError::Lost {
            address: self.peer.clone(),
            written_bytes: self.written,
            source,
        }
    }
}
