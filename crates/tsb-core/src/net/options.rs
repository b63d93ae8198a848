//! Limits and sizes of targets and listeners, with the reasons for their defaults.

use std::time::Duration;

use crate::wire;
use crate::wire::datagram::USUAL_DATAGRAM;

/// How a target sends.
#[derive(Clone, Debug)]
pub struct EmitOptions {
    /// Bytes in the buffer at which it is written at once. in [1, ..)
    ///
    /// 64 KiB: a write of 4 KiB costs five times as much per byte.
    pub flush_bytes: usize,
    /// Requested as `SO_SNDBUF`; `None` leaves the size to the kernel, which adapts it.
    pub send_buffer_bytes: Option<usize>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// A peer that reads nothing for this time is given up; `None` waits for ever.
    pub stall_timeout: Option<Duration>,
    /// Limit for a request and its answer together, from the first byte written to the last byte of the
    /// answer. Each wait for bytes is limited by [`Self::stall_timeout`], too; `None` leaves only that.
    pub answer_timeout: Option<Duration>,
    /// How long [`super::StreamTarget::finish`] waits for the peer to read everything and close.
    pub close_timeout: Duration,
    /// Number of sockets of a [`super::DatagramTarget`]. in [1, ..)
    pub sockets: usize,
    /// Maximum payload of a datagram, in bytes without headers. in [1, 65507]
    pub datagram_bytes: usize,
    /// Let the kernel cut one call's bytes into datagrams (`UDP_SEGMENT`), where it can.
    pub gso: bool,
    /// Connect again after a loss, but not sooner than this after the last attempt; operations due
    /// meanwhile are shed. `None`, the default, sheds everything after a loss: by then the ledger
    /// of the run can no longer balance.
    pub reconnect_after: Option<Duration>,
}

impl Default for EmitOptions {
    fn default() -> Self {
        Self {
            flush_bytes: 64 << 10,
            send_buffer_bytes: None,
            connect_timeout: Duration::from_secs(5),
            stall_timeout: Some(Duration::from_mins(1)),
            answer_timeout: Some(Duration::from_mins(1)),
            close_timeout: Duration::from_secs(30),
            sockets: 1,
            datagram_bytes: USUAL_DATAGRAM,
            gso: true,
            reconnect_after: None,
        }
    }
}

/// Limits of a [`super::Listener`] or a [`super::DatagramListener`].
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Number of threads that read, decode and apply. in [1, ..)
    pub ingest_threads: usize,
    /// Maximum number of open connections; further ones are closed at once, and counted. Also the
    /// maximum number of senders of datagrams: to admit another, the listener evicts one that has
    /// sent little lately, and counts it. in [1, ..)
    pub max_connections: usize,
    /// Maximum bytes of one read: the buffer size of each ingest thread. in [4 KiB, ..)
    ///
    /// 256 KiB: with the store's rows it stays within a second-level cache.
    pub read_bytes: usize,
    /// A record that is not complete after this number of bytes ends its connection. A connection
    /// holds at most a read buffer and twice this size, and only when it has sent more than 16 KiB
    /// of an unfinished record.
    pub max_record_bytes: usize,
    /// A connection of which nothing was decoded for this time is closed, and so is a sender of datagrams;
    /// `None` keeps it. When there is no room for another connection, those that send
    /// nothing for [`ROOM_AFTER`] are closed. in [1 ms, ..)
    ///
    /// Ten minutes: longer than what clients usually wait between two reports.
    pub idle_timeout: Option<Duration>,
    /// Requested as `SO_RCVBUF`; `None` leaves the size to the kernel, which adapts it for a
    /// connection but never for datagrams: there it must hold a whole burst.
    pub receive_buffer_bytes: Option<usize>,
    /// Let the kernel merge several datagrams into one receive (`UDP_GRO`), where it can.
    pub gro: bool,
    /// Time limit for [`super::Listener::stop`] to apply what was received.
    pub drain_timeout: Duration,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            ingest_threads: 1,
            max_connections: 1024,
            read_bytes: 256 << 10,
            max_record_bytes: wire::MAX_RECORD,
            idle_timeout: Some(Duration::from_mins(10)),
            receive_buffer_bytes: None,
            gro: true,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

/// When there is no room for another connection, those that send nothing for this time are closed,
/// unless [`ListenOptions::idle_timeout`] is shorter or `None`.
pub const ROOM_AFTER: Duration = Duration::from_mins(1);

/// Socket buffer sizes as the kernel granted them: it doubles the requested size, and caps it
/// silently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Granted {
    /// `SO_SNDBUF` as read back.
    pub send_bytes: usize,
    /// `SO_RCVBUF` as read back.
    pub receive_bytes: usize,
}
