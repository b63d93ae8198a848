//! One connection to a carbon daemon: encodes batches and hands the bytes to the operating system.
//!
//! The daemon says nothing. A write that ends within its deadline was taken by the operating system;
//! a connection that the daemon has ended is noticed before the next write, as far as the system
//! knows by then.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};
use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::wire::Encoder;
use tsb_core::wire::graphite::GraphiteEncoder;
use tsb_core::wire::pickle::PickleEncoder;
use tsb_core::{Batch, Catalog};

use super::options::GraphiteProtocol;
use tsb_stores::error::{Error, Result, chain};

/// Most bytes that a daemon may say and that are skipped; carbon says none.
const SKIPPED_MAX: usize = 1 << 16;

/// One carbon daemon.
#[derive(Debug)]
pub(super) struct Sender {
    host: String,
    protocol: GraphiteProtocol,
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

impl Sender {
    /// To `HOST` or `HOST:PORT`.
    pub(super) fn new(host: &str, protocol: GraphiteProtocol, timeout: Duration) -> Self {
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(name, port)| port.parse::<u16>().is_ok() && (!name.contains(':') || name.ends_with(']')));
        Self {
            host: if has_port {
                host.to_owned()
            } else {
                format!("{host}:{}", protocol.port())
            },
            protocol,
            timeout,
            link: Mutex::default(),
        }
    }

    /// Connects, if it is not connected.
    ///
    /// # Errors
    /// [`Error::Unreachable`].
    pub(super) async fn connect(&self) -> Result<()> {
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
    pub(super) async fn send(&self, batch: &Batch<'_>, catalog: impl FnOnce(usize) -> Option<Catalog>) -> Result<()> {
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
            let made: std::result::Result<Box<dyn Encoder>, _> = match self.protocol {
                GraphiteProtocol::Plaintext => GraphiteEncoder::new(&catalog).map(|made| Box::new(made) as _),
                GraphiteProtocol::Pickle => PickleEncoder::new(&catalog).map(|made| Box::new(made) as _),
            };
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
    pub(super) async fn close(&self) {
        let mut link = self.link.lock().await;
        if let Some(mut stream) = link.stream.take() {
            // The daemon may have ended it before.
            let _ = stream.shutdown().await;
        }
    }

    fn action(&self) -> String {
        format!("send samples (carbon at {}, {})", self.host, self.protocol.name())
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

/// Whether a daemon has not ended a connection, as far as is known. Skips what it said.
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
