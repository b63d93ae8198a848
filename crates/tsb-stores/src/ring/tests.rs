//! What the ring keeps, and that it counts what it does not keep.

use super::*;
use crate::store::{Consolidation, Resample, StoreExt};

const SECOND: i64 = 1_000_000_000;

fn open(options: RingOptions) -> RingStore {
    let store = RingStore::new(options).unwrap();
    let series: Vec<_> = (0..4)
        .map(|id| (SeriesId(id), SeriesKey::new(format!("s{id}"))))
        .collect();
    store.define(&series).unwrap();
    store
}

fn write(store: &RingStore, seconds: i64, value: f64) {
    let ack = store.write_all(&Batch::tick(SeriesId(0), Timestamp::from_secs(seconds), &[value]));
    assert_eq!(ack.unwrap().accepted, 1);
}

#[test]
fn a_series_takes_the_memory_that_mohawk_took() {
    let store = open(RingOptions::default());
    assert_eq!(store.stats().footprint.head_bytes, 0);
    write(&store, 1_700_000_000, 1.0);
    assert_eq!(store.stats().footprint.head_bytes, 322_560);
}

#[test]
fn one_hertz_keeps_one_of_thirty_and_the_rest_is_counted() {
    let store = open(RingOptions::default());
    let start = 1_700_000_010; // the start of a slot
    for second in 0..3600 {
        write(&store, start + second, second as f64);
    }
    let kept = store.samples(SeriesId(0), TimeRange::ALL).unwrap();
    assert_eq!(kept.len(), 120);
    assert!(kept.iter().all(|&(_, value)| value as i64 % 30 == 29));
    let stats = store.stats();
    assert_eq!((stats.samples, stats.superseded, stats.expired), (120, 3480, 0));
}

#[test]
fn the_later_arrival_wins_its_slot_even_when_older() {
    let store = open(RingOptions::default());
    write(&store, 59, 1.0);
    write(&store, 31, 2.0);
    let expected = vec![(Timestamp::from_secs(31), 2.0)];
    assert_eq!(store.samples(SeriesId(0), TimeRange::ALL).unwrap(), expected);
    let mut newest = [None];
    store.newest(&[SeriesId(0)], &mut newest).unwrap();
    assert_eq!(newest, [Some(Timestamp::from_secs(31))]);
}

#[test]
fn a_lap_expires_the_old_and_refuses_what_is_older() {
    let store = open(RingOptions {
        slot_ns: SECOND,
        retention_ns: 10 * SECOND,
        ..RingOptions::default()
    });
    (0..25).for_each(|second| write(&store, second, second as f64));
    let stats = store.stats();
    assert_eq!((stats.samples, stats.superseded, stats.expired), (10, 0, 15));
    let mut refused = Refusals::new();
    let late = Batch::tick(SeriesId(0), Timestamp::from_secs(14), &[9.0]);
    let ack = store.write(&late, &mut refused).unwrap();
    assert_eq!((ack.accepted, refused.as_slice()[0].reason), (0, Reason::Expired));
    // A jump of many laps empties everything but the new sample.
    write(&store, 1_000_000, 1.0);
    let stats = store.stats();
    assert_eq!((stats.samples, stats.expired), (1, 25));
    assert_eq!(stats.accepted, stats.samples + stats.superseded + stats.expired);
}

#[test]
fn the_ends_of_time_and_the_epoch_have_slots() {
    for slot_ns in [1, 7, SECOND] {
        for times in [[i64::MIN, i64::MIN + 1], [-1, 0], [0, 1], [i64::MAX - 2, i64::MAX - 1]] {
            let store = open(RingOptions {
                slot_ns,
                retention_ns: slot_ns * 4,
                ..RingOptions::default()
            });
            for at in times {
                let _ = store
                    .write_all(&Batch::tick(SeriesId(1), Timestamp(at), &[at as f64]))
                    .unwrap();
            }
            let kept = store.samples(SeriesId(1), TimeRange::ALL).unwrap();
            assert_eq!(kept.last().unwrap().0.0, times[1], "slot {slot_ns}");
            assert_eq!(kept.len() as u64 + store.stats().superseded, 2, "slot {slot_ns}");
        }
    }
    let store = open(RingOptions::default());
    for at in [i64::MIN, i64::MAX - 1] {
        let _ = store
            .write_all(&Batch::tick(SeriesId(1), Timestamp(at), &[1.0]))
            .unwrap();
    }
    assert_eq!((store.stats().samples, store.stats().expired), (1, 1));
}

#[test]
fn a_full_ring_refuses_new_series_and_keeps_the_others() {
    let store = open(RingOptions {
        max_bytes: 2 * 322_560,
        ..RingOptions::default()
    });
    let mut refused = Refusals::new();
    let ack = store
        .write(&Batch::tick(SeriesId(0), Timestamp(0), &[1.0; 4]), &mut refused)
        .unwrap();
    assert_eq!((ack.accepted, ack.rejected), (2, 2));
    assert!(refused.as_slice().iter().all(|refusal| refusal.reason == Reason::Full));
    write(&store, 60, 2.0);
    assert_eq!(store.stats().samples, 3);
}

#[test]
fn the_claimed_retention_is_rounded_down_to_whole_slots() {
    let store = open(RingOptions {
        slot_ns: 10 * SECOND,
        retention_ns: 25 * SECOND,
        ..RingOptions::default()
    });
    // Two slots: when the second is begun, ten seconds are left of the first.
    assert_eq!(store.capabilities().retention_ns, Some(10 * SECOND));
    for at in [9, 10, 20] {
        write(&store, at, 1.0);
    }
    let kept = store.samples(SeriesId(0), TimeRange::ALL).unwrap();
    assert_eq!(kept.iter().map(|(at, _)| at.as_secs()).collect::<Vec<_>>(), [10, 20]);
}

#[test]
fn fewer_than_two_slots_or_too_many_is_no_ring() {
    for (slot_ns, retention_ns) in [(0, 10), (-1, 10), (10, 19), (10, 0), (1, i64::MAX)] {
        let options = RingOptions {
            slot_ns,
            retention_ns,
            ..RingOptions::default()
        };
        let error = RingStore::new(options).unwrap_err();
        assert!(error.to_string().contains("at least two slots"), "{error}");
    }
}

#[test]
fn rows_are_consolidated_from_the_kept_samples() {
    let store = open(RingOptions::default());
    (0..10).for_each(|slot| write(&store, slot * 30, slot as f64));
    let resample = Resample {
        step_ns: 60 * SECOND,
        consolidation: Consolidation::Max,
    };
    let range = TimeRange {
        start: Timestamp::from_secs(30),
        end: Timestamp::from_secs(150),
    };
    let rows = store.rows(SeriesId(0), range, Some(resample)).unwrap();
    let expected = [(0, 1.0), (60, 3.0), (120, 4.0)].map(|(at, value)| (Timestamp::from_secs(at), value));
    assert_eq!(rows, expected);
}
