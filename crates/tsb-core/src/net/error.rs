//! Errors of sockets. Each names the address that it concerns.

use std::io;

use super::address::Address;

/// Why a network operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: Address,
        /// The cause.
        source: io::Error,
    },
    /// The connection could not be made.
    #[error("cannot connect to {address}")]
    Connect {
        /// The address.
        address: Address,
        /// The cause.
        source: io::Error,
    },
    /// The connection broke while it was in use.
    #[error("connection to {address} lost after {written_bytes} bytes")]
    Lost {
        /// The peer.
        address: Address,
        /// Number of bytes that the kernel had accepted; how many of them arrived is unknown.
        written_bytes: u64,
        /// The cause.
        source: io::Error,
    },
    /// The peer read nothing for longer than [`super::EmitOptions::stall_timeout`].
    #[error("{address} took nothing for {after_ms} ms")]
    Stalled {
        /// The peer.
        address: Address,
        /// How long the target waited, in milliseconds.
        after_ms: u64,
    },
    /// The peer's machine reported that no process listens at the address.
    #[error("nothing listens on {address}: its host refused {times} times")]
    Refused {
        /// The address.
        address: Address,
        /// Number of such reports. Datagrams sent before a report are lost.
        times: u64,
    },
    /// The peer's answer cannot be parsed, or is not the one that was required.
    #[error("{address} answered: {what}")]
    Answered {
        /// The peer.
        address: Address,
        /// Its answer, or what is wrong with it, truncated to 200 characters.
        what: String,
    },
    /// The peer did not answer within [`super::EmitOptions::answer_timeout`].
    #[error("{address} did not answer within {after_ms} ms")]
    Unanswered {
        /// The peer.
        address: Address,
        /// How long the target waited, in milliseconds.
        after_ms: u64,
    },
    /// An [`super::Interrupter`] ended the wait.
    #[error("sending to {address} was interrupted")]
    Interrupted {
        /// The peer.
        address: Address,
    },
    /// The runtime or one of its threads cannot be started.
    #[error("cannot start {what}")]
    Start {
        /// What failed to start.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
}
