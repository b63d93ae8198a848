//! Datagrams over UDP and Unix sockets: a target that packs samples into datagrams, and a listener
//! that counts what arrives.
//!
//! A datagram is never acknowledged, so the code measures what was lost: the tsb protocol numbers
//! its samples, the kernel counts what its buffers dropped, and where emitter and listener share a
//! process, waymarks (a mark per datagram, kept in memory) show which datagrams never arrived.

mod listener;
mod peers;
mod receive_socket;
mod receiver;
mod send_queue;
mod send_socket;
mod target;
mod waymark;

pub use listener::DatagramListener;
pub use target::DatagramTarget;

pub(super) use waymark::{WaymarkReceiver, WaymarkSender};

#[cfg(test)]
mod tests;
