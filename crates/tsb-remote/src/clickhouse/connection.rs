//! Statements over HTTP, and what the exceptions of the server mean.

use tsb_core::bytes::percent::encoded;

use super::DEFAULT_PORT;
use super::options::ClickHouseOptions;
use super::tables::Tables;
use crate::Address;
use crate::http::{Access, Answer, BodyChunks, HttpServer, Request};
use tsb_stores::error::{Error, Result};

/// Where statements that read are sent. The server answers once it has all rows, beyond a megabyte
/// in a file: otherwise an error half-way is text among rows.
const READ_PATH: &str = "/?wait_end_of_query=1&buffer_size=1048576";

/// One database of a server.
#[derive(Debug)]
pub(super) struct ClickHouseConnection {
    server: HttpServer,
    tables: Tables,
}

/// What became of an `INSERT` with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// All of it was taken.
    Taken,
    /// The disk is full: nothing of it was taken.
    Full,
}

/// What an exception says about the statement that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Full,
    /// Too much to do: nothing was done.
    Overloaded,
    /// Nothing was done.
    Refused,
    /// It may have been done.
    Open,
}

impl ClickHouseConnection {
    /// Sends nothing yet.
    pub(super) fn new(address: &Address, options: &ClickHouseOptions) -> Result<Self> {
        if address.hosts().contains(',') {
            return Err(spec_error("one host is written to, and several are named".to_owned()));
        }
        let access = Access::of(address, options.tls.clone(), options.timeout)?;
        Ok(Self {
            server: HttpServer::new("ClickHouse", address.hosts(), DEFAULT_PORT, access)?,
            tables: Tables::new(address.place())?,
        })
    }

    pub(super) fn server(&self) -> &HttpServer {
        &self.server
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Checks that a ClickHouse answers.
    pub(super) async fn check_version(&self) -> Result<()> {
        const ACTION: &str = "ask for the version";
        let answer = self.server.ask(ACTION, &reading("SELECT version()".to_owned())).await?;
        let is_denied = matches!(exception(&answer), Some(192..=194 | 516));
        if is_denied || matches!(answer.status().as_u16(), 401 | 403) {
            return Err(self.server.refused(ACTION, &answer));
        }
        let version = std::str::from_utf8(answer.body()).unwrap_or_default().trim();
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if answer.status().is_success() && major.is_some() {
            return Ok(());
        }
        Err(spec_error(format!(
            "{} does not say that it is a ClickHouse ({})",
            self.server.name(),
            answer.described()
        )))
    }

    /// Runs a statement that reads; its answer.
    pub(super) async fn ask(&self, action: &str, statement: String) -> Result<Answer> {
        let answer = self.server.ask(action, &reading(statement)).await?;
        if answer.status().is_success() {
            Ok(answer)
        } else {
            Err(self.server.refused(action, &answer))
        }
    }

    /// Runs a statement that reads, and leaves its rows to be read chunk by chunk.
    pub(super) async fn stream(&self, action: &str, statement: String) -> Result<BodyChunks> {
        self.server.rows(action, &reading(statement)).await
    }

    /// Runs a statement that changes something.
    pub(super) async fn change(&self, action: &str, statement: String) -> Result<()> {
        let answer = self.server.ask(action, &Request::post("/", statement)).await?;
        self.judged(action, &answer).and_then(|fate| self.taken(action, fate))
    }

    /// Runs an `INSERT` of these rows, in the format that it names.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the answer leaves open what was done.
    pub(super) async fn insert(&self, action: &str, statement: &str, rows: Vec<u8>) -> Result<Fate> {
        let request = Request::post(format!("/?query={}", encoded(statement)), rows);
        let answer = self.server.ask(action, &request).await?;
        self.judged(action, &answer)
    }

    /// That of rows of this client's own, which must be taken.
    pub(super) fn taken(&self, action: &str, fate: Fate) -> Result<()> {
        match fate {
            Fate::Taken => Ok(()),
            Fate::Full => Err(self.server.failed(action, "its disk is full")),
        }
    }

    fn judged(&self, action: &str, answer: &Answer) -> Result<Fate> {
        if answer.status().is_success() {
            return Ok(Fate::Taken);
        }
        match exception(answer).map_or(Meaning::Open, meaning) {
            Meaning::Full => Ok(Fate::Full),
            Meaning::Overloaded => Err(Error::Overloaded {
                store: self.server.name().to_owned(),
                what: answer.described(),
            }),
            Meaning::Refused => Err(self.server.refused(action, answer)),
            Meaning::Open if matches!(answer.status().as_u16(), 401 | 403) => Err(self.server.refused(action, answer)),
            Meaning::Open => Err(self.server.unknown(action, answer.described())),
        }
    }
}

fn reading(statement: String) -> Request {
    Request::post(READ_PATH, statement).reading()
}

/// The number of the exception in an answer, which begins with `Code: 60, `.
fn exception(answer: &Answer) -> Option<u32> {
    let number = answer.body().strip_prefix(b"Code: ")?;
    let end = number.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&number[..end]).ok()?.parse().ok()
}

/// Exceptions by their number in the server's `ErrorCodes.cpp`.
const fn meaning(exception: u32) -> Meaning {
    match exception {
        // NOT_ENOUGH_SPACE.
        243 => Meaning::Full,
        // TOO_MUCH_SIMULTANEOUS_QUERIES, TOO_MUCH_PARTS.
        202 | 252 => Meaning::Overloaded,
        // UNKNOWN_IDENTIFIER, TABLE_ALREADY_EXISTS, UNKNOWN_TABLE, SYNTAX_ERROR, UNKNOWN_DATABASE,
        // READONLY, UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, ACCESS_DENIED,
        // AUTHENTICATION_FAILED: told before anything is done.
        47 | 57 | 60 | 62 | 81 | 164 | 192..=194 | 497 | 516 => Meaning::Refused,
        _ => Meaning::Open,
    }
}

pub(super) fn spec_error(what: String) -> Error {
    Error::Spec {
        spec: "clickhouse:".to_owned(),
        what,
    }
}
