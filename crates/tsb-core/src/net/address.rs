//! Addresses of sockets: where a listener is bound, and where a peer sends from.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// One end of a socket, of any family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Address {
    /// Of the Internet family.
    Inet(SocketAddr),
    /// A Unix socket in the file system.
    Unix(PathBuf),
    /// A Unix socket with an abstract name, as Linux gives to clients that ask for any.
    Abstract(Box<[u8]>),
    /// A Unix socket without a name: all of them look alike.
    Unnamed,
}

impl Address {
    /// Host and port, if it has them.
    pub fn inet(&self) -> Option<SocketAddr> {
        match self {
            Self::Inet(address) => Some(*address),
            _ => None,
        }
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            _ => None,
        }
    }

    /// Whether only this machine can reach it.
    pub fn is_local(&self) -> bool {
        self.inet().is_none_or(|address| address.ip().is_loopback())
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Inet(address)
    }
}

impl From<PathBuf> for Address {
    fn from(path: PathBuf) -> Self {
        Self::Unix(path)
    }
}

impl From<&nix::sys::socket::UnixAddr> for Address {
    fn from(address: &nix::sys::socket::UnixAddr) -> Self {
        if let Some(path) = address.path() {
            Self::Unix(path.to_owned())
        } else if let Some(name) = address.as_abstract() {
            Self::Abstract(name.into())
        } else {
            Self::Unnamed
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
            Self::Abstract(name) => write!(f, "@{}", name.escape_ascii()),
            Self::Unnamed => f.write_str("unnamed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_as_it_is_written() {
        let inet = Address::from(SocketAddr::from(([127, 0, 0, 1], 2003)));
        assert_eq!((inet.to_string().as_str(), inet.is_local()), ("127.0.0.1:2003", true));
        assert!(!Address::from(SocketAddr::from(([10, 0, 0, 1], 2003))).is_local());
        let unix = Address::from(PathBuf::from("/run/tsb.sock"));
        assert_eq!((unix.to_string().as_str(), unix.is_local()), ("/run/tsb.sock", true));
        assert_eq!(Address::Abstract(Box::from(*b"a\0b")).to_string(), "@a\\x00b");
    }
}
