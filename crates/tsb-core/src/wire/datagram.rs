//! Records in datagrams: whole records only, each datagram complete in itself.
//!
//! A [`Packer`] fills a [`Packets`], which a socket sends. A receiver passes each whole datagram
//! to a [`crate::wire::Decoder`] made by [`crate::wire::Protocol::datagram_decoder`]. A datagram
//! that is lost, truncated or damaged affects no other. There are no sockets here.

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

/// The payload that fits into an Ethernet frame of 1,500 bytes over IPv4 and IPv6, with room for a
/// tunnel's header.
pub const USUAL_DATAGRAM: usize = 1_400;

/// Turns batches into datagrams. One packer serves one socket.
pub trait Packer: fmt::Debug + Send {
    /// Appends the records of `batch`, closing datagrams as they become full. Once
    /// `packets` has room, some codecs still allocate a few bytes per new timestamp.
    fn pack(&mut self, batch: &Batch<'_>, packets: &mut Packets);

    /// Appends some closing information for the receiver, if the protocol has any. Returns `true`
    /// if there is more to send after this.
    fn finish(&mut self, packets: &mut Packets) -> bool;

    /// Number of samples in a datagram that this packer filled.
    fn samples_in(&self, datagram: &[u8]) -> u64;

    /// Number of samples left out so far because the wire cannot carry them.
    fn skipped(&self) -> u64;
}
