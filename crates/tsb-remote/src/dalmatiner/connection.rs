//! One connection: bytes that are written, and frames that answer.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::Duration;

use tsb_stores::error::Error;

/// Most bytes of requests whose answers have not been read: sockets hold as many, so the server and
/// this client never wait for each other to read.
const WAITING: usize = 16 << 10;
/// The longest frame that is read: that of the longest list of our own endpoint.
const FRAME_MAX: usize = 80 << 20;

/// A server, and the connection to it while there is one.
#[derive(Debug)]
pub(super) struct Connection {
    host: String,
    timeout: Duration,
    stream: Option<BufReader<TcpStream>>,
}

impl Connection {
    /// To `HOST:PORT`; nothing is connected yet.
    pub(super) const fn new(host: String, timeout: Duration) -> Self {
        Self {
            host,
            timeout,
            stream: None,
        }
    }

    /// Whether it is connected.
    pub(super) const fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Ends it. What the operating system has taken is still sent.
    pub(super) fn close(&mut self) {
        self.stream = None;
    }

    /// Ends it, and waits until the server does, which it does when it has read everything. What a
    /// server does not read within the timeout shows when samples are read back.
    pub(super) fn finish(&mut self) {
        if let Some(mut stream) = self.stream.take()
            && stream.get_ref().shutdown(Shutdown::Write).is_ok()
        {
            // A server sends nothing in stream mode, so this returns at the end of the connection.
            let _end = stream.read(&mut [0]);
        }
    }

    /// Connects, unless it is connected.
    ///
    /// # Errors
    /// [`Error::Unreachable`].
    pub(super) fn connect(&mut self) -> Result<&mut BufReader<TcpStream>, Error> {
        let unreachable = |error: io::Error| Error::Unreachable {
            action: format!("connect to DalmatinerDB at {}", self.host),
            source: error.into(),
        };
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(connected(&self.host, self.timeout).map_err(unreachable)?),
        };
        Ok(self.stream.insert(stream))
    }

    /// Writes bytes. After an error the connection is closed: half a message is followed by nothing.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if nothing was sent, otherwise [`Error::Unknown`].
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.connect()?.get_mut().write_all(bytes);
        written.map_err(|error| {
            self.close();
            Error::Unknown {
                action: format!("write samples to DalmatinerDB at {}", self.host),
                source: timed(error, self.timeout),
            }
        })
    }

    /// Sends requests, and hands the frames of each answer to `take`, with the place of its request,
    /// until that returns false; then those of the next. After an error the connection is closed.
    ///
    /// # Errors
    /// [`Error::Unreachable`], and [`Error::Unanswered`] with what `take` says, or that the server
    /// ended the connection, was late, or sent a frame that is too long.
    pub(super) fn ask(&mut self, requests: &[Vec<u8>], take: &mut TakeFrame<'_>) -> Result<(), Error> {
        let timeout = self.timeout;
        let stream = self.connect()?;
        let answered = exchange(stream, requests, timeout, take);
        answered.map_err(|source| {
            self.close();
            Error::Unanswered {
                action: format!("read from DalmatinerDB at {}", self.host),
                source,
            }
        })
    }
}

/// Takes a frame of the answer to a request, by the place of that; whether more frames follow.
pub(super) type TakeFrame<'a> = dyn FnMut(usize, &[u8]) -> Result<bool, String> + 'a;

fn connected(host: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = None;
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                return Ok(stream);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address")))
}

type Reason = Box<dyn std::error::Error + Send + Sync>;

fn exchange(
    stream: &mut BufReader<TcpStream>,
    requests: &[Vec<u8>],
    timeout: Duration,
    take: &mut TakeFrame<'_>,
) -> Result<(), Reason> {
    let (mut sent, mut waiting) = (0, 0);
    let (mut messages, mut body) = (Vec::new(), Vec::new());
    for (place, request) in requests.iter().enumerate() {
        messages.clear();
        while let Some(next) = requests.get(sent)
            && (sent == place || waiting + next.len() <= WAITING)
        {
            messages.extend_from_slice(&(next.len() as u32).to_be_bytes());
            messages.extend_from_slice(next);
            waiting += next.len();
            sent += 1;
        }
        let written = stream.get_mut().write_all(&messages);
        written.map_err(|error| timed(error, timeout))?;
        waiting -= request.len();
        loop {
            frame(stream, timeout, &mut body)?;
            if !take(place, &body)? {
                break;
            }
        }
    }
    Ok(())
}

/// Reads the body of a frame.
fn frame(stream: &mut BufReader<TcpStream>, timeout: Duration, body: &mut Vec<u8>) -> Result<(), Reason> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).map_err(|error| timed(error, timeout))?;
    let length = u32::from_be_bytes(length) as usize;
    if length > FRAME_MAX {
        return Err(format!("a frame of {length} bytes: this is not DalmatinerDB's protocol").into());
    }
    body.clear();
    // Memory grows with what arrives, and not with what is announced.
    let read = Read::take(&mut *stream, length as u64).read_to_end(body);
    if read.map_err(|error| timed(error, timeout))? < length {
        return Err("the server ended the connection within a frame".into());
    }
    Ok(())
}

/// An error of the operating system in words: a time-out has none of its own, and a server that
/// does not understand a request ends the connection.
fn timed(error: io::Error, timeout: Duration) -> Reason {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!("nothing happened within {timeout:?}").into(),
        io::ErrorKind::UnexpectedEof => {
            "the server ended the connection, as one does that does not know the request".into()
        }
        _ => error.into(),
    }
}
