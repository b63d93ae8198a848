//! The whole experiment: as it was, in virtual time and on real stores, and corrected, over
//! numbers of apps until a store breaks.

mod published;
mod summary;

use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::report::experiment::hm9000::{AsItWas, CorrectedRun, Hm9000Details, Hm9000Plan, OutagePlan};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use super::as_it_was::{RealTime, Report, VirtualTime};
use super::corrected::{CorrectedOptions, OutageOptions, corrected, with_outages};
use super::defects::Defects;
use super::layout::{EtcdInterface, Layout, OpenedKeys, Opening};
use super::simulator::SimulatorOptions;
use crate::error::Error;
use crate::experiment::in_rounds;

pub use published::{MISTAKES, rows};

/// Requests in flight at a time, as the document's adapter had them.
const IN_FLIGHT: usize = 30;
/// The rate at which the document's etcd wrote, as its break at 30,000 apps says: listener and
/// fetcher each write a key per app, and have 30 s for it.
const MODEL_KEYS_PER_SECOND: u64 = 2_000;
/// Length of a run in virtual time, in seconds.
const VIRTUAL_S: u64 = 180;
const VIRTUAL_S_QUICK: u64 = 60;
/// Numbers of apps of the runs in virtual time.
const VIRTUAL_APPS: [usize; 10] = [
    1_000, 10_000, 20_000, 25_000, 30_000, 30_500, 50_000, 70_000, 100_000, 200_000,
];
const VIRTUAL_APPS_QUICK: [usize; 3] = [1_000, 30_500, 100_000];
/// The pause before an outage, in seconds: at least two intervals of heartbeats.
const PAUSE_S: RangeInclusive<u64> = 20..=30;
/// How long one disturbance may take, in seconds.
pub const DISTURBANCE_MAX_S: u64 = 120;

/// Disturbs a store; it is given the number of the outage, from 1, and returns when the disturbance is
/// over, within [`DISTURBANCE_MAX_S`] seconds.
pub type Disturb<'a> = dyn FnMut(u32) -> Result<(), Error> + 'a;

/// What is asked of the experiment.
#[derive(Debug)]
pub struct Request<'a> {
    /// The settings, which the report repeats.
    pub plan: Hm9000Plan,
    /// Whether it is the smaller version, which runs as it was on one store only: etcd by version 2,
    /// or else the first.
    pub is_quick: bool,
    /// The stores of `plan.stores`.
    pub layouts: Vec<Layout>,
    /// The defects in force in the runs as it was.
    pub defects: Defects,
    /// The folder for files of stores.
    pub folder: &'a Path,
    /// Ends it early, with what was found.
    pub stop: Arc<AtomicBool>,
}

/// A store in the corrected experiment.
struct Candidate {
    layout: Layout,
    /// Whether it broke, or could not be opened.
    is_out: bool,
}

struct Experiment<'a> {
    request: &'a Request<'a>,
    say: &'a mut dyn FnMut(&str),
    places: u32,
    details: Hm9000Details,
}

/// Runs the experiment. A store that cannot be used is a failure in the result, and the others go
/// on. `disturb` is called if the plan asks for outages.
///
/// # Errors
/// [`Error::Internal`] for a defect of tsb.
pub fn measure(
    request: &Request<'_>,
    disturb: &mut Disturb<'_>,
    say: &mut dyn FnMut(&str),
) -> Result<Hm9000Details, Error> {
    let mut experiment = Experiment {
        request,
        say,
        places: 0,
        details: Hm9000Details::default(),
    };
    experiment.in_virtual_time()?;
    experiment.as_it_was();
    experiment.corrected();
    summary::summarize(&mut experiment.details, &request.plan.stores);
    if let Some(outage) = &request.plan.outage {
        experiment.disturbed(outage, disturb);
    }
    let mut details = experiment.details;
    details.interrupted = request.stop.load(Ordering::Relaxed);
    Ok(details)
}

impl Experiment<'_> {
    fn is_stopped(&self) -> bool {
        self.request.stop.load(Ordering::Relaxed)
    }

    fn cluster(&self, apps: usize) -> SimulatorOptions {
        SimulatorOptions {
            apps,
            seed: self.request.plan.seed,
            ..SimulatorOptions::default()
        }
    }

    fn in_virtual_time(&mut self) -> Result<(), Error> {
        let (all, seconds): (&[usize], u64) = if self.request.is_quick {
            (&VIRTUAL_APPS_QUICK, VIRTUAL_S_QUICK)
        } else {
            (&VIRTUAL_APPS, VIRTUAL_S)
        };
        for &apps in all {
            if self.is_stopped() {
                break;
            }
            (self.say)(&format!("as it was, in virtual time: {apps} apps"));
            let run = VirtualTime {
                simulator: self.cluster(apps),
                defects: self.request.defects.clone(),
                ns_per_key: SECOND_NS / MODEL_KEYS_PER_SECOND,
                seconds,
            };
            let report = run.run();
            let report = report.map_err(|error| Error::internal("cannot simulate a store").because(&error))?;
            let store = format!("a store that takes {MODEL_KEYS_PER_SECOND} keys/s");
            let mut entry = entry(store, apps, report);
            entry.is_virtual = true;
            entry.keys_per_second = Some(MODEL_KEYS_PER_SECOND as f64);
            self.details.as_it_was.push(entry);
        }
        Ok(())
    }

    /// As it was, on real stores.
    fn as_it_was(&mut self) {
        let all = &self.request.layouts;
        let documents = |layout: &&Layout| {
            matches!(
                layout,
                Layout::Etcd {
                    interface: EtcdInterface::V2,
                    ..
                }
            )
        };
        // A quick run has time for one: the document's, or else the first.
        let one = all.iter().find(documents).or(all.first());
        let stores: Vec<&Layout> = if self.request.is_quick {
            one.into_iter().collect()
        } else {
            all.iter().collect()
        };
        for layout in stores {
            for &apps in &self.request.plan.apps {
                if self.is_stopped() {
                    return;
                }
                (self.say)(&format!("as it was: {layout}, {apps} apps"));
                if let Err(error) = self.one_as_it_was(layout, apps) {
                    self.details
                        .failures
                        .push(format!("as it was, {layout}, {apps} apps: {error}"));
                }
            }
        }
    }

    fn one_as_it_was(&mut self, layout: &Layout, apps: usize) -> Result<(), Error> {
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let opened = self.open(layout, IN_FLIGHT, &clock)?;
        let run = RealTime {
            simulator: self.cluster(apps),
            defects: self.request.defects.clone(),
            seconds: self.request.plan.seconds_as_it_was,
            stop: Arc::clone(&self.request.stop),
        };
        let report = run.run(&opened.store(), &clock);
        let removed = opened.remove();
        self.details.as_it_was.push(entry(layout.to_string(), apps, report?));
        removed
    }

    /// Corrected: for each number of apps, rounds over the stores that still keep up.
    fn corrected(&mut self) {
        let plan = &self.request.plan;
        let layouts = self.request.layouts.iter().cloned();
        let mut candidates: Vec<Candidate> = layouts.map(|layout| Candidate { layout, is_out: false }).collect();
        let beyond = std::iter::successors(plan.apps.last().copied(), |apps| apps.checked_mul(2));
        let beyond = beyond.skip(1).take_while(|apps| *apps <= plan.apps_max);
        for apps in plan.apps.iter().copied().chain(beyond) {
            candidates.retain(|candidate| !candidate.is_out);
            if candidates.is_empty() || self.is_stopped() {
                return;
            }
            self.rounds(&mut candidates, apps);
        }
    }

    fn rounds(&mut self, candidates: &mut [Candidate], apps: usize) {
        let plan = &self.request.plan;
        let (seed, rounds) = (plan.seed ^ apps as u64, plan.rounds);
        let found = in_rounds(seed, rounds, candidates.len(), |turn| {
            if self.is_stopped() {
                return ControlFlow::Break(());
            }
            let candidate = &mut candidates[turn.of];
            if candidate.is_out {
                return ControlFlow::Continue(None);
            }
            (self.say)(&format!(
                "corrected: {}, {apps} apps, round {} of {rounds}",
                candidate.layout,
                turn.round + 1
            ));
            let run = self.one_corrected(&candidate.layout, apps, turn.round);
            let run = run.map_err(|error| {
                let failure = format!("corrected, {}, {apps} apps: {error}", candidate.layout);
                self.details.failures.push(failure);
                candidate.is_out = true;
            });
            ControlFlow::Continue(run.ok())
        });
        for (candidate, runs) in candidates.iter_mut().zip(&found) {
            // What keeps up in no round is not asked for more.
            candidate.is_out |= !runs.iter().flatten().any(|run| run.is_kept);
        }
        self.details.runs.extend(found.into_iter().flatten().flatten());
    }

    fn one_corrected(&mut self, layout: &Layout, apps: usize, round: u32) -> Result<CorrectedRun, Error> {
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let opened = self.open(layout, 1, &clock)?;
        let options = self.corrected_options(layout, apps);
        let run = corrected(&options, &opened.store(), &*clock);
        let removed = opened.remove();
        let run = CorrectedRun {
            store: layout.to_string(),
            round,
            ..run?
        };
        removed.map(|()| run)
    }

    fn corrected_options(&self, layout: &Layout, apps: usize) -> CorrectedOptions {
        CorrectedOptions {
            simulator: SimulatorOptions {
                new_apps: 0,
                ..self.cluster(apps)
            },
            seconds: self.request.plan.seconds,
            workers: IN_FLIGHT,
            servers: layout.servers(),
            stop: Arc::clone(&self.request.stop),
        }
    }

    /// Each store, with the largest number of apps that it kept fresh, while it is disturbed.
    fn disturbed(&mut self, outage: &OutagePlan, disturb: &mut Disturb<'_>) {
        for layout in &self.request.layouts {
            if self.is_stopped() {
                return;
            }
            if let Err(error) = self.one_disturbed(layout, outage, disturb) {
                self.details.failures.push(format!("outages, {layout}: {error}"));
            }
        }
    }

    fn one_disturbed(&mut self, layout: &Layout, outage: &OutagePlan, disturb: &mut Disturb<'_>) -> Result<(), Error> {
        let store = layout.to_string();
        let found = self.details.breaks.iter().find(|found| found.store == store);
        let Some(apps) = found.and_then(|found| found.kept) else {
            return Err(Error::plan("it kept no number of apps fresh that could be disturbed"));
        };
        (self.say)(&format!("outages: {store}, {apps} apps, {} outages", outage.count));
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let opened = self.open(layout, 1, &clock)?;
        let options = CorrectedOptions {
            // The outages end it; each may take as long as it is allowed to.
            seconds: u64::from(outage.count + 2) * (PAUSE_S.end() + DISTURBANCE_MAX_S),
            // Processes that are killed and started again are others then.
            servers: Vec::new(),
            ..self.corrected_options(layout, apps)
        };
        let outages = OutageOptions {
            count: outage.count,
            pause_s: PAUSE_S,
            seed: self.request.plan.seed,
        };
        let run = with_outages(&options, &outages, &opened.store(), &*clock, disturb);
        let removed = opened.remove();
        let mut run = run?;
        run.run.store = store;
        if let Some(failure) = &run.failure {
            self.details.failures.push(format!("outages, {layout}: {failure}"));
        }
        self.details.outage_runs.push(run);
        removed
    }

    fn open(&mut self, layout: &Layout, in_flight: usize, clock: &Arc<dyn Clock>) -> Result<OpenedKeys, Error> {
        self.places += 1;
        layout.open(&Opening {
            experiment: "hm9000",
            place: self.places,
            folder: self.request.folder,
            in_flight,
            clock: Arc::clone(clock),
        })
    }
}

fn entry(store: String, apps: usize, report: Report) -> AsItWas {
    let fresh = || report.polls.iter().filter(|poll| poll.is_fresh);
    let missing = || fresh().filter_map(|poll| poll.missing);
    AsItWas {
        store,
        is_virtual: false,
        keys_per_second: None,
        apps,
        fresh_at_seconds: report.first_fresh().map(|poll| poll.at_seconds),
        polls_fresh: fresh().count(),
        polls_checked: missing().count(),
        polls_falsely_fresh: missing().filter(|missing| *missing > 0).count(),
        missing_max: missing().max().unwrap_or_default(),
        syncs_failed: report.syncs_failed,
        syncs_slow: report.syncs_slow,
        polls: report.polls,
        lines: report.lines,
    }
}
