//! Disturbances: the program is stopped and continued, competes with busy processes for the CPU,
//! or has a monotonic clock ahead of that of the process that opens its files afterwards.
//!
//! The wall clock is not stepped: a time namespace has none of its own, and this machine's is
//! not ours to set. What depends on it (time stamps of samples that bring none) has tests with
//! a clock that a test sets.

use std::process::{Child, Command, Stdio};

use anyhow::Result;
use rustix::process::Signal;

use super::judge::{AllowedLoss, Outcome, SentTicks, examine};
use super::rng::Rng;
use super::service::{Service, StartingProcess, micros};
use super::stores::Guarantee;
use super::trial::{Trial, TrialFolder};
use crate::shell::succeeds;

/// Ticks of a disturbed life.
const TICKS: u64 = 60;
/// Stops of one life.
const STOPS: u64 = 4;
/// The longest time between two stops, and the longest stop, in microseconds.
const STOP_US: u64 = 15_000;
/// Processes that do nothing but use the processor.
const NEIGHBOURS: usize = 4;

/// What disturbs a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disturbance {
    Stops,
    Neighbours,
    Clock,
}

/// A disturbed life that ends in order, and a look at what it left.
pub(super) fn disturb(trial: &Trial<'_>, seed: u64) -> Result<(Outcome, String)> {
    let mut rng = Rng::new(seed);
    // Where there are no namespaces of time, a trial of the clock would disturb nothing.
    let kinds = [Disturbance::Stops, Disturbance::Neighbours, Disturbance::Clock];
    let kind = rng.pick(&kinds[..if has_time_namespaces() { 3 } else { 2 }]);
    let place = TrialFolder::new(trial, "disturbance", seed)?;
    let mut given = SentTicks::default();
    let _neighbours = Neighbours::new(if kind == Disturbance::Neighbours { NEIGHBOURS } else { 0 });
    let ahead = rng.below(1_000_000_000);
    let around = if kind == Disturbance::Clock {
        [
            "unshare",
            "--time",
            "--fork",
            "--monotonic",
            &ahead.to_string(),
            "--boottime",
            &ahead.to_string(),
        ]
        .map(str::to_owned)
        .into()
    } else {
        Vec::new()
    };
    let outcome = live(trial, &place, &around, &mut given, &mut rng, kind)?;
    let outcome = if let Some(outcome) = outcome {
        outcome
    } else {
        let allowed = AllowedLoss {
            keeps: Guarantee::All,
            is_blind: false,
        };
        examine(trial.program, trial.subject, &place.root, &mut given, allowed)?
    };
    place.keep_if_wrong(&outcome);
    Ok((outcome, format!("seed {seed}, {kind:?}")))
}

/// `None` where nothing was wrong yet.
fn live(
    trial: &Trial<'_>,
    place: &TrialFolder,
    around: &[String],
    given: &mut SentTicks,
    rng: &mut Rng,
    kind: Disturbance,
) -> Result<Option<Outcome>> {
    let service = match StartingProcess::spawn(trial.program, around, trial.subject, &place.root)?.listening()? {
        Ok(service) => service,
        Err(ended) => return Ok(Some(Outcome::Silent(format!("does not listen: {}", ended.complaint())))),
    };
    let mut client = service.client(trial.subject)?;
    std::thread::scope(|scope| {
        if kind == Disturbance::Stops {
            let waits = [(); STOPS as usize * 2].map(|()| rng.below(STOP_US));
            let service = &service;
            scope.spawn(move || stop_and_go(service, &waits));
        }
        for _ in 0..TICKS {
            let tick = given.next();
            let answer = client.send(tick);
            if !given.note(tick, &answer) {
                return;
            }
        }
    });
    let ended = service.stop(Signal::TERM);
    Ok(if ended.status.is_none() {
        Some(Outcome::Hung(ended.complaint()))
    } else if ended.has_panicked() {
        Some(Outcome::Panicked(ended.complaint()))
    } else {
        None
    })
}

fn stop_and_go(service: &Service, waits: &[u64]) {
    for pair in waits.chunks(2) {
        for (signal, &wait) in [Signal::STOP, Signal::CONT].into_iter().zip(pair) {
            service.handle.wait(micros(wait));
            service.handle.signal(signal);
        }
    }
}

/// Whether a process may have a monotonic clock of its own here.
fn has_time_namespaces() -> bool {
    succeeds(Command::new("unshare").args(["--time", "--fork", "--monotonic", "1", "true"]))
}

/// Busy processes, ended with this value.
struct Neighbours(Vec<Child>);

impl Neighbours {
    fn new(count: usize) -> Self {
        let busy = || {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
        };
        Self((0..count).filter_map(|_| busy().ok()).collect())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
