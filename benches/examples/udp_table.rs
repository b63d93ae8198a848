//! Prints what a sample costs over UDP with and without segmentation offload, and how much
//! arrives.
//!
//! `cargo run --release -p tsb-bench --example udp_table costs [ROUNDS] [PROTOCOL]`: CPU time of
//! the sending thread (encoding, packing and system calls, which include the kernel's delivery)
//! and of the receiving thread, for all protocols or one, with and without `UDP_SEGMENT` at the
//! sender and `UDP_GRO` at the receiver. The four rows of a protocol and operation size are
//! interleaved over the rounds and printed as medians at the end. Every datagram is accounted
//! for: the sender waits before more are in flight than the buffer holds, and none may be lost.
//!
//! `... udp_table quick`: the same in a few seconds, for a quick look and for CI.
//!
//! `... udp_table rates PROTOCOL|all [STORE]`: runs `tsb run --transport udp` (build it first,
//! with the same profile) at rising rates and finds the highest rate at which the audit misses
//! no sample; then the exact losses above it, from the ledger. StatsD is excluded: it has no
//! timestamps, so the audit cannot tell which tick a value belongs to.
#![expect(clippy::print_stdout, reason = "an example prints its result")]
#![expect(clippy::expect_used, reason = "an example may stop with a message")]

use std::process::Command;
use std::sync::Arc;

use serde_json::Value;
use tsb_bench::mix::{self, Mix};
use tsb_core::emit::{Operation, Outcome, Target};
use tsb_core::schedule::Slot;
use tsb_core::time::thread_cpu_ns;
use tsb_core::wire::Protocol;
use tsb_core::{Batch, Catalog, SeriesId, SeriesKey, Timestamp};
use tsb_run::loopback::{Loopback, Setup};
use tsb_run::{Transport, WirePlan};

/// Ticks with different values, sent repeatedly.
const TICKS: usize = 20;

/// Samples per row and round, unless the time limit comes first.
const SAMPLES: u64 = 5_000_000;

/// Time limit per row and round.
const ROUND_NS: u64 = 3_000_000_000;

/// The same for `quick`.
const QUICK_NS: u64 = 50_000_000;

/// Without a datagram for this long, something was lost.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Samples in flight; their datagrams fit into the receive buffer.
const IN_FLIGHT: u64 = 4 * mix::SERIES as u64;

/// Bisection steps between a rate that loses samples and one that does not.
const STEPS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize| arguments.get(index).map(String::as_str);
    match word(0) {
        Some("rates") => {
            let asked = word(1).unwrap_or("tsb");
            let all = Protocol::ALL.into_iter().filter(|protocol| protocol.is_packed());
            let timed = all.filter(|protocol| protocol.capabilities().timestamps);
            for protocol in timed.filter(|protocol| asked == "all" || protocol.name() == asked) {
                rates(protocol, word(2).unwrap_or("memory:"));
            }
        }
        Some("quick") => costs(1, None, QUICK_NS, &OPERATIONS[..1]),
        _ => {
            let rounds = word(1).map_or(3, |rounds| rounds.parse().expect("a number of rounds"));
            let protocol = word(2).map(|name| name.parse().expect("a protocol"));
            costs(rounds, protocol, ROUND_NS, &OPERATIONS);
        }
    }
}

/// One configuration.
#[derive(Clone, Copy)]
struct Case {
    protocol: Protocol,
    operation: (&'static str, usize),
    gso: bool,
    gro: bool,
}

/// Names of the operations, and their samples.
const OPERATIONS: [(&str, usize); 2] = [("host-54", mix::HOST), ("tick-54000", mix::SERIES)];

/// The result of one round.
#[derive(Clone, Copy, Default)]
struct Figures {
    send_ns: f64,
    receive_ns: f64,
    bytes: f64,
    per_datagram: f64,
}

fn costs(rounds: usize, only: Option<Protocol>, round_ns: u64, operations: &[(&'static str, usize)]) {
    println!("datagrams of 1,400 bytes over loopback, {rounds} rounds, medians");
    println!("protocol          operation   GSO  GRO   bytes  samples/datagram  send ns  M/CPU-s  receive ns  M/CPU-s");
    let ticks = ticks();
    let packed = Protocol::ALL.into_iter().filter(|protocol| protocol.is_packed());
    for protocol in packed.filter(|protocol| only.is_none_or(|only| only == *protocol)) {
        let ticks = carried(&ticks, protocol);
        for &operation in operations {
            let cases = [(true, true), (true, false), (false, true), (false, false)].map(|(gso, gro)| Case {
                protocol,
                operation,
                gso,
                gro,
            });
            let mut figures = [const { Vec::new() }; 4];
            for _ in 0..rounds.max(1) {
                for (case, figures) in cases.iter().zip(&mut figures) {
                    figures.push(measure(*case, &ticks, round_ns));
                }
            }
            for (case, figures) in cases.iter().zip(&figures) {
                print(case, figures);
            }
        }
    }
}

fn print(case: &Case, figures: &[Figures]) {
    let median = |pick: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (send, receive) = (median(|f| f.send_ns), median(|f| f.receive_ns));
    let word = |on| if on { "on" } else { "off" };
    println!(
        "{:16}  {:10}  {:3}  {:3}  {:6.2}  {:16.1}  {send:7.2}  {:7.1}  {receive:10.2}  {:7.1}",
        case.protocol.name(),
        case.operation.0,
        word(case.gso),
        word(case.gro),
        median(|f| f.bytes),
        median(|f| f.per_datagram),
        1e3 / send,
        1e3 / receive,
    );
}

/// Names that make lines of about 30 bytes: `h0007.m13 123456 1700000000`.
fn catalog() -> Catalog {
    let key = |index: usize| SeriesKey::new(format!("h{:04}.m{:02}", index / mix::HOST, index % mix::HOST));
    (0..mix::SERIES).map(key).collect()
}

fn ticks() -> Vec<Vec<f64>> {
    let mut fleet = Mix::new(7);
    let tick = |_| {
        let mut values = Vec::new();
        fleet.tick(&mut values);
        values
    };
    (0..TICKS).map(tick).collect()
}

/// The values as a protocol can carry them: rounded if it has integers only.
fn carried(ticks: &[Vec<f64>], protocol: Protocol) -> Vec<Vec<f64>> {
    let mut ticks = ticks.to_vec();
    if protocol.capabilities().integers_only {
        ticks.iter_mut().flatten().for_each(|value| *value = value.round());
    }
    ticks
}

/// Waits until `until` samples have arrived.
fn reaches(loopback: &Loopback, until: u64) {
    let clock = loopback.clock();
    let (mut seen, mut since) = (0, clock.now());
    while loopback.applied() < until {
        clock.wait_until(clock.now() + 50_000);
        let now = loopback.applied();
        if now != seen {
            (seen, since) = (now, clock.now());
        }
        let is_patient = clock.now() - since < PATIENCE_NS;
        assert!(is_patient, "{seen} of {until} samples came, and no more");
    }
}

fn measure(case: Case, ticks: &[Vec<f64>], round_ns: u64) -> Figures {
    let setup = Setup {
        wire: WirePlan {
            receive_buffer_bytes: Some(64 << 20),
            gso: case.gso,
            gro: case.gro,
            ..WirePlan::default()
        },
        ..Setup::new(case.protocol, Transport::Udp)
    };
    let loopback = Loopback::open(&setup, catalog(), None).expect("a port");
    let (mut target, clock) = (loopback.connect().expect("loopback"), Arc::clone(loopback.clock()));
    let mut sent = 0;
    let mut cpu_ns = 0;
    let arrive = |until: u64| reaches(&loopback, until);
    let mut send = |second: i64, samples_max: u64| {
        let from = sent;
        let until_ns = clock.now() + round_ns;
        for values in ticks.iter().cycle() {
            let before = thread_cpu_ns();
            for (index, part) in values.chunks(case.operation.1).enumerate() {
                let first = SeriesId((index * case.operation.1) as u32);
                let at = Timestamp::from_secs(1_700_000_000 + second + (sent / mix::SERIES as u64) as i64);
                let batch = Batch::tick(first, at, part);
                let (due, slot) = (0, Slot::default());
                assert_eq!(target.send(&Operation::write(batch, due, slot)), Outcome::Sent);
            }
            target.idle();
            cpu_ns += thread_cpu_ns() - before;
            sent += values.len() as u64;
            arrive(sent.saturating_sub(IN_FLIGHT));
            if sent - from >= samples_max || clock.now() >= until_ns {
                break;
            }
        }
        arrive(sent);
        (std::mem::take(&mut cpu_ns), loopback.ingest_cpu_ns(), sent - from)
    };
    // The first ticks announce every name, and are not counted.
    let (_, receive_from, _) = send(0, 4 * mix::SERIES as u64);
    let before = loopback.stats();
    let (send_ns, receive_to, samples) = send(0, SAMPLES);
    let stats = loopback.stats();
    target.finish();
    loopback.close().expect("every sample was taken");
    let each = |total: u64| total as f64 / samples as f64;
    Figures {
        send_ns: each(send_ns),
        receive_ns: each(receive_to - receive_from),
        bytes: each(stats.bytes - before.bytes),
        per_datagram: 1.0 / each(stats.datagrams - before.datagrams),
    }
}

/// Finds the highest rate without a loss, and what is lost above it.
fn rates(protocol: Protocol, store: &str) {
    let fleet = fleet(protocol);
    println!("tsb run --transport udp --protocol {protocol} --workload {fleet} --duration 2s into {store}, audited");
    println!(
        "   asked/s     held/s  verified      lost of these by the kernel  datagrams lost  kernel's count  balanced"
    );
    let (mut good, mut bad) = (0, 500_000);
    let mut at_bad = run(protocol, store, bad);
    while at_bad.is_good(bad) && bad < 256_000_000 {
        (good, bad) = (bad, 2 * bad);
        at_bad = run(protocol, store, bad);
    }
    for _ in 0..STEPS {
        let middle = good.midpoint(bad);
        let seen = run(protocol, store, middle);
        if seen.is_good(middle) {
            good = middle;
        } else {
            (bad, at_bad) = (middle, seen);
        }
    }
    println!(
        "{protocol}: {:.2} M samples/s without a loss; at {:.2} M {}",
        good as f64 / 1e6,
        bad as f64 / 1e6,
        if at_bad.lost > 0 {
            "some are lost"
        } else {
            "the sender falls behind"
        },
    );
}

/// The result of one run.
struct RunResult {
    lost: u64,
    held_per_second: f64,
}

impl RunResult {
    /// Whether nothing was lost and the sender kept up with the asked rate.
    fn is_good(&self, asked: u64) -> bool {
        self.lost == 0 && self.held_per_second > 0.95 * asked as f64
    }
}

/// A fleet whose values the protocol carries.
fn fleet(protocol: Protocol) -> &'static str {
    if protocol.capabilities().integers_only {
        "kstat"
    } else {
        "mix"
    }
}

fn run(protocol: Protocol, store: &str, rate: u64) -> RunResult {
    let program = std::env::current_exe().expect("a path").with_file_name("../tsb");
    let rate_text = rate.to_string();
    let arguments = [
        "run",
        "--transport",
        "udp",
        "--protocol",
        protocol.name(),
        "--store",
        store,
        "--workload",
        fleet(protocol),
        "--rate",
        &rate_text,
        "--duration",
        "2s",
        "--no-calibrate",
        "--quiet",
        "--format",
        "json",
    ];
    let output = Command::new(program).args(arguments).output();
    let output = output.expect("target/release/tsb: build it with cargo build --release");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let count = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let ledger = |name: &str| count(&format!("/ledger/{name}"));
    let (kernel, transport) = (ledger("kernel_dropped"), ledger("lost_in_transport"));
    let datagrams = |name: &str| count(&format!("/listener/datagrams/{name}"));
    let held = report.pointer("/rate/held_per_second").and_then(Value::as_f64);
    let held = held.expect("a rate");
    println!(
        "{rate:10}  {:9.0}  {:8}  {:8}  {kernel:22}  {:14}  {:14}  {}",
        held,
        ledger("verified"),
        kernel + transport,
        datagrams("sent") - datagrams("received"),
        datagrams("kernel_drops"),
        report.pointer("/ledger/balanced").unwrap_or(&Value::Null),
    );
    assert!(ledger("verified") > 0, "a run without a sample: {report}");
    assert_eq!(ledger("lost"), 0, "the store lost something");
    // The ledger explains every missing sample, and all counters agree.
    assert_eq!(ledger("verified") + kernel + transport, ledger("sent"), "{report}");
    assert_eq!(report.pointer("/ledger/balanced"), Some(&Value::Bool(true)), "{report}");
    RunResult {
        lost: kernel + transport,
        held_per_second: held,
    }
}
