//! Clients that send a tick and know whether it was acknowledged, over InfluxDB's HTTP protocol
//! or rrdcached's protocol.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result};

use super::stores::{SERIES, START_S, StoreUnderTest, Wire, value};

/// Timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The outcome of sending a tick.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// All of it was acknowledged.
    Taken,
    /// The listener says no.
    Refused(String),
    /// The connection ended.
    Gone,
    /// Nothing came for a long time.
    Silence,
}

/// A connection to a listener.
#[derive(Debug)]
pub(super) struct Client {
    stream: BufReader<TcpStream>,
    wire: Wire,
}

impl Client {
    /// Connects, and makes what has to be there before the first tick. A listener that ends
    /// meanwhile is noticed by the first tick.
    pub(super) fn connect(subject: &StoreUnderTest, address: &str) -> Result<Self> {
        let place = address.split("://").nth(1).context("an address without ://")?;
        let place = place.split(['?', '/']).next().unwrap_or_default();
        let stream = TcpStream::connect(place).context("cannot connect")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        match subject.wire {
            Wire::Influx => {
                let _ = http(&mut stream, "/query?q=CREATE+DATABASE+d", "");
            }
            Wire::Rrdcached => {
                let start = START_S - 1;
                let create = (0..SERIES).fold(String::new(), |text, series| {
                    text + &format!(
                        "CREATE s{series}.rrd -O -b {start} -s 1 DS:v:GAUGE:100:U:U RRA:AVERAGE:0.5:1:2000\n"
                    )
                });
                // That they exist is an error, and no concern.
                let _ = lines(&mut stream, &create);
            }
        }
        Ok(Self {
            stream,
            wire: subject.wire,
        })
    }

    /// Sends a tick of all series, and waits for the answer.
    pub(super) fn send(&mut self, tick: u64) -> Answer {
        let at = START_S + tick;
        let mut text = String::new();
        for series in 0..SERIES {
            let number = value(series, tick);
            let _ = match self.wire {
                Wire::Influx => writeln!(text, "s{series} v={number} {at}"),
                Wire::Rrdcached => writeln!(text, "UPDATE s{series}.rrd {at}:{number}"),
            };
        }
        match self.wire {
            Wire::Influx => http(&mut self.stream, "/write?db=d&precision=s", &text),
            Wire::Rrdcached => lines(&mut self.stream, &text),
        }
    }
}

fn of_error(error: &std::io::Error) -> Answer {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => Answer::Silence,
        _ => Answer::Gone,
    }
}

/// A request and its answer.
fn http(stream: &mut BufReader<TcpStream>, target: &str, body: &str) -> Answer {
    let request = format!(
        "POST {target} HTTP/1.1\r\nHost: tsb\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    if let Err(error) = stream.get_mut().write_all(request.as_bytes()) {
        return of_error(&error);
    }
    match answer(stream) {
        Ok(None) => Answer::Gone,
        Ok(Some((200 | 204, _))) => Answer::Taken,
        Ok(Some((status, text))) => Answer::Refused(format!("{status} {text}")),
        Err(error) => of_error(&error),
    }
}

/// The status and the body of an answer; `None` where the connection ends first.
fn answer(stream: &mut impl BufRead) -> std::io::Result<Option<(u16, String)>> {
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(rest) = line.strip_prefix("http/1.1 ") {
            status = rest.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or(0);
        } else if let Some(rest) = line.strip_prefix("content-length:") {
            length = rest.trim().parse().unwrap_or(0);
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some((status, String::from_utf8_lossy(&body).trim().to_owned())))
}

/// Commands of one line each, and a line of answer to each.
fn lines(stream: &mut BufReader<TcpStream>, text: &str) -> Answer {
    if let Err(error) = stream.get_mut().write_all(text.as_bytes()) {
        return of_error(&error);
    }
    let mut refused = None;
    for _ in text.lines() {
        let mut line = String::new();
        match stream.read_line(&mut line) {
            Ok(0) => return Answer::Gone,
            Ok(_) if line.starts_with("0 ") => {}
            Ok(_) => refused = Some(line.trim().to_owned()),
            Err(error) => return of_error(&error),
        }
    }
    refused.map_or(Answer::Taken, Answer::Refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_with_their_bodies() {
        let mut text = &b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nno\nHTTP/1.1 204 No Content\r\n\r\n"[..];
        assert_eq!(answer(&mut text).ok().flatten(), Some((400, "no".to_owned())));
        assert_eq!(answer(&mut text).ok().flatten(), Some((204, String::new())));
        assert_eq!(answer(&mut text).ok().flatten(), None);
    }
}
