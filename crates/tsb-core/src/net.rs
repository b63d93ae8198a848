//! Sockets: the targets of the emitter, and the listeners that feed a store.
//!
//! Nothing here parses or prints: codecs come from [`crate::wire`], and what is done
//! with the samples is the business of an [`Ingest`]. Tokio carries connecting,
//! accepting and readiness; it never runs a codec or a store:
//!
//! ```text
//! pacing thread                    tokio thread            ingest thread
//! encode, write  --- readiness -->  I/O driver  -- wake --> read, decode, apply
//! ```
//!
//! A [`StreamTarget`] encodes and writes on its own pacing thread and parks that thread
//! when the socket takes no more. A [`Listener`] pins each connection to one of a few
//! ingest threads, which reads only when it has applied what it read before. So there is
//! no queue of payload anywhere but in the kernel, a slow store closes the TCP window,
//! and the emitter feels it as lag and response time.
//!
//! Over datagrams nobody feels anything: a [`DatagramTarget`] packs and sends, a
//! [`DatagramListener`] receives on threads of its own, and both count until it is known to
//! the sample what was lost on the way.

mod address;
mod answers;
mod any;
mod cpu;
mod datagram;
mod error;
mod glance;
mod http_target;
mod inbox;
mod ingest;
mod link;
mod listener;
mod milepost;
mod options;
mod parker;
mod pieces;
mod registry;
mod runtime;
mod stats;
mod stream;
mod target;
mod window;
mod wire_out;
mod worker;

#[cfg(test)]
mod tests;

pub use address::Address;
pub use any::{AnyListener, AnyTarget, Carrier, Decoders};
pub use cpu::IngestCpu;
pub use datagram::{DatagramListener, DatagramTarget};
pub use error::NetError;
pub use glance::Glance;
pub use http_target::HttpTarget;
pub use ingest::{Ingest, Intake, IntakeSink};
pub use listener::{Listener, ListenerReport};
pub use milepost::{Mileposts, Timing};
pub use options::{EmitOptions, Granted, ListenOptions, ROOM_AFTER};
pub use parker::Interrupter;
pub use registry::{Registry, Undefined};
pub use runtime::Runtime;
pub use stats::{ListenerStats, MalformedKind};
pub use target::{Closing, StreamTarget, TargetReport};
