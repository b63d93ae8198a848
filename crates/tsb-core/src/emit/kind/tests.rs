//! A stream whose operations carry no samples, in virtual time.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::emit::{Live, Operation, Outcome, Run, Settings, Source, Worker, run};
use crate::schedule::{Group, Pace, Roster, Slot, Speed, Timetable};
use crate::time::{ManualClock, SECOND_NS};

const MS: u64 = 1_000_000;

/// A key to look up; none while there is nothing to look up yet.
#[derive(Clone, Copy, Debug)]
struct Lookup<'a> {
    key: Option<&'a str>,
}

impl Payload for Lookup<'_> {
    fn samples(&self) -> u64 {
        u64::from(self.key.is_some())
    }
}

enum Lookups {}

impl Kind for Lookups {
    type Payload<'a> = Lookup<'a>;
}

/// Writes the key of each tick into a buffer of its own, from the tenth tick on.
struct Keys {
    key: String,
}

impl Source for Keys {
    type Kind = Lookups;

    fn prepare(&mut self, slot: &Slot) -> Lookup<'_> {
        use std::fmt::Write as _;
        self.key.clear();
        let _ = write!(self.key, "key{}", slot.tick);
        Lookup {
            key: (slot.tick >= 10).then_some(self.key.as_str()),
        }
    }
}

#[test]
fn operations_without_samples_are_paced_timed_and_counted_like_writes() {
    let clock = ManualClock::new();
    let timetable = Timetable {
        roster: Roster::new(vec![Group::new(10 * MS, 0, 1)]).unwrap(),
        pace: Pace::Fleet(Speed::NATURAL),
        end_ns: Some(2 * SECOND_NS),
        fleet_end_ns: None,
    };
    let (stop, live) = (AtomicBool::new(false), Live::new(1));
    let run_of = Run {
        clock: &clock,
        timetable: &timetable,
        stop: &stop,
        live: &live,
        settings: Settings {
            start_ns: Some(0),
            ..Settings::default()
        },
    };
    let (clock, mut looked_up) = (&clock, Vec::new());
    let worker = Worker {
        groups: 0..1,
        source: Keys { key: String::new() },
        target: |lookup: &Operation<'_, Lookups>| {
            let key = lookup.payload.key.unwrap();
            looked_up.push((key.to_owned(), lookup.due));
            // The hundredth answer takes a tenth of a second.
            clock.advance(if key == "key109" { SECOND_NS / 10 } else { MS });
            Outcome::Done {
                accepted: 1,
                rejected: 0,
            }
        },
    };
    let report = run(&run_of, vec![worker]).unwrap();
    let (counts, latency) = (report.counts, report.latency);
    drop(report.workers);
    // The first ten carried nothing, so they were not sent and are in no count.
    assert_eq!((counts.due.operations, counts.due.samples), (190, 190));
    assert_eq!(counts.done, counts.due);
    assert_eq!(looked_up.first(), Some(&("key10".to_owned(), 100 * MS)));
    assert_eq!(looked_up.last(), Some(&("key199".to_owned(), 1_990 * MS)));
    // One slow answer, and ten due behind it that count from when they were due: they start
    // 90, 81, ... 9 ms late.
    assert_eq!(latency.service.total.count_above(2 * MS), 1);
    assert_eq!(latency.response.total.count_above(2 * MS), 10 + 1);
    assert_eq!(latency.lag.total.max(), Some(90 * MS));
    assert_eq!(latency.own_lag.total.max(), Some(0));
}
