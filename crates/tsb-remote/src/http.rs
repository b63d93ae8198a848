//! HTTP to one server: pooled connections, a deadline for each request, bounded answers, and
//! credentials in a header.
//!
//! An answer of any status is an answer: what a status means for the samples of a request is the
//! client's own affair. This module knows no protocol of samples. It follows no redirections, and never
//! repeats a request that may change something.

mod answer;
mod authorization;
mod lines;
mod request;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http::header::AUTHORIZATION;
use http::uri::Authority;
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use tsb_core::time::{Clock, MonotonicClock};

pub use answer::{Answer, BodyChunks};
pub use authorization::Authorization;
pub use lines::LineReader;
pub use request::Request;

use crate::address::Address;
use crate::no_answer::NoAnswer;
use crate::tls::{TlsOptions, client_config};
use tsb_stores::error::{Error, Result};

/// Maximum size of an answer that is collected, in bytes.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Of an answer that refuses rows, the bytes that are read.
const REFUSAL_BYTES_MAX: usize = 1 << 16;
/// Maximum time to wait for a connection.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(5);
/// Pause before a read is repeated.
const PAUSE: Duration = Duration::from_millis(50);

/// Pooled connections, in the clear or through TLS.
enum Pool {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Pool {
    fn request(&self, request: http::Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Self::Plain(client) => client.request(request),
            Self::Tls(client) => client.request(request),
        }
    }
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub struct Access {
    /// Who asks; absent: nobody says so.
    pub authorization: Option<Authorization>,
    /// Whom to trust; absent: the connection is in the clear.
    pub tls: Option<TlsOptions>,
    /// Deadline of a request with its connection, its repetitions and its answer; of an answer that is read
    /// in chunks, of its head and then of each chunk.
    pub timeout: Duration,
}

impl Access {
    /// With the credentials of an address.
    ///
    /// # Errors
    /// As [`Authorization::basic`].
    pub fn of(address: &Address, tls: Option<TlsOptions>, timeout: Duration) -> Result<Self> {
        let authorization = address.credentials().map(Authorization::basic).transpose()?;
        Ok(Self {
            authorization,
            tls,
            timeout,
        })
    }
}

/// One server.
pub struct HttpServer {
    base: String,
    authorization: Option<Authorization>,
    pool: Pool,
    timeout: Duration,
    clock: MonotonicClock,
    /// The kind of server and its address, without credentials, for errors.
    name: String,
}

impl HttpServer {
    /// A server with its connection pool; sends nothing yet. `kind` names the server in errors
    /// (`InfluxDB`), and `host` is `HOST` or `HOST:PORT`.
    ///
    /// # Errors
    /// [`Error::Spec`] for a host that is none, and [`Error::Backend`] if the certificates to trust
    /// cannot be read.
    pub fn new(kind: &str, host: &str, default_port: u16, access: Access) -> Result<Self> {
        let Access {
            authorization,
            tls,
            timeout,
        } = access;
        let wrong = |what: String| Error::Spec {
            spec: kind.to_owned(),
            what,
        };
        let authority: Authority = host
            .parse()
            .map_err(|error| wrong(format!("the host is none: {error}; write HOST or HOST:PORT")))?;
        let port = match authority.port_u16() {
            Some(port) => port,
            None if authority.as_str() == authority.host() => default_port,
            // Not quoted: credentials may stand there.
            None => return Err(wrong("the host is none: write HOST or HOST:PORT".to_owned())),
        };
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(timeout.min(CONNECT_TIMEOUT_MAX)));
        let builder = Client::builder(TokioExecutor::new());
        let (scheme, pool) = match tls {
            None => ("http", Pool::Plain(builder.build(connector))),
            Some(tls) => {
                connector.enforce_http(false);
                let secure = HttpsConnectorBuilder::new().with_tls_config(client_config(tls.ca.as_deref())?);
                let secure = secure.https_only().enable_http1().wrap_connector(connector);
                ("https", Pool::Tls(builder.build(secure)))
            }
        };
        Ok(Self {
            base: format!("{scheme}://{}:{port}", authority.host()),
            authorization,
            pool,
            timeout,
            clock: MonotonicClock::new(),
            name: format!("{kind} at {}:{port}", authority.host()),
        })
    }

    /// The kind of server and its address, without credentials.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a request, and collects its answer, of any status.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if there is no connection, so nothing was sent. Without a whole
    /// answer of at most [`ANSWER_BYTES_MAX`] bytes within the deadline: [`Error::Unknown`] if the
    /// request may change something, otherwise [`Error::Unanswered`], after it was repeated.
    pub async fn ask(&self, action: &str, request: &Request) -> Result<Answer> {
        let collected = |answer: BodyChunks| async move {
            let (status, headers, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| NoAnswer::Lost(tsb_stores::error::chain(&*error)))?;
            Ok(Answer::new(status, headers, body.to_bytes()))
        };
        self.repeated(action, request, collected).await
    }

    /// Makes a request, and returns once the head of its answer is there; the body is then read
    /// chunk by chunk, each within the deadline.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn stream(&self, action: &str, request: &Request) -> Result<BodyChunks> {
        self.repeated(action, request, |answer| async { Ok(answer) }).await
    }

    /// As [`Self::stream`], of a request whose answer is rows: one of any other status than success is
    /// an error.
    ///
    /// # Errors
    /// As [`Self::ask`], and [`Self::refused`].
    pub async fn rows(&self, action: &str, request: &Request) -> Result<BodyChunks> {
        let chunks = self.stream(action, request).await?;
        if chunks.status().is_success() {
            return Ok(chunks);
        }
        let answer = chunks.collect(REFUSAL_BYTES_MAX).await?;
        Err(self.refused(action, &answer))
    }

    /// Makes a request; one that changes nothing is repeated within the deadline.
    async fn repeated<T, F: Future<Output = std::result::Result<T, NoAnswer>>>(
        &self,
        action: &str,
        request: &Request,
        finish: impl Fn(BodyChunks) -> F,
    ) -> Result<T> {
        let deadline = self.clock.now() + self.timeout.as_nanos() as u64;
        loop {
            let left = Duration::from_nanos(deadline.saturating_sub(self.clock.now()));
            let attempt = async { finish(self.once(action, request).await?).await };
            let outcome = tokio::time::timeout(left, attempt).await;
            let failure = match outcome.unwrap_or_else(|_| Err(NoAnswer::late(self.timeout))) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let is_over = self.clock.now() + PAUSE.as_nanos() as u64 >= deadline;
            if request.changes || is_over || matches!(failure, NoAnswer::Unsent(_)) {
                return Err(failure.error(self.full_action(action), request.changes));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn once(&self, action: &str, request: &Request) -> std::result::Result<BodyChunks, NoAnswer> {
        let unsent = |error: &dyn std::error::Error| NoAnswer::Unsent(tsb_stores::error::chain(error));
        let uri: Uri = format!("{}{}", self.base, request.path)
            .parse()
            .map_err(|error: http::uri::InvalidUri| unsent(&error))?;
        let mut head = http::Request::builder().method(&request.method).uri(uri);
        for (name, value) in &request.headers {
            head = head.header(*name, &**value);
        }
        if let Some(authorization) = &self.authorization {
            head = head.header(AUTHORIZATION, authorization.header());
        }
        let whole = head
            .body(Full::new(request.body.clone()))
            .map_err(|error| unsent(&error))?;
        let reply = self.pool.request(whole).await;
        let reply = reply.map_err(|error| NoAnswer::of(&error))?;
        Ok(BodyChunks::new(reply, self.timeout, self.full_action(action)))
    }

    /// An answer that says that nothing was done, as an error: its status, the beginning of its
    /// body, and for 401 and 403 what to do.
    pub fn refused(&self, action: &str, answer: &Answer) -> Error {
        self.failed(action, answer.described())
    }

    /// An error that was not caused by the network.
    pub fn failed(&self, action: &str, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Backend {
            action: self.full_action(action),
            source: why.into(),
        }
    }

    /// An error about an answer to a read that cannot be understood.
    pub fn unanswered(&self, action: &str, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Unanswered {
            action: self.full_action(action),
            source: why.into(),
        }
    }

    /// An error about an answer that leaves open what was done.
    pub fn unknown(&self, action: &str, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Unknown {
            action: self.full_action(action),
            source: why.into(),
        }
    }

    fn full_action(&self, action: &str) -> String {
        format!("{action} ({})", self.name)
    }
}

// By hand: the connection pool says nothing.
impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
