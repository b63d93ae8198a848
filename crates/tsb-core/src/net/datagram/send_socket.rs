//! The socket that a send queue sends with: connected, non-blocking, registered with tokio, and with
//! kernel segmentation (GSO) where available.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::task::{Context, Poll};

use nix::sys::socket::{UnixAddr, bind, getsockname, setsockopt, sockopt};
use socket2::SockRef;

use super::socket::Socket;
use crate::net::address::Address;
use crate::net::options::{EmitOptions, Granted};
use crate::net::parker::Parker;

/// The most segments in one call, which every kernel with segmentation accepts.
const SEGMENTS: usize = 64;

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
    /// A socket connected to `address`, registered with the reactor of `parker`.
    pub(super) fn connect(parker: &Parker, address: &Address, options: &EmitOptions) -> io::Result<Self> {
        match address {
            Address::Inet(address) => udp(parker, *address, options),
            Address::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                // Binding to an arbitrary free name lets the listener tell senders apart.
                bind(socket.as_raw_fd(), &UnixAddr::new_unnamed())?;
                socket.connect(path)?;
                socket.set_nonblocking(true)?;
                let local = getsockname::<UnixAddr>(socket.as_raw_fd())?;
                let socket = parker.register(|| Socket::register_unix(socket))?;
                finish(socket, Address::from(&local), 1, options)
            }
            Address::Abstract(_) | Address::Unnamed => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// Sends one datagram, or with segmentation several equal ones and a shorter last one.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] without buffer space; then also, without asking the kernel, until
    /// [`SendSocket::poll_writable`] was ready.
    #[inline]
    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.try_send(bytes)
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

    /// Ready when the kernel reports buffer space, until a send finds none.
    pub(super) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_send_ready(context)
    }
}

fn udp(parker: &Parker, address: SocketAddr, options: &EmitOptions) -> io::Result<SendSocket> {
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
    let socket = parker.register(|| Socket::register_udp(socket))?;
    finish(socket, local, segments, options)
}

fn finish(socket: Socket, local: Address, segments: usize, options: &EmitOptions) -> io::Result<SendSocket> {
    let granted = {
        let socket = SockRef::from(&socket);
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
