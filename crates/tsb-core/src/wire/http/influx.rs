//! InfluxDB 1.8's interface: `/write`, `/ping`, and the part of `/query` that load generators use.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::decode::{Service, Task};
use super::head::Head;
use super::outcome::{RequestOutcome, Response};
use super::query::Parameters;
use crate::time::Clock;
use crate::wire::influx::{InfluxDecoder, Precision};
use crate::wire::{Decoder, NotAdmitted, Room};

/// The version header, which clients check.
const VERSION: &str = "X-Influxdb-Version: 1.8.10\r\n";

/// Maximum number of databases of a listener.
const MAX_DATABASES: usize = 1024;

/// The names of created databases, shared by all connections of a listener.
///
/// Databases are only names: samples of all databases go to one store, and dropping a database
/// removes none.
#[derive(Clone, Debug, Default)]
pub struct Databases(Arc<Mutex<BTreeSet<String>>>);

impl Databases {
    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a name; false if there are too many.
    pub fn create(&self, name: &str) -> bool {
        let mut names = self.names();
        let fits = names.len() < MAX_DATABASES || names.contains(name);
        if fits {
            names.insert(name.to_owned());
        }
        fits
    }

    fn has(&self, name: &str) -> bool {
        self.names().contains(name)
    }

    /// The answer to one statement.
    fn statement(&self, text: &str) -> Value {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let upper: Vec<String> = words.iter().map(|word| word.to_ascii_uppercase()).collect();
        let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
        match upper.as_slice() {
            ["CREATE", "DATABASE", ..] => match name(text, 2) {
                Some(name) if self.create(&name) => json!({}),
                Some(_) => json!({"error": format!("there are {MAX_DATABASES} databases already")}),
                None => json!({"error": "error parsing query: found EOF, expected identifier"}),
            },
            ["DROP", "DATABASE", ..] => {
                if let Some(name) = name(text, 2) {
                    self.names().remove(&name);
                }
                json!({})
            }
            ["SHOW", "DATABASES"] => {
                let rows: Vec<_> = self.names().iter().map(|name| json!([name])).collect();
                let mut series = json!({"name": "databases", "columns": ["name"]});
                if !rows.is_empty() {
                    series["values"] = Value::from(rows);
                }
                json!({"series": [series]})
            }
            _ => json!({"error": format!("not known to tsb: {text}")}),
        }
    }
}

/// The name after `words` words, which may be quoted.
fn name(text: &str, words: usize) -> Option<String> {
    let mut rest = text;
    for _ in 0..words {
        rest = rest.trim_start();
        rest = &rest[rest.find(|c: char| c.is_ascii_whitespace())?..];
    }
    let rest = rest.trim_start();
    let found = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.0,
        None => rest.split_ascii_whitespace().next()?,
    };
    (!found.is_empty()).then(|| found.to_owned())
}

/// The statements between semicolons outside quotes.
fn statements(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let parts = text.split(move |c| {
        is_quoted ^= c == '"';
        c == ';' && !is_quoted
    });
    parts.map(str::trim).filter(|statement| !statement.is_empty())
}

/// The interface of one connection.
#[derive(Debug)]
pub(super) struct InfluxService {
    lines: InfluxDecoder,
    databases: Databases,
}

impl InfluxService {
    pub(super) fn new(clock: Arc<dyn Clock>, room: &Room, databases: &Databases) -> Self {
        Self {
            lines: InfluxDecoder::of_bodies(clock).within(room),
            databases: databases.clone(),
        }
    }

    fn write(&mut self, parameters: &Parameters) -> Result<Task, Response> {
        let database = parameters.get("db").filter(|name| !name.is_empty());
        let database = database.ok_or_else(|| error(400, "database is required"))?;
        if !self.databases.has(database) {
            return Err(error(404, &format!("database not found: {database:?}")));
        }
        let asked = parameters.get("precision").unwrap_or_default();
        let precision = Precision::from_name(asked);
        let why = || format!("invalid precision {asked:?} (use n, u, ms, s, m or h)");
        self.lines.set_precision(precision.ok_or_else(|| error(400, &why()))?);
        Ok(Task::Records)
    }
}

/// The reason for refused names, as a sentence for clients.
fn not_admitted(why: Option<NotAdmitted>) -> &'static str {
    match why {
        Some(NotAdmitted::SeriesLimit) => "the limit of series is reached",
        Some(NotAdmitted::NameBytes) => "the limit of bytes of names is reached",
        Some(NotAdmitted::Undefined) => "the store could not define their series",
        None => "their series were never announced",
    }
}

fn with_version(mut response: Response) -> Response {
    response.fields.push_str(VERSION);
    response
}

fn error(status: u16, why: &str) -> Response {
    let mut response = with_version(Response::new(status, format!("{}\n", json!({ "error": why }))));
    // A header is one line, so sentences on several lines are joined.
    let lines = why.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join("; ");
    let plain = |c: &char| !c.is_control() && c.is_ascii();
    let shown: String = line.chars().filter(plain).take(200).collect();
    for part in ["X-Influxdb-Error: ", &shown, "\r\n"] {
        response.fields.push_str(part);
    }
    response
}

impl Service for InfluxService {
    fn begin(&mut self, head: &Head) -> Result<Task, Response> {
        match (head.path.as_str(), head.method.as_str()) {
            ("/write", "POST") => self.write(&head.parameters),
            ("/ping", "GET" | "HEAD" | "POST") => Err(with_version(Response::new(204, ""))),
            ("/query", "GET" | "POST") => Ok(Task::Ask),
            ("/write" | "/ping" | "/query", _) => Err(error(405, "Method Not Allowed")),
            _ => Err(error(404, "not found")),
        }
    }

    fn decoder(&mut self) -> &mut dyn Decoder {
        &mut self.lines
    }

    fn asked(&mut self, parameters: &Parameters) -> Response {
        let Some(query) = parameters.get("q").filter(|query| !query.is_empty()) else {
            return error(400, "missing required parameter \"q\"");
        };
        let results = statements(query).enumerate().map(|(index, statement)| {
            let mut result = self.databases.statement(statement);
            result["statement_id"] = Value::from(index);
            result
        });
        let results: Vec<Value> = results.collect();
        with_version(Response::new(200, format!("{}\n", json!({ "results": results }))))
    }

    fn end(&mut self, outcome: &RequestOutcome) -> Response {
        let dropped = outcome.dropped();
        if outcome.bytes == 0 {
            return with_version(Response::new(200, ""));
        }
        if outcome.malformed == 0 && dropped == 0 {
            return with_version(Response::new(204, ""));
        }
        if outcome.samples == 0 && dropped == 0 {
            return error(400, &outcome.reasons);
        }
        let whys = [
            (outcome.refused, not_admitted(outcome.not_admitted)),
            (outcome.rejected, "the store refused them"),
        ];
        let said = Some(outcome.reasons.as_str()).filter(|reasons| !reasons.is_empty());
        let whys = whys.iter().filter(|(count, _)| *count > 0).map(|(_, why)| *why);
        let reasons: Vec<&str> = said.into_iter().chain(whys).collect();
        let reasons = reasons.join("\n");
        error(400, &format!("partial write: {reasons} dropped={dropped}"))
    }

    fn bad(&self, status: u16, what: &str) -> Response {
        error(status, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_an_error_divides_its_sentences() {
        let response = error(
            400,
            "partial write: unable to parse 'cpu': missing fields\nthe store refused them\n",
        );
        let header = response
            .fields
            .lines()
            .find(|line| line.starts_with("X-Influxdb-Error: "));
        assert_eq!(
            header,
            Some("X-Influxdb-Error: partial write: unable to parse 'cpu': missing fields; the store refused them")
        );
    }
}
