//! Statements and lines over HTTP, for one database.

use serde::de::DeserializeOwned;
use tsb_core::bytes::percent::encoded;

use super::DEFAULT_PORT;
use super::names::identifier;
use super::options::InfluxOptions;
use super::reply::{Fate, Reply, StatementResult, fate};
use crate::Address;
use crate::http::{Access, BodyChunks, HttpServer, Request};
use tsb_stores::error::{Error, Result};
use tsb_stores::store::Reason;

/// Rows of a chunk.
const CHUNK_ROWS: usize = 10_000;

/// One database of a server.
#[derive(Debug)]
pub(super) struct InfluxConnection {
    server: HttpServer,
    database: String,
    /// Where lines are written.
    write_path: String,
}

impl InfluxConnection {
    /// Sends nothing yet.
    pub(super) fn new(address: &Address, options: &InfluxOptions) -> Result<Self> {
        if address.hosts().contains(',') {
            return Err(spec_error("one host is written to, and several are named".to_owned()));
        }
        let access = Access::of(address, options.tls.clone(), options.timeout)?;
        let database = address.place().to_owned();
        Ok(Self {
            server: HttpServer::new("InfluxDB", address.hosts(), DEFAULT_PORT, access)?,
            write_path: format!("/write?db={}&precision=ns", encoded(&database)),
            database,
        })
    }

    pub(super) fn server(&self) -> &HttpServer {
        &self.server
    }

    pub(super) fn database(&self) -> &str {
        &self.database
    }

    /// Checks that an InfluxDB 1.x answers.
    pub(super) async fn check_version(&self) -> Result<()> {
        const ACTION: &str = "ask for the version";
        let answer = self.server.ask(ACTION, &Request::get("/ping")).await?;
        if matches!(answer.status().as_u16(), 401 | 403) {
            return Err(self.server.refused(ACTION, &answer));
        }
        match answer.header("x-influxdb-version") {
            Some(version) if version.starts_with("1.") => Ok(()),
            Some(version) => Err(spec_error(format!(
                "{} is of version {version:?}, and this client speaks to 1.x",
                self.server.name()
            ))),
            None => Err(spec_error(format!(
                "{} does not say that it is an InfluxDB 1.x ({}); VictoriaMetrics is victoriametrics://HOST/LABEL",
                self.server.name(),
                answer.described()
            ))),
        }
    }

    fn statements(&self, statements: &str, chunked: bool) -> Request {
        let chunk_rows = CHUNK_ROWS.to_string();
        let mut fields = vec![("db", self.database.as_str()), ("epoch", "ns"), ("q", statements)];
        if chunked {
            fields.extend([("chunked", "true"), ("chunk_size", chunk_rows.as_str())]);
        }
        Request::form("/query", &fields)
    }

    /// Runs statements that read, and collects all rows.
    pub(super) async fn ask<V: DeserializeOwned>(
        &self,
        action: &str,
        statements: &str,
    ) -> Result<Vec<StatementResult<V>>> {
        self.run(action, &self.statements(statements, false).reading()).await
    }

    /// Runs statements that change something.
    pub(super) async fn change(&self, action: &str, statements: &str) -> Result<()> {
        self.run::<serde_json::Value>(action, &self.statements(statements, false))
            .await
            .map(drop)
    }

    async fn run<V: DeserializeOwned>(&self, action: &str, request: &Request) -> Result<Vec<StatementResult<V>>> {
        let answer = self.server.ask(action, request).await?;
        if !answer.status().is_success() {
            return Err(self.server.refused(action, &answer));
        }
        self.parsed(action, answer.body()).map(|reply| reply.results)
    }

    /// Runs statements that read, and leaves their rows to be read in chunks.
    pub(super) async fn stream(&self, action: &str, statements: &str) -> Result<BodyChunks> {
        let request = self.statements(statements, true).reading();
        self.server.rows(action, &request).await
    }

    /// Reads a part of an answer; an error in it is one.
    pub(super) fn parsed<V: DeserializeOwned>(&self, action: &str, text: &[u8]) -> Result<Reply<V>> {
        let reply: Reply<V> = serde_json::from_slice(text).map_err(|error| {
            self.server
                .unanswered(action, format!("the answer cannot be read: {error}"))
        })?;
        match reply.failure() {
            None => Ok(reply),
            Some(why) => Err(self.server.failed(action, why.to_owned())),
        }
    }

    /// Writes lines, `count` of them.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the answer leaves open what was done.
    pub(super) async fn write(&self, action: &str, lines: Vec<u8>, count: usize) -> Result<Fate> {
        let request = Request::post(self.write_path.as_str(), lines);
        let answer = self.server.ask(action, &request).await?;
        let status = answer.status().as_u16();
        match fate(status, answer.body(), count) {
            Fate::Open if matches!(status, 401 | 403 | 404) => Err(self.server.refused(action, &answer)),
            Fate::Open => Err(self.server.unknown(action, answer.described())),
            settled => Ok(settled),
        }
    }

    /// Writes lines of this client's own, all of which must be taken.
    pub(super) async fn write_own(&self, action: &str, lines: String) -> Result<()> {
        let count = lines.lines().count();
        match self.write(action, lines.into_bytes(), count).await? {
            Fate::Taken => Ok(()),
            Fate::Refused(reason) | Fate::Partly(reason) => Err(self.refused_own(action, reason)),
            Fate::Open => Err(self.server.unknown(action, "the answer leaves it open")),
        }
    }

    fn refused_own(&self, action: &str, reason: Reason) -> Error {
        let what = format!("database {} refuses it ({})", self.database, reason.name());
        self.server.failed(action, what)
    }

    /// The database as an identifier of InfluxQL.
    pub(super) fn identifier(&self) -> String {
        identifier(&self.database)
    }
}

pub(super) fn spec_error(what: String) -> Error {
    Error::Spec {
        spec: "influx:".to_owned(),
        what,
    }
}
