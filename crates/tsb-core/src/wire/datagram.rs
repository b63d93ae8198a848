//! Records into datagrams and back: whole records only, each datagram complete in itself.
//!
//! A [`Packer`] fills a [`Packets`], which a socket sends. A receiver presents each
//! datagram whole to a [`crate::wire::Decoder`] made by
//! [`crate::wire::Protocol::datagram_decoder`]: whatever is lost, cut or damaged costs
//! that datagram and no other. No sockets here.

mod budget;
mod lines;
mod packets;

pub use budget::{Budget, Room};
pub use packets::Packets;

pub(crate) use lines::{LinePacker, WholeDatagrams};

use std::fmt;

use crate::batch::Batch;

/// The largest payload of a UDP datagram over IPv4, in bytes.
pub const MAX_DATAGRAM: usize = 65_507;

/// The payload that fits the 1,500 bytes of an Ethernet frame over IPv4 and IPv6, with
/// room for a tunnel.
pub const USUAL_DATAGRAM: usize = 1_400;

/// Turns batches into datagrams. One packer serves one socket.
pub trait Packer: fmt::Debug + Send {
    /// Appends the records of `batch`, closing datagrams as they become full. Allocates
    /// nothing once `packets` has room.
    fn pack(&mut self, batch: &Batch<'_>, packets: &mut Packets);

    /// Appends some of what a receiver should hear last, if the protocol has such a thing.
    /// `true`: more is to be said, when this has been sent.
    fn finish(&mut self, packets: &mut Packets) -> bool;

    /// How many samples a datagram that this packer filled holds.
    fn samples_in(&self, datagram: &[u8]) -> u64;

    /// Samples that the wire cannot carry and that were left out, since the beginning.
    fn skipped(&self) -> u64;
}
