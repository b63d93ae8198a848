//! What can go wrong with a socket, named with the address.

use std::io;

use super::address::Address;

/// Why something on the network could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// Where.
        address: Address,
        /// Why.
        source: io::Error,
    },
    /// Nobody answers there.
    #[error("cannot connect to {address}")]
    Connect {
        /// Where.
        address: Address,
        /// Why.
        source: io::Error,
    },
    /// The connection broke while it was in use.
    #[error("connection to {address} lost after {written_bytes} bytes")]
    Lost {
        /// The peer.
        address: Address,
        /// Bytes that the kernel had taken; how many arrived is not known.
        written_bytes: u64,
        /// Why.
        source: io::Error,
    },
    /// The peer took nothing for longer than [`super::EmitOptions::stall_timeout`].
    #[error("{address} took nothing for {after_ms} ms")]
    Stalled {
        /// The peer.
        address: Address,
        /// How long was waited.
        after_ms: u64,
    },
    /// The peer's machine said that nobody listens there.
    #[error("nobody listens on {address}, as its machine said {times} times")]
    Refused {
        /// Where.
        address: Address,
        /// How often; datagrams that were sent before it was said are lost.
        times: u64,
    },
    /// What the peer answered is no answer, or not the one that was needed.
    #[error("{address} answered: {what}")]
    Answered {
        /// The peer.
        address: Address,
        /// Its answer, or what is wrong with it, cut at 200 characters.
        what: String,
    },
    /// The peer did not answer within [`super::EmitOptions::answer_timeout`].
    #[error("{address} did not answer within {after_ms} ms")]
    Unanswered {
        /// The peer.
        address: Address,
        /// How long was waited.
        after_ms: u64,
    },
    /// Waiting was ended by an [`super::Interrupter`].
    #[error("sending to {address} was interrupted")]
    Interrupted {
        /// The peer.
        address: Address,
    },
    /// The runtime or one of its threads cannot be started.
    #[error("cannot start {what}")]
    Start {
        /// What was to be started.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}
