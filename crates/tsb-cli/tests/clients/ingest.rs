//! A listener in a process of its own, and what it has stored when it is stopped.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::tsb;

/// Longer than any client takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A sample: series, nanoseconds, value.
pub(crate) type Sample = (String, i64, f64);

/// `tsb ingest` into a file.
pub(crate) struct Ingest {
    child: Child,
    folder: TempDir,
    pub(crate) address: String,
    lines: Receiver<String>,
}

impl Ingest {
    /// Listens on any port with this protocol and transport.
    pub(crate) fn start(scheme: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}/store.db?commit=1s", folder.path().display());
        let mut command = tsb(&["ingest", "--format", "json", "--duration", "120s", "--store", &store]);
        command.args(["--listen", &format!("{scheme}://127.0.0.1:0")]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (say, lines) = sync_channel(1 << 10);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = say.send(line);
            }
        });
        let first: String = lines.recv_timeout(PATIENCE).unwrap();
        let address = first.split("://").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        Self {
            child,
            folder,
            address,
            lines,
        }
    }

    /// Waits until so many samples are accepted, by the line that it prints each second.
    pub(crate) fn await_accepted(&self, samples: u64) {
        let mut seen = 0;
        while seen < samples {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("{seen} of {samples} samples came"));
            let count = line
                .split("accepted, ")
                .nth(1)
                .and_then(|rest| rest.split(" in all").next());
            seen = count.map_or(seen, |count| count.replace(',', "").parse().unwrap());
        }
        assert_eq!(seen, samples);
    }

    /// Ends it; everything that was received is stored then.
    pub(crate) fn stop(self) -> Stored {
        let interrupted = Command::new("kill")
            .args(["-INT", &self.child.id().to_string()])
            .status();
        assert!(interrupted.unwrap().success());
        let output = self.child.wait_with_output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["ledger"]["balanced"], true, "{result:#}");
        Stored {
            folder: self.folder,
            result,
        }
    }
}

/// What a listener has stored.
pub(crate) struct Stored {
    folder: TempDir,
    result: Value,
}

impl Stored {
    /// A count of the ledger.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.result["ledger"][name].as_u64().unwrap()
    }

    /// Samples that the store took.
    pub(crate) fn accepted(&self) -> u64 {
        self.count("accepted")
    }

    /// Series that it has.
    pub(crate) fn series(&self) -> u64 {
        self.result["series"]["admitted"].as_u64().unwrap()
    }

    /// The samples of these series, in the order of time.
    fn samples(&self, series: &[&str]) -> BTreeMap<String, Vec<(i64, f64)>> {
        let store = format!("sqlite:{}/store.db", self.folder.path().display());
        let mut command = tsb(&["query", "--store", &store]);
        for name in series {
            command.args(["--series", name]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let mut found = BTreeMap::<String, Vec<(i64, f64)>>::new();
        for line in text.lines().skip(1) {
            let mut parts = line.rsplitn(3, ',');
            let (value, at, name) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            let row = (nanos(at), value.parse().unwrap());
            found.entry(name.trim_matches('"').to_owned()).or_default().push(row);
        }
        found
    }

    /// Whether the series of `expected` have exactly its samples.
    pub(crate) fn assert_has(&self, expected: &[Sample]) {
        let mut wanted = BTreeMap::<String, Vec<(i64, f64)>>::new();
        for (name, at, value) in expected {
            wanted.entry(name.clone()).or_default().push((*at, *value));
        }
        for rows in wanted.values_mut() {
            rows.sort_by_key(|row| row.0);
        }
        let names: Vec<&str> = wanted.keys().map(String::as_str).collect();
        let mut found = self.samples(&names);
        for (name, rows) in wanted {
            let stored = found.remove(&name).unwrap_or_default();
            let other = rows.iter().zip(&stored).find(|(row, stored)| row != stored);
            assert_eq!((stored.len(), other), (rows.len(), None), "{name}");
        }
    }

    /// Whether the series of `expected` have its samples, among others.
    pub(crate) fn assert_has_among_others(&self, expected: &[Sample]) {
        let names: Vec<&str> = expected.iter().map(|(name, ..)| name.as_str()).collect();
        let found = self.samples(&names);
        for (name, at, value) in expected {
            let is_there = found.get(name).is_some_and(|rows| rows.contains(&(*at, *value)));
            assert!(is_there, "{name} at {at}: {value} is not in {:?}", found.get(name));
        }
    }

    /// Whether each series has one sample, with this value.
    pub(crate) fn assert_values(&self, expected: &[(String, f64)]) {
        let names: Vec<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
        let found = self.samples(&names);
        for (name, value) in expected {
            let values: Vec<f64> = found.get(name).into_iter().flatten().map(|row| row.1).collect();
            assert_eq!(values, [*value], "{name}");
        }
    }
}

/// `tsb query` prints seconds with nine decimals.
fn nanos(text: &str) -> i64 {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let decimals = format!("{decimals:0<9}");
    seconds.parse::<i64>().unwrap() * 1_000_000_000 + decimals.parse::<i64>().unwrap()
}

/// A port that nobody uses now.
pub(crate) fn free_port() -> u16 {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.local_addr().unwrap().port()
}

/// Connects to a program that is just starting.
pub(crate) fn connect(port: u16) -> TcpStream {
    patiently(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)))
}

/// Tries until it works: programs of others do not say when they are ready.
pub(crate) fn patiently<T>(mut act: impl FnMut() -> std::io::Result<T>) -> T {
    let clock = tsb_core::time::MonotonicClock::new();
    let until = tsb_core::time::Clock::now(&clock) + PATIENCE.as_nanos() as u64;
    loop {
        match act() {
            Ok(made) => return made,
            Err(error) => assert!(tsb_core::time::Clock::now(&clock) < until, "{error}"),
        }
        tsb_core::time::Clock::wait_until(&clock, tsb_core::time::Clock::now(&clock) + 20_000_000);
    }
}
