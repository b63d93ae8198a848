//! What a run says of time: delivery and service, staleness, asked and held.

use std::sync::Arc;

use tsb_cli::args::RunOptions;
use tsb_cli::plan::{Apply, Plan};
use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::{SeriesId, Timestamp};
use tsb_run::Finished;
use tsb_run::run::RunContext;
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::throttle::{Throttle, ThrottleOptions};

use crate::faulty_store::{Fault, FaultyStore};
use crate::runs::run_into;

/// The memory store behind a throttle.
fn throttled(options: ThrottleOptions) -> Arc<dyn Store> {
    let memory = MemoryStore::new(MemoryOptions::default());
    Arc::new(Throttle::new(memory, options, Arc::new(MonotonicClock::new())).unwrap())
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(MemoryOptions::default()))
}

fn options(change: impl FnOnce(&mut RunOptions)) -> RunOptions {
    let mut options = RunOptions {
        workload: Some("mix".to_owned()),
        series: Some("2160".to_owned()),
        duration: Some("500ms".to_owned()),
        transport: Some("inproc".to_owned()),
        no_calibrate: Some(true),
        ..RunOptions::default()
    };
    change(&mut options);
    options
}

fn finish(store: &Arc<dyn Store>, change: impl FnOnce(&mut RunOptions)) -> Finished {
    run_into(store, &options(change))
}

fn run(store: &Arc<dyn Store>, change: impl FnOnce(&mut RunOptions)) -> Run {
    finish(store, change).run
}

#[test]
fn time_in_a_socket_is_delivery_and_not_service() {
    // Five times too slow: most operations wait in the socket, each for many others.
    for transport in ["tcp", "unix", "unixgram"] {
        let slow = throttled(ThrottleOptions {
            rate_per_second: Some(20_000),
            ..ThrottleOptions::default()
        });
        let latency = run(&slow, |options| {
            options.rate = Some("100k".to_owned());
            options.transport = Some(transport.to_owned());
        })
        .latency;
        let delivery = latency.delivery.unwrap();
        assert!(delivery.count > 100, "{transport}: {delivery:?}");
        assert_eq!(
            (delivery.count, latency.service.count),
            (latency.response.count, latency.response.count),
            "{transport}"
        );
        assert!(
            latency.service.p50_ns.unwrap() * 10 < delivery.max_ns.unwrap(),
            "{transport}: service {:?}, delivery {delivery:?}",
            latency.service
        );
        assert!(
            delivery.max_ns.unwrap() <= latency.response.max_ns.unwrap(),
            "{transport}: {latency:?}"
        );
        assert!(latency.curves.unwrap().delivery.is_some());
    }
}

#[test]
fn only_a_wire_without_answers_has_a_delivery() {
    for (transport, protocol) in [("inproc", "tsb"), ("http", "influx")] {
        let finished = finish(&memory(), |options| {
            options.transport = Some(transport.to_owned());
            options.protocol = Some(protocol.to_owned());
        });
        let latency = &finished.run.latency;
        assert!(latency.service.count > 0 && latency.delivery.is_none(), "{latency:?}");
        assert_eq!(finished.driven.delivery.total.count(), 0, "{transport}");
    }
}

/// The plan that these options make of the default one.
fn plan(change: impl FnOnce(&mut RunOptions)) -> Result<Plan, String> {
    let mut options = RunOptions::default();
    change(&mut options);
    let mut plan = Plan::default();
    plan.apply(&options).map_err(|failure| format!("{failure:?}"))?;
    plan.complete().map_err(|failure| format!("{failure:?}"))
}

fn context(change: impl FnOnce(&mut RunOptions)) -> Result<RunContext, String> {
    RunContext::new(&plan(change)?, 1).map_err(|failure| format!("{failure:?}"))
}

#[test]
fn the_default_run_has_operations_enough_for_p999() {
    let context = context(|_| ()).unwrap();
    let groups = context.timetable.roster.groups();
    let operations = context.timetable.agenda(0..groups.len() as u32).count();
    // 10,000 are needed, and a few may be shed on a busy machine.
    assert!(operations >= 10_500, "{operations}");
    let samples: u32 = groups.iter().map(|group| group.samples).sum();
    assert_eq!(samples, 54_000);
    assert!(groups.iter().all(|group| group.samples <= 50));
}

#[test]
fn a_batch_is_as_large_as_was_asked() {
    let largest = |batch: &str, workload: &str| {
        let context = context(|options| {
            options.batch = Some(batch.to_owned());
            options.workload = Some(workload.to_owned());
            options.series = Some("5400".to_owned());
        });
        context
            .unwrap()
            .timetable
            .roster
            .groups()
            .iter()
            .map(|group| group.samples)
            .max()
            .unwrap()
    };
    for (batch, workload, expected) in [
        ("message", "kstat", 50),
        ("host", "kstat", 1_800),
        ("message", "mix", 54),
        ("10", "mix", 9),
        ("1", "mix", 1),
        ("tick", "mix", 5_400),
    ] {
        assert_eq!(largest(batch, workload), expected, "{workload} by {batch}");
    }
    for (batch, words) in [("0", "from 1 to"), ("zone", "message, host, tick, or a number")] {
        let refused = plan(|options| options.batch = Some(batch.to_owned())).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn samples_that_never_become_visible_are_stale_in_every_kind_of_run() {
    for (rate, schedule) in [
        (Some("43200"), None),
        (Some("max"), None),
        (None, Some("ramp:20000..60000/500ms")),
    ] {
        // It forgets a million samples, and no more: a closed loop must not get that far.
        let forgetful = throttled(ThrottleOptions {
            lose_one_in: Some(1),
            rate_per_second: Some(100_000),
            ..ThrottleOptions::default()
        });
        let staleness = run(&forgetful, |options| {
            options.rate = rate.map(str::to_owned);
            options.schedule = schedule.map(str::to_owned);
        })
        .staleness
        .unwrap();
        let kind = format!("{rate:?} {schedule:?}: {staleness:?}");
        assert_eq!(staleness.never_visible, Some(2_160), "{kind}");
        assert!(
            staleness.observations > 0 && staleness.unseen == staleness.observations,
            "{kind}"
        );
        // All of them wait since their first sample was due: that grows to the length of the run.
        assert!(staleness.max_ms > 250.0 && staleness.p50_ms > 50.0, "{kind}");
    }
}

#[test]
fn a_healthy_store_has_a_staleness_in_every_kind_of_run() {
    for (rate, schedule) in [
        (Some("43200"), None),
        (Some("max"), None),
        (None, Some("burst:2160/100ms")),
    ] {
        for duration in ["40ms", "600ms"] {
            let staleness = run(&memory(), |options| {
                options.rate = rate.map(str::to_owned);
                options.schedule = schedule.map(str::to_owned);
                options.duration = Some(duration.to_owned());
            })
            .staleness
            .unwrap();
            assert_eq!(staleness.never_visible, Some(0), "{rate:?} {schedule:?} {duration}");
            assert!(staleness.moments > 0 && staleness.observations > 0, "{staleness:?}");
        }
    }
}

#[test]
fn a_recorded_series_that_has_ended_is_not_stale() {
    use std::fmt::Write as _;
    let folder = tempfile::tempdir().unwrap();
    // On a grid, and at times of its own: each second sample comes 400 ms late.
    for (name, late_ms) in [("grid", 0), ("own", 400)] {
        let path = folder.path().join(format!("{name}.csv"));
        let mut text = "timestamp,series,value\n".to_owned();
        for second in 0..40_u64 {
            let at = 1_700_000_000_000 + second * 1_000 + second % 2 * late_ms;
            let _ = writeln!(text, "{at},stays,{second}");
            if second < 4 {
                let _ = writeln!(text, "{at},goes,{second}");
            }
        }
        std::fs::write(&path, text).unwrap();
        // Forty seconds of it in one: what ends after four would be 900 ms old at the end.
        let run = run(&memory(), |options| {
            options.workload = Some(format!("trace:{}", path.display()));
            options.series = None;
            options.rate = Some("44".to_owned());
            options.duration = Some("1s".to_owned());
        });
        let is_own = run.notes.iter().any(|note| note.contains("at its own times"));
        assert_eq!(is_own, name == "own", "{:?}", run.notes);
        let staleness = run.staleness.unwrap();
        assert!(staleness.moments >= 2, "{name}: {staleness:?}");
        // One of two series is looked at but for the first looks.
        assert!(staleness.observations < 2 * staleness.moments, "{name}: {staleness:?}");
        assert!(staleness.max_ms < 850.0, "{name}: {staleness:?}");
        assert_eq!(staleness.never_visible, Some(0), "{name}");
    }
}

#[test]
fn a_schedule_counts_samples_and_what_it_asks_is_told_interval_by_interval() {
    let finished = run(&memory(), |options| {
        options.schedule = Some("ramp:10000..200000/1s".to_owned());
        options.duration = Some("1s".to_owned());
        options.report_interval = Some("100ms".to_owned());
    });
    let due = finished.ledger.counts.count(Counter::Due);
    // The area under the ramp, up to the samples of an operation.
    assert!(due.abs_diff(105_000) <= 54, "{due}");
    let asked: Vec<u64> = finished.intervals.iter().map(|slice| slice.asked.unwrap()).collect();
    assert_eq!(asked.iter().sum::<u64>(), due, "{asked:?}");
    let half = asked.len() / 2;
    let (first, second): (u64, u64) = (asked[..half].iter().sum(), asked[half..].iter().sum());
    assert!(second > 2 * first, "{asked:?}");
    assert_eq!(finished.rate.asked_per_second, Some(due as f64));
    let report = tsb_core::report::Report::new(vec![finished]);
    let text = tsb_cli::render::text::report(&report, None);
    assert!(text.contains("on average, from "), "{text}");
}

#[test]
fn the_asked_rate_does_not_follow_the_held_rate() {
    // 0.432 s of work for a store that takes two.
    let slow = throttled(ThrottleOptions {
        rate_per_second: Some(20_000),
        ..ThrottleOptions::default()
    });
    let run = run(&slow, |options| {
        options.rate = Some("100k".to_owned());
        options.duration = None;
        options.fleet_time = Some("20s".to_owned());
    });
    let asked = run.rate.asked_per_second.unwrap();
    assert!((99_000.0..101_000.0).contains(&asked), "{asked}");
    assert!(run.rate.held_per_second < 60_000.0, "{:?}", run.rate);
    // What is missing is not asked for.
    let thinned = self::run(&memory(), |options| {
        options.missing = Some("50%".to_owned());
        options.rate = Some("43200".to_owned());
    });
    let due = thinned.ledger.counts.count(Counter::Due);
    assert_eq!(thinned.rate.asked_per_second, Some(due as f64 * 2.0));
    let told: u64 = thinned.intervals.iter().filter_map(|slice| slice.asked).sum();
    assert!(told.abs_diff(due) * 20 < due, "{told} of {due}");
}

#[test]
fn plans_of_the_first_version_are_read_where_they_mean_the_same() {
    let of_version_1 = |change: &dyn Fn(&mut RunOptions)| {
        let mut value = serde_json::to_value(plan(|options| change(options)).unwrap()).unwrap();
        value["version"] = 1.into();
        serde_json::from_value::<Plan>(value).unwrap().complete()
    };
    for same in [None, Some("max"), Some("recorded:0s,1ms")] {
        let read = of_version_1(&|options| options.schedule = same.map(str::to_owned)).unwrap();
        assert_eq!(read.version, tsb_cli::plan::PLAN_VERSION, "{same:?}");
    }
    for other in ["constant:1000", "burst:100/1s", "poisson:100"] {
        let refused = of_version_1(&|options| options.schedule = Some(other.to_owned())).unwrap_err();
        let words = format!("{refused:?}");
        assert!(
            words.contains("operations per second") && words.contains("--schedule"),
            "{words}"
        );
    }
}

#[test]
fn jitter_longer_than_four_seconds_needs_an_interval_and_nothing_else() {
    let with = |interval: Option<&str>| {
        context(|options| {
            options.jitter = Some("5s".to_owned());
            options.interval = interval.map(str::to_owned);
        })
    };
    assert!(with(Some("60s")).is_ok());
    let refused = with(None).unwrap_err();
    assert!(
        refused.contains("shorter than the shortest interval") && refused.contains("5 s late"),
        "{refused}"
    );
}

/// Takes long to say what is newest, as a server with many series does.
#[derive(Debug)]
struct SlowNewest;

impl Fault for SlowNewest {
    fn newest(&self, inner: &dyn Store, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> tsb_stores::Result<()> {
        MonotonicClock::new().wait_until(SECOND_NS / 20);
        inner.newest(series, into)
    }
}

#[test]
fn a_store_that_answers_slowly_is_asked_less_often() {
    let store: Arc<dyn Store> = FaultyStore::new(MemoryStore::new(MemoryOptions::default()), SlowNewest);
    let staleness = run(&store, |options| options.duration = Some("2s".to_owned())).staleness;
    // An answer takes 50 ms, and a second passes from one to the next.
    let moments = staleness.map(|staleness| staleness.moments);
    assert!(moments.is_some_and(|moments| (1..=4).contains(&moments)), "{moments:?}");
}
