//! A UDP or Unix datagram socket that is registered with tokio.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::net;

/// A datagram socket. tokio says when it is ready; the calls are the caller's own.
#[derive(Debug)]
pub(super) enum Socket {
    Udp(net::UdpSocket),
    Unix(net::UnixDatagram),
}

impl Socket {
    /// Registers a non-blocking socket with the reactor whose context the caller has entered.
    pub(super) fn register_udp(socket: UdpSocket) -> io::Result<Self> {
        net::UdpSocket::from_std(socket).map(Self::Udp)
    }

    /// Registers a non-blocking socket with the reactor whose context the caller has entered.
    pub(super) fn register_unix(socket: UnixDatagram) -> io::Result<Self> {
        net::UnixDatagram::from_std(socket).map(Self::Unix)
    }

    /// Forgets that the socket was readable, after a call has found nothing: [`Socket::readable`]
    /// then waits for the next datagram. The reactor must be that of the calling thread: no other
    /// thread can then set what is cleared here.
    pub(super) fn clear_readable(&self) {
        let found_nothing = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        let _ = match self {
            Self::Udp(socket) => socket.try_io(Interest::READABLE, found_nothing),
            Self::Unix(socket) => socket.try_io(Interest::READABLE, found_nothing),
        };
    }

    /// Sends `bytes` in one call. Once it has returned [`io::ErrorKind::WouldBlock`], every later one
    /// does, without a system call, until the reactor has seen room.
    #[inline]
    pub(super) fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => socket.try_send(bytes),
            Self::Unix(socket) => socket.try_send(bytes),
        }
    }

    /// Waits until a datagram is queued.
    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.readable().await,
            Self::Unix(socket) => socket.readable().await,
        }
    }

    /// Ready when the kernel has reported buffer space, until a send finds none.
    pub(super) fn poll_send_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Udp(socket) => socket.poll_send_ready(context),
            Self::Unix(socket) => socket.poll_send_ready(context),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
