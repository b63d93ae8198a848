//! A store that `tsb emit` filled over somebody's listener, held against its report: what was
//! shed, refused, never answered or dropped on the way is not a loss of the store, and what is
//! lost is known to the sample. (Issue 14.)

use std::process::{Child, Command};

use serde_json::Value;
use tsb_core::latency::INTERVALS_MAX;

use crate::ingest::listening;
use crate::interrupt::{ended, interrupted};
use crate::output::stderr;
use crate::program::tsb;

/// `tsb ingest` into a SQLite file, and what was sent to it.
struct Transfer {
    folder: tempfile::TempDir,
    listener: Option<Child>,
    address: String,
}

impl Transfer {
    /// Listens at `url`, in front of an SQLite file or of one behind a `wrapper`. A commit is not
    /// synced: a busy disk must not slow the server down.
    fn begin(url: &str, wrapper: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (scheme, options) = wrapper.split_once('?').unwrap_or((wrapper, ""));
        let store = format!(
            "{scheme}sqlite:{}/x.db?layout=rows&synchronous=normal{options}",
            folder.path().display()
        );
        let mut command = tsb(&["ingest", "--quiet", "--format", "json", "--listen", url]);
        let (listener, address) = listening(command.args(["--duration", "120s", "--store", &store]).args(more));
        Self {
            folder,
            listener: Some(listener),
            address,
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// What `tsb emit` reports of sending by `scheme`, and how it ended.
    fn emit(&self, scheme: &str, more: &str) -> (Value, Option<i32>) {
        let to = format!("{scheme}://{}", self.address);
        let out = self.path("r.json");
        let mut command = tsb(&["emit", "--quiet", "--to", &to, "--out", &out, "--workload", "mix"]);
        let output = command.args(more.split_whitespace()).output().unwrap();
        let report = std::fs::read(&out).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
        (serde_json::from_slice(&report).unwrap(), output.status.code())
    }

    /// Ends the listener in order; what it says then.
    fn received(&mut self) -> Value {
        interrupted(self.listener.take().unwrap())
    }

    /// What `tsb verify` says of the store, and the text of it.
    fn verified(&self) -> (Value, Option<i32>, String) {
        let store = format!("sqlite:{}?layout=rows", self.path("x.db"));
        let report = self.path("r.json");
        let verify = |format: &str| {
            let command = ["verify", &report, "--store", &store, "--format", format];
            tsb(&command).output().unwrap()
        };
        let (json, text) = (verify("json"), verify("text"));
        let result: Value =
            serde_json::from_slice(&json.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&json)));
        let text = String::from_utf8(text.stdout).unwrap();
        (result["stores"][0].clone(), json.status.code(), text)
    }

    /// Takes the first sample of some series out of the file; how many.
    fn lose(&self) -> u64 {
        let database = rusqlite::Connection::open(self.path("x.db")).unwrap();
        let gone = database.execute(
            "DELETE FROM sample WHERE series < 40 AND at <= (SELECT min(at) + 500000000 FROM sample)",
            [],
        );
        database.close().unwrap();
        gone.unwrap() as u64
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if let Some(listener) = &mut self.listener {
            let _ = listener.kill();
            let _ = listener.wait();
        }
    }
}

fn count(report: &Value, name: &str) -> u64 {
    let count = report["ledger"][name].as_u64();
    count.unwrap_or_else(|| panic!("no {name}: {:#}", report["ledger"]))
}

/// The store has all that it must have, and of what goes away then, all is known to be lost.
fn loses_nothing_and_then_what_is_taken(transfer: &Transfer, accepted: u64) {
    let (store, code, _) = transfer.verified();
    assert_eq!(
        (code, &store["verdict"]["status"]),
        (Some(0), &"VALID".into()),
        "{store:#}"
    );
    assert_eq!(store["ledger"]["balanced"], true, "{store:#}");
    assert_eq!(store["ledger"]["lost_at_most"], Value::Null, "{store:#}");
    let counted = ["lost", "accepted", "verified"].map(|name| count(&store, name));
    assert_eq!(counted, [0, accepted, accepted], "{store:#}");
    let gone = transfer.lose();
    assert!(gone > 0);
    let (store, code, _) = transfer.verified();
    assert_eq!((code, count(&store, "lost")), (Some(3), gone), "{store:#}");
}

#[test]
fn samples_that_a_server_refused_are_no_loss() {
    let mut transfer = Transfer::begin("influx+http://127.0.0.1:0", "", &["--max-series", "300"]);
    let (sent, code) = transfer.emit("influx+http", "--series 540 --interval 100ms --duration 1s");
    let received = transfer.received();
    assert_eq!(code, Some(4), "the server complained");
    let (confirmed, refused) = (count(&sent, "confirmed"), count(&sent, "refused"));
    assert!(confirmed > 1_000 && refused > 1_000, "{:#}", sent["ledger"]);
    assert_eq!(confirmed, count(&received, "accepted"));
    assert_eq!(sent["exceptions"]["rejected_unnamed"], refused);
    loses_nothing_and_then_what_is_taken(&transfer, confirmed);
    let (store, ..) = transfer.verified();
    assert_eq!(count(&store, "rejected"), refused);
}

#[test]
fn samples_shed_before_a_slow_server_are_no_loss() {
    let mut transfer = Transfer::begin("influx+http://127.0.0.1:0", "throttle+?&throttle.rate=4000", &[]);
    let (sent, code) = transfer.emit("influx+http", "--series 540 --rate 20000 --duration 1s");
    transfer.received();
    assert_eq!(code, Some(0));
    assert!(count(&sent, "shed") > 2_000, "{:#}", sent["ledger"]);
    // What was asked is what was due while it was due, however long the server took.
    let asked = sent["rate"]["asked_per_second"].as_f64().unwrap();
    assert!((19_500.0..20_500.0).contains(&asked), "{:#}", sent["rate"]);
    loses_nothing_and_then_what_is_taken(&transfer, count(&sent, "confirmed"));
}

#[test]
fn unknown_outcomes_of_a_lost_server_are_settled_by_reading_back() {
    let mut transfer = Transfer::begin("influx+http://127.0.0.1:0", "", &[]);
    let listener = transfer.listener.take().unwrap();
    let pid = listener.id().to_string();
    let ending = std::thread::spawn(move || {
        std::thread::park_timeout(std::time::Duration::from_millis(2_500));
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        ended(listener)
    });
    let (sent, code) = transfer.emit("influx+http", "--series 540 --rate 20000 --duration 4s");
    let received = ending.join().unwrap();
    assert_eq!(code, Some(4));
    let (shed, unknown) = (count(&sent, "shed"), count(&sent, "unknown"));
    assert!(shed > 1_000 && unknown > 0, "{:#}", sent["ledger"]);
    let kinds = sent["exceptions"]["operations"].as_array().unwrap();
    for kind in ["shed", "unknown"] {
        assert!(kinds.iter().any(|one| one["kind"] == kind), "{kind}: {kinds:?}");
    }
    loses_nothing_and_then_what_is_taken(&transfer, count(&received, "accepted"));
    let (store, ..) = transfer.verified();
    assert_eq!((count(&store, "shed"), count(&store, "unknown")), (shed, unknown));
}

#[test]
fn drops_on_a_wire_without_answers_are_counted_and_leave_the_store_unverified() {
    let mut transfer = Transfer::begin("graphite+udp://127.0.0.1:0?receive-buffer=4KiB", "", &[]);
    let (sent, code) = transfer.emit("graphite+udp", "--series 5400 --batch tick --rate 54k --duration 1s");
    let received = transfer.received();
    assert_eq!(code, Some(0));
    let (handed_over, accepted) = (count(&sent, "sent"), count(&received, "accepted"));
    assert!(
        accepted > 0 && accepted + 1_000 < handed_over,
        "{accepted} of {handed_over}"
    );
    let (store, code, text) = transfer.verified();
    assert_eq!(
        (code, &store["verdict"]["status"]),
        (Some(0), &"UNVERIFIED".into()),
        "{store:#}"
    );
    assert_eq!(store["ledger"]["balanced"], true, "{store:#}");
    let dropped = handed_over - accepted;
    let counted = ["verified", "lost_in_transport", "lost", "lost_at_most"].map(|name| count(&store, name));
    assert_eq!(counted, [accepted, dropped, 0, dropped], "{store:#}");
    let words = tsb_run::units::count(dropped);
    let words = format!("{words} may have been lost by the store or on the way, and it is unknown which");
    assert!(text.contains(&words) && !text.contains("could be compared"), "{text}");
}

#[test]
fn a_wire_without_answers_that_brought_everything_leaves_a_valid_store() {
    let mut transfer = Transfer::begin("tsb+tcp://127.0.0.1:0", "", &[]);
    let (sent, _) = transfer.emit("tsb+tcp", "--series 540 --rate 20000 --duration 1s");
    transfer.received();
    let (store, code, _) = transfer.verified();
    assert_eq!(
        (code, &store["verdict"]["status"]),
        (Some(0), &"VALID".into()),
        "{store:#}"
    );
    assert_eq!(count(&store, "verified"), count(&sent, "sent"));
}

#[test]
fn the_slices_of_a_sender_and_of_a_receiver_are_bounded_and_add_up() {
    let mut transfer = Transfer::begin("influx+http://127.0.0.1:0", "", &[]);
    let fleet = "--series 540 --rate 20000 --duration 3s --report-interval 2ms";
    let (sent, _) = transfer.emit("influx+http", fleet);
    let received = transfer.received();
    let slices = |report: &Value| report["intervals"].as_array().unwrap().clone();
    let sum = |slices: &[Value], name: &str| slices.iter().filter_map(|slice| slice[name].as_u64()).sum::<u64>();
    let of_sender = slices(&sent);
    // Folding keeps half of them, and a busy machine skips some.
    assert!(of_sender.len() as u64 > INTERVALS_MAX / 4, "{}", of_sender.len());
    assert!(of_sender.len() as u64 <= INTERVALS_MAX + 2, "{}", of_sender.len());
    for (name, counter) in [("asked", "due"), ("sent", "sent"), ("accepted", "confirmed")] {
        assert_eq!(sum(&of_sender, name), count(&sent, counter), "{name}");
    }
    let cells = of_sender.iter().map(|slice| &slice["response_cells"]["counts"]);
    let operations = cells.flat_map(|counts| counts.as_array().into_iter().flatten().filter_map(Value::as_u64));
    assert_eq!(Some(operations.sum()), sent["latency"]["response"]["count"].as_u64());
    let of_receiver = slices(&received);
    // A slice per second, from before the first sample to behind the last.
    assert!(of_receiver.len() >= 3, "{of_receiver:?}");
    assert_eq!(sum(&of_receiver, "accepted"), count(&received, "accepted"));
    for slices in [of_sender, of_receiver] {
        assert!(slices.is_sorted_by_key(|slice| slice["end_ns"].as_u64()));
        assert!(slices.iter().all(|slice| slice["rss_bytes"].as_u64() > Some(0)));
        assert!(sum(&slices, "cpu_ns") > 0);
    }
}
