//! Connections through the driver: a bounded pool, a deadline on every request, and the driver's
//! errors as ours.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Connection, Error as DriverError, NoTls, Statement};

use super::options::PostgresOptions;
use super::schema;
use super::tls::Tls;
use crate::{Address, host_with_port};
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::lock;

/// The port where none is named.
const PORT: u16 = 5432;
/// Deadline of what reads or removes everything that is there.
const WHOLE_TABLE: Duration = Duration::from_mins(10);

/// Whether a request may change something, which decides what a missing answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Writes,
}

/// One connection.
pub(super) struct Session {
    pub(super) client: tokio_postgres::Client,
    prepared: HashMap<String, Statement>,
    /// Serves the socket; `None` once nobody needs to wait for answers.
    serving: Option<JoinHandle<()>>,
}

impl Session {
    fn of<S, T>(client: tokio_postgres::Client, connection: Connection<S, T>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // Its errors are those of the requests that it cannot answer any more.
        let serving = tokio::spawn(async move { drop(connection.await) });
        Self {
            client,
            prepared: HashMap::new(),
            serving: Some(serving),
        }
    }

    /// A statement, prepared once per connection.
    pub(super) async fn prepared(&mut self, statement: &str) -> std::result::Result<Statement, DriverError> {
        if let Some(prepared) = self.prepared.get(statement) {
            return Ok(prepared.clone());
        }
        let prepared = self.client.prepare(statement).await?;
        self.prepared.insert(statement.to_owned(), prepared.clone());
        Ok(prepared)
    }

    /// Lets the server know that this was the last request.
    fn leave(mut self) {
        self.serving = None;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A server that is silent would keep the task, and its socket, for ever.
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

/// A connection for the length of one request. It goes back to the pool by
/// [`Checkout::give_back`]; dropped without that, it is closed.
pub(super) struct Checkout<'a> {
    pool: &'a Pool,
    pub(super) session: Session,
    _permit: SemaphorePermit<'a>,
}

impl Checkout<'_> {
    /// Ends the request: nothing of it is under way any more.
    pub(super) fn give_back(self) {
        if !self.pool.requests.is_closed() && !self.session.client.is_closed() {
            lock(&self.pool.idle).push(self.session);
        }
    }
}

/// Connections to one database.
pub(super) struct Pool {
    config: Config,
    tls: Option<Tls>,
    /// Sets what each session needs.
    setup: String,
    requests: Semaphore,
    idle: Mutex<Vec<Session>>,
    timeout: Duration,
    /// The address without credentials, for errors.
    name: String,
}

impl Pool {
    /// Sends nothing yet.
    pub(super) fn new(address: &Address, options: &PostgresOptions) -> Result<Self> {
        let setting = options.synchronous_commit.map_or(String::new(), |setting| {
            format!("SET synchronous_commit TO {}", setting.name())
        });
        Ok(Self {
            config: config(address, options)?,
            tls: options.tls.then(|| Tls::new(options)).transpose()?,
            setup: setting,
            requests: Semaphore::new(options.connections.clamp(1, Semaphore::MAX_PERMITS)),
            idle: Mutex::default(),
            timeout: options.timeout,
            name: address.to_string(),
        })
    }

    /// A connection, once one is free.
    pub(super) async fn checkout(&self, action: &str) -> Result<Checkout<'_>> {
        let found = tokio::time::timeout(self.timeout, async {
            let permit = self.requests.acquire().await.map_err(|_| Error::Closed)?;
            let idle = lock(&self.idle).pop().filter(|session| !session.client.is_closed());
            let session = match idle {
                Some(session) => session,
                None => self.connect(action, self.timeout).await?,
            };
            Ok(Checkout {
                pool: self,
                session,
                _permit: permit,
            })
        });
        found.await.unwrap_or_else(|_| {
            Err(Error::Unreachable {
                action: self.full_action(action),
                source: format!("no connection within {:?}", self.timeout).into(),
            })
        })
    }

    /// The answer to a request that a checked out connection makes.
    pub(super) async fn answer<T>(
        &self,
        action: &str,
        effect: Effect,
        request: impl Future<Output = std::result::Result<T, DriverError>>,
    ) -> Result<T> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.classify(action, effect, &error)),
            Err(_) => Err(self.no_answer(action, effect, format!("no answer within {:?}", self.timeout))),
        }
    }

    /// Runs a request on a connection of its own, with a deadline for what takes longer the more
    /// there is.
    pub(super) async fn whole_table(&self, action: &str, effect: Effect, statement: &str) -> Result<Option<i64>> {
        let session = tokio::time::timeout(self.timeout, self.connect(action, WHOLE_TABLE));
        let session = session.await.unwrap_or_else(|_| {
            Err(Error::Unreachable {
                action: self.full_action(action),
                source: format!("no connection within {:?}", self.timeout).into(),
            })
        })?;
        let asked = async {
            let rows = session.client.query(statement, &[]).await?;
            rows.first().map(|row| row.try_get(0)).transpose()
        };
        match tokio::time::timeout(WHOLE_TABLE, asked).await {
            Ok(Ok(answer)) => {
                session.leave();
                Ok(answer)
            }
            Ok(Err(error)) => Err(self.classify(action, effect, &error)),
            Err(_) => Err(self.no_answer(action, effect, format!("no answer within {WHOLE_TABLE:?}"))),
        }
    }

    /// Closes all connections; requests are refused from now on.
    pub(super) fn close(&self) {
        self.requests.close();
        for session in lock(&self.idle).drain(..) {
            session.leave();
        }
    }

    async fn connect(&self, action: &str, statement_timeout: Duration) -> Result<Session> {
        let connected = async {
            let session = match &self.tls {
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    Session::of(client, connection)
                }
                Some(tls) => {
                    let (client, connection) = self.config.connect(tls.clone()).await?;
                    Session::of(client, connection)
                }
            };
            // So that the server also gives up what nobody waits for any more.
            let limit_ms = statement_timeout.as_millis().max(1);
            let setup = format!("SET statement_timeout TO {limit_ms}; {}", self.setup);
            session.client.batch_execute(&setup).await?;
            Ok(session)
        };
        connected
            .await
            .map_err(|error: DriverError| self.unconnected(action, &error))
    }

    /// The error for a connection that could not be made.
    fn unconnected(&self, action: &str, error: &DriverError) -> Error {
        match error.code() {
            // The server answers, and will not let this client in.
            Some(code) if !is_passing(code) => self.failed(action, told(error)),
            _ => Error::Unreachable {
                action: self.full_action(action),
                source: told(error).into(),
            },
        }
    }

    fn classify(&self, action: &str, effect: Effect, error: &DriverError) -> Error {
        match error.code() {
            Some(code) if !is_passing(code) => Error::Backend {
                action: self.full_action(action),
                source: Box::new(ServerError {
                    code: code.clone(),
                    told: told(error),
                }),
            },
            _ => self.no_answer(action, effect, told(error)),
        }
    }

    /// An error that was not caused by the network.
    pub(super) fn failed(&self, action: &str, why: impl Into<String>) -> Error {
        Error::Backend {
            action: self.full_action(action),
            source: why.into().into(),
        }
    }

    fn no_answer(&self, action: &str, effect: Effect, why: String) -> Error {
        let (action, source) = (self.full_action(action), why.into());
        match effect {
            Effect::Writes => Error::Unknown { action, source },
            Effect::Reads => Error::Unanswered { action, source },
        }
    }

    fn full_action(&self, action: &str) -> String {
        format!("{action} (PostgreSQL at {})", self.name)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A statement that the server refused: nothing of it was applied.
#[derive(Debug)]
struct ServerError {
    code: SqlState,
    told: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told)
    }
}

impl std::error::Error for ServerError {}

/// The code by which a server has refused a statement.
pub(super) fn refusal(error: &Error) -> Option<&SqlState> {
    let Error::Backend { source, .. } = error else {
        return None;
    };
    source.downcast_ref::<ServerError>().map(|error| &error.code)
}

/// Whether a code means that the server is starting, ending, full, or gave up: the same may
/// succeed later.
fn is_passing(code: &SqlState) -> bool {
    let class = code.code().get(..2).unwrap_or_default();
    // Connection exceptions, and intervention of an operator: shutdown, crash, cancelled.
    matches!(class, "08" | "57") || *code == SqlState::TOO_MANY_CONNECTIONS
}

/// The driver's error with its cause, in one line.
fn told(error: &DriverError) -> String {
    let Some(server) = error.as_db_error() else {
        let cause = std::error::Error::source(error);
        return cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
    };
    let hint = match *server.code() {
        SqlState::INVALID_CATALOG_NAME => "; make it with createdb, or name another",
        SqlState::INSUFFICIENT_PRIVILEGE => "; the user needs CREATE on the database",
        _ => "",
    };
    format!("{} ({}){hint}", server.message(), server.code().code())
}

fn config(address: &Address, options: &PostgresOptions) -> Result<Config> {
    let mut config = Config::new();
    let hosts: Vec<&str> = address.hosts().split(',').collect();
    for host in &hosts {
        let named = host_with_port(host, PORT);
        let (host, port) = named.rsplit_once(':').unwrap_or((&named, ""));
        let wrong = |_| schema::error(format!("{port:?} is no port: write HOST:PORT"));
        // The driver takes an IPv6 address without its brackets.
        config
            .host(host.trim_matches(['[', ']']))
            .port(port.parse().map_err(wrong)?);
    }
    if hosts.len() > 1 {
        // One of them is the primary.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    if let Some(credentials) = address.credentials() {
        config.user(credentials.user());
        if !credentials.password().is_empty() {
            config.password(credentials.password());
        }
    }
    config
        .dbname(address.place())
        .application_name("tsb")
        .connect_timeout(options.timeout / hosts.len() as u32)
        .ssl_mode(if options.tls {
            SslMode::Require
        } else {
            SslMode::Disable
        });
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_postgres::config::Host;

    fn config_of(path: &str) -> Result<Config> {
        let address = Address::parse("postgres", "database", path).unwrap();
        config(&address, &PostgresOptions::default())
    }

    #[test]
    fn a_host_has_the_usual_port_unless_it_names_one() {
        let config = config_of("//me:p%40ss@a,b:1/runs").unwrap();
        assert_eq!(config.get_ports(), [5432, 1]);
        let six = config_of("//[::1],[::1]:1/runs").unwrap();
        assert_eq!(six.get_ports(), [5432, 1]);
        let is_bare = |host: &Host| matches!(host, Host::Tcp(name) if name == "::1");
        assert!(six.get_hosts().iter().all(is_bare), "{six:?}");
        assert_eq!(config.get_password(), Some(&b"p@ss"[..]));
        assert!(!format!("{config:?}").contains("p@ss"));
        let error = config_of("//a:x/runs").unwrap_err().to_string();
        assert!(error.contains("\"x\" is no port"), "{error}");
    }

    #[test]
    fn what_may_succeed_later_is_no_refusal() {
        for code in [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
        ] {
            assert!(is_passing(&code), "{code:?}");
        }
        for code in [
            SqlState::UNIQUE_VIOLATION,
            SqlState::DISK_FULL,
            SqlState::INVALID_PASSWORD,
        ] {
            assert!(!is_passing(&code), "{code:?}");
        }
    }
}
