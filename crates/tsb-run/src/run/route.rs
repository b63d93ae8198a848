//! Makes both ends of a wire: the listener with a decoder and a sink for each connection, and the
//! target that sends to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use tsb_core::Catalog;
use tsb_core::net::{
    Address, AnyListener, AnyTarget, Carrier, DatagramTarget, Decoders, HttpPool, HttpTarget, Intake, IntakeSink,
    ListenOptions, Mileposts, NetError, Registry, Runtime, StreamTarget,
};
use tsb_core::time::Clock;
use tsb_core::wire::dalmatiner::StreamDecoder;
use tsb_core::wire::http::Client;
use tsb_core::wire::{Budget, Encoder, Protocol, Room};

use super::read_through::ReadThrough;
use crate::error::Error;
use crate::plan::{Plan, Transport, WirePlan};

/// Operations in flight that one connection can time.
const MILEPOSTS: usize = 1 << 16;

/// The thread behind the sockets of both ends.
pub(crate) fn runtime() -> Result<Runtime, Error> {
    Runtime::start().map_err(|error| Error::internal("cannot start the network runtime").because(&error))
}

/// Admits the series of `catalog`, of which there may be `limit`, and no others.
pub(crate) fn only(catalog: Catalog, limit: usize) -> Arc<Registry> {
    let refuse = |_, _: &_| Err("not a series of this run".to_owned());
    Arc::new(Registry::with_catalog(catalog, limit, refuse))
}

/// A protocol over a transport, on the clock that times it.
#[derive(Clone, Debug)]
pub struct Route {
    /// How samples become bytes.
    pub protocol: Protocol,
    /// What carries the bytes.
    pub transport: Transport,
    /// The clock of both ends.
    pub clock: Arc<dyn Clock>,
    /// Times operations where both ends are in this process; `None` times none.
    pub mileposts: Option<Arc<Mileposts>>,
    /// What requests that read are answered from, where the protocol has some; `None` refuses them.
    pub read: Option<ReadThrough>,
}

impl Route {
    /// A route that times no operations.
    pub fn new(protocol: Protocol, transport: Transport, clock: &Arc<dyn Clock>) -> Self {
        Self {
            protocol,
            transport,
            clock: Arc::clone(clock),
            mileposts: None,
            read: None,
        }
    }

    /// Whether its listeners can answer requests that read.
    pub fn can_read(&self) -> bool {
        matches!(self.protocol, Protocol::DalmatinerStream | Protocol::DalmatinerBatch)
            && self.transport.carrier() == Carrier::Stream
    }

    /// Also times every operation from its start until it is applied.
    #[must_use]
    pub fn timed(mut self) -> Self {
        self.mileposts = Some(Mileposts::new(MILEPOSTS));
        self
    }

    /// Listens at `address`. Each connection gets a decoder, which keeps names and samples within
    /// `room`, and a sink that `sink` makes.
    ///
    /// # Errors
    /// [`NetError::Bind`], or [`NetError::Start`] when there is no thread to spare.
    pub fn listen<S: IntakeSink + 'static>(
        &self,
        runtime: &Runtime,
        address: &Address,
        options: ListenOptions,
        room: Room,
        sink: impl Fn() -> S + Send + Sync + 'static,
    ) -> Result<AnyListener, NetError> {
        let carrier = self.transport.carrier();
        let read = self.read.clone().filter(|_| self.can_read());
        let decoders = Decoders::new(self.protocol, carrier).within(room.clone());
        let clock = Arc::clone(&self.clock);
        let intake = move |_: &Address| Intake {
            decoder: match &read {
                Some(read) => Box::new(StreamDecoder::new(&clock).within(&room).reading(read.reader())),
                None => decoders.make(Arc::clone(&clock)),
            },
            sink: Box::new(sink()),
        };
        let (clock, mileposts) = (Arc::clone(&self.clock), self.mileposts.clone());
        AnyListener::bind(runtime.handle(), carrier, address, options, intake, clock, mileposts)
    }

    /// Listens at an address of this machine that nobody else uses. A Unix socket is made in
    /// `folder`.
    pub(crate) fn listen_here<S: IntakeSink + 'static>(
        &self,
        runtime: &Runtime,
        folder: &Path,
        options: ListenOptions,
        sink: impl Fn() -> S + Send + Sync + 'static,
    ) -> Result<AnyListener, Error> {
        let address = if self.transport.is_unix() {
            let name = format!("tsb-{}-{}.sock", std::process::id(), self.clock.wall().0);
            Address::Unix(folder.join(name))
        } else {
            Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        };
        // The names are those of a catalog, which says itself how many they may be.
        let room = Room {
            names: Budget::new(usize::MAX),
            ..Room::default()
        };
        let bound = self.listen(runtime, &address, options, room, sink);
        bound.map_err(|error| Error::unreachable("cannot listen on this machine").because(&error))
    }

    /// Connects one of `workers` targets to `address`, for the series that `catalog` finds in
    /// `owner`. The caller has seen that the protocol can carry them.
    pub(crate) fn connect<T: Send + Sync + 'static>(
        &self,
        address: &Address,
        wire: &WirePlan,
        workers: usize,
        owner: &Arc<T>,
        catalog: fn(&T) -> &Catalog,
    ) -> Result<AnyTarget, NetError> {
        let (protocol, options) = (self.protocol, wire.emit_options(workers));
        let (clock, mileposts) = (Arc::clone(&self.clock), self.mileposts.clone());
        Ok(match self.transport.carrier() {
            Carrier::Requests => {
                let (client, encoder) = self.client(address, wire, catalog(owner));
                let target = HttpTarget::connect(address, options, client, encoder, clock)?;
                AnyTarget::Requests(Box::new(target))
            }
            Carrier::Stream => {
                let owner = Arc::clone(owner);
                let make = move || match protocol.encoder(catalog(&owner)) {
                    Ok(encoder) => encoder,
                    Err(error) => unreachable!("an encoder of this catalog has been made before: {error}"),
                };
                let target = StreamTarget::connect(address, options, make, clock, mileposts)?;
                AnyTarget::Stream(Box::new(target))
            }
            Carrier::Datagrams => {
                let limit = options.datagram_bytes;
                let make = |session| match protocol.packer(catalog(owner), limit, session) {
                    Ok(packer) => packer,
                    Err(error) => unreachable!("a packer of this catalog has been made before: {error}"),
                };
                let target = DatagramTarget::connect(address, options, make, clock, mileposts.as_deref())?;
                AnyTarget::Datagrams(Box::new(target))
            }
        })
    }

    /// Connects all connections of a plan over HTTP that has several requests outstanding.
    pub(crate) fn connect_pool<T>(
        &self,
        address: &Address,
        plan: &Plan,
        owner: &Arc<T>,
        catalog: fn(&T) -> &Catalog,
    ) -> Result<HttpPool, NetError> {
        let (client, encoder) = self.client(address, &plan.wire, catalog(owner));
        let (options, clock) = (plan.wire.emit_options(1), Arc::clone(&self.clock));
        HttpPool::connect(address, plan.http_connections(), options, client, encoder, clock)
    }

    /// What makes requests. The caller has seen that the protocol can carry the series.
    fn client(&self, address: &Address, wire: &WirePlan, catalog: &Catalog) -> (Client, Box<dyn Encoder>) {
        let client = Client::new(self.protocol, &address.to_string(), wire.database());
        let Some((client, encoder)) = client.zip(self.protocol.encoder(catalog).ok()) else {
            unreachable!("an encoder of this catalog for requests has been made before");
        };
        (if wire.gzip { client.with_gzip() } else { client }, encoder)
    }
}
