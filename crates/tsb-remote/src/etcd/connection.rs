//! The connection to the members: a deadline on every request, and etcd's errors as ours.
//!
//! One member is asked as long as it answers, then the next. Which member leads matters little:
//! each forwards what it cannot do itself.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, ConnectError, Status};
use tonic_prost::ProstCodec;
use tsb_core::time::{Clock, MonotonicClock};

use super::endpoints::endpoints;
use super::message::{Authenticate, Request};
use super::options::EtcdOptions;
use crate::Address;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::lock;

/// Pause before a read is repeated, after a member could not answer it.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum size of an answer; a page of samples is far smaller.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The failure of a request.
#[derive(Debug)]
pub(super) enum CallError {
    /// It was not sent: no member accepts connections.
    Unsent(Status),
    /// No answer came, or one that leaves the outcome open.
    Lost(Box<dyn std::error::Error + Send + Sync>),
    /// The server refused it: nothing was applied.
    Refused(Status),
}

/// The member that is asked at the moment.
struct CurrentMember {
    member: usize,
    /// Incremented with each change of the member, so that a late failure of an earlier member is
    /// ignored.
    generation: u64,
    channel: Channel,
}

/// All members.
pub(super) struct EtcdConnection {
    members: Vec<Endpoint>,
    current: Mutex<CurrentMember>,
    credentials: Option<Authenticate>,
    token: Mutex<Option<MetadataValue<Ascii>>>,
    timeout: Duration,
    clock: MonotonicClock,
    /// The address without credentials, for errors.
    name: String,
}

impl EtcdConnection {
    /// Creates the connection; sends nothing yet.
    pub(super) fn new(address: &Address, options: &EtcdOptions) -> Result<Self> {
        let members = endpoints(address, options)?;
        let credentials = address.credentials().map(|credentials| Authenticate {
            name: credentials.user().to_owned(),
            password: credentials.password().to_owned(),
        });
        Ok(Self {
            current: Mutex::new(CurrentMember {
                member: 0,
                generation: 0,
                channel: members[0].connect_lazy(),
            }),
            members,
            credentials,
            token: Mutex::default(),
            timeout: options.timeout,
            clock: MonotonicClock::new(),
            name: address.to_string(),
        })
    }

    /// Makes a request, and converts any failure to an error.
    pub(super) async fn ask<R: Request>(&self, action: &str, request: R) -> Result<R::Reply> {
        self.call(request)
            .await
            .map_err(|error| self.error_for::<R>(action, error))
    }

    /// Makes a request.
    pub(super) async fn call<R: Request>(&self, request: R) -> std::result::Result<R::Reply, CallError> {
        if self.credentials.is_none() {
            return self.try_members(&request).await;
        }
        for _ in 0..2 {
            if lock(&self.token).is_none() {
                self.authenticate().await?;
            }
            match self.try_members(&request).await {
                // The token has expired, or the server was restarted.
                Err(CallError::Refused(status)) if status.code() == Code::Unauthenticated => *lock(&self.token) = None,
                outcome => return outcome,
            }
        }
        Err(CallError::Refused(Status::unauthenticated(
            "it gives a token and does not take it",
        )))
    }

    async fn authenticate(&self) -> std::result::Result<(), CallError> {
        let Some(credentials) = &self.credentials else {
            return Ok(());
        };
        let token = self.try_members(credentials).await?.token;
        let token = token
            .parse()
            .map_err(|_| CallError::Lost("a token came that no header can hold".into()))?;
        *lock(&self.token) = Some(token);
        Ok(())
    }

    /// Tries the members one after the other, until one answers or the deadline has passed. A
    /// request that may have been applied is not repeated.
    async fn try_members<R: Request>(&self, request: &R) -> std::result::Result<R::Reply, CallError> {
        let deadline = self.clock.now() + self.timeout.as_nanos() as u64;
        let mut unsent = 0;
        loop {
            let (generation, channel) = self.current();
            let left = Duration::from_nanos(deadline.saturating_sub(self.clock.now()));
            let outcome = tokio::time::timeout(left, self.once(channel, request.clone())).await;
            let error = match outcome {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(status)) => classify(status),
                Err(_) => CallError::Lost(format!("no answer within {:?}", self.timeout).into()),
            };
            if matches!(error, CallError::Refused(_)) {
                return Err(error);
            }
            self.switch_member(generation);
            unsent += usize::from(matches!(error, CallError::Unsent(_)));
            let is_over = self.clock.now() + PAUSE.as_nanos() as u64 >= deadline;
            match error {
                CallError::Unsent(_) if unsent < self.members.len() && !is_over => {}
                CallError::Lost(_) if !R::CHANGES && !is_over => tokio::time::sleep(PAUSE).await,
                _ => return Err(error),
            }
        }
    }

    async fn once<R: Request>(&self, channel: Channel, message: R) -> std::result::Result<R::Reply, Status> {
        let mut client = Grpc::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX);
        client
            .ready()
            .await
            .map_err(|error| Status::from_error(Box::new(ConnectError(error.into()))))?;
        let mut request = tonic::Request::new(message);
        if let Some(token) = lock(&self.token).clone() {
            request.metadata_mut().insert("token", token);
        }
        let codec = ProstCodec::<R, R::Reply>::default();
        let reply = client.unary(request, PathAndQuery::from_static(R::PATH), codec).await?;
        Ok(reply.into_inner())
    }

    fn current(&self) -> (u64, Channel) {
        let current = lock(&self.current);
        (current.generation, current.channel.clone())
    }

    /// Switches to the next member, unless another caller has done so already.
    fn switch_member(&self, generation: u64) {
        let mut current = lock(&self.current);
        if current.generation == generation {
            current.generation += 1;
            current.member = (current.member + 1) % self.members.len();
            current.channel = self.members[current.member].connect_lazy();
        }
    }

    /// Converts a failure to an error that names the action.
    pub(super) fn error_for<R: Request>(&self, action: &str, error: CallError) -> Error {
        match error {
            CallError::Unsent(status) => Error::Unreachable {
                action: self.full_action(action),
                source: status.into(),
            },
            CallError::Lost(source) if R::CHANGES => Error::Unknown {
                action: self.full_action(action),
                source,
            },
            CallError::Lost(source) => Error::Unanswered {
                action: self.full_action(action),
                source,
            },
            CallError::Refused(status) => self.failed(action, status.message().to_owned()),
        }
    }

    /// An error that was not caused by the network.
    pub(super) fn failed(&self, action: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Backend {
            action: self.full_action(action),
            source: source.into(),
        }
    }

    fn full_action(&self, action: &str) -> String {
        format!("{action} (etcd at {})", self.name)
    }
}

// By hand: a derived one would print the credentials.
impl fmt::Debug for EtcdConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdConnection")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Classifies a status by what it says about the request.
fn classify(status: Status) -> CallError {
    let mut source = std::error::Error::source(&status);
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return CallError::Unsent(status);
        }
        source = error.source();
    }
    match status.code() {
        // etcd returns these before it does anything.
        Code::InvalidArgument
        | Code::NotFound
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented => CallError::Refused(status),
        _ => CallError::Lost(status.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_outcome_for_a_write() {
        let of = |code| classify(Status::new(code, "etcdserver: words"));
        for code in [
            Code::Unavailable,
            Code::Unknown,
            Code::Internal,
            Code::Cancelled,
            Code::DeadlineExceeded,
        ] {
            assert!(matches!(of(code), CallError::Lost(_)), "{code:?}");
        }
        for code in [Code::ResourceExhausted, Code::InvalidArgument, Code::NotFound] {
            assert!(matches!(of(code), CallError::Refused(_)), "{code:?}");
        }
        let refused = Status::from_error(Box::new(ConnectError("connection refused".into())));
        assert!(matches!(classify(refused), CallError::Unsent(_)));
    }

    #[test]
    fn no_credential_is_printed() {
        let address = Address::parse("etcd", "prefix", "//me:hunter2@a/runs").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _context = runtime.enter();
        let connection = EtcdConnection::new(&address, &EtcdOptions::default()).unwrap();
        let error = connection.failed("read", "no");
        assert!(!format!("{connection:?}{error:?}{error}").contains("hunter2"));
    }
}
