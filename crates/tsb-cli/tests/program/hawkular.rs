//! The original client of Mohawk's benchmark in front of `tsb ingest --listen hawkular+http`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use crate::ingest::listening;
use crate::interrupt::interrupted;
use crate::program::tsb;

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// `tsb ingest` in a process of its own.
struct Endpoint {
    child: Child,
    address: String,
}

impl Endpoint {
    fn start(options: &str, store: &str) -> Self {
        let listen = format!("hawkular+http://127.0.0.1:0{options}");
        let arguments = ["ingest", "--format", "json", "--quiet", "--duration", "120s"];
        let (child, address) = listening(tsb(&arguments).args(["--listen", &listen, "--store", store]));
        Self { child, address }
    }

    /// One request as the client of 2017 sent it, on a connection of its own, with `null` as the
    /// body of a GET; the status and the body of the answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} /hawkular/metrics/{path} HTTP/1.1\r\nAccept-Encoding: identity\r\nContent-Length: {length}\r\n\
             Hawkular-Tenant: python_test\r\nUser-Agent: Python-urllib/2.7\r\nConnection: close\r\n\
             Host: localhost\r\nContent-Type: application/json\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The writes and the reads of the benchmark, of which there were 999; returns the rows read
    /// and the answers that had none with 204.
    fn benchmark(&self, count: i64) -> (usize, usize) {
        const T0: i64 = 1_498_595_865_123;
        assert_eq!(self.ask("GET", "status", "null").0, 200);
        for i in 1..=count {
            let at = T0 - i * 60_000;
            let body = format!(
                "[\n  {{\n    \"data\": [\n      {{\n        \"timestamp\": {at}, \n        \"value\": 53.27, \n        \
                 \"tags\": {{}}\n      }}\n    ], \n    \"id\": \"example.doc.1\"\n  }}\n]"
            );
            assert_eq!(self.ask("POST", "gauges/raw", &body).0, 200);
        }
        let (mut rows, mut empty) = (0, 0);
        for i in 1..=count {
            let (end, start) = (T0 - i * 60_000, T0 - i * 60_000 - 90_000);
            let path = format!("gauges/example.doc.1/raw?start={start}&end={end}");
            let (status, body) = self.ask("GET", &path, "null");
            if status == 204 {
                empty += 1;
            } else {
                rows += serde_json::from_str::<Vec<Value>>(&body).unwrap().len();
            }
        }
        (rows, empty)
    }

    /// Ends it in order; what it says then.
    fn stop(self) -> Value {
        interrupted(self.child)
    }
}

#[test]
fn the_benchmark_over_the_ring_reads_998_rows() {
    let endpoint = Endpoint::start("", "ring:");
    assert_eq!(endpoint.benchmark(999), (998, 0));
    let result = endpoint.stop();
    let ledger = &result["ledger"];
    assert_eq!(
        (&ledger["received"], &ledger["accepted"]),
        (&999.into(), &999.into()),
        "{ledger}"
    );
    assert_eq!(ledger["balanced"], true);
    assert_eq!(result["listeners"][0]["connections"], 1_999);
}

#[test]
fn the_benchmark_as_hawkular_answers_it_ends_with_a_204() {
    let endpoint = Endpoint::start("?behaviour=corrected", "memory:");
    assert_eq!(endpoint.benchmark(999), (998, 1));
    endpoint.stop();
}

/// Fewer points than the original: each is a commit with syncs.
#[cfg(feature = "sqlite")]
#[test]
fn the_benchmark_over_mohawks_sqlite_reads_twice_as_many_rows() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}?layout=mohawk", folder.path().join("m.db").display());
    let endpoint = Endpoint::start("", &store);
    assert!(endpoint.ask("GET", "status", "null").1.contains("Backend-Sqlite3"));
    assert_eq!(endpoint.benchmark(60), (119, 0));
    endpoint.stop();
    // What an earlier process wrote is read, although the listener has not met its name.
    let endpoint = Endpoint::start("?behaviour=corrected", &store);
    let range = "start=1498595000000&end=1498595805123";
    let (status, body) = endpoint.ask("GET", &format!("gauges/example.doc.1/raw?{range}"), "");
    assert_eq!(status, 200, "{body}");
    assert_eq!(serde_json::from_str::<Vec<Value>>(&body).unwrap().len(), 13, "{body}");
    endpoint.stop();
}

#[test]
fn bad_requests_are_answered_and_counted() {
    let endpoint = Endpoint::start("?behaviour=head", "memory:");
    let (status, body) = endpoint.ask("POST", "gauges/raw", "[{");
    assert!(status == 500 && body.contains("\"code\":500"), "{body}");
    assert_eq!(endpoint.ask("GET", "gauges/%3C/raw", "").0, 500);
    assert_eq!(endpoint.ask("GET", "nothing", "").0, 404);
    assert_eq!(
        endpoint
            .ask(
                "POST",
                "gauges/raw",
                r#"[{"id":"a","data":[{"timestamp":1,"value":2}]}]"#
            )
            .0,
        200
    );
    let result = endpoint.stop();
    let ledger = &result["ledger"];
    assert_eq!(
        (&ledger["malformed"], &ledger["accepted"]),
        (&3.into(), &1.into()),
        "{ledger}"
    );
}

#[test]
fn addresses_that_are_none_are_refused_with_what_is_known() {
    for (url, why) in [
        ("hawkular+tcp://127.0.0.1:1", "hawkular+http://HOST:PORT"),
        (
            "hawkular+http://127.0.0.1:1?behaviour=1.0",
            "known are 0.15.4, head, corrected",
        ),
        ("hawkular+http://0.0.0.0:1", "--allow-remote"),
    ] {
        let output = tsb(&["ingest", "--listen", url]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{url}: {said}");
    }
}

/// A run of the client of its own, many writes in flight, and its series by name afterwards.
#[cfg(feature = "hawkular")]
#[test]
fn a_run_by_its_client_is_read_back_whole() {
    for (options, store, level) in [
        ("?behaviour=corrected", "memory:", "volatile"),
        ("?behaviour=head&backend=mongo", "memory:", "volatile"),
        ("?backend=sqlite3", "memory:", "unconfirmed"),
        ("", "ring:", "unconfirmed"),
    ] {
        let endpoint = Endpoint::start(options, store);
        let spec = format!("hawkular://{}/runs", endpoint.address);
        let asked = "run --quiet --no-calibrate --format json --series 540 --rate 5400 --duration 3s --store";
        let asked: Vec<&str> = asked.split(' ').chain([spec.as_str()]).collect();
        let output = tsb(&asked).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        let ledger = &report["ledger"];
        assert_eq!(ledger["balanced"], true, "{ledger}");
        let count = |name: &str| ledger[name].as_u64().unwrap_or(0);
        assert!(
            count("verified") > 0 && count("lost") + count("altered") == 0,
            "{ledger}"
        );
        let found = count("verified") + count("superseded");
        assert_eq!(found, count("due") - count("shed"), "{ledger}");
        // A fleet that reports every ten seconds leaves several samples in a slot, or none.
        assert!(count("superseded") == 0 || store == "ring:", "{ledger}");
        assert_eq!(report["durability"]["level"], level, "{}", report["durability"]);
        let listed = tsb(&["query", &spec, "--list"]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert_eq!(listed.lines().count(), 540, "{listed}");
        // A second run needs another tenant.
        let again = tsb(&asked).output().unwrap();
        let said = String::from_utf8_lossy(&again.stderr).into_owned();
        assert_eq!(again.status.code(), Some(2), "{said}");
        assert!(said.contains("already holds"), "{said}");
        endpoint.stop();
    }
}
