//! The interface through which a listener obtains a decoder and a sink for each connection.

use super::address::Address;
use crate::wire::rrdcached::NoSeries;
use crate::wire::{Decoder, Fatal, Sink};

/// Creates the decoder and the sink of each connection. The listener itself knows no store.
pub trait Ingest: Send + Sync {
    /// A decoder and a sink for a connection from `peer`. Called on an ingest thread.
    fn connect(&self, peer: &Address) -> Intake;
}

impl<F: Fn(&Address) -> Intake + Send + Sync> Ingest for F {
    fn connect(&self, peer: &Address) -> Intake {
        self(peer)
    }
}

/// The decoder and the sink of one connection.
#[derive(Debug)]
pub struct Intake {
    /// Turns the received bytes into batches.
    pub decoder: Box<dyn Decoder>,
    /// Receives the batches.
    pub sink: Box<dyn IntakeSink>,
}

/// Receives the batches of one connection, always on the same ingest thread. It may block:
/// meanwhile the thread reads from none of its connections.
pub trait IntakeSink: Sink + Send + std::fmt::Debug {
    /// Called after some of the received bytes are decoded: once or more per read, and for datagrams once for
    /// several reads. When it returns, every sample passed to the
    /// sink is applied, so a sink may gather batches and write them together here. `consumed` is
    /// the number of bytes of the connection decoded so far. Returns how many of the samples since
    /// the last call the store rejected, for protocols that report it.
    ///
    /// # Errors
    /// [`Fatal`] when no more samples can be applied; the connection is then closed.
    fn apply(&mut self, consumed: u64) -> Result<u64, Fatal>;
}

impl IntakeSink for NoSeries {
    fn apply(&mut self, _consumed: u64) -> Result<u64, Fatal> {
        Ok(0)
    }
}
