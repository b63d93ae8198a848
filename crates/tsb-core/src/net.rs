//! Sockets: the TCP target of the emitter, and the listener that feeds a store.
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
//! A [`TcpTarget`] encodes and writes on its own pacing thread and parks that thread
//! when the socket takes no more. A [`Listener`] pins each connection to one of a few
//! ingest threads, which reads only when it has applied what it read before. So there is
//! no queue of payload anywhere but in the kernel, a slow store closes the TCP window,
//! and the emitter feels it as lag and response time.

mod error;
mod inbox;
mod ingest;
mod link;
mod listener;
mod milepost;
mod options;
mod parker;
mod registry;
mod runtime;
mod stats;
mod target;
mod window;
mod wire_out;
mod worker;

#[cfg(test)]
mod tests;

pub use error::NetError;
pub use ingest::{Ingest, Intake, IntakeSink};
pub use listener::{Listener, ListenerReport};
pub use milepost::{Mileposts, Timing};
pub use options::{EmitOptions, Granted, ListenOptions};
pub use parker::Interrupter;
pub use registry::Registry;
pub use runtime::Runtime;
pub use stats::{ListenerStats, MalformedKind};
pub use target::{Closing, TargetReport, TcpTarget};
