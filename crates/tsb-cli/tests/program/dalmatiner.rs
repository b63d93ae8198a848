//! `tsb ingest --listen dalmatiner-stream+tcp`, as the store of a client and as the target of
//! strangers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

use serde_json::Value;
use tsb_core::time::{Clock, MonotonicClock};

use crate::ingest::listening;
use crate::interrupt::interrupted;
use crate::program::tsb;

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Before every sample of the checks, which are of November 2023.
const CHECKED_FROM_S: i64 = 1_699_900_000;

/// `tsb ingest` in a process of its own.
struct Endpoint {
    child: Child,
    address: String,
}

impl Endpoint {
    fn start() -> Self {
        let arguments = ["ingest", "--format", "json", "--quiet", "--duration", "1h"];
        let listen = ["--listen", "dalmatiner-stream+tcp://127.0.0.1:0", "--store", "memory:"];
        let (child, address) = listening(tsb(&arguments).args(listen));
        Self { child, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The body of the first frame that answers a frame; `None` if the connection is ended.
    fn ask(&self, body: &[u8]) -> Option<Vec<u8>> {
        let mut stream = self.connect();
        stream.write_all(&framed(body)).unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).ok()?;
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut answer).unwrap();
        Some(answer)
    }

    /// Ends it in order; what it says then.
    fn stop(self) -> Value {
        interrupted(self.child)
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes(), body].concat()
}

#[test]
fn its_client_keeps_the_contract_of_a_store() {
    let endpoint = Endpoint::start();
    let back_s = MonotonicClock::new().wall().as_secs() - CHECKED_FROM_S;
    let options = format!("back={back_s}s&delay=10s&timeout=1m");
    let store = format!("dalmatiner://{}/check?{options}", endpoint.address);
    let checked = tsb(&["conformance", "--store", &store]).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    let failed: Vec<&str> = said.lines().filter(|line| line.starts_with("fail")).collect();
    assert_eq!((checked.status.code(), failed), (Some(0), Vec::new()), "{checked:?}");
    endpoint.stop();
}

#[test]
fn a_bad_request_ends_its_connection_and_is_counted() {
    let endpoint = Endpoint::start();
    let buckets = [3];
    assert_eq!(endpoint.ask(&buckets), Some(vec![0, 0, 0, 0]));
    let too_many = [&[2, 1, b'b', 0, 2, 1, b'm'][..], &[0; 8], &[255; 4], &[0, 2, 0]].concat();
    let refused = endpoint.ask(&too_many).unwrap();
    assert_eq!(refused[0], 255, "{refused:?}");
    let said = String::from_utf8_lossy(&refused[2..]).into_owned();
    assert!(said.contains("4294967295 points are too many"), "{said}");
    let bad: [&[u8]; 6] = [
        b"",
        b"\x63",
        b"\x02\xffb",
        b"\x01\x05b",
        b"\x03more",
        // Stream mode with a bucket that is cut short.
        b"\x04\x02\x09b",
    ];
    for body in bad {
        assert_eq!(endpoint.ask(body), None, "{body:?}");
    }
    // A frame that is announced and never comes.
    let mut stream = endpoint.connect();
    stream.write_all(&u32::MAX.to_be_bytes()).unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap_or(0), 0);
    // It goes on to answer others.
    assert_eq!(endpoint.ask(&buckets), Some(vec![0, 0, 0, 0]));
    let ledger = &endpoint.stop()["ledger"];
    assert_eq!(
        (&ledger["malformed"], &ledger["accepted"]),
        (&7.into(), &0.into()),
        "{ledger}"
    );
}
