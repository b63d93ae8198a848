//! One connection to the server: a request out, its answer in.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde::Deserialize;
use tsb_core::wire::http::Answer;

use super::requests::{Keeping, Requests};

/// How long a server may take for one request.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes read at a time.
const PIECE: usize = 64 << 10;
/// An answer without rows.
const NO_CONTENT: u16 = 204;

/// A row of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(super) struct AnswerRow {
    pub(super) timestamp: i64,
    // Mohawk leaves out what is 0.
    #[serde(default)]
    pub(super) value: f64,
}

/// The answer to a read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RowsRead {
    pub(super) rows: Vec<AnswerRow>,
    /// Whether it was a 204.
    pub(super) is_no_content: bool,
}

/// What can go wrong with a request, as a sentence.
pub(super) type Outcome<T> = Result<T, String>;

/// The requests of one connection at a time.
#[derive(Debug)]
pub(super) struct ClientConnection {
    address: String,
    requests: Requests,
    stream: Option<TcpStream>,
    out: String,
    input: Vec<u8>,
}

impl ClientConnection {
    /// A client of `address`, `HOST:PORT`; it connects with the first request.
    pub(super) fn new(address: &str, requests: Requests) -> Self {
        Self {
            address: address.to_owned(),
            requests,
            stream: None,
            out: String::new(),
            input: Vec::new(),
        }
    }

    /// What the server says of itself.
    pub(super) fn status(&mut self) -> Outcome<serde_json::Value> {
        self.requests.status(&mut self.out);
        let answer = self.ask()?;
        serde_json::from_slice(&answer.body).map_err(|error| format!("the status is no JSON: {error}"))
    }

    /// Writes samples.
    pub(super) fn post(&mut self, gauges: &[(&str, &[(i64, f64)])]) -> Outcome<()> {
        self.requests.post(&mut self.out, gauges);
        self.ask().map(drop)
    }

    /// Reads a range.
    pub(super) fn get(&mut self, gauge: &str, range: (i64, i64), limit: Option<u64>) -> Outcome<RowsRead> {
        self.requests.get(&mut self.out, gauge, range, limit);
        let answer = self.ask()?;
        if answer.status == NO_CONTENT {
            return Ok(RowsRead {
                rows: Vec::new(),
                is_no_content: true,
            });
        }
        let rows = serde_json::from_slice(&answer.body);
        Ok(RowsRead {
            rows: rows.map_err(|error| format!("the answer has no rows: {error}"))?,
            is_no_content: false,
        })
    }

    /// Sends what is in `out`; as for the original client, only 200, 201 and 204 are no errors.
    fn ask(&mut self) -> Outcome<Answer> {
        let answer = self.exchange();
        if answer.is_err() || self.requests.keeping() == Keeping::Closed {
            self.stream = None;
        }
        let answer = answer?;
        if !answer.keeps_alive {
            self.stream = None;
        }
        match answer.status {
            200 | 201 | NO_CONTENT => Ok(answer),
            _ => Err(format!("answered {}", answer.summary())),
        }
    }

    fn exchange(&mut self) -> Outcome<Answer> {
        let failed = |what: &str, error: &std::io::Error| format!("cannot {what} {}: {error}", self.address);
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(connect(&self.address).map_err(|error| failed("connect to", &error))?),
        };
        let sent = stream.write_all(self.out.as_bytes());
        sent.map_err(|error| failed("write to", &error))?;
        let mut filled = 0;
        loop {
            // Grows for a long answer, and is never cleared: it would be part of each time.
            if self.input.len() < filled + PIECE {
                self.input.resize(filled + PIECE, 0);
            }
            let read = stream.read(&mut self.input[filled..]);
            let read = read.map_err(|error| failed("read from", &error))?;
            if read == 0 {
                return Err(format!("{} closed the connection before it answered", self.address));
            }
            filled += read;
            match Answer::read(&self.input[..filled]) {
                Ok(Some((answer, _))) => return Ok(answer),
                Ok(None) => {}
                Err(error) => return Err(format!("{} does not answer in HTTP: {error}", self.address)),
            }
        }
    }
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // A request is one write, so there is nothing to collect.
    stream.set_nodelay(true)?;
    Ok(stream)
}
