//! The socket under a target: non-blocking writes, and parking when there is no room.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use rtrb::Producer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};

use super::error::NetError;
use super::milepost::{Milepost, Mileposts};
use super::options::{EmitOptions, Granted};
use super::parker::{Parker, Waited};
use super::target::{Closing, TargetReport};
use crate::time::Clock;

/// One connection of a target.
#[derive(Debug)]
pub(super) struct WireOut {
    stream: TcpStream,
    peer: SocketAddr,
    local: SocketAddr,
    granted: Granted,
    mileposts: Option<Producer<Milepost>>,
    written: u64,
}

impl WireOut {
    /// Connects; blocks the calling thread.
    pub(super) fn connect(
        parker: &Parker,
        address: SocketAddr,
        options: &EmitOptions,
        mileposts: Option<&Mileposts>,
    ) -> Result<Self, NetError> {
        let connected = parker.block_on(open(address, options));
        let (stream, local, granted) = connected.map_err(|source| NetError::Connect { address, source })?;
        Ok(Self {
            stream,
            peer: address,
            local,
            granted,
            mileposts: mileposts.map(|all| all.lay(local)),
            written: 0,
        })
    }

    pub(super) fn granted(&self) -> Granted {
        self.granted
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Bytes that the kernel has taken on this connection.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Lays a milepost. `false`: there are mileposts, but no room for this one.
    pub(super) fn lay(&mut self, milepost: Milepost) -> bool {
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
                let polled = Pin::new(&mut *stream).poll_write(context, bytes);
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

    /// Says that nothing more comes, and reads until the peer says the same.
    pub(super) fn close(&mut self, parker: &Parker, clock: &dyn Clock, limit: Duration) -> Result<Closing, NetError> {
        let until = clock.now().saturating_add(limit.as_nanos() as u64);
        let stream = &mut self.stream;
        let shut = parker.wait(Some(limit), |context| Pin::new(&mut *stream).poll_shutdown(context));
        self.outcome(shut, Some(limit))?;
        // Whatever it still says is of no interest, however much it is.
        let mut answer = [0; 4096];
        loop {
            let left = Duration::from_nanos(until.saturating_sub(clock.now()));
            let stream = &mut self.stream;
            let read = parker.wait(Some(left), |context| {
                let mut buffer = ReadBuf::new(&mut answer);
                let polled = Pin::new(&mut *stream).poll_read(context, &mut buffer);
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
        let address = self.peer;
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
            address: self.peer,
            written_bytes: self.written,
            source,
        }
    }
}

async fn open(address: SocketAddr, options: &EmitOptions) -> io::Result<(TcpStream, SocketAddr, Granted)> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    if let Some(bytes) = options.send_buffer_bytes {
        socket.set_send_buffer_size(u32::try_from(bytes).unwrap_or(u32::MAX))?;
    }
    socket.set_nodelay(true)?;
    let granted = Granted {
        send_bytes: socket.send_buffer_size()? as usize,
        receive_bytes: socket.recv_buffer_size()? as usize,
    };
    let connecting = tokio::time::timeout(options.connect_timeout, socket.connect(address));
    let stream = connecting
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let local = stream.local_addr()?;
    Ok((stream, local, granted))
}
