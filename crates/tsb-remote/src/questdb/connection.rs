//! Statements and lines over HTTP, and what the statuses of the server mean.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tsb_core::bytes::percent::encoded;
use tsb_core::time::{Clock, MonotonicClock};

use super::DEFAULT_PORT;
use super::options::QuestDbOptions;
use super::tables::Tables;
use crate::Address;
use crate::http::{Access, BodyChunks, HttpServer, Request};
use tsb_stores::error::{Error, Result};

/// Timestamps of lines are nanoseconds.
const WRITE_PATH: &str = "/write?precision=n";
/// Version of the ingest protocol whose values are in binary.
const BINARY_VERSION: u32 = 2;
/// Pause between two looks at the write-ahead log.
const PAUSE: Duration = Duration::from_millis(10);

/// The tables of one prefix at a server.
#[derive(Debug)]
pub(super) struct QuestDbConnection {
    server: HttpServer,
    tables: Tables,
    timeout: Duration,
}

/// What a server says of itself.
#[derive(Debug, Deserialize)]
struct Settings {
    config: Config,
}

#[derive(Debug, Deserialize)]
struct Config {
    #[serde(rename = "release.version")]
    version: String,
    #[serde(rename = "line.proto.support.versions", default)]
    protocols: Vec<u32>,
}

/// The rows of an answer.
#[derive(Debug, Deserialize)]
struct Rows<R> {
    #[serde(default = "Vec::new")]
    dataset: Vec<R>,
}

impl QuestDbConnection {
    /// Sends nothing yet.
    pub(super) fn new(address: &Address, options: &QuestDbOptions) -> Result<Self> {
        if address.hosts().contains(',') {
            return Err(spec_error("one host is written to, and several are named".to_owned()));
        }
        let access = Access::of(address, options.tls.clone(), options.timeout)?;
        Ok(Self {
            server: HttpServer::new("QuestDB", address.hosts(), DEFAULT_PORT, access)?,
            tables: Tables::new(address.place()),
            timeout: options.timeout,
        })
    }

    pub(super) const fn server(&self) -> &HttpServer {
        &self.server
    }

    pub(super) const fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Checks that a QuestDB answers that takes values in binary.
    pub(super) async fn check_version(&self) -> Result<()> {
        let answer = self
            .server
            .ask("ask for the version", &Request::get("/settings"))
            .await?;
        if matches!(answer.status().as_u16(), 401 | 403) {
            return Err(self.server.refused("ask for the version", &answer));
        }
        match serde_json::from_slice::<Settings>(answer.body()) {
            Ok(Settings { config }) if config.protocols.contains(&BINARY_VERSION) => Ok(()),
            Ok(Settings { config }) => Err(spec_error(format!(
                "{} is of version {:?}, and this client needs version {BINARY_VERSION} of its ingest protocol, which came \
                 with QuestDB 9.0",
                self.server.name(),
                config.version
            ))),
            Err(_) => Err(spec_error(format!(
                "{} does not say that it is a QuestDB ({})",
                self.server.name(),
                answer.described()
            ))),
        }
    }

    /// Runs a statement that reads; its rows.
    pub(super) async fn ask<R: DeserializeOwned>(&self, action: &str, statement: &str) -> Result<Vec<R>> {
        let answer = self
            .server
            .ask(action, &Request::get(path_of("exec", statement)))
            .await?;
        if !answer.status().is_success() {
            return Err(self.server.refused(action, &answer));
        }
        let rows = serde_json::from_slice::<Rows<R>>(answer.body());
        rows.map(|rows| rows.dataset).map_err(|error| {
            self.server
                .unanswered(action, format!("the answer cannot be read: {error}"))
        })
    }

    /// Runs a statement that reads, and leaves its rows to be read as lines.
    pub(super) async fn stream(&self, action: &str, statement: &str) -> Result<BodyChunks> {
        let request = Request::get(format!("{}&nm=true", path_of("exp", statement)));
        self.server.rows(action, &request).await
    }

    /// Runs a statement that changes tables. Each may be run twice, so one without an answer is
    /// repeated.
    pub(super) async fn change(&self, action: &str, statement: &str) -> Result<()> {
        self.ask::<serde_json::Value>(action, statement).await.map(drop)
    }

    /// Writes lines, which the server takes as a whole or not at all.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the answer leaves open what was done.
    pub(super) async fn write(&self, action: &str, lines: Vec<u8>) -> Result<()> {
        let answer = self.server.ask(action, &Request::post(WRITE_PATH, lines)).await?;
        match answer.status().as_u16() {
            200..=299 => Ok(()),
            400..=499 => Err(self.server.refused(action, &answer)),
            _ => Err(self.server.unknown(action, answer.described())),
        }
    }

    /// Waits until what a table's write-ahead log holds now is visible.
    ///
    /// # Errors
    /// [`Error::Backend`] where the server has given up, and [`Error::Unanswered`] if nothing was
    /// applied within the deadline of a request.
    pub(super) async fn settle(&self, table: &str) -> Result<()> {
        const ACTION: &str = "ask how far the log is applied";
        let statement = Tables::progress(table);
        let clock = MonotonicClock::new();
        let (mut wanted, mut reached, mut since) = (None, None, clock.now());
        loop {
            let rows = self.ask::<(i64, i64, bool)>(ACTION, &statement).await?;
            let Some(&(applied, acknowledged, is_suspended)) = rows.first() else {
                return Err(self.server.failed(ACTION, format!("there is no table {table}")));
            };
            if is_suspended {
                let why = format!("the server has stopped applying the log of {table}; its own log says why");
                return Err(self.server.failed(ACTION, why));
            }
            if applied >= *wanted.get_or_insert(acknowledged) {
                return Ok(());
            }
            if reached < Some(applied) {
                (reached, since) = (Some(applied), clock.now());
            } else if clock.now() - since > self.timeout.as_nanos() as u64 {
                let why = format!("no transaction of {table} was applied for {:?}", self.timeout);
                return Err(self.server.unanswered(ACTION, why));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn path_of(what: &str, statement: &str) -> String {
    format!("/{what}?query={}", encoded(statement))
}

pub(super) fn spec_error(what: String) -> Error {
    Error::Spec {
        spec: "questdb:".to_owned(),
        what,
    }
}
