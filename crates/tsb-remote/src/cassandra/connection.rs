//! The driver's session: connecting, deadlines, and the driver's errors as ours.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::deserialize::row::DeserializeRow;
use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::policies::timestamp_generator::MonotonicTimestampGenerator;
use scylla::response::query_result::QueryResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::Batch;
use scylla::statement::prepared::PreparedStatement;
use tsb_core::time::{Clock, MonotonicClock};

use super::options::CassandraOptions;
use super::{DEFAULT_PORT, tables::Tables};
use crate::{Address, host_with_port};
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::{read, write};

/// Rows per page of an answer.
const PAGE_ROWS: i32 = 5_000;
/// Between two attempts to connect again.
const PAUSE: Duration = Duration::from_millis(50);

/// Whether a request may change something, which decides what a missing answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Writes,
}

/// Connections to a cluster, and a keyspace of it.
pub(super) struct CassandraConnection {
    session: RwLock<Arc<Session>>,
    builder: SessionBuilder,
    /// Held while a new session is being made.
    reconnecting: tokio::sync::Mutex<()>,
    tables: Tables,
    timeout: Duration,
    /// The address without credentials, for errors.
    name: String,
}

impl CassandraConnection {
    pub(super) async fn connect(address: &Address, options: &CassandraOptions) -> Result<Self> {
        const ACTION: &str = "connect";
        let name = address.to_string();
        let hosts = address
            .hosts()
            .split(',')
            .map(|host| host_with_port(host, DEFAULT_PORT));
        let profile = ExecutionProfile::builder()
            .consistency(options.read_consistency.level())
            .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
            // Every request is made under a deadline of ours, of which it may be one of many.
            .request_timeout(None)
            .build();
        let mut builder = SessionBuilder::new()
            .known_nodes(hosts)
            .default_execution_profile_handle(profile.into_handle())
            .connection_timeout(options.timeout)
            .schema_agreement_timeout(options.timeout)
            .timestamp_generator(Arc::new(MonotonicTimestampGenerator::new().without_warnings()))
            // Only its replication matters, by which requests find a replica.
            .keyspaces_to_fetch([address.place()])
            .fetch_schema_metadata(true)
            .fetch_full_schema_metadata(false);
        if let Some(credentials) = address.credentials() {
            builder = builder.user(credentials.user(), credentials.password());
        }
        let unreachable = |source| Error::Unreachable {
            action: full_action(ACTION, &name),
            source,
        };
        let session = match tokio::time::timeout(options.timeout, builder.build()).await {
            Ok(Ok(session)) => session,
            Ok(Err(error)) if is_refused(&error) => return Err(failed(ACTION, &name, chain(&error))),
            Ok(Err(error)) => return Err(unreachable(chain(&error).into())),
            Err(_) => return Err(unreachable(format!("no answer within {:?}", options.timeout).into())),
        };
        Ok(Self {
            session: RwLock::new(Arc::new(session)),
            builder,
            reconnecting: tokio::sync::Mutex::default(),
            tables: Tables::new(address.place()),
            timeout: options.timeout,
            name,
        })
    }

    pub(super) const fn tables(&self) -> &Tables {
        &self.tables
    }

    fn session(&self) -> Arc<Session> {
        Arc::clone(&read(&self.session))
    }

    /// A statement, prepared at every node that it may be sent to.
    pub(super) async fn prepare(&self, statement: String) -> Result<PreparedStatement> {
        const ACTION: &str = "prepare a statement";
        let session = self.session();
        let prepare = async { Ok(session.prepare(statement).await?) };
        let mut prepared = self.answer(ACTION, Effect::Reads, prepare).await?;
        prepared.set_page_size(PAGE_ROWS);
        Ok(prepared)
    }

    /// Changes the schema, and waits until all nodes have the change.
    pub(super) async fn change(&self, action: &str, statement: String) -> Result<()> {
        let session = self.session();
        let changed = session.query_unpaged(statement, ());
        self.answer(action, Effect::Writes, changed).await.map(drop)
    }

    /// All rows that answer a statement of the client's own, which has few.
    pub(super) async fn ask<R>(&self, action: &str, statement: &str, values: impl SerializeRow) -> Result<Vec<R>>
    where
        R: for<'row> DeserializeRow<'row, 'row>,
    {
        let session = self.session();
        let asked = session.query_unpaged(statement, values);
        let answer = self.answer(action, Effect::Reads, asked).await?;
        self.rows(action, answer)
    }

    /// A page of the rows that answer a statement, and where the next page begins.
    pub(super) async fn page<R>(
        &self,
        action: &str,
        statement: &PreparedStatement,
        values: impl SerializeRow,
        from: PagingState,
    ) -> Result<(Vec<R>, Option<PagingState>)>
    where
        R: for<'row> DeserializeRow<'row, 'row>,
    {
        let page = self.execute_page(statement, values, from);
        let (answer, next) = self.answer(action, Effect::Reads, page).await?;
        let next = match next.into_paging_control_flow() {
            std::ops::ControlFlow::Break(()) => None,
            std::ops::ControlFlow::Continue(next) => Some(next),
        };
        Ok((self.rows(action, answer)?, next))
    }

    /// All rows that answer a statement, page by page.
    pub(super) async fn pages<R>(
        &self,
        action: &str,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<Vec<R>>
    where
        R: for<'row> DeserializeRow<'row, 'row>,
    {
        let mut rows = Vec::new();
        let mut next = Some(PagingState::start());
        while let Some(from) = next {
            let (page, following) = self.page(action, statement, &values, from).await?;
            rows.extend(page);
            next = following;
        }
        Ok(rows)
    }

    fn rows<R>(&self, action: &str, answer: QueryResult) -> Result<Vec<R>>
    where
        R: for<'row> DeserializeRow<'row, 'row>,
    {
        let unreadable = |why: &dyn fmt::Display| self.failed(action, format!("the answer cannot be read: {why}"));
        let answer = answer.into_rows_result().map_err(|error| unreadable(&error))?;
        let rows = answer.rows::<R>().map_err(|error| unreadable(&error))?;
        let rows = rows.collect::<std::result::Result<_, _>>();
        rows.map_err(|error| unreadable(&error))
    }

    /// Executes a statement whose answer has no rows, or few.
    pub(super) async fn execute(&self, statement: &PreparedStatement, values: impl SerializeRow) -> Answered<()> {
        let mut attempts = Attempts::of(self);
        loop {
            let executed = attempts.session().execute_unpaged(statement, &values).await;
            if let Some(answered) = attempts.ended(executed).await {
                return answered.map(drop);
            }
        }
    }

    /// Executes the statements of a batch.
    pub(super) async fn execute_batch(&self, batch: &Batch, values: &[impl SerializeRow]) -> Answered<()> {
        let mut attempts = Attempts::of(self);
        loop {
            let executed = attempts.session().batch(batch, values).await;
            if let Some(answered) = attempts.ended(executed).await {
                return answered.map(drop);
            }
        }
    }

    async fn execute_page(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
        from: PagingState,
    ) -> Answered<(QueryResult, PagingStateResponse)> {
        let mut attempts = Attempts::of(self);
        loop {
            let page = attempts.session().execute_single_page(statement, &values, from.clone());
            let page = page.await;
            if let Some(answered) = attempts.ended(page).await {
                return answered;
            }
        }
    }

    /// The answer to a request, within the deadline.
    pub(super) async fn answer<T>(
        &self,
        action: &str,
        effect: Effect,
        request: impl Future<Output = Answered<T>>,
    ) -> Result<T> {
        let answered = self.within_deadline(action, effect, request).await?;
        answered.map_err(|error| self.classify(action, effect, &error))
    }

    /// Connects again in place of a session without connections, which would wait for up to ten
    /// seconds between its own attempts.
    async fn reconnect(&self, broken: &Arc<Session>) {
        let _alone = self.reconnecting.lock().await;
        if !Arc::ptr_eq(broken, &read(&self.session)) {
            return;
        }
        // In a box: every request would be as large as a connection that is being made.
        match Box::pin(self.builder.build()).await {
            Ok(session) => *write(&self.session) = Arc::new(session),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }

    /// What a future comes to, unless the deadline passes.
    pub(super) async fn within_deadline<T>(
        &self,
        action: &str,
        effect: Effect,
        future: impl Future<Output = T>,
    ) -> Result<T> {
        let ended = tokio::time::timeout(self.timeout, future).await;
        ended.map_err(|_| self.no_answer(action, effect, format!("no answer within {:?}", self.timeout)))
    }

    pub(super) fn classify(&self, action: &str, effect: Effect, error: &ExecutionError) -> Error {
        match outcome(error) {
            Outcome::Refused => self.failed(action, chain(error)),
            Outcome::NotDone => Error::Unreachable {
                action: full_action(action, &self.name),
                source: chain(error).into(),
            },
            Outcome::Unknown => self.no_answer(action, effect, chain(error)),
        }
    }

    /// An error that was not caused by the network.
    pub(super) fn failed(&self, action: &str, why: impl Into<String>) -> Error {
        failed(action, &self.name, why.into())
    }

    pub(super) fn no_answer(&self, action: &str, effect: Effect, why: String) -> Error {
        let (action, source) = (full_action(action, &self.name), why.into());
        match effect {
            Effect::Writes => Error::Unknown { action, source },
            Effect::Reads => Error::Unanswered { action, source },
        }
    }
}

impl fmt::Debug for CassandraConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CassandraConnection")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// An error about the options, or what they name.
pub(super) fn spec_error(what: impl Into<String>) -> Error {
    Error::Spec {
        spec: "cassandra:".to_owned(),
        what: what.into(),
    }
}

fn full_action(action: &str, name: &str) -> String {
    format!("{action} (Cassandra at {name})")
}

fn failed(action: &str, name: &str, why: String) -> Error {
    Error::Backend {
        action: full_action(action, name),
        source: why.into(),
    }
}

/// The attempts to make one request. Without a connection nothing is sent, and it is made again once
/// there is one, until a tenth of the deadline is left.
struct Attempts<'a> {
    connection: &'a CassandraConnection,
    session: Arc<Session>,
    clock: MonotonicClock,
}

impl<'a> Attempts<'a> {
    fn of(connection: &'a CassandraConnection) -> Self {
        Self {
            connection,
            session: connection.session(),
            clock: MonotonicClock::new(),
        }
    }

    fn session(&self) -> &Session {
        &self.session
    }

    /// What an attempt came to; `None` if another one is to be made.
    async fn ended<T>(&mut self, attempt: Answered<T>) -> Option<Answered<T>> {
        let left = self.connection.timeout.mul_f64(0.9);
        let left = left.saturating_sub(Duration::from_nanos(self.clock.now()));
        let is_over = |error| !is_disconnected(error) || left.is_zero();
        if attempt.as_ref().err().is_none_or(is_over) {
            return Some(attempt);
        }
        // At the end of the time the next attempt is the last.
        let _whether = tokio::time::timeout(left, self.connection.reconnect(&self.session)).await;
        self.session = self.connection.session();
        None
    }
}

/// What the driver makes of a request.
pub(super) type Answered<T> = std::result::Result<T, ExecutionError>;

/// Whether there was no connection, so that nothing was sent.
fn is_disconnected(error: &ExecutionError) -> bool {
    matches!(
        error,
        ExecutionError::EmptyPlan
            | ExecutionError::ConnectionPoolError(_)
            | ExecutionError::PrepareError(PrepareError::ConnectionPoolError(_))
    )
}

/// What an error says of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The server will not do it, and has done nothing of it.
    Refused,
    /// Nothing was sent, or nothing was done because too few nodes are up: it may succeed later.
    NotDone,
    /// It may have been applied.
    Unknown,
}

pub(super) fn outcome(error: &ExecutionError) -> Outcome {
    match error {
        _ if is_disconnected(error) => Outcome::NotDone,
        ExecutionError::BadQuery(_) => Outcome::Refused,
        ExecutionError::PrepareError(PrepareError::AllAttemptsFailed { first_attempt }) => {
            outcome_of_attempt(first_attempt)
        }
        ExecutionError::LastAttemptError(attempt) => outcome_of_attempt(attempt),
        _ => Outcome::Unknown,
    }
}

fn outcome_of_attempt(attempt: &RequestAttemptError) -> Outcome {
    match attempt {
        RequestAttemptError::SerializationError(_) | RequestAttemptError::CqlRequestSerialization(_) => {
            Outcome::Refused
        }
        RequestAttemptError::UnableToAllocStreamId => Outcome::NotDone,
        RequestAttemptError::DbError(error, _) => match error {
            DbError::Unavailable { .. } | DbError::IsBootstrapping => Outcome::NotDone,
            DbError::SyntaxError
            | DbError::Invalid
            | DbError::AlreadyExists { .. }
            | DbError::AuthenticationError
            | DbError::Unauthorized
            | DbError::ConfigError => Outcome::Refused,
            _ => Outcome::Unknown,
        },
        _ => Outcome::Unknown,
    }
}

/// Whether the server answers, and will not let this client in.
fn is_refused(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if matches!(
            error.downcast_ref::<DbError>(),
            Some(DbError::AuthenticationError | DbError::Unauthorized)
        ) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// An error with those of its causes that it does not name itself.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}
