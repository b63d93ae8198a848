//! How far the clocks of two hosts are apart, and how uncertain that is: exchanges of datagrams, as
//! NTP makes them.
//!
//! The leader answers each request with its clocks. It read them between the moments at which the
//! host sent the request and had the answer, so the offset lies within half of that time around its
//! middle, however unequal both ways were. Of many exchanges the fastest bounds it best.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tsb_core::time::Clock;

use crate::error::Error;

/// The start of every datagram.
const MAGIC: [u8; 4] = *b"tsbc";
/// A request: magic, number.
const REQUEST_BYTES: usize = 12;
/// An answer: magic, number, monotonic clock, time of day.
const ANSWER_BYTES: usize = 28;
/// Exchanges of one measurement.
const EXCHANGES: u64 = 32;
/// Longest wait for one answer.
const ANSWER_WAIT: Duration = Duration::from_millis(200);
/// How often the leader looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// The leader's clocks against those of this host, from one exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClockReading {
    /// The leader's time of day minus this host's, in nanoseconds.
    pub offset_ns: i64,
    /// The same of the clocks that never step, whose beginnings differ.
    pub steady_offset_ns: i64,
    /// Both offsets are at most this far from the true ones, in nanoseconds.
    pub uncertainty_ns: u64,
}

impl ClockReading {
    /// What an exchange says: the steady clock of this host when the request was sent and when the
    /// answer had come, its time of day then, and the leader's answer.
    fn of((sent, received, wall): (u64, u64, i64), (steady, wall_of_leader): (u64, i64)) -> Self {
        let half = received.saturating_sub(sent).div_ceil(2);
        let middle = sent.midpoint(received);
        let wall_at_middle = wall.saturating_sub_unsigned(received - middle);
        Self {
            offset_ns: wall_of_leader.saturating_sub(wall_at_middle),
            steady_offset_ns: (steady as i64).wrapping_sub(middle as i64),
            uncertainty_ns: half,
        }
    }
}

/// The reading with the smallest uncertainty.
pub fn best_of(readings: impl IntoIterator<Item = ClockReading>) -> Option<ClockReading> {
    readings.into_iter().min_by_key(|reading| reading.uncertainty_ns)
}

/// Asks the leader at `address` for its clocks, many times, and returns the best reading.
///
/// # Errors
/// If no answer came.
pub fn measure_offset(address: SocketAddr, clock: &dyn Clock) -> Result<ClockReading, Error> {
    let failure = || Error::unreachable(format!("cannot compare clocks with the leader at {address}"));
    let socket = connected(address).map_err(|error| failure().because(&error))?;
    let readings = (0..EXCHANGES).filter_map(|number| exchange(&socket, number, clock));
    best_of(readings).ok_or_else(|| {
        failure()
            .because_of("it answered no datagram")
            .hint("the leader answers on loopback unless it is told another address with --clock-listen")
    })
}

fn connected(address: SocketAddr) -> io::Result<UdpSocket> {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(ANSWER_WAIT))?;
    Ok(socket)
}

/// One exchange; `None` if its answer did not come in time.
fn exchange(socket: &UdpSocket, number: u64, clock: &dyn Clock) -> Option<ClockReading> {
    let mut request = [0; REQUEST_BYTES];
    request[..4].copy_from_slice(&MAGIC);
    request[4..].copy_from_slice(&number.to_le_bytes());
    let sent = clock.now();
    socket.send(&request).ok()?;
    let mut answer = [0; ANSWER_BYTES];
    loop {
        let length = socket.recv(&mut answer).ok()?;
        let (received, wall) = (clock.now(), clock.wall().0);
        // An answer to an earlier request came late: it says nothing of this one.
        if length == ANSWER_BYTES && answer[..REQUEST_BYTES] == request {
            let read = |at: usize| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&answer[at..at + 8]);
                bytes
            };
            let of_leader = (u64::from_le_bytes(read(12)), i64::from_le_bytes(read(20)));
            return Some(ClockReading::of((sent, received, wall), of_leader));
        }
        if received.saturating_sub(sent) > ANSWER_WAIT.as_nanos() as u64 {
            return None;
        }
    }
}

/// Answers the requests of hosts, until it is dropped.
#[derive(Debug)]
pub struct ClockServer {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ClockServer {
    /// Begins to answer at an address, with this clock.
    ///
    /// # Errors
    /// If it cannot listen there.
    pub fn start(listen: SocketAddr, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let failure =
            |error: &io::Error| Error::unreachable(format!("cannot answer for clocks at {listen}")).because(error);
        let socket = UdpSocket::bind(listen).map_err(|error| failure(&error))?;
        socket.set_read_timeout(Some(LOOK)).map_err(|error| failure(&error))?;
        let address = socket.local_addr().map_err(|error| failure(&error))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let thread = std::thread::Builder::new()
            .name("tsb-clock".to_owned())
            .spawn(move || answer_all(&socket, &*clock, &flag))
            .map_err(|error| failure(&error))?;
        Ok(Self {
            address,
            is_over,
            thread: Some(thread),
        })
    }

    /// Where it answers.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ClockServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn answer_all(socket: &UdpSocket, clock: &dyn Clock, is_over: &AtomicBool) {
    let mut datagram = [0; 64];
    while !is_over.load(Ordering::Acquire) {
        let Ok((length, from)) = socket.recv_from(&mut datagram) else {
            continue;
        };
        // An answer is not much longer than its request, so nobody is flooded in another's name.
        if length != REQUEST_BYTES || datagram[..4] != MAGIC {
            continue;
        }
        let mut answer = [0; ANSWER_BYTES];
        answer[..REQUEST_BYTES].copy_from_slice(&datagram[..REQUEST_BYTES]);
        answer[12..20].copy_from_slice(&clock.now().to_le_bytes());
        answer[20..].copy_from_slice(&clock.wall().0.to_le_bytes());
        let _ = socket.send_to(&answer, from);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tsb_core::Timestamp;
    use tsb_core::time::{MonotonicClock, SECOND_NS};

    use super::*;

    /// A clock that is off, and runs too fast by a share.
    #[derive(Debug)]
    struct WrongClock {
        right: MonotonicClock,
        wall_ns: i64,
        drift: f64,
    }

    impl Clock for WrongClock {
        fn now(&self) -> u64 {
            let right = self.right.now();
            right + (right as f64 * self.drift) as u64
        }
        fn wall(&self) -> Timestamp {
            self.right.wall() + self.wall_ns + (self.right.now() as f64 * self.drift) as i64
        }
        fn wait_until(&self, due: u64) {
            self.right.wait_until(due);
        }
    }

    /// A clock that two threads share.
    #[derive(Clone, Debug)]
    struct Shared(Arc<MonotonicClock>);

    impl Clock for Shared {
        fn now(&self) -> u64 {
            self.0.now()
        }
        fn wall(&self) -> Timestamp {
            self.0.wall()
        }
        fn wait_until(&self, due: u64) {
            self.0.wait_until(due);
        }
    }

    #[test]
    fn steps_and_drifts_up_to_a_second_are_measured_to_within_the_uncertainty() {
        let server = ClockServer::start("127.0.0.1:0".parse().unwrap(), Arc::new(MonotonicClock::new())).unwrap();
        for wall_ns in [0, 1, -(SECOND_NS as i64 / 3), SECOND_NS as i64, -(SECOND_NS as i64)] {
            for drift in [0.0, 1e-4] {
                let clock = WrongClock {
                    right: MonotonicClock::new(),
                    wall_ns,
                    drift,
                };
                let reading = measure_offset(server.address(), &clock).unwrap();
                let drifted = (clock.right.now() as f64 * drift) as i64;
                let off = (reading.offset_ns + wall_ns + drifted).unsigned_abs();
                // What it drifted since, and between reading both of its clocks.
                let allowed = reading.uncertainty_ns + drifted.unsigned_abs() + 20_000;
                assert!(off <= allowed, "{wall_ns} {drift}: {reading:?}");
            }
        }
    }

    #[test]
    fn the_steady_offset_finds_a_moment_of_the_other_clock() {
        let leader = Arc::new(MonotonicClock::new());
        leader.wait_until(3_000_000);
        let clock = MonotonicClock::new();
        let server = ClockServer::start("127.0.0.1:0".parse().unwrap(), Arc::new(Shared(Arc::clone(&leader)))).unwrap();
        let reading = measure_offset(server.address(), &clock).unwrap();
        let there = clock.now() as i64 + reading.steady_offset_ns;
        let off = (leader.now() as i64 - there).unsigned_abs();
        assert!(off <= reading.uncertainty_ns + 1_000_000, "{off}: {reading:?}");
    }

    #[test]
    fn nobody_who_answers_is_an_error() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        drop(silent);
        let error = measure_offset(address, &MonotonicClock::new()).unwrap_err();
        let hint = error.explanation().hint();
        assert!(hint.is_some_and(|hint| hint.contains("--clock-listen")), "{error}");
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_uncertainty(
            sent in 0u64..1 << 50, there in 0u64..1 << 30, back in 0u64..1 << 30, offset in -1i64 << 40..1 << 40,
        ) {
            let received = sent + there + back;
            let steady = (sent + there) as i64 + offset;
            prop_assume!(steady >= 0);
            let reading = ClockReading::of((sent, received, 5 + received as i64), (steady as u64, 5 + steady));
            for measured in [reading.offset_ns, reading.steady_offset_ns] {
                prop_assert!((measured - offset).unsigned_abs() <= reading.uncertainty_ns);
            }
        }
    }
}
