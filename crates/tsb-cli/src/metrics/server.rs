//! An HTTP endpoint that serves metrics.
//!
//! One thread serves all clients with non-blocking I/O, so a slow or silent client delays no
//! other. Request length, time per client and number of clients are bounded; a client beyond the
//! bound replaces the oldest one. Nothing here can delay a run. It is not a general web server.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use super::{MetricsSource, text};
use crate::exit::Exit;
use crate::failure::Failure;

/// Longest request, in bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// Longest time from accepting a connection to the last byte of its answer.
const SERVICE_NS_MAX: u64 = 2 * SECOND_NS;

/// Largest number of clients at a time.
const CLIENTS_MAX: usize = 256;

/// Longest wait between two checks of deadlines, in nanoseconds.
const POLL_NS: i64 = 100_000_000;

/// Time limit for the connection that wakes the listener at the end.
const WAKE_TIMEOUT: Duration = Duration::from_millis(500);

/// A running endpoint; dropping it stops it.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Serves `source` on `address`. An address that is not loopback needs `allow_remote`.
    ///
    /// # Errors
    /// [`Exit::Usage`] for an address that other machines could reach, [`Exit::Unreachable`] for one in
    /// use.
    pub fn start(address: SocketAddr, allow_remote: bool, source: Arc<dyn MetricsSource>) -> Result<Self, Failure> {
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
        listener
            .set_nonblocking(true)
            .map_err(|error| failure().because(&error))?;
        let serve = move || ServerThread::new(listener, source).serve(&over);
        let thread = std::thread::Builder::new().name("tsb-expose".to_owned()).spawn(serve);
        let thread = thread.map_err(|error| Failure::new(Exit::Bug, "cannot serve metrics").because(&error))?;
        Ok(Self {
            address,
            is_over,
            thread: Some(thread),
        })
    }

    /// The address on which it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // The thread polls for up to 100 ms: this connection wakes it at once.
        let woken = TcpStream::connect_timeout(&self.address, WAKE_TIMEOUT).is_ok();
        if let (true, Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

/// The serving thread's state.
struct ServerThread {
    listener: TcpListener,
    source: Arc<dyn MetricsSource>,
    clock: MonotonicClock,
    /// Clients in order of arrival.
    clients: Vec<Client>,
    /// Set after a failed accept: the next poll leaves the listener out, so that the thread does
    /// not spin.
    skips_accept: bool,
}

/// A client.
struct Client {
    connection: TcpStream,
    request: Vec<u8>,
    /// Empty until the request is complete.
    answer: Vec<u8>,
    written: usize,
    until_ns: u64,
}

impl ServerThread {
    fn new(listener: TcpListener, source: Arc<dyn MetricsSource>) -> Self {
        Self {
            listener,
            source,
            clock: MonotonicClock::new(),
            clients: Vec::new(),
            skips_accept: false,
        }
    }

    fn serve(mut self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Acquire) {
            let ready = self.wait();
            let (now_ns, source) = (self.clock.now(), &*self.source);
            let mut index = 0;
            self.clients.retain_mut(|client| {
                index += 1;
                let is_ready = ready.get(index - 1).copied().unwrap_or_default();
                (!is_ready || client.advance(source)) && now_ns < client.until_ns
            });
            self.accept_pending();
        }
    }

    /// Waits for I/O. Returns for each client whether it is ready.
    fn wait(&mut self) -> Vec<bool> {
        let mut waits: Vec<PollFd<'_>> = self.clients.iter().map(Client::waits_for).collect();
        if !self.skips_accept {
            waits.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: POLL_NS,
        };
        // An interrupted wait is a short one.
        let _ = poll(&mut waits, Some(&timeout));
        let ready = waits.iter().take(self.clients.len());
        let ready = ready.map(|wait| !wait.revents().is_empty()).collect();
        self.skips_accept = false;
        ready
    }

    /// Accepts all pending connections; beyond the bound, the oldest client is dropped.
    fn accept_pending(&mut self) {
        for _ in 0..CLIENTS_MAX {
            match self.listener.accept() {
                Ok((connection, _)) if connection.set_nonblocking(true).is_ok() => {
                    if self.clients.len() == CLIENTS_MAX {
                        self.clients.remove(0);
                    }
                    let mut client = Client {
                        connection,
                        request: Vec::new(),
                        answer: Vec::new(),
                        written: 0,
                        until_ns: self.clock.now() + SERVICE_NS_MAX,
                    };
                    // Most have sent their request already.
                    if client.advance(&*self.source) {
                        self.clients.push(client);
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // No file descriptor, perhaps: a client has one.
                    self.skips_accept = true;
                    if !self.clients.is_empty() {
                        self.clients.remove(0);
                    }
                    return;
                }
            }
        }
    }
}

impl Client {
    fn waits_for(&self) -> PollFd<'_> {
        let flags = if self.answer.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::OUT
        };
        PollFd::new(&self.connection, flags)
    }

    /// Reads and writes without blocking. Returns `false` when the client is finished.
    fn advance(&mut self, source: &dyn MetricsSource) -> bool {
        if self.answer.is_empty() && !self.read_request(source) {
            return false;
        }
        while self.written < self.answer.len() {
            match self
                .connection
                .write(self.answer.get(self.written..).unwrap_or_default())
            {
                Ok(count) if count > 0 => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
        self.answer.is_empty()
    }

    /// Reads the request, and builds the answer once its head is complete. Returns `false` when
    /// the client is finished.
    fn read_request(&mut self, source: &dyn MetricsSource) -> bool {
        let mut part = [0_u8; 1024];
        loop {
            match self.connection.read(&mut part) {
                Ok(0) => return false,
                Ok(length) => self.request.extend_from_slice(part.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return false,
            }
            let is_whole = self.request.windows(4).any(|four| four == b"\r\n\r\n");
            if is_whole || self.request.len() > REQUEST_BYTES_MAX {
                self.answer = answer(&self.request, source);
                return true;
            }
        }
    }
}

/// The answer to a request whose head is complete or too long.
fn answer(request: &[u8], source: &dyn MetricsSource) -> Vec<u8> {
    let head = std::str::from_utf8(request).ok();
    let line = head
        .filter(|head| head.len() <= REQUEST_BYTES_MAX)
        .and_then(|head| head.lines().next());
    let Some(line) = line else {
        return reply("400 Bad Request", "text/plain", "not a request\n");
    };
    let mut words = line.split(' ');
    match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => reply("200 OK", text::CONTENT_TYPE, &source.text()),
        (Some("GET"), Some("/")) => reply("200 OK", "text/plain", "see /metrics\n"),
        (Some("GET"), _) => reply("404 Not Found", "text/plain", "see /metrics\n"),
        _ => reply("405 Method Not Allowed", "text/plain", "only GET\n"),
    }
}

fn reply(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneFamily;

    impl MetricsSource for OneFamily {
        fn text(&self) -> String {
            "# TYPE a gauge\na 1\n# EOF\n".to_owned()
        }
    }

    fn start(address: &str) -> Result<MetricsServer, Failure> {
        MetricsServer::start(address.parse().unwrap(), false, Arc::new(OneFamily))
    }

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
        let server = start("127.0.0.1:0").unwrap();
        let address = server.address();
        let good = ask(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(
            good.starts_with("HTTP/1.1 200 OK\r\n") && good.ends_with("# EOF\n"),
            "{good}"
        );
        assert!(good.contains(text::CONTENT_TYPE));
        assert!(ask(address, b"GET /else HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(address, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(!ask(address, &vec![b'x'; 20_000]).contains("200 OK"));
        assert!(!ask(address, b"\xff\xfe\r\n\r\n").contains("200 OK"));
        drop(TcpStream::connect(address).unwrap());
        assert!(ask(address, b"GET /metrics HTTP/1.1\r\n\r\n").contains("# EOF"));
    }

    #[test]
    fn a_remote_address_needs_permission() {
        let refused = start("0.0.0.0:0").unwrap_err();
        assert!(refused.to_string().contains("--expose-remote"));
    }

    #[test]
    fn an_endpoint_ends_when_it_is_dropped() {
        let server = start("127.0.0.1:0").unwrap();
        let address = server.address();
        drop(server);
        assert!(TcpListener::bind(address).is_ok());
    }

    /// Issue 15: clients were served one at a time, so that idle ones locked out the others.
    #[test]
    fn idle_clients_delay_no_other() {
        let server = start("127.0.0.1:0").unwrap();
        let mut idle = Vec::new();
        for _ in 0..2 * CLIENTS_MAX {
            idle.push(TcpStream::connect(server.address()).unwrap());
        }
        let clock = MonotonicClock::new();
        for _ in 0..10 {
            assert!(ask(server.address(), b"GET /metrics HTTP/1.1\r\n\r\n").contains("# EOF"));
        }
        // One at a time, the idle ones would have taken half a second each.
        assert!(clock.now() < 60 * SECOND_NS);
        for mut client in idle {
            client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let is_closed = client.read(&mut [0; 1]);
            assert!(
                matches!(is_closed, Ok(0)) || is_closed.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
            );
        }
    }
}
