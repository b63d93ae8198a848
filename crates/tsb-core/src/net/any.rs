//! One listener type and one target type over connections, datagrams and HTTP requests, for
//! callers that choose the transport at run time.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::address::Address;
use super::datagram::{DatagramListener, DatagramTarget};
use super::error::NetError;
use super::http_target::HttpTarget;
use super::ingest::Ingest;
use super::listener::{Listener, ListenerTotals};
use super::listener_view::ListenerView;
use super::milepost::{Mileposts, Timing};
use super::options::{Granted, ListenOptions};
use super::parker::Interrupter;
use super::stats::ListenerStats;
use super::target::{StreamTarget, TargetReport};
use crate::emit::{Operation, Outcome, Target};
use crate::time::Clock;
use crate::wire::http::Databases;
use crate::wire::{Decoder, Protocol, Room};

/// The kind of transport that carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A connection: TCP, or a Unix stream socket.
    Stream,
    /// Datagrams: UDP, or a Unix datagram socket.
    Datagrams,
    /// Requests and answers over a connection: HTTP.
    Requests,
}

/// Creates the decoders of one listener and owns the state that they share.
#[derive(Clone, Debug)]
pub struct Decoders {
    protocol: Protocol,
    carrier: Carrier,
    room: Room,
    databases: Databases,
}

impl Decoders {
    /// Decoders for `protocol`, which runs over `carrier`.
    pub fn new(protocol: Protocol, carrier: Carrier) -> Self {
        Self {
            protocol,
            carrier,
            room: Room::default(),
            databases: Databases::default(),
        }
    }

    /// Charges the names and the samples that the decoders hold to `room`. By default the decoders
    /// of one listener share 256 MiB for names and 256 MiB for samples.
    #[must_use]
    pub fn within(mut self, room: Room) -> Self {
        self.room = room;
        self
    }

    /// A decoder for a connection, or for a sender of datagrams.
    pub fn make(&self, clock: Arc<dyn Clock>) -> Box<dyn Decoder> {
        let protocol = self.protocol;
        match self.carrier {
            Carrier::Stream => protocol.decoder_within(clock, &self.room),
            Carrier::Datagrams => protocol.datagram_decoder(clock, &self.room),
            Carrier::Requests => {
                let decoder = protocol.http_decoder(Arc::clone(&clock), &self.room, &self.databases);
                decoder.unwrap_or_else(|| protocol.decoder_within(clock, &self.room))
            }
        }
    }
}

/// A listener of either kind.
#[derive(Debug)]
pub enum AnyListener {
    /// Of connections, with requests or without.
    Stream(Listener),
    /// Of datagrams.
    Datagrams(DatagramListener),
}

impl AnyListener {
    /// Listens on `address`; see [`Listener::bind`] and [`DatagramListener::bind`].
    ///
    /// # Errors
    /// As they do.
    #[expect(clippy::too_many_arguments, reason = "what either needs, and which it is to be")]
    pub fn bind(
        handle: &Handle,
        carrier: Carrier,
        address: &Address,
        options: ListenOptions,
        ingest: impl Ingest + 'static,
        clock: Arc<dyn Clock>,
        mileposts: Option<Arc<Mileposts>>,
    ) -> Result<Self, NetError> {
        Ok(match carrier {
            Carrier::Stream | Carrier::Requests => {
                Self::Stream(Listener::bind(handle, address, options, ingest, clock, mileposts)?)
            }
            Carrier::Datagrams => Self::Datagrams(DatagramListener::bind(address, options, ingest, clock, mileposts)?),
        })
    }

    /// The address that it is bound to, with the port that the kernel chose.
    pub fn address(&self) -> &Address {
        match self {
            Self::Stream(listener) => listener.address(),
            Self::Datagrams(listener) => listener.address(),
        }
    }

    /// The socket buffer sizes that the kernel granted.
    pub fn granted(&self) -> Granted {
        match self {
            Self::Stream(listener) => listener.granted(),
            Self::Datagrams(listener) => listener.granted(),
        }
    }

    /// The current counts.
    pub fn stats(&self) -> ListenerStats {
        match self {
            Self::Stream(listener) => listener.stats(),
            Self::Datagrams(listener) => listener.stats(),
        }
    }

    /// A view of the counts that stays usable while the listener is being stopped.
    pub fn view(&self) -> ListenerView {
        match self {
            Self::Stream(listener) => listener.view(),
            Self::Datagrams(listener) => listener.view(),
        }
    }

    /// Moves what was timed since the last call into `into`.
    pub fn drain_timing(&self, into: &mut Timing) {
        match self {
            Self::Stream(listener) => listener.drain_timing(into),
            Self::Datagrams(listener) => listener.drain_timing(into),
        }
    }

    /// Applies what was received, and stops.
    pub fn stop(self) -> ListenerTotals {
        match self {
            Self::Stream(listener) => listener.stop(),
            Self::Datagrams(listener) => listener.stop(),
        }
    }
}

/// A target of any kind.
#[derive(Debug)]
pub enum AnyTarget {
    /// A connection.
    Stream(Box<StreamTarget>),
    /// Datagram sockets.
    Datagrams(Box<DatagramTarget>),
    /// A connection for requests.
    Requests(Box<HttpTarget>),
}

impl AnyTarget {
    /// Ends a blocked send or finish from another thread.
    pub fn interrupter(&self) -> Interrupter {
        match self {
            Self::Stream(target) => target.interrupter(),
            Self::Datagrams(target) => target.interrupter(),
            Self::Requests(target) => target.interrupter(),
        }
    }

    /// Sends what is buffered, and closes.
    pub fn finish(self) -> TargetReport {
        match self {
            Self::Stream(target) => target.finish(),
            Self::Datagrams(target) => target.finish(),
            Self::Requests(target) => target.finish(),
        }
    }
}

impl Target for AnyTarget {
    #[inline]
    fn send(&mut self, operation: &Operation<'_>) -> Outcome {
        match self {
            Self::Stream(target) => target.send(operation),
            Self::Datagrams(target) => target.send(operation),
            Self::Requests(target) => target.send(operation),
        }
    }

    fn idle(&mut self) {
        match self {
            Self::Stream(target) => target.idle(),
            Self::Datagrams(target) => target.idle(),
            Self::Requests(target) => target.idle(),
        }
    }
}
