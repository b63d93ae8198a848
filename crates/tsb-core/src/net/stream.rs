//! TCP and Unix stream connections behind one type.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net as unix;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fs, net};

use nix::sys::socket::UnixAddr;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};

use super::address::Address;
use super::options::{EmitOptions, Granted, ListenOptions};

/// Connections that the kernel may hold before they are accepted.
const BACKLOG: u32 = 1024;

/// A connection that is registered with tokio.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection that is registered with no reactor.
#[derive(Debug)]
pub(super) enum UnregisteredStream {
    Tcp(net::TcpStream),
    Unix(unix::UnixStream),
}

impl Stream {
    /// Connects to `address`; also returns the local address and the buffer sizes.
    pub(super) async fn connect(address: &Address, options: &EmitOptions) -> io::Result<(Self, Address, Granted)> {
        let limit = options.connect_timeout;
        match address {
            Address::Inet(address) => tcp(*address, options).await,
            Address::Unix(path) => {
                let connecting = tokio::time::timeout(limit, connect_unix(path, options));
                connecting.await.map_err(|_| io::Error::from(ErrorKind::TimedOut))?
            }
            Address::Abstract(_) | Address::Unnamed => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// Registers a connection with the reactor of this thread.
    pub(super) fn register(unregistered: UnregisteredStream) -> io::Result<Self> {
        Ok(match unregistered {
            UnregisteredStream::Tcp(stream) => Self::Tcp(TcpStream::from_std(stream)?),
            UnregisteredStream::Unix(stream) => Self::Unix(UnixStream::from_std(stream)?),
        })
    }

    /// Takes a connection back from its reactor.
    pub(super) fn into_unregistered(self) -> io::Result<UnregisteredStream> {
        Ok(match self {
            Self::Tcp(stream) => UnregisteredStream::Tcp(stream.into_std()?),
            Self::Unix(stream) => UnregisteredStream::Unix(stream.into_std()?),
        })
    }

    /// Reads what is available.
    pub(super) fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }

    /// Writes as much as fits into the send buffer.
    pub(super) fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    /// Shuts down the sending side.
    pub(super) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

impl Read for UnregisteredStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl UnregisteredStream {
    /// Writes as many bytes as the socket accepts without waiting.
    pub(super) fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    /// Sets `TCP_NODELAY`, which matters only for answers; a failure is ignored.
    pub(super) fn answer_at_once(&self) {
        if let Self::Tcp(stream) = self {
            let _ = stream.set_nodelay(true);
        }
    }
}

async fn tcp(address: net::SocketAddr, options: &EmitOptions) -> io::Result<(Stream, Address, Granted)> {
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
    let connected = connecting.await.map_err(|_| io::Error::from(ErrorKind::TimedOut))?;
    let stream = connected?;
    let local = Address::Inet(stream.local_addr()?);
    Ok((Stream::Tcp(stream), local, granted))
}

async fn connect_unix(path: &Path, options: &EmitOptions) -> io::Result<(Stream, Address, Granted)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    if let Some(bytes) = options.send_buffer_bytes {
        socket.set_send_buffer_size(bytes)?;
    }
    // Binding to an arbitrary free name lets the listener tell emitters apart.
    nix::sys::socket::bind(socket.as_raw_fd(), &UnixAddr::new_unnamed())?;
    socket.set_nonblocking(true)?;
    let granted = Granted {
        send_bytes: socket.send_buffer_size()?,
        receive_bytes: socket.recv_buffer_size()?,
    };
    let address = SockAddr::unix(path)?;
    while let Err(error) = socket.connect(&address) {
        // The backlog is full, and no event would report room in it.
        if error.kind() != ErrorKind::WouldBlock {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let stream = unix::UnixStream::from(std::os::fd::OwnedFd::from(socket));
    let local = unix_address(&stream.local_addr()?);
    Ok((Stream::Unix(UnixStream::from_std(stream)?), local, granted))
}

fn unix_address(address: &unix::SocketAddr) -> Address {
    if let Some(path) = address.as_pathname() {
        Address::Unix(path.to_owned())
    } else if let Some(name) = address.as_abstract_name() {
        Address::Abstract(name.into())
    } else {
        Address::Unnamed
    }
}

/// A listening socket.
#[derive(Debug)]
pub(super) enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl ListeningSocket {
    /// Creates the listening socket; connections inherit its receive buffer size.
    pub(super) fn bind(address: &Address, options: &ListenOptions) -> io::Result<(Self, Address, Granted)> {
        match address {
            Address::Inet(address) => bind_tcp(*address, options),
            Address::Unix(path) => {
                replace_stale(path, Type::STREAM)?;
                let listener = UnixListener::bind(path)?;
                let socket = SockRef::from(&listener);
                if let Some(bytes) = options.receive_buffer_bytes {
                    socket.set_recv_buffer_size(bytes)?;
                }
                let granted = Granted {
                    send_bytes: socket.send_buffer_size()?,
                    receive_bytes: socket.recv_buffer_size()?,
                };
                Ok((Self::Unix(listener), address.clone(), granted))
            }
            Address::Abstract(_) | Address::Unnamed => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// Waits for a connection.
    pub(super) async fn accept(&self) -> io::Result<(UnregisteredStream, Address)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((UnregisteredStream::Tcp(stream.into_std()?), Address::Inet(peer)))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let stream = stream.into_std()?;
                let peer = unix_address(&stream.peer_addr()?);
                Ok((UnregisteredStream::Unix(stream), peer))
            }
        }
    }

    /// Passes the connections in the kernel's backlog to `admit`, non-blocking, and closes the
    /// socket.
    pub(super) fn backlog(self, mut admit: impl FnMut(io::Result<(UnregisteredStream, Address)>)) {
        match self {
            Self::Tcp(listener) => {
                let Ok(listener) = listener.into_std() else { return };
                while let Ok((stream, peer)) = listener.accept() {
                    let ready = stream.set_nonblocking(true);
                    admit(ready.map(|()| (UnregisteredStream::Tcp(stream), Address::Inet(peer))));
                }
            }
            Self::Unix(listener) => {
                let Ok(listener) = listener.into_std() else { return };
                while let Ok((stream, peer)) = listener.accept() {
                    let ready = stream.set_nonblocking(true);
                    admit(ready.map(|()| (UnregisteredStream::Unix(stream), unix_address(&peer))));
                }
            }
        }
    }
}

fn bind_tcp(address: net::SocketAddr, options: &ListenOptions) -> io::Result<(ListeningSocket, Address, Granted)> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    if let Some(bytes) = options.receive_buffer_bytes {
        socket.set_recv_buffer_size(u32::try_from(bytes).unwrap_or(u32::MAX))?;
    }
    socket.bind(address)?;
    let granted = Granted {
        send_bytes: socket.send_buffer_size()? as usize,
        receive_bytes: socket.recv_buffer_size()? as usize,
    };
    let listener = socket.listen(BACKLOG)?;
    let address = Address::Inet(listener.local_addr()?);
    Ok((ListeningSocket::Tcp(listener), address, granted))
}

/// Removes the socket at `path` if no process listens on it any more: a killed process leaves it
/// behind. Two processes that start at the same moment may both remove it; clients then reach the
/// later one.
///
/// # Errors
/// [`ErrorKind::AddrInUse`] if a process listens on it, [`ErrorKind::AlreadyExists`] if the path
/// holds something else.
pub(super) fn replace_stale(path: &Path, kind: Type) -> io::Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "the path exists and is not a socket",
        ));
    }
    let probe = Socket::new(Domain::UNIX, kind, None)?;
    probe.set_nonblocking(true)?;
    match probe.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(io::Error::new(
            ErrorKind::AddrInUse,
            "another process listens on this socket",
        )),
    }
}

/// Removes the file of a Unix socket, which would keep the next listener from binding.
pub(super) fn remove(address: &Address) {
    if let Some(path) = address.path() {
        let _ = fs::remove_file(path);
    }
}
