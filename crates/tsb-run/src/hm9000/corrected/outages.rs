//! Outages: a store that is disturbed again and again while heartbeats are due, and how long it
//! takes until the newest news of every app has been acknowledged.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tsb_core::report::experiment::hm9000::{CorrectedRun, Outage, OutageRun, Scan};
use tsb_core::stats::order;
use tsb_core::time::{Clock, SECOND_NS};
use tsb_stores::keyed::KeyedStore;

use super::overdue::{Overdue, over_at, times};
use super::worker::{PutTimes, Written};
use super::{Context, CorrectedOptions, Driven, drive, judge};
use crate::error::Error;

/// Steps between the shortest and the longest pause, of which the seed chooses one.
const PAUSE_STEPS: usize = 100;
/// Between two looks whether the user has ended the run, in nanoseconds.
const LOOK_NS: u64 = SECOND_NS / 10;

/// The outages of a run.
#[derive(Clone, Debug)]
pub struct OutageOptions {
    /// Number of outages.
    pub count: u32,
    /// From the end of one disturbance to the begin of the next, in seconds; each time a
    /// random one of these. Beyond a heartbeat interval (10 s), so that a heartbeat that failed
    /// has been followed by the next.
    pub pause_s: RangeInclusive<u64>,
    /// Decides the pauses.
    pub seed: u64,
}

/// When a disturbance began and ended, in nanoseconds from the start.
#[derive(Clone, Copy, Debug)]
struct Disturbed {
    began: u64,
    ended: u64,
}

/// Runs the corrected experiment on an empty store, and calls `disturb` with the number of each outage,
/// from 1; it returns when the disturbance is over. The run ends after the pause that follows the
/// last one, or with the schedule of `options`. If `disturb` fails, no more outages follow, and
/// the report says why.
///
/// # Errors
/// As [`corrected`](super::corrected).
pub fn with_outages(
    options: &CorrectedOptions,
    outages: &OutageOptions,
    store: &Arc<dyn KeyedStore>,
    clock: &dyn Clock,
    disturb: &mut dyn FnMut(u32) -> Result<(), Error>,
) -> Result<OutageRun, Error> {
    let driven = drive(options, store, clock, |context| {
        let disturbed = disturb_often(context, outages, disturb);
        context.end_now();
        disturbed
    })?;
    let Driven {
        mut run,
        written,
        is_end_seen,
        conducted: (disturbed, failure),
    } = driven;
    judge(&mut run, &written, is_end_seen);
    let overdue = times(&written);
    let ends = disturbed.iter().skip(1).map(|next| next.began);
    let ends = ends.chain([(run.seconds * SECOND_NS as f64) as u64]);
    let outages = disturbed
        .iter()
        .zip(ends)
        .map(|(disturbed, end)| outage(*disturbed, end, &run, &written, &overdue));
    Ok(OutageRun {
        outages: outages.collect(),
        failure: failure.map(|error| crate::error::chain(&error)),
        run,
    })
}

fn disturb_often(
    context: &Context<'_>,
    outages: &OutageOptions,
    disturb: &mut dyn FnMut(u32) -> Result<(), Error>,
) -> (Vec<Disturbed>, Option<Error>) {
    let mut disturbed = Vec::new();
    while !context.beats.are_all_acknowledged() && !is_over(context) {
        wait(context, context.now() + LOOK_NS);
    }
    for number in 1..=outages.count {
        wait(context, context.now() + outages.pause_ns(number));
        if is_over(context) {
            return (disturbed, None);
        }
        let began = context.now();
        let outcome = disturb(number);
        let ended = context.now();
        disturbed.push(Disturbed { began, ended });
        if let Err(error) = outcome {
            return (disturbed, Some(error));
        }
    }
    wait(context, context.now() + outages.pause_ns(0));
    (disturbed, None)
}

fn is_over(context: &Context<'_>) -> bool {
    context.stop.load(Ordering::Relaxed) || context.now() >= context.end()
}

fn wait(context: &Context<'_>, until: u64) {
    while context.now() < until && !is_over(context) {
        let look = context.now() + LOOK_NS;
        context.clock.wait_until(context.start + look.min(until));
    }
}

impl OutageOptions {
    fn pause_ns(&self, number: u32) -> u64 {
        let step = order(self.seed, number, PAUSE_STEPS)[0] as u64;
        let longest_ns = self.pause_s.end().saturating_sub(*self.pause_s.start()) * SECOND_NS;
        self.pause_s.start() * SECOND_NS + longest_ns / PAUSE_STEPS as u64 * step
    }
}

/// What happened from a disturbance to `end`, when the next one began.
fn outage(disturbed: Disturbed, end: u64, run: &CorrectedRun, written: &[Written], overdue: &[Overdue]) -> Outage {
    let Disturbed { began, ended } = disturbed;
    let seconds = |ns: u64| ns as f64 / SECOND_NS as f64;
    let puts = || written.iter().flat_map(|worker| &worker.puts);
    let is_failed = |put: &&PutTimes| (began..end).contains(&put.due) && !put.is_acknowledged;
    let scans = || {
        let scans = run.scans.iter();
        scans.filter(|scan| (seconds(began)..seconds(end)).contains(&scan.at_seconds))
    };
    Outage {
        at_seconds: seconds(began),
        took_seconds: seconds(ended - began),
        keys_failed: puts().filter(is_failed).map(|put| put.keys).sum(),
        silence_seconds: seconds(longest_silence(puts(), began, end)),
        recovered_after_seconds: over_at(overdue, began, end).map(|over| seconds(over - began)),
        scans: scans().count(),
        not_fresh: scans().map(Scan::not_fresh).max().unwrap_or(0),
        lost: scans().map(|scan| scan.lost).max().unwrap_or(0),
    }
}

/// The longest time from `begin` to `end` without an acknowledgement.
fn longest_silence<'a>(puts: impl Iterator<Item = &'a PutTimes>, begin: u64, end: u64) -> u64 {
    let within = puts.filter(|put| put.is_acknowledged && (begin..end).contains(&put.ended));
    let mut moments: Vec<u64> = within.map(|put| put.ended).collect();
    moments.extend([begin, end]);
    moments.sort_unstable();
    let between = moments.windows(2).map(|pair| pair[1] - pair[0]);
    between.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hm9000::simulator::SimulatorOptions;
    use tsb_core::time::MonotonicClock;
    use tsb_stores::keyed::{KeyedMemory, KeyedMemoryOptions};

    #[test]
    fn pauses_follow_from_the_seed_and_stay_within_their_bounds() {
        let options = |seed| OutageOptions {
            count: 0,
            pause_s: 20..=30,
            seed,
        };
        let pauses = |seed| (0..50).map(|number| options(seed).pause_ns(number)).collect::<Vec<_>>();
        assert_eq!(pauses(1), pauses(1));
        assert_ne!(pauses(1), pauses(2));
        let bounds = 20 * SECOND_NS..30 * SECOND_NS;
        assert!(pauses(1).iter().all(|pause| bounds.contains(pause)));
    }

    #[test]
    fn a_silence_is_between_acknowledgements_and_the_ends() {
        let put = |ended_s: u64, is_acknowledged| PutTimes {
            due: 0,
            ended: ended_s * SECOND_NS,
            keys: 1,
            is_acknowledged,
        };
        let puts = [put(3, true), put(5, false), put(9, true), put(40, true)];
        let longest =
            |from_s: u64, to_s: u64| longest_silence(puts.iter(), from_s * SECOND_NS, to_s * SECOND_NS) / SECOND_NS;
        assert_eq!((longest(2, 10), longest(2, 20), longest(20, 25)), (6, 11, 5));
    }

    /// By the machine's clock: a failing disturbance ends the outages, and what was measured stays.
    #[test]
    fn a_disturbance_that_fails_is_said_and_ends_the_run() {
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let store: Arc<dyn KeyedStore> = Arc::new(KeyedMemory::new(KeyedMemoryOptions::default(), Arc::clone(&clock)));
        let options = CorrectedOptions {
            // One heartbeat per second of one DEA and more: within ten seconds every app is there.
            simulator: SimulatorOptions {
                apps: 100,
                new_apps: 0,
                ..SimulatorOptions::default()
            },
            seconds: 60,
            workers: 2,
            servers: Vec::new(),
            stop: Arc::default(),
        };
        let outages = OutageOptions {
            count: 3,
            pause_s: 1..=1,
            seed: 1,
        };
        let mut numbers = Vec::new();
        let mut disturb = |number| {
            numbers.push(number);
            match number {
                1 => Ok(()),
                _ => Err(Error::unreachable("the command failed")),
            }
        };
        let run = with_outages(&options, &outages, &store, &*clock, &mut disturb).unwrap();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(run.outages.len(), 2);
        assert_eq!(run.failure.as_deref(), Some("the command failed"));
        assert!(run.run.seconds < 30.0, "it ended early: {}", run.run.seconds);
        assert_eq!(run.run.keys_acknowledged, run.run.keys_due);
        assert_eq!(run.outages[0].recovered_after_seconds, Some(0.0));
        assert_eq!((run.outages[0].keys_failed, run.outages[0].lost), (0, 0));
    }
}
