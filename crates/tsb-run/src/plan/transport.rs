//! How samples travel from emitter to store, and the options of the wire.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tsb_core::net::{Carrier, EmitOptions};
use tsb_core::wire::Protocol;
use tsb_core::wire::datagram::{MAX_DATAGRAM, USUAL_DATAGRAM};

use crate::error::Error;

/// How samples reach the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Transport {
    /// A call in the same process.
    Inproc,
    /// A TCP connection.
    Tcp,
    /// UDP.
    Udp,
    /// A Unix stream socket.
    Unix,
    /// A Unix datagram socket.
    Unixgram,
    /// HTTP requests over TCP, each answered.
    Http,
}

impl Transport {
    /// All transports that use a socket.
    pub const WIRES: [Self; 5] = [Self::Tcp, Self::Udp, Self::Unix, Self::Unixgram, Self::Http];

    /// Its name in plans, reports, flags and addresses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inproc => "inproc",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Unix => "unix",
            Self::Unixgram => "unixgram",
            Self::Http => "http",
        }
    }

    /// Whether it uses a socket.
    pub const fn is_wire(self) -> bool {
        !matches!(self, Self::Inproc)
    }

    /// Whether its addresses are paths of files.
    pub const fn is_unix(self) -> bool {
        matches!(self, Self::Unix | Self::Unixgram)
    }

    /// The kind of socket traffic. `Inproc` counts as a stream.
    pub const fn carrier(self) -> Carrier {
        match self {
            Self::Udp | Self::Unixgram => Carrier::Datagrams,
            Self::Inproc | Self::Tcp | Self::Unix => Carrier::Stream,
            Self::Http => Carrier::Requests,
        }
    }

    /// Whether the receiver acknowledges every operation.
    pub const fn is_answered(self) -> bool {
        matches!(self, Self::Http)
    }

    /// Checks that a protocol can run over this transport.
    ///
    /// # Errors
    /// If it cannot; the text says what the protocol needs.
    pub fn carries(self, protocol: Protocol) -> Result<(), String> {
        let facts = protocol.capabilities();
        let runs = match self.carrier() {
            Carrier::Stream => facts.streams,
            Carrier::Datagrams => facts.datagrams,
            Carrier::Requests => facts.http,
        };
        if runs {
            return Ok(());
        }
        let needs = match (facts.streams, facts.datagrams) {
            (true, _) => "a connection, such as tcp",
            (_, true) => "datagrams, such as udp",
            _ => "http",
        };
        Err(format!(
            "{protocol} does not run over {}: it needs {needs}",
            self.name()
        ))
    }

    /// Whether datagrams may be lost without a fault of either end.
    pub const fn may_lose(self) -> bool {
        matches!(self, Self::Udp)
    }
}

/// Options of the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WirePlan {
    /// Datagram sockets, over all emitting threads; from 1 to 1024.
    pub sockets: usize,
    /// Largest datagram, in bytes; from 64 to 65,507.
    pub datagram_bytes: usize,
    /// Whether the kernel segments large sends into datagrams (`UDP_SEGMENT`), where it can.
    pub gso: bool,
    /// Whether the kernel merges received datagrams (`UDP_GRO`), where it can.
    pub gro: bool,
    /// Receive buffer to request, in bytes; absent: large enough for one tick of the whole
    /// fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// The InfluxDB database to write into; absent: `tsb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// HTTP connections for requests in flight, over all workers; from 1 to 1024. No more are opened than
    /// requests may be in flight. Absent: 64 if `in_flight` is set; else each worker has one connection,
    /// and waits for each answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<usize>,
    /// Whether request bodies are compressed with gzip.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gzip: bool,
    /// Timeout in nanoseconds for an answer, for a server that does not read, and for closing a
    /// connection; absent: 60 s, and 30 s for closing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ns: Option<u64>,
}

/// The default database.
const DATABASE: &str = "tsb";

impl Default for WirePlan {
    fn default() -> Self {
        Self {
            sockets: 1,
            datagram_bytes: USUAL_DATAGRAM,
            gso: true,
            gro: true,
            receive_buffer_bytes: None,
            database: None,
            connections: None,
            gzip: false,
            timeout_ns: None,
        }
    }
}

impl WirePlan {
    /// Whether all options have their default.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the ranges of the options.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.sockets == 0 || self.sockets > 1024 {
            return Err(Error::plan("cannot send over this many sockets").because_of("--sockets is from 1 to 1024"));
        }
        if self.connections.is_some_and(|count| !(1..=1024).contains(&count)) {
            return Err(
                Error::plan("cannot send over this many connections").because_of("--connections is from 1 to 1024")
            );
        }
        if !(64..=MAX_DATAGRAM).contains(&self.datagram_bytes) {
            return Err(Error::plan("cannot pack datagrams of this size")
                .because_of(format!("--datagram is from 64 to {MAX_DATAGRAM} bytes")));
        }
        Ok(())
    }

    /// The database to write into.
    pub fn database(&self) -> &str {
        self.database.as_deref().unwrap_or(DATABASE)
    }

    /// Options for one of `workers` targets: the sockets are divided among them.
    pub fn emit_options(&self, workers: usize) -> EmitOptions {
        let usual = EmitOptions::default();
        let timeout = self.timeout_ns.map(Duration::from_nanos);
        EmitOptions {
            sockets: self.sockets.div_ceil(workers.max(1)),
            datagram_bytes: self.datagram_bytes,
            gso: self.gso,
            stall_timeout: timeout.or(usual.stall_timeout),
            answer_timeout: timeout.or(usual.answer_timeout),
            close_timeout: timeout.unwrap_or(usual.close_timeout),
            ..usual
        }
    }

    /// The receive buffer to request, in bytes. The default holds one tick of `series` series.
    ///
    /// 64 bytes per sample hold a line of text or the announcement of a series, and the kernel
    /// charges a small datagram up to 2.5 times its bytes.
    pub fn receive_buffer(&self, series: usize) -> usize {
        const LEAST: usize = 4 << 20;
        const MOST: usize = 256 << 20;
        let asked = self.receive_buffer_bytes.map(|bytes| bytes as usize);
        asked.unwrap_or_else(|| (series * 64 * 5 / 2).clamp(LEAST, MOST))
    }
}
