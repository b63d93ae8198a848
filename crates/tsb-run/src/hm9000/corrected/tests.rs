//! The schedule and the scan in virtual time, and a short run by the machine's clock.

use tsb_core::time::{ManualClock, MonotonicClock};
use tsb_stores::keyed::{Key, KeyedMemory, KeyedMemoryOptions, Put};
use tsb_stores::{Refusals, Result};

use super::*;

fn cluster(apps: usize) -> SimulatorOptions {
    SimulatorOptions {
        apps,
        new_apps: 0,
        ..SimulatorOptions::default()
    }
}

/// A store in memory with every heartbeat of the first ten seconds, acknowledged at second 10.
fn written() -> (Arc<ManualClock>, Arc<dyn KeyedStore>, Beats) {
    let clock: Arc<ManualClock> = Arc::default();
    let store: Arc<dyn KeyedStore> = Arc::new(KeyedMemory::new(KeyedMemoryOptions::default(), clock.clone()));
    let simulator = Simulator::new(cluster(3_000));
    let beats = Beats::new(&simulator).unwrap();
    let schedule = Schedule::new(&simulator, 0, 1, 10);
    assert_eq!(schedule.keys_before(u64::MAX), 3_000 + 30);
    let mut puts = Vec::new();
    for due in schedule.due() {
        clock.advance(due.ns() - clock.now());
        beats.puts(due, &mut puts);
        beats.attempt(due);
        assert_eq!(store.put(&puts, &mut Refusals::new()).unwrap().rejected, 0);
        beats.acknowledge(due);
    }
    clock.advance(10 * SECOND_NS - clock.now());
    (clock, store, beats)
}

fn first_instance(store: &Arc<dyn KeyedStore>) -> (Key, String) {
    let mut first = None;
    let visit = &mut |key: &Key, value: &str| {
        first = Some((key.clone(), value.to_owned()));
        std::ops::ControlFlow::Break(())
    };
    store.list(Some(&Key::new("v1/apps/actual").unwrap()), visit).unwrap();
    first.unwrap()
}

#[test]
fn a_scan_finds_every_instance_once_it_is_there() {
    let (clock, store, beats) = written();
    let scan = beats.scan(&store, &*clock, 0).unwrap();
    assert!(scan.is_fresh() && beats.are_all_acknowledged(), "{scan:?}");
    assert_eq!((scan.expected, scan.foreign), (3_000, 0));
    assert!(scan.oldest_seconds <= 10.0);
}

/// The criterion that replaces the document's: one instance is enough to be not fresh.
#[test]
fn a_scan_finds_the_one_instance_that_is_missing_altered_or_old() -> Result<()> {
    let (clock, store, beats) = written();
    let (key, value) = first_instance(&store);
    let put = |value: &str| {
        let ack = store.put(&[Put::new(key.clone(), value)], &mut Refusals::new());
        ack.map(|ack| assert_eq!(ack.rejected, 0))
    };
    let scan = || beats.scan(&store, &*clock, 0).unwrap();
    assert_eq!(store.delete(std::slice::from_ref(&key))?, 1);
    assert_eq!((scan().missing, scan().lost, scan().is_fresh()), (1, 1, false));
    put(&value.replace("0,", "1,"))?;
    assert_eq!((scan().missing, scan().wrong, scan().is_fresh()), (0, 1, false));
    // A heartbeat from the future.
    let second: u64 = value.split(',').nth(2).unwrap().trim_end_matches(".0").parse().unwrap();
    put(&value.replace(&format!(",{second}.0,"), &format!(",{}.0,", second + 10)))?;
    assert_eq!((scan().wrong, scan().is_fresh()), (1, false));
    put(&value)?;
    assert!(scan().is_fresh());
    let stray = Put::new(Key::new("v1/apps/actual/x/y").unwrap(), "0");
    assert_eq!(store.put(&[stray], &mut Refusals::new())?.rejected, 0);
    assert_eq!((scan().foreign, scan().is_fresh()), (1, true));
    // 31 s later nothing was put again, except this one, which has no time to live.
    clock.advance(31 * SECOND_NS);
    let late = scan();
    assert_eq!((late.missing, late.stale, late.lost), (2_999, 1, 0), "{late:?}");
    Ok(())
}

#[test]
fn workers_share_all_heartbeats_and_none_twice() {
    let simulator = Simulator::new(cluster(10_000));
    let all: u64 = (0..7)
        .map(|worker| Schedule::new(&simulator, worker, 7, 20).keys_before(u64::MAX))
        .sum();
    assert_eq!(all, 2 * (10_000 + 100));
}

/// A short run by the machine's clock. It asserts counts, and no speed.
#[test]
fn a_run_in_memory_acknowledges_everything_that_was_due() {
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    let store: Arc<dyn KeyedStore> = Arc::new(KeyedMemory::new(KeyedMemoryOptions::default(), Arc::clone(&clock)));
    let options = CorrectedOptions {
        simulator: cluster(3_000),
        seconds: 2,
        workers: 3,
        servers: Vec::new(),
        stop: Arc::default(),
    };
    let run = corrected(&options, &store, &*clock).unwrap();
    assert_eq!((run.keys_acknowledged, run.keys_failed), (run.keys_due, 0));
    assert_eq!((run.apps, run.lost, run.durability.as_str()), (3_000, 0, "volatile"));
    // Heartbeats of seconds 0 and 1 only: most instances were not due, so the final scan
    // expects no more than those.
    let last = run.scans.last().unwrap();
    assert!(
        last.expected > 0 && last.missing + last.wrong + last.lost == 0,
        "{last:?}"
    );
    assert!(
        corrected(
            &CorrectedOptions {
                simulator: SimulatorOptions::default(),
                ..options
            },
            &store,
            &*clock
        )
        .is_err()
    );
}

#[test]
fn what_broke_is_said() {
    let mut run = CorrectedRun {
        behind_seconds: 4.0,
        lost: 2,
        scans: vec![
            Scan {
                expected: 10,
                ..Scan::default()
            },
            Scan {
                expected: 10,
                missing: 3,
                at_seconds: 20.0,
                ..Scan::default()
            },
        ],
        ..CorrectedRun::default()
    };
    judge(&mut run, &[], false);
    assert!(!run.is_kept);
    let text = run.broke.join("; ");
    for words in ["2 acknowledged", "took 4.0 s", "at 20 s 3 of 10", "could not be read"] {
        assert!(text.contains(words), "{text}");
    }
    run = CorrectedRun {
        scans: vec![Scan::default()],
        ..CorrectedRun::default()
    };
    judge(&mut run, &[], true);
    assert!(run.is_kept, "{:?}", run.broke);
    judge(&mut run, &[], false);
    assert!(!run.is_kept, "nobody saw the end");
}
