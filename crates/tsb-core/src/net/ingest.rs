//! What a listener hands its connections to.

use super::address::Address;
use crate::wire::rrdcached::NoSeries;
use crate::wire::{Decoder, Fatal, Sink};

/// Makes what each connection needs. The listener knows no store: this does.
pub trait Ingest: Send + Sync {
    /// A decoder and a sink for a connection from `peer`. Called on an ingest thread.
    fn connect(&self, peer: &Address) -> Intake;
}

impl<F: Fn(&Address) -> Intake + Send + Sync> Ingest for F {
    fn connect(&self, peer: &Address) -> Intake {
        self(peer)
    }
}

/// One connection's decoder and where its samples go.
#[derive(Debug)]
pub struct Intake {
    /// Turns the bytes into batches.
    pub decoder: Box<dyn Decoder>,
    /// Takes the batches.
    pub sink: Box<dyn IntakeSink>,
}

/// Takes the batches of one connection, always on the same ingest thread. It may block:
/// nothing more is read from the connections of that thread meanwhile.
pub trait IntakeSink: Sink + Send + std::fmt::Debug {
    /// The bytes of one read are decoded. When this returns, every sample that was handed
    /// over is applied, so that a sink may gather batches and write them together here.
    /// `consumed` is how many bytes of the connection have been decoded so far. Returns how
    /// many of the samples since the last call were refused, for protocols that say so.
    ///
    /// # Errors
    /// [`Fatal`] when nothing more can be applied; the connection is closed.
    fn apply(&mut self, consumed: u64) -> Result<u64, Fatal>;
}

impl IntakeSink for NoSeries {
    fn apply(&mut self, _consumed: u64) -> Result<u64, Fatal> {
        Ok(0)
    }
}
