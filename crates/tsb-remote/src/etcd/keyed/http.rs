//! HTTP to the members of a cluster, as go-etcd spoke it: one member is asked as long as it
//! answers, a redirection to the leader is followed, and each request has a deadline.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::header::{CONTENT_TYPE, LOCATION};
use http::{Method, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prost::bytes::Bytes;
use tsb_core::bytes::percent;
use tsb_core::time::{Clock, MonotonicClock};

use super::super::options::EtcdOptions;
use crate::etcd::DEFAULT_PORT;
use crate::no_answer::NoAnswer;
use crate::{Address, host_with_port};
use tsb_stores::error::{Error, Result};

/// Pause before another member is asked.
const PAUSE: Duration = Duration::from_millis(200);
/// Maximum size of an answer: the list of a million keys has some 300 MB.
const ANSWER_BYTES_MAX: usize = 1 << 30;
/// What go-etcd sent with every form.
const FORM: &str = "application/x-www-form-urlencoded; param=value";

/// A request, which can be repeated.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) method: Method,
    /// Path and query.
    pub(super) path: String,
    /// The form of a `PUT`.
    pub(super) form: String,
}

impl Ask {
    pub(super) fn get(path: String) -> Self {
        Self {
            method: Method::GET,
            path,
            form: String::new(),
        }
    }
}

/// An answer of any status.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

/// All members.
pub(super) struct Members {
    /// `host:port` of each.
    hosts: Vec<String>,
    current: AtomicUsize,
    client: Client<HttpConnector, Full<Bytes>>,
    timeout: Duration,
    clock: MonotonicClock,
    name: String,
}

impl Members {
    /// Creates the connection pool; sends nothing yet.
    ///
    /// # Errors
    /// [`Error::Spec`] for credentials and TLS, which this client does not have.
    pub(super) fn new(address: &Address, options: &EtcdOptions) -> Result<Self> {
        let unknown = match (options.tls, address.credentials()) {
            (true, _) => Some("TLS"),
            (false, Some(_)) => Some("user and password"),
            (false, None) => None,
        };
        if let Some(what) = unknown {
            return Err(Error::Spec {
                spec: "etcd:".to_owned(),
                what: format!("the client of version 2 knows no {what}; use version 3"),
            });
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        // go-etcd waited a second for a connection.
        connector.set_connect_timeout(Some(Duration::from_secs(1)));
        Ok(Self {
            hosts: address
                .hosts()
                .split(',')
                .map(|host| host_with_port(host, DEFAULT_PORT))
                .collect(),
            current: AtomicUsize::new(0),
            client: Client::builder(TokioExecutor::new()).build(connector),
            timeout: options.timeout,
            clock: MonotonicClock::new(),
            name: address.to_string(),
        })
    }

    /// The cluster, for errors.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Makes a request, at the next member if one cannot be reached; one that changes nothing is
    /// repeated there without an answer, too.
    pub(super) async fn ask(&self, ask: &Ask) -> std::result::Result<Answer, NoAnswer> {
        let deadline = self.clock.now() + self.timeout.as_nanos() as u64;
        let mut attempts = 0;
        loop {
            let member = self.current.load(Ordering::Relaxed);
            let left = Duration::from_nanos(deadline.saturating_sub(self.clock.now()));
            let outcome = tokio::time::timeout(left, self.at(member, ask)).await;
            let failure = match outcome.unwrap_or_else(|_| Err(NoAnswer::late(self.timeout))) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            // Unless another caller has done so already.
            let next = (member + 1) % self.hosts.len();
            let _ = self
                .current
                .compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed);
            attempts += 1;
            let may_repeat = match failure {
                NoAnswer::Unsent(_) => attempts < 2 * self.hosts.len(),
                NoAnswer::Lost(_) => ask.method == Method::GET,
            };
            if !may_repeat || self.clock.now() + PAUSE.as_nanos() as u64 >= deadline {
                return Err(failure);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Makes a request at one member, and where it redirects to.
    async fn at(&self, member: usize, ask: &Ask) -> std::result::Result<Answer, NoAnswer> {
        let mut uri: String = format!("http://{}{}", self.hosts[member], ask.path);
        for _ in 0..=2 * self.hosts.len() {
            let (answer, location) = self.once(&uri, ask).await?;
            match location {
                Some(leader) if answer.status == StatusCode::TEMPORARY_REDIRECT => uri = leader,
                _ => return Ok(answer),
            }
        }
        Err(NoAnswer::Lost("the members redirect to each other".to_owned()))
    }

    async fn once(&self, uri: &str, ask: &Ask) -> std::result::Result<(Answer, Option<String>), NoAnswer> {
        let uri: Uri = uri
            .parse()
            .map_err(|error| NoAnswer::Unsent(format!("{uri} is no address: {error}")))?;
        let mut request = http::Request::builder().method(&ask.method).uri(uri);
        if ask.method == Method::PUT {
            request = request.header(CONTENT_TYPE, FORM);
        }
        let request = request.body(Full::new(Bytes::from(ask.form.clone())));
        let request = request.map_err(|error| NoAnswer::Unsent(error.to_string()))?;
        let reply = self.client.request(request).await;
        let reply = reply.map_err(|error| NoAnswer::of(&error))?;
        let status = reply.status();
        let location = reply
            .headers()
            .get(LOCATION)
            .and_then(|to| to.to_str().ok())
            .map(str::to_owned);
        let body = Limited::new(reply.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| NoAnswer::Lost(error.to_string()))?.to_bytes();
        Ok((Answer { status, body }, location))
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Encodes the value of a field of a form, as Go does.
pub(super) fn form_encoded(value: &str) -> String {
    // A percent sign of the value is encoded, too.
    percent::encoded(value).replace("%20", "+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_encoded_as_go_does() {
        assert_eq!(form_encoded("0,RUNNING,0.0,7f-3a_~"), "0%2CRUNNING%2C0.0%2C7f-3a_~");
        assert_eq!(form_encoded("a b&c=d+\u{e9}\0"), "a+b%26c%3Dd%2B%C3%A9%00");
    }

    #[test]
    fn what_version_2_does_not_speak_is_refused() {
        let of = |path: &str, tls: bool| {
            let address = Address::parse("etcd", "prefix", path).unwrap();
            let options = EtcdOptions {
                tls,
                ..EtcdOptions::default()
            };
            Members::new(&address, &options)
                .map(drop)
                .map_err(|error| error.to_string())
        };
        let tls = of("//a/runs", true).unwrap_err();
        assert!(
            tls.contains("the client of version 2 knows no TLS; use version 3"),
            "{tls}"
        );
        let password = of("//me:hunter2@a/runs", false).unwrap_err();
        assert!(
            password.contains("knows no user and password") && !password.contains("hunter2"),
            "{password}"
        );
    }
}
