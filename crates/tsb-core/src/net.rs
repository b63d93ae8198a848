//! Sockets: the targets of the emitter, and the listeners that feed a store.
//!
//! Nothing here parses or prints: codecs come from [`crate::wire`], and an [`Ingest`] decides
//! where the samples go. Tokio connects, accepts, and says when a socket is ready; it never runs a
//! decoder or a store; only an [`HttpPool`] runs an encoder on it. Each thread that waits for connections runs a reactor of its own while it
//! waits:
//!
//! ```text
//! pacing thread                     ingest thread
//! encode, write    --- kernel --->  read, decode, apply
//! waits for room                    waits for bytes
//!
//! tokio thread: accepts connections, and hands each to an ingest thread
//! ```
//!
//! A [`StreamTarget`] encodes and writes on its own pacing thread, and blocks that thread when the
//! socket accepts no more. A [`Listener`] assigns each connection to one of a few ingest threads,
//! which reads again only when it has applied what it read before. So payload is queued nowhere
//! but in the kernel; a slow store closes the TCP window, and the emitter measures that as lag and
//! response time.
//!
//! Datagrams have no back-pressure: a [`DatagramTarget`] packs and sends, a [`DatagramListener`]
//! receives on threads of its own, and both count, so that losses are known to the sample. Their
//! threads wait in `poll`: it costs less per datagram (docs/adr/030-datagrams.md).

mod address;
mod answers;
mod any;
mod connection;
mod cpu;
mod datagram;
mod error;
mod http_connection;
mod http_exchange;
mod http_pool;
mod http_target;
mod inbox;
mod ingest;
mod listener;
mod listener_view;
mod milepost;
mod options;
mod parker;
mod piece_size;
mod read_buffer;
mod registry;
mod runtime;
mod stats;
mod stream;
mod target;
mod target_connection;
mod worker;

#[cfg(test)]
mod tests;

pub use address::Address;
pub use any::{AnyListener, AnyTarget, Carrier, Decoders};
pub use cpu::IngestCpu;
pub use datagram::{DatagramListener, DatagramTarget};
pub use error::NetError;
pub use http_pool::{HttpPool, HttpSender};
pub use http_target::HttpTarget;
pub use ingest::{Ingest, Intake, IntakeSink};
pub use listener::{Listener, ListenerTotals};
pub use listener_view::ListenerView;
pub use milepost::{Mileposts, Timing};
pub use options::{EmitOptions, Granted, ListenOptions, ROOM_AFTER};
pub use parker::Interrupter;
pub use registry::{Registry, Undefined};
pub use runtime::Runtime;
pub use stats::{ListenerStats, MalformedKind};
pub use target::{Closing, StreamTarget, TargetReport};
