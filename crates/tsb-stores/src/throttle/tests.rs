//! The throttle does exactly what it says it did.

use super::*;
use crate::null::NullStore;
use crate::ring::{RingOptions, RingStore};
use crate::store::{Consolidation, Resample, StoreExt, TimeRange};
use tsb_core::time::ManualClock;

const SECOND: i64 = 1_000_000_000;

/// A ring with a slot a second: it keeps a 1 Hz stream whole.
fn ring() -> RingStore {
    let options = RingOptions {
        slot_ns: SECOND,
        retention_ns: 3_600 * SECOND,
        ..RingOptions::default()
    };
    RingStore::new(options).unwrap()
}

fn over<S: Store>(inner: S, options: ThrottleOptions) -> (Throttle<S>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let store = Throttle::new(inner, options, clock.clone()).unwrap();
    define(&store);
    (store, clock)
}

/// The 20 series.
fn define<S: Store>(store: &Throttle<S>) {
    let series: Vec<_> = (0..20)
        .map(|id| (SeriesId(id), SeriesKey::new(format!("s{id}"))))
        .collect();
    store.define(&series).unwrap();
}

/// A store of which each write takes a millisecond of a clock that only it moves.
#[derive(Debug)]
struct Working(NullStore, Arc<ManualClock>);

impl fmt::Display for Working {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Store for Working {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.0.define(series)
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.1.advance(1_000_000);
        self.0.write(batch, refused)
    }

    fn durable(&self, level: Durability) -> Position {
        self.0.durable(level)
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.0.flush(scope, level)
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.0.query(query, visit)
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.0.newest(series, into)
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.0.newest_accepted(series, into)
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }

    fn close(&self) -> Result<()> {
        self.0.close()
    }
}

/// A write is longer by a share of what it took. A service rate that takes less than the write has no
/// effect, because both go on at once.
#[test]
fn a_slower_store_takes_longer_by_a_share_of_its_own_time() {
    for (slower_percent, rate_per_second, took_ns) in [
        (Some(5), None, 1_050_000),
        (Some(100), None, 2_000_000),
        (Some(0), None, 1_000_000),
        // 20 samples take 50 us at this rate.
        (None, Some(400_000), 1_000_000),
        (Some(5), Some(400_000), 1_050_000),
        (Some(5), Some(10_000), 2_000_000),
    ] {
        let clock = Arc::new(ManualClock::new());
        let options = ThrottleOptions {
            rate_per_second,
            slower_percent,
            ..ThrottleOptions::default()
        };
        let inner = Working(NullStore::new(), Arc::clone(&clock));
        let store = Throttle::new(inner, options, clock.clone()).unwrap();
        define(&store);
        fill(&store, 1);
        assert_eq!(clock.now(), took_ns, "{options:?}");
    }
}

/// Writes `ticks` ticks of 20 series; what was accepted, and every refusal as a sample.
fn fill<S: Store>(store: &Throttle<S>, ticks: i64) -> (usize, Vec<(SeriesId, Timestamp, Reason)>) {
    let (mut accepted, mut refusals) = (0, Vec::new());
    let mut refused = Refusals::new();
    for tick in 0..ticks {
        let values: Vec<f64> = (0..20).map(|id| (tick * 100 + id) as f64).collect();
        let at = Timestamp::from_secs(tick);
        refused.clear();
        let batch = Batch::tick(SeriesId(0), at, &values);
        let ack = store.write(&batch, &mut refused).unwrap();
        assert_eq!(ack.accepted + ack.rejected, 20);
        assert_eq!(ack.rejected, refused.len());
        accepted += ack.accepted;
        let of_tick = refused.as_slice().iter();
        refusals.extend(of_tick.map(|refusal| (batch.id(refusal.index as usize), at, refusal.reason)));
    }
    (accepted, refusals)
}

/// Every sample that comes back, in series order.
fn read_back<S: Store>(store: &S) -> Vec<(SeriesId, Timestamp, f64)> {
    let ids: Vec<_> = (0..20).map(SeriesId).collect();
    let of = |id: &SeriesId| {
        let id = *id;
        let samples = store.samples(id, TimeRange::ALL).unwrap();
        samples.into_iter().map(move |(at, value)| (id, at, value))
    };
    ids.iter().flat_map(of).collect()
}

fn expected(id: SeriesId, at: Timestamp) -> f64 {
    (at.as_secs() * 100 + i64::from(id.0)) as f64
}

#[test]
fn lost_samples_are_acknowledged_missing_and_listed() {
    let (store, _) = over(
        ring(),
        ThrottleOptions {
            lose_one_in: Some(50),
            ..ThrottleOptions::default()
        },
    );
    let (accepted, refusals) = fill(&store, 100);
    assert_eq!((accepted, refusals.len()), (2_000, 0));
    let faults = store.faults();
    assert_eq!(faults.lost.len(), 40);
    assert_eq!(store.stats().accepted, 2_000);
    let kept: std::collections::HashSet<_> = read_back(&store).into_iter().map(|(id, at, _)| (id, at)).collect();
    assert_eq!(kept.len(), 1_960);
    for lost in &faults.lost {
        assert!(!kept.contains(&(lost.series, lost.at)));
        assert_eq!(lost.value, expected(lost.series, lost.at));
    }
}

#[test]
fn altered_samples_are_listed_and_no_others_are_altered() {
    let (store, _) = over(
        ring(),
        ThrottleOptions {
            alter_one_in: Some(33),
            seed: 9,
            ..ThrottleOptions::default()
        },
    );
    assert_eq!(fill(&store, 100).0, 2_000);
    let differing = read_back(&store)
        .into_iter()
        .filter(|&(id, at, value)| value != expected(id, at));
    let mut named: Vec<_> = store
        .faults()
        .altered
        .iter()
        .map(|sample| (sample.series, sample.at))
        .collect();
    named.sort_unstable();
    assert_eq!(differing.map(|(id, at, _)| (id, at)).collect::<Vec<_>>(), named);
    // 2,000 / 33 = 60.6
    assert!((60..=61).contains(&named.len()));
}

#[test]
fn duplicated_samples_come_back_twice_although_the_later_write_wins() {
    let options = ThrottleOptions {
        duplicate_one_in: Some(100),
        ..ThrottleOptions::default()
    };
    let (store, _) = over(ring(), options);
    assert_eq!(fill(&store, 100).0, 2_000);
    let back = read_back(&store);
    let twice = back
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| (pair[0].0, pair[0].1));
    let mut named: Vec<_> = store
        .faults()
        .duplicated
        .iter()
        .map(|sample| (sample.series, sample.at))
        .collect();
    named.sort_unstable();
    assert_eq!(twice.collect::<Vec<_>>(), named);
    assert_eq!((named.len(), back.len()), (20, 2_020));
    // Consolidated answers count the copies too.
    let ids: Vec<_> = (0..20).map(SeriesId).collect();
    let query = Query {
        series: &ids,
        range: TimeRange::ALL,
        resample: Some(Resample {
            step_ns: 1_000 * SECOND,
            consolidation: Consolidation::Count,
        }),
    };
    let (mut total, mut visited) = (0.0, 0);
    let mut visit = |_: SeriesId, _: &[Timestamp], values: &[f64]| {
        total += values.iter().sum::<f64>();
        visited += 1;
        if visited == 20 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    store.query(&query, &mut visit).unwrap();
    assert_eq!((total, visited), (2_020.0, 20));
}

#[test]
fn refused_samples_are_not_stored_and_keep_their_index() {
    let options = ThrottleOptions {
        error_one_in: Some(10),
        lose_one_in: Some(7),
        ..ThrottleOptions::default()
    };
    let (store, _) = over(ring(), options);
    let (accepted, refusals) = fill(&store, 50);
    let faults = store.faults();
    assert_eq!((accepted, refusals.len(), faults.refused.len()), (900, 100, 100));
    let named: Vec<_> = faults
        .refused
        .iter()
        .map(|sample| (sample.series, sample.at, Reason::Injected))
        .collect();
    assert_eq!(refusals, named);
    assert_eq!(read_back(&store).len(), 900 - faults.lost.len());
}

#[test]
fn refusals_of_the_inner_store_keep_their_index() {
    // The ring refuses what is more than a lap old; one sample in four before it is lost.
    let (store, _) = over(
        ring(),
        ThrottleOptions {
            lose_one_in: Some(4),
            ..ThrottleOptions::default()
        },
    );
    let _ = store
        .write_all(&Batch::tick(SeriesId(0), Timestamp::from_secs(10_000), &[1.0; 20]))
        .unwrap();
    let lost = store.faults().lost.len();
    let mut refused = Refusals::new();
    let late = Batch::tick(SeriesId(0), Timestamp::from_secs(1), &[1.0; 20]);
    let ack = store.write(&late, &mut refused).unwrap();
    let now_lost: Vec<_> = store.faults().lost[lost..]
        .iter()
        .map(|sample| sample.series.0)
        .collect();
    let refused_indices: Vec<_> = refused.as_slice().iter().map(|refusal| refusal.index).collect();
    assert!(refused_indices.iter().all(|index| !now_lost.contains(index)));
    // Series whose first sample was lost have no lap yet, and take the late one.
    assert_eq!(ack.accepted + refused_indices.len(), 20);
    assert_eq!(ack.rejected, refused_indices.len());
    assert!(
        refused
            .as_slice()
            .iter()
            .all(|refusal| refusal.reason == Reason::Expired)
    );
}

#[test]
fn a_dropped_sample_does_not_hide_an_unknown_series() {
    for options in [
        ThrottleOptions {
            lose_one_in: Some(1),
            ..ThrottleOptions::default()
        },
        ThrottleOptions {
            error_one_in: Some(1),
            ..ThrottleOptions::default()
        },
    ] {
        let (store, _) = over(ring(), options);
        let result = store.write(
            &Batch::tick(SeriesId(19), Timestamp(0), &[1.0; 2]),
            &mut Refusals::new(),
        );
        assert!(matches!(result, Err(Error::UnknownSeries { id: SeriesId(20) })));
        assert_eq!(store.faults(), Faults::default());
    }
}

#[test]
fn the_same_seed_hits_the_same_samples() {
    let run = |seed| {
        let options = ThrottleOptions {
            lose_one_in: Some(20),
            alter_one_in: Some(30),
            duplicate_one_in: Some(40),
            seed,
            ..ThrottleOptions::default()
        };
        let (store, _) = over(ring(), options);
        fill(&store, 60);
        store.faults()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn a_service_rate_is_kept_in_virtual_time() {
    let options = ThrottleOptions {
        rate_per_second: Some(1_000),
        ..ThrottleOptions::default()
    };
    let (store, clock) = over(NullStore::new(), options);
    fill(&store, 500);
    assert_eq!(clock.now(), 10 * SECOND as u64);
    assert!(store.faults() == Faults::default());
}

#[test]
fn a_stall_holds_writes_and_flushes_but_no_reads() {
    let second = SECOND as u64;
    let options = ThrottleOptions {
        stall_every_ns: Some(10 * second),
        stall_for_ns: Some(second),
        ..ThrottleOptions::default()
    };
    let (store, clock) = over(ring(), options);
    fill(&store, 10);
    assert_eq!(clock.now(), 0);
    clock.advance(10 * second + 5);
    assert_eq!(read_back(&store).len(), 200);
    assert_eq!(clock.now(), 10 * second + 5);
    fill(&store, 1);
    assert_eq!(clock.now(), 11 * second);
    clock.advance(9 * second);
    store.flush(Scope::All, Durability::Volatile).unwrap();
    assert_eq!(clock.now(), 21 * second);
}

#[test]
fn a_wrong_answer_differs_in_one_row_and_is_listed() {
    let options = ThrottleOptions {
        wrong_one_in: Some(5),
        seed: 3,
        ..ThrottleOptions::default()
    };
    let (store, _) = over(ring(), options);
    assert_eq!(fill(&store, 100).0, 2_000);
    // Answers without rows are not counted: nothing in them can be wrong.
    let none = TimeRange {
        start: Timestamp::from_secs(1_000),
        end: TimeRange::ALL.end,
    };
    assert!(store.samples(SeriesId(0), none).unwrap().is_empty());
    let differing = read_back(&store)
        .into_iter()
        .filter(|&(id, at, value)| value != expected(id, at));
    let differing: Vec<_> = differing.map(|(id, at, _)| (id, at)).collect();
    let wrong = store.faults().wrong;
    let named: Vec<_> = wrong.iter().map(|sample| (sample.series, sample.at)).collect();
    assert_eq!(differing, named);
    assert_eq!(named.len(), 20 / 5);
    assert!(
        wrong
            .iter()
            .all(|sample| sample.value == expected(sample.series, sample.at))
    );
}

#[test]
fn a_window_has_effect_from_its_beginning_to_its_end_and_no_longer() {
    let window = |from_ns, end_ns, options| ThrottleWindow {
        from_ns,
        end_ns,
        options,
    };
    let stall = ThrottleOptions {
        stall_first_ns: Some(0),
        stall_for_ns: Some(30),
        ..ThrottleOptions::default()
    };
    let refusing = ThrottleOptions {
        error_one_in: Some(1),
        rate_per_second: Some(1),
        ..ThrottleOptions::default()
    };
    let clock = Arc::new(ManualClock::new());
    let windows = [window(100, 200, stall), window(200, 250, refusing)];
    let store = Throttle::in_windows(NullStore::new(), &windows, clock.clone()).unwrap();
    store.define(&[(SeriesId(0), SeriesKey::new("s"))]).unwrap();
    let write = || {
        let mut refused = Refusals::new();
        let values = [1.0];
        let batch = Batch::tick(SeriesId(0), Timestamp(clock.now() as i64), &values);
        let ack = store.write(&batch, &mut refused).unwrap();
        (clock.now(), ack.rejected)
    };
    clock.advance(150);
    assert_eq!(write(), (150, 0), "nothing has begun");
    store.begin_in(50);
    clock.advance(40);
    assert_eq!(write(), (190, 0), "it begins at 200");
    clock.advance(110);
    // 100 after the beginning: the stall.
    assert_eq!(write(), (330, 0));
    assert_eq!(write(), (330, 0));
    clock.advance(70);
    // A second for each sample, and the window ends 50 ns later.
    assert_eq!(write(), (450, 1));
    assert_eq!(write(), (450, 0));
    assert_eq!(store.faults().refused.len(), 1);
    for wrong in [
        [window(0, 10, stall), window(9, 20, stall)],
        [window(0, 10, stall), window(10, 10, stall)],
        [window(5, 6, stall), window(0, 2, stall)],
    ] {
        assert!(
            Throttle::in_windows(NullStore::new(), &wrong, clock.clone()).is_err(),
            "{wrong:?}"
        );
    }
}
