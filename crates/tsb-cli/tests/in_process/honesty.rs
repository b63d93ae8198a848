//! The instrument tested on stores and receivers that lie: the ledger names each loss to
//! the sample, and the verdict says so.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};

use tsb_cli::args::RunOptions;
use tsb_cli::failure::Failure;
use tsb_cli::plan::Plan;
use tsb_core::ledger::{Counter, FindingKind};
use tsb_core::time::MonotonicClock;
use tsb_core::verdict::Status;
use tsb_core::{SeriesId, Timestamp};
use tsb_run::{Controls, Finished, run_store};
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::throttle::{FaultSample, Throttle, ThrottleOptions};

use crate::runs::plan_of;

type ThrottledMemory = Throttle<MemoryStore>;

fn throttled_memory(options: ThrottleOptions) -> Arc<ThrottledMemory> {
    let memory = MemoryStore::new(MemoryOptions::default());
    Arc::new(Throttle::new(memory, options, Arc::new(MonotonicClock::new())).unwrap())
}

fn honest() -> Arc<dyn Store> {
    throttled_memory(ThrottleOptions::default())
}

fn plan(change: impl FnOnce(&mut RunOptions)) -> Plan {
    let mut options = RunOptions {
        workload: Some("mix".to_owned()),
        series: Some("2000".to_owned()),
        rate: Some("200k".to_owned()),
        duration: Some("500ms".to_owned()),
        transport: Some("inproc".to_owned()),
        no_calibrate: Some(true),
        ..RunOptions::default()
    };
    change(&mut options);
    plan_of(&options)
}

fn quiet() -> Controls {
    Controls::default()
}

fn run(store: &Arc<dyn Store>, change: impl FnOnce(&mut RunOptions)) -> Finished {
    run_store(&plan(change), store, &quiet()).unwrap()
}

fn named(finished: &Finished, kind: FindingKind) -> BTreeSet<(SeriesId, Timestamp)> {
    let losses = finished.run.ledger.losses.iter().filter(|loss| loss.kind == kind);
    losses.map(|loss| (loss.series, loss.at)).collect()
}

fn faults(list: &[FaultSample]) -> BTreeSet<(SeriesId, Timestamp)> {
    list.iter().map(|fault| (fault.series, fault.at)).collect()
}

#[test]
fn an_honest_store_loses_nothing() {
    let finished = run(&honest(), |_| ());
    let counts = &finished.run.ledger.counts;
    assert!(counts.is_balanced(), "{:?}", finished.run.ledger);
    let count = |counter| counts.get(counter).unwrap();
    // On a machine that others use, what was due too long ago is shed, and said to be.
    assert_eq!(count(Counter::Verified) + count(Counter::Shed), count(Counter::Due));
    assert_eq!(count(Counter::Verified), count(Counter::Accepted));
    assert_eq!(count(Counter::Lost), 0);
    assert!(
        finished.run.verdict.status > Status::Unverified,
        "{:?}",
        finished.run.verdict
    );
}

#[test]
fn a_store_that_acknowledges_and_forgets_is_named_to_the_sample() {
    let store = throttled_memory(ThrottleOptions {
        lose_one_in: Some(1_000),
        ..ThrottleOptions::default()
    });
    let finished = run(&(Arc::clone(&store) as Arc<dyn Store>), |_| ());
    let lost = faults(&store.faults().lost);
    assert!(lost.len() > 10, "{}", lost.len());
    assert_eq!(named(&finished, FindingKind::Lost), lost);
    assert_eq!(finished.run.ledger.counts.get(Counter::Lost), Some(lost.len() as u64));
    assert!(finished.run.ledger.counts.is_balanced());
    assert_eq!(finished.run.verdict.status, Status::Invalid);
}

#[test]
fn a_store_that_alters_one_value_in_ten_thousand_is_named_to_the_sample() {
    let store = throttled_memory(ThrottleOptions {
        alter_one_in: Some(10_000),
        ..ThrottleOptions::default()
    });
    let finished = run(&(Arc::clone(&store) as Arc<dyn Store>), |_| ());
    let altered = faults(&store.faults().altered);
    assert!(!altered.is_empty());
    assert_eq!(named(&finished, FindingKind::Altered), altered);
    assert_eq!(
        finished.run.ledger.counts.get(Counter::Altered),
        Some(altered.len() as u64)
    );
    assert_eq!(finished.run.verdict.status, Status::Invalid);
}

#[test]
fn a_store_that_duplicates_is_named_to_the_sample() {
    let store = throttled_memory(ThrottleOptions {
        duplicate_one_in: Some(1_000),
        ..ThrottleOptions::default()
    });
    let finished = run(&(Arc::clone(&store) as Arc<dyn Store>), |_| ());
    let twice = faults(&store.faults().duplicated);
    assert!(twice.len() > 10);
    assert_eq!(named(&finished, FindingKind::Duplicated), twice);
    assert_eq!(
        finished.run.ledger.counts.get(Counter::Duplicated),
        Some(twice.len() as u64)
    );
    assert_eq!(finished.run.verdict.status, Status::Invalid);
}

#[test]
fn a_refused_sample_is_rejected_and_not_lost() {
    let store = throttled_memory(ThrottleOptions {
        error_one_in: Some(1_000),
        ..ThrottleOptions::default()
    });
    let finished = run(&(store as Arc<dyn Store>), |_| ());
    let counts = &finished.run.ledger.counts;
    assert!(counts.count(Counter::Rejected) > 10);
    assert_eq!(counts.get(Counter::Lost), Some(0));
    assert!(counts.is_balanced());
    assert_eq!(
        finished.run.ledger.rejected_by_reason.get("injected"),
        counts.get(Counter::Rejected).as_ref()
    );
}

/// Forwards Graphite lines to `to` and keeps back one in a thousand. Returns where it
/// listens and what it kept.
fn dropping_relay(to: SocketAddr, kept: Arc<Mutex<Vec<String>>>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (incoming, _) = listener.accept().unwrap();
        let mut outgoing = TcpStream::connect(to).unwrap();
        let mut line = String::new();
        let mut incoming = BufReader::new(incoming);
        let mut number = 0;
        while incoming.read_line(&mut line).unwrap() > 0 {
            number += 1;
            if number % 1_000 == 0 {
                kept.lock().unwrap().push(line.clone());
            } else {
                outgoing.write_all(line.as_bytes()).unwrap();
            }
            line.clear();
        }
    });
    address
}

#[test]
fn a_receiver_that_drops_one_record_in_a_thousand_is_named_to_the_sample() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
    let kept = Arc::new(Mutex::new(Vec::new()));
    let mut controls = quiet();
    let keeps = Arc::clone(&kept);
    controls.start_relay = Some(Arc::new(move |to| dropping_relay(to, Arc::clone(&keeps))));
    let plan = plan(|options| {
        options.transport = Some("tcp".to_owned());
        options.protocol = Some("graphite".to_owned());
        options.rate = Some("40k".to_owned());
    });
    let finished = run_store(&plan, &store, &controls).unwrap();
    let kept = kept.lock().unwrap();
    assert!(kept.len() >= 10, "{}", kept.len());
    assert_eq!(
        finished.run.ledger.counts.get(Counter::LostInTransport),
        Some(kept.len() as u64)
    );
    assert_eq!(finished.run.ledger.counts.get(Counter::Lost), Some(0));
    let seconds: BTreeSet<i64> = kept
        .iter()
        .map(|line| line.rsplit(' ').next().unwrap().trim().parse().unwrap())
        .collect();
    let lost = named(&finished, FindingKind::LostInTransport);
    assert_eq!(lost.len(), kept.len());
    assert_eq!(
        lost.iter().map(|(_, at)| at.as_secs()).collect::<BTreeSet<_>>(),
        seconds
    );
    assert_eq!(finished.run.verdict.status, Status::Invalid);
}

/// Forwards datagrams to `to` and keeps back one in `every`. Returns where it listens and
/// what it kept; it ends when nothing has come for a while.
fn dropping_datagrams(to: SocketAddr, every: usize, kept: Arc<Mutex<Vec<Vec<u8>>>>) -> SocketAddr {
    let incoming = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = incoming.local_addr().unwrap();
    // What it lost itself would not be among what it kept.
    let room = socket2::SockRef::from(&incoming);
    room.set_recv_buffer_size(4 << 20).unwrap();
    incoming
        .set_read_timeout(Some(std::time::Duration::from_secs(5)))
        .unwrap();
    std::thread::spawn(move || {
        let outgoing = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        outgoing.connect(to).unwrap();
        let mut buffer = vec![0; 65_536];
        let mut number = 0;
        while let Ok(length) = incoming.recv(&mut buffer) {
            number += 1;
            if number % every == 0 {
                kept.lock().unwrap().push(buffer[..length].to_vec());
            } else {
                outgoing.send(&buffer[..length]).unwrap();
            }
        }
    });
    address
}

#[test]
fn a_network_that_drops_datagrams_is_named_to_the_sample() {
    for protocol in ["graphite", "tsb"] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
        let kept = Arc::new(Mutex::new(Vec::new()));
        let mut controls = quiet();
        let keeps = Arc::clone(&kept);
        controls.start_relay = Some(Arc::new(move |to| dropping_datagrams(to, 50, Arc::clone(&keeps))));
        let plan = plan(|options| {
            options.transport = Some("udp".to_owned());
            options.protocol = Some(protocol.to_owned());
            options.rate = Some("20k".to_owned());
            options.duration = Some("2s".to_owned());
        });
        let finished = run_store(&plan, &store, &controls).unwrap();
        let kept = kept.lock().unwrap();
        let counts = &finished.run.ledger.counts;
        assert!(
            counts.is_balanced() && finished.run.ledger.violated.is_empty(),
            "{:?}",
            finished.run.ledger
        );
        assert_eq!(
            (counts.get(Counter::Lost), counts.get(Counter::Altered)),
            (Some(0), Some(0))
        );
        let lost = named(&finished, FindingKind::LostInTransport);
        let on_the_way = counts.count(Counter::LostInTransport) + counts.count(Counter::KernelDropped);
        assert_eq!(lost.len() as u64, on_the_way, "{protocol}");
        let datagrams = finished.run.listener.as_ref().unwrap().datagrams.as_ref().unwrap();
        assert_eq!(datagrams.sent - datagrams.received, kept.len() as u64, "{protocol}");
        assert!(
            finished.run.verdict.status > Status::Unverified,
            "{:?}",
            finished.run.verdict
        );
        if protocol == "graphite" {
            // Each line that was kept back is a sample that is named, and there is no other.
            let lines = kept.iter().flat_map(|datagram| datagram.split(|byte| *byte == b'\n'));
            let lines = lines.filter(|line| !line.is_empty()).count();
            assert_eq!(lost.len(), lines);
        } else {
            assert_eq!(datagrams.lost_samples_by_number, Some(on_the_way));
        }
    }
}

#[test]
fn a_receive_buffer_that_overflows_is_accounted_for_to_the_sample() {
    for protocol in ["graphite", "tsb"] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
        let plan = plan(|options| {
            options.transport = Some("udp".to_owned());
            options.protocol = Some(protocol.to_owned());
            options.receive_buffer = Some("4KiB".to_owned());
            options.sockets = Some(3);
            options.batch = Some("tick".to_owned());
            options.series = Some("20k".to_owned());
            options.rate = Some("200k".to_owned());
            options.duration = Some("1s".to_owned());
        });
        let finished = run_store(&plan, &store, &quiet()).unwrap();
        let ledger = &finished.run.ledger;
        assert!(ledger.counts.is_balanced() && ledger.violated.is_empty(), "{ledger:?}");
        let dropped = ledger.counts.count(Counter::KernelDropped);
        assert!(dropped > 1_000, "{protocol}: {ledger:?}");
        assert_eq!(ledger.counts.get(Counter::LostInTransport), Some(0), "{protocol}");
        assert_eq!(ledger.counts.get(Counter::Lost), Some(0), "{protocol}");
        assert!(!finished.run.notes.is_empty());
    }
}

#[test]
fn a_store_slower_than_the_fleet_is_store_limited() {
    let store = throttled_memory(ThrottleOptions {
        rate_per_second: Some(50_000),
        ..ThrottleOptions::default()
    });
    // An interval of half a second: a busy machine that wakes us late is not the limit.
    let finished = run(&(store as Arc<dyn Store>), |options| {
        options.series = Some("50k".to_owned());
        options.rate = Some("100k".to_owned());
    });
    assert_eq!(
        finished.run.verdict.status,
        Status::StoreLimited,
        "{:?}",
        finished.run.verdict
    );
    assert!(finished.run.ledger.counts.is_balanced());
}

#[test]
fn a_generator_asked_for_more_than_it_can_is_generator_limited() {
    let flat_out = || {
        let finished = run(&honest(), |options| {
            options.rate = Some("max".to_owned());
            options.duration = Some("200ms".to_owned());
        });
        finished.run.rate.held_per_second
    };
    let asked_times = |times: f64| {
        let rate = flat_out() * times;
        let plan = plan(|options| {
            options.rate = Some(format!("{}", rate as u64));
            options.duration = Some("100ms".to_owned());
            options.no_calibrate = Some(false);
        });
        run_store(&plan, &honest(), &quiet())
    };
    // What a busy machine reaches differs from run to run.
    let finished = (0..10).find_map(|_| asked_times(4.0).ok()).unwrap();
    assert_eq!(
        finished.run.verdict.status,
        Status::GeneratorLimited,
        "{:?}",
        finished.run.verdict
    );
    assert!(finished.run.ledger.counts.is_balanced());
    // Beyond ten ceilings a run would say nothing.
    let refused = Failure::from(asked_times(1_000.0).unwrap_err()).to_string();
    assert!(
        refused.contains("ceiling") && refused.contains("--rate max"),
        "{refused}"
    );
}

#[test]
fn disorder_and_churn_leave_a_balanced_ledger() {
    let finished = run(&honest(), |options| {
        for share in [
            &mut options.late,
            &mut options.missing,
            &mut options.duplicate,
            &mut options.out_of_order,
        ] {
            *share = Some("2%".to_owned());
        }
        options.churn = Some("steady:10s".to_owned());
        options.jitter = Some("10ms".to_owned());
    });
    let counts = &finished.run.ledger.counts;
    assert!(counts.is_balanced(), "{:?}", finished.run.ledger);
    assert!(counts.count(Counter::Superseded) > 100);
    assert_eq!(counts.get(Counter::Lost), Some(0));
}
