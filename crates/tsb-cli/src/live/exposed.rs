//! An HTTP endpoint that answers one question: how is the run?
//!
//! One connection at a time, a short request, a deadline: whoever is slow is cut off, and
//! nothing here can hold up a run. It is not a web server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use super::board::Board;
use super::openmetrics;
use crate::exit::Exit;
use crate::failure::Failure;

/// A longer request is none of ours.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// From the first byte to the last of a request.
const REQUEST_NS_MAX: u64 = 2 * SECOND_NS;

/// How long a single read or write may take.
const STEP: Duration = Duration::from_millis(500);

/// An endpoint that is being served; dropping it ends that.
#[derive(Debug)]
pub struct Exposed {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Exposed {
    /// Serves `board` on `address`; on other than loopback addresses only if told so.
    pub fn start(address: SocketAddr, allow_remote: bool, board: Arc<Board>) -> Result<Self, Failure> {
        let failure = || Failure::usage(format!("cannot serve metrics on {address}"));
        if !address.ip().is_loopback() && !allow_remote {
            return Err(failure()
                .because_of("other machines could reach it, and there is no authentication")
                .hint("give --expose-remote if that is meant"));
        }
        let unreachable = || Failure::new(Exit::Unreachable, format!("cannot serve metrics on {address}"));
        let listener = TcpListener::bind(address).map_err(|error| unreachable().because(&error))?;
        let address = listener.local_addr().map_err(|error| failure().because(&error))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let serve = move || {
            for connection in listener.incoming() {
                if over.load(Ordering::Acquire) {
                    break;
                }
                // A client that hangs up is its own business.
                let _ = connection.and_then(|connection| answer(connection, &board));
            }
        };
        let thread = std::thread::Builder::new().name("tsb-expose".to_owned()).spawn(serve);
        let thread = thread.map_err(|error| Failure::new(Exit::Bug, "cannot serve metrics").because(&error))?;
        Ok(Self {
            address,
            is_over,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Exposed {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // The listener waits for somebody: that is us.
        let woken = TcpStream::connect_timeout(&self.address, STEP).is_ok();
        if let (true, Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

fn answer(mut connection: TcpStream, board: &Board) -> std::io::Result<()> {
    connection.set_read_timeout(Some(STEP))?;
    connection.set_write_timeout(Some(STEP))?;
    let Some(request) = request(&mut connection)? else {
        return reply(&mut connection, "400 Bad Request", "text/plain", "not a request\n");
    };
    let mut words = request.split(' ');
    match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => {
            let text = openmetrics::text(&board.snapshot(1));
            reply(&mut connection, "200 OK", openmetrics::CONTENT_TYPE, &text)
        }
        (Some("GET"), Some("/")) => reply(&mut connection, "200 OK", "text/plain", "see /metrics\n"),
        (Some("GET"), _) => reply(&mut connection, "404 Not Found", "text/plain", "see /metrics\n"),
        _ => reply(&mut connection, "405 Method Not Allowed", "text/plain", "only GET\n"),
    }
}

/// The first line of a request, once all of its head is there; `None` when it is too long,
/// too slow, or no text.
fn request(connection: &mut TcpStream) -> std::io::Result<Option<String>> {
    let clock = MonotonicClock::new();
    let deadline_ns = clock.now() + REQUEST_NS_MAX;
    let mut head = Vec::new();
    let mut part = [0_u8; 1024];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if head.len() > REQUEST_BYTES_MAX || clock.now() > deadline_ns {
            return Ok(None);
        }
        match connection.read(&mut part)? {
            0 => return Ok(None),
            length => head.extend_from_slice(part.get(..length).unwrap_or_default()),
        }
    }
    let text = String::from_utf8(head).ok();
    Ok(text.and_then(|text| text.lines().next().map(str::to_owned)))
}

fn reply(connection: &mut TcpStream, status: &str, kind: &str, body: &str) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes())?;
    connection.write_all(body.as_bytes())?;
    connection.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut connection = TcpStream::connect(address).unwrap();
        // The endpoint may hang up on nonsense before all of it is written.
        let _ = connection.write_all(request);
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn metrics_are_served_and_nonsense_is_refused() {
        let exposed = Exposed::start("127.0.0.1:0".parse().unwrap(), false, Arc::default()).unwrap();
        let address = exposed.address();
        let good = ask(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(
            good.starts_with("HTTP/1.1 200 OK\r\n") && good.ends_with("# EOF\n"),
            "{good}"
        );
        assert!(good.contains(openmetrics::CONTENT_TYPE));
        assert!(ask(address, b"GET /else HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(address, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(!ask(address, &vec![b'x'; 20_000]).contains("200 OK"));
        assert!(!ask(address, b"\xff\xfe\r\n\r\n").contains("200 OK"));
        drop(TcpStream::connect(address).unwrap());
        assert!(ask(address, b"GET /metrics HTTP/1.1\r\n\r\n").contains("# EOF"));
    }

    #[test]
    fn other_machines_are_let_in_only_if_that_is_said() {
        let address = "0.0.0.0:0".parse().unwrap();
        let refused = Exposed::start(address, false, Arc::default()).unwrap_err();
        assert!(refused.to_string().contains("--expose-remote"));
    }

    #[test]
    fn an_endpoint_ends_when_it_is_dropped() {
        let exposed = Exposed::start("127.0.0.1:0".parse().unwrap(), false, Arc::default()).unwrap();
        let address = exposed.address();
        drop(exposed);
        assert!(TcpListener::bind(address).is_ok());
    }
}
