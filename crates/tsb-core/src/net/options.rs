//! Limits and sizes, with the reasons for their defaults.

use std::time::Duration;

use crate::wire;
use crate::wire::datagram::USUAL_DATAGRAM;

/// How a target sends.
#[derive(Clone, Debug)]
pub struct EmitOptions {
    /// A buffer this full is written at once. in [1, ..)
    ///
    /// 64 KiB: a write of 4 KiB costs five times as much a byte.
    pub flush_bytes: usize,
    /// Asked for as `SO_SNDBUF`; `None` leaves the size to the kernel, which adapts it.
    pub send_buffer_bytes: Option<usize>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// A peer that takes nothing for so long is given up; `None` waits for ever.
    pub stall_timeout: Option<Duration>,
    /// How long a request and its answer may take together, from its first byte to be written to
    /// the last byte of the answer; `None` waits for ever.
    pub answer_timeout: Option<Duration>,
    /// How long [`super::StreamTarget::finish`] waits for the peer to read everything.
    pub close_timeout: Duration,
    /// Sockets of a [`super::DatagramTarget`]. in [1, ..)
    pub sockets: usize,
    /// The most bytes of a datagram, its headers not counted. in [1, 65507]
    pub datagram_bytes: usize,
    /// Have the kernel cut one call's bytes into datagrams (`UDP_SEGMENT`), where it can.
    pub gso: bool,
    /// Connect anew after a loss, but not sooner than this after the last attempt; what
    /// is due meanwhile is shed. `None`, the default: everything after a loss is shed,
    /// for a run whose ledger must balance has lost its point by then.
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

/// What a [`super::Listener`] takes, and where it stops.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Threads that read, decode and apply. in [1, ..)
    pub ingest_threads: usize,
    /// The listener closes further connections at once, and counts them. It remembers as many
    /// senders of datagrams: to admit another, it forgets one that has sent little
    /// lately, and counts it. in [1, ..)
    pub max_connections: usize,
    /// How much one read may bring: the buffer of each ingest thread. in [4 KiB, ..)
    ///
    /// 256 KiB: with the store's rows it stays within a second-level cache.
    pub read_bytes: usize,
    /// A record that is not complete after so many bytes ends its connection, whatever
    /// the decoder thinks. A connection holds no more than a read buffer and twice this,
    /// and only when it has sent more than 16 KiB of an unfinished record.
    pub max_record_bytes: usize,
    /// A connection that brings nothing for so long is closed, and a sender of datagrams
    /// forgotten; `None` keeps it. Where there is no room for a further connection, those that
    /// bring nothing for [`ROOM_AFTER`] are closed. in [1 ms, ..)
    ///
    /// Ten minutes: longer than what clients usually wait between two reports.
    pub idle_timeout: Option<Duration>,
    /// Asked for as `SO_RCVBUF`; `None` leaves the size to the kernel, which adapts it to a
    /// connection, but never to datagrams: whatever comes in one burst has to fit.
    pub receive_buffer_bytes: Option<usize>,
    /// Take several datagrams that the kernel holds as one (`UDP_GRO`), where it can.
    pub gro: bool,
    /// How long [`super::Listener::stop`] may take to apply what was received.
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

/// Where there is no room for a further connection, those that bring nothing for so long are
/// closed, if [`ListenOptions::idle_timeout`] is not shorter, and is set.
pub const ROOM_AFTER: Duration = Duration::from_mins(1);

/// Socket buffers as the kernel granted them: it doubles what is asked for, and caps it
/// silently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Granted {
    /// `SO_SNDBUF` as read back.
    pub send_bytes: usize,
    /// `SO_RCVBUF` as read back.
    pub receive_bytes: usize,
}
