//! Datagrams over UDP and Unix sockets: a target that packs, a listener that counts.
//!
//! Nobody confirms a datagram, so everything here is about knowing what was lost: the
//! tsb protocol numbers its samples, the kernel counts what its buffers dropped, and where
//! emitter and listener share a process, waymarks tell which datagrams never came.

mod drops;
mod inlet;
mod lane;
mod listener;
mod outlet;
mod peers;
mod receiver;
mod target;
mod waymark;

pub use listener::DatagramListener;
pub use target::DatagramTarget;

pub(super) use waymark::{Marks, Track};

#[cfg(test)]
mod tests;
