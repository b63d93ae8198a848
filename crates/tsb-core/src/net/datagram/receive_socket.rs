//! The socket that a datagram listener receives from, with its drop counters.

use std::fs::File;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrLike, SockaddrStorage, UnixAddr, cmsg_space, recvmsg, setsockopt, sockopt,
};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::net::address::Address;
use crate::net::options::{Granted, ListenOptions};
use crate::net::stream::{remove, replace_stale};
use crate::proc::udp_drops;

/// Buffer size for one receive call: holds the longest datagram, or all that GRO merges into one.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

/// A bound datagram socket, of one ingest thread.
#[derive(Debug)]
pub(super) struct ReceiveSocket {
    socket: Socket,
    control: Vec<u8>,
    pub(super) address: Address,
    pub(super) granted: Granted,
    /// Whether the kernel may merge several datagrams into one receive (GRO).
    pub(super) merges: bool,
    /// The socket's inode, which names it in the kernel's table.
    inode: Option<u64>,
    /// The drop count that the kernel last reported.
    dropped: u32,
}

/// The result of one receive call.
#[derive(Debug)]
pub(super) struct Received {
    /// Number of bytes in the buffer.
    pub(super) bytes: usize,
    /// Length of every datagram except the last, which may be shorter.
    pub(super) each: usize,
    /// The sender.
    pub(super) from: Address,
    /// Drops since the last call, as reported with this datagram.
    pub(super) dropped: u32,
    /// Whether the datagram was longer than the buffer and was truncated.
    pub(super) is_cut: bool,
}

impl ReceiveSocket {
    /// Binds a socket to `address`. With `is_shared`, other sockets of this listener bind to the
    /// same address.
    pub(super) fn bind(address: &Address, options: &ListenOptions, is_shared: bool) -> io::Result<Self> {
        let socket = match address {
            Address::Inet(address) => udp(*address, options, is_shared)?,
            Address::Unix(path) => {
                let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
                ask_for_room(&socket, options)?;
                replace_stale(path, Type::DGRAM)?;
                socket.bind(&SockAddr::unix(path)?)?;
                socket
            }
            Address::Abstract(_) | Address::Unnamed => return Err(ErrorKind::Unsupported.into()),
        };
        socket.set_nonblocking(true)?;
        let is_inet = matches!(address, Address::Inet(_));
        if is_inet {
            setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        }
        let merges = is_inet && options.gro && setsockopt(&socket, sockopt::UdpGroSegment, &true).is_ok();
        let bound = match address {
            Address::Inet(_) => socket.local_addr()?.as_socket().map(Address::Inet),
            _ => None,
        };
        let granted = Granted {
            send_bytes: socket.send_buffer_size()?,
            receive_bytes: socket.recv_buffer_size()?,
        };
        Ok(Self {
            inode: inode_of(&socket),
            socket,
            control: vec![0; cmsg_space::<i32>() + cmsg_space::<u32>()],
            address: bound.unwrap_or_else(|| address.clone()),
            granted,
            merges,
            dropped: 0,
        })
    }

    /// Receives the next datagrams; `None` if none is queued.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        if matches!(self.address, Address::Inet(_)) {
            self.receive_from(buffer, |from: SockaddrStorage| {
                let v4 = from.as_sockaddr_in().map(|from| SocketAddr::V4((*from).into()));
                let v6 = || from.as_sockaddr_in6().map(|from| SocketAddr::V6((*from).into()));
                v4.or_else(v6).map(Address::Inet)
            })
        } else {
            self.receive_from(buffer, |from: UnixAddr| Some(Address::from(&from)))
        }
    }

    fn receive_from<S: SockaddrLike>(
        &mut self,
        buffer: &mut [u8],
        address: impl FnOnce(S) -> Option<Address>,
    ) -> io::Result<Option<Received>> {
        let mut slices = [IoSliceMut::new(buffer)];
        let control = Some(self.control.as_mut_slice());
        let message = match recvmsg::<S>(self.socket.as_raw_fd(), &mut slices, control, MsgFlags::MSG_DONTWAIT) {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (mut each, mut said) = (message.bytes, self.dropped);
        for item in message.cmsgs()? {
            match item {
                ControlMessageOwned::UdpGroSegments(size) => each = size as usize,
                ControlMessageOwned::RxqOvfl(count) => said = count,
                _ => {}
            }
        }
        let received = Received {
            bytes: message.bytes,
            each: each.max(1),
            is_cut: message.flags.contains(MsgFlags::MSG_TRUNC),
            from: message.address.and_then(address).unwrap_or(Address::Unnamed),
            dropped: said.wrapping_sub(self.dropped),
        };
        self.dropped = said;
        Ok(Some(received))
    }

    /// Waits until a datagram arrives, for at most `limit_ms` milliseconds.
    pub(super) fn wait(&self, limit_ms: u16) {
        // An interrupted wait needs no handling: the caller polls again.
        let _ = poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], limit_ms);
    }

    /// Number of datagrams dropped since the socket was made, by the kernel's table, and how many
    /// of these were not reported with a later datagram.
    pub(super) fn drops(&self) -> Option<(u64, u64)> {
        let all = udp_drops(self.inode?)?;
        Some((all, all.saturating_sub(u64::from(self.dropped))))
    }
}

impl Drop for ReceiveSocket {
    fn drop(&mut self) {
        remove(&self.address);
    }
}

fn udp(address: SocketAddr, options: &ListenOptions, is_shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if is_shared {
        socket.set_reuse_port(true)?;
    }
    ask_for_room(&socket, options)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Requests the receive buffer size, beyond the system limit if the process may exceed it.
fn ask_for_room(socket: &Socket, options: &ListenOptions) -> io::Result<()> {
    if let Some(bytes) = options.receive_buffer_bytes
        && setsockopt(socket, sockopt::RcvBufForce, &bytes).is_err()
    {
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

fn inode_of(socket: &Socket) -> Option<u64> {
    let copy: OwnedFd = socket.try_clone().ok()?.into();
    Some(File::from(copy).metadata().ok()?.ino())
}
