//! One connection to a server that answers nothing: encodes batches and hands the bytes to the operating
//! system.
//!
//! A write that ends within its deadline was taken by the operating system; a connection that the server
//! has ended is noticed before the next write, as far as the system knows by then.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};
use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::wire::{Encoder, Protocol};
use tsb_core::{Batch, Catalog, SeriesKey};

use crate::address::host_with_port;
use tsb_stores::error::{Error, Result, chain};

/// Most bytes that a server may say and that are skipped; carbon and KairosDB say none.
const SKIPPED_MAX: usize = 1 << 16;

/// The port for `put` lines by default.
#[cfg(any(feature = "kairosdb", feature = "victoriametrics"))]
const PUT_PORT: u16 = 4242;

/// A connection to one server.
#[derive(Debug)]
pub(crate) struct UnansweredSender {
    server: &'static str,
    /// `HOST:PORT`.
    host: String,
    protocol: Protocol,
    timeout: Duration,
    link: Mutex<Link>,
}

#[derive(Debug, Default)]
struct Link {
    /// `None` during a write, so that a write that ends half-way is followed by nothing.
    stream: Option<TcpStream>,
    encoder: Option<Box<dyn Encoder>>,
    /// Series that the encoder knows.
    series: usize,
    bytes: Vec<u8>,
}

impl UnansweredSender {
    /// To a kind of server at `HOST` or `HOST:PORT`. Nothing is sent yet.
    pub(crate) fn new(
        server: &'static str,
        host: &str,
        default_port: u16,
        protocol: Protocol,
        timeout: Duration,
    ) -> Self {
        Self {
            server,
            host: host_with_port(host, default_port),
            protocol,
            timeout,
            link: Mutex::default(),
        }
    }

    /// To the port of a server for `put` lines, connected; `None` if no host is named.
    ///
    /// # Errors
    /// As [`Self::connect`].
    #[cfg(any(feature = "kairosdb", feature = "victoriametrics"))]
    pub(crate) async fn for_put_lines(
        server: &'static str,
        host: Option<&str>,
        protocol: Protocol,
        timeout: Duration,
    ) -> Result<Option<Self>> {
        let Some(host) = host else { return Ok(None) };
        let sender = Self::new(server, host, PUT_PORT, protocol, timeout);
        sender.connect().await?;
        Ok(Some(sender))
    }

    /// Connects, if it is not connected.
    ///
    /// # Errors
    /// [`Error::Unreachable`].
    pub(crate) async fn connect(&self) -> Result<()> {
        let attempt = async {
            let mut link = self.link.lock().await;
            self.connected(&mut link).await
        };
        match tokio::time::timeout(self.timeout, attempt).await {
            Ok(connected) => connected,
            Err(_) => Err(self.unsent(format!("no connection within {:?}", self.timeout))),
        }
    }

    /// Sends a batch whose ids are places in `catalog`, which only grows.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if nothing of it was sent, otherwise [`Error::Unknown`].
    pub(crate) async fn send(&self, batch: &Batch<'_>, catalog: impl FnOnce(usize) -> Option<Catalog>) -> Result<()> {
        let clock = MonotonicClock::new();
        let late = || format!("not taken within {:?}", self.timeout);
        let ready = async {
            let mut link = self.link.lock().await;
            self.connected(&mut link).await?;
            Ok(link)
        };
        let ready: Result<MutexGuard<'_, Link>> = match tokio::time::timeout(self.timeout, ready).await {
            Ok(ready) => ready,
            Err(_) => Err(self.unsent(late())),
        };
        let mut link = ready?;
        self.encode(&mut link, batch, catalog)?;
        let Some(mut stream) = link.stream.take() else {
            return Err(self.unsent("the connection is gone".to_owned()));
        };
        let left = self.timeout.saturating_sub(Duration::from_nanos(clock.now()));
        match tokio::time::timeout(left, stream.write_all(&link.bytes)).await {
            Ok(Ok(())) => {
                link.stream = Some(stream);
                Ok(())
            }
            Ok(Err(error)) => Err(self.unknown(chain(&error))),
            Err(_) => Err(self.unknown(late())),
        }
    }

    fn encode(&self, link: &mut Link, batch: &Batch<'_>, catalog: impl FnOnce(usize) -> Option<Catalog>) -> Result<()> {
        if let Some(catalog) = catalog(link.series) {
            link.series = catalog.len();
            let made = self.protocol.encoder(&catalog);
            let made = made.map_err(|error| Error::Backend {
                action: self.action(),
                source: error.into(),
            })?;
            link.encoder = Some(made);
        }
        link.bytes.clear();
        if let Some(encoder) = &mut link.encoder {
            encoder.encode(batch, &mut link.bytes);
        }
        Ok(())
    }

    async fn connected(&self, link: &mut Link) -> Result<()> {
        if link.stream.as_ref().is_some_and(is_open) {
            return Ok(());
        }
        link.stream = None;
        let stream = TcpStream::connect(&self.host).await;
        let stream = stream.map_err(|error| self.unsent(chain(&error)))?;
        stream.set_nodelay(true).map_err(|error| self.unsent(chain(&error)))?;
        link.stream = Some(stream);
        Ok(())
    }

    /// Ends the connection; what the operating system has taken is still sent.
    pub(crate) async fn close(&self) {
        let mut link = self.link.lock().await;
        if let Some(mut stream) = link.stream.take() {
            // The server may have ended it before.
            let _ = stream.shutdown().await;
        }
    }

    fn action(&self) -> String {
        format!("send samples ({} at {}, {})", self.server, self.host, self.protocol)
    }

    fn unsent(&self, why: String) -> Error {
        Error::Unreachable {
            action: self.action(),
            source: why.into(),
        }
    }

    fn unknown(&self, why: String) -> Error {
        Error::Unknown {
            action: self.action(),
            source: why.into(),
        }
    }
}

/// Whether a server has not ended a connection, as far as is known. Skips what it said.
fn is_open(stream: &TcpStream) -> bool {
    let (mut skipped, mut buffer) = (0, [0; 4_096]);
    while skipped < SKIPPED_MAX {
        match stream.try_read(&mut buffer) {
            Ok(0) => return false,
            Ok(read) => skipped += read,
            Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
        }
    }
    false
}

/// Series by number as the catalog of an encoder that knows `known` of them; `None`: it knows all.
pub(crate) fn catalog_beyond(known: usize, series: impl ExactSizeIterator<Item = SeriesKey>) -> Option<Catalog> {
    if series.len() <= known {
        return None;
    }
    let mut catalog = Catalog::new();
    for key in series {
        catalog.intern(key);
    }
    Some(catalog)
}
