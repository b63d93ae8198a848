//! The socket that a send queue sends with: connected, non-blocking, and with kernel
//! segmentation (GSO) where available.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixDatagram;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{UnixAddr, bind, getsockname, setsockopt, sockopt};
use socket2::SockRef;

use crate::net::address::Address;
use crate::net::options::{EmitOptions, Granted};

/// The most segments in one call, which every kernel with segmentation accepts.
const SEGMENTS: usize = 64;

/// How long one wait lasts, in milliseconds, before the caller checks for interruption.
const WAIT_MS: u16 = 10;

/// A connected datagram socket.
#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

/// A connected datagram socket and the buffer sizes that the kernel granted.
#[derive(Debug)]
pub(super) struct SendSocket {
    socket: Socket,
    pub(super) local: Address,
    pub(super) granted: Granted,
    /// Datagrams that one call may carry; 1 without segmentation.
    pub(super) segments: usize,
}

impl SendSocket {
    /// A socket connected to `address`.
    pub(super) fn connect(address: &Address, options: &EmitOptions) -> io::Result<Self> {
        match address {
            Address::Inet(address) => udp(*address, options),
            Address::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                // Binding to an arbitrary free name lets the listener tell senders apart.
                bind(socket.as_raw_fd(), &UnixAddr::new_unnamed())?;
                socket.connect(path)?;
                socket.set_nonblocking(true)?;
                let local = getsockname::<UnixAddr>(socket.as_raw_fd())?;
                finish(Socket::Unix(socket), Address::from(&local), 1, options)
            }
            Address::Abstract(_) | Address::Unnamed => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// Sends one datagram, or with segmentation several equal ones and a shorter last one.
    #[inline]
    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.socket {
            Socket::Udp(socket) => socket.send(bytes),
            Socket::Unix(socket) => socket.send(bytes),
        }
    }

    /// Turns segmentation off, after the device or the kernel has refused it.
    pub(super) fn stop_segmenting(&mut self) {
        self.segments = 1;
        if let Socket::Udp(socket) = &self.socket {
            // The result is ignored: it fails only on a kernel on which segmentation was never
            // set.
            let _ = setsockopt(socket, sockopt::UdpGsoSegment, &0);
        }
    }

    /// Waits at most [`WAIT_MS`] milliseconds for buffer space.
    pub(super) fn wait(&self) -> io::Result<()> {
        let socket = match &self.socket {
            Socket::Udp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        };
        match poll(&mut [PollFd::new(socket, PollFlags::POLLOUT)], WAIT_MS) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn udp(address: SocketAddr, options: &EmitOptions) -> io::Result<SendSocket> {
    let any: SocketAddr = match (address.is_ipv4(), address.ip().is_loopback()) {
        (true, true) => (Ipv4Addr::LOCALHOST, 0).into(),
        (true, false) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        (false, true) => (Ipv6Addr::LOCALHOST, 0).into(),
        (false, false) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    socket.set_nonblocking(true)?;
    let local = Address::Inet(socket.local_addr()?);
    let size = options.datagram_bytes as i32;
    let segments = if options.gso && setsockopt(&socket, sockopt::UdpGsoSegment, &size).is_ok() {
        (crate::wire::datagram::MAX_DATAGRAM / options.datagram_bytes).clamp(1, SEGMENTS)
    } else {
        1
    };
    finish(Socket::Udp(socket), local, segments, options)
}

fn finish(socket: Socket, local: Address, segments: usize, options: &EmitOptions) -> io::Result<SendSocket> {
    let granted = {
        let socket = match &socket {
            Socket::Udp(socket) => SockRef::from(socket),
            Socket::Unix(socket) => SockRef::from(socket),
        };
        if let Some(bytes) = options.send_buffer_bytes {
            socket.set_send_buffer_size(bytes)?;
        }
        Granted {
            send_bytes: socket.send_buffer_size()?,
            receive_bytes: socket.recv_buffer_size()?,
        }
    };
    Ok(SendSocket {
        socket,
        local,
        granted,
        segments,
    })
}
