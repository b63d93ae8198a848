//! The whole experiment: as it was, and corrected, in rounds over the backends.

mod published;
mod summary;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::latency::Histogram;
use tsb_core::report::experiment::mohawk::{ClassicRun, FeedRun, LoadRun, MohawkDetails, MohawkPlan};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use super::as_it_was::{ClassicOptions, as_it_was, count_accepted};
use super::backend::{Answers, MohawkBackend};
use super::connection::Outcome;
use super::endpoint::{EndpointOptions, OpenEndpoint};
use super::load::{LoadOptions, Way, load, samples_of_ways};
use super::one_hertz::feed;
use crate::error::{Error, chain};
use crate::experiment::in_rounds;

pub use published::{MISTAKES, rows};

/// What is asked of the experiment.
#[derive(Debug)]
pub struct Request<'a> {
    /// The settings, which the report repeats.
    pub plan: MohawkPlan,
    /// The backends of `plan.backends`.
    pub backends: Vec<MohawkBackend>,
    /// The program `tsb`, whose `ingest` is our endpoint.
    pub program: &'a Path,
    /// The folder for files of stores.
    pub folder: &'a Path,
    /// Ends it early, with what was found.
    pub stop: Arc<AtomicBool>,
}

/// The histograms of a backend and way, of all rounds.
#[derive(Debug, Default)]
struct Times {
    write: Histogram,
    read: Histogram,
}

/// By the name of the backend and of the way.
type TimesByWay = HashMap<(String, String), Times>;

struct Experiment<'a> {
    request: &'a Request<'a>,
    clock: MonotonicClock,
    say: &'a mut dyn FnMut(&str),
    places: u32,
    details: MohawkDetails,
    times: TimesByWay,
    /// Whether a backend could not be used.
    is_out: Vec<bool>,
    /// When it started, by its clock.
    started: u64,
    /// Seconds of the last turn of a backend.
    took: HashMap<(usize, ExperimentPart), f64>,
    /// Turns for which the time was too short.
    left_out: Vec<(usize, ExperimentPart)>,
}

/// A part of the experiment, in which each backend has a turn in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ExperimentPart {
    AsItWas,
    Corrected,
}

impl ExperimentPart {
    const fn name(self) -> &'static str {
        match self {
            Self::AsItWas => "as it was",
            Self::Corrected => "corrected",
        }
    }
}

/// What a turn of the corrected experiment has.
struct CorrectedTurn {
    runs: Vec<LoadRun>,
    feed: Option<FeedRun>,
}

/// Runs the experiment. A backend that cannot be used is a failure in the result, and the others
/// go on.
pub fn measure(request: &Request<'_>, say: &mut dyn FnMut(&str)) -> MohawkDetails {
    let mut experiment = Experiment {
        request,
        clock: MonotonicClock::new(),
        say,
        places: 0,
        details: MohawkDetails::default(),
        times: HashMap::new(),
        is_out: vec![false; request.backends.len()],
        started: 0,
        took: HashMap::new(),
        left_out: Vec::new(),
    };
    experiment.started = experiment.clock.now();
    experiment.details.absent = absent(&request.backends);
    for round in 0..request.plan.rounds {
        // The first rounds of everything come first: what the time does not allow are later ones.
        experiment.in_turns(ExperimentPart::AsItWas, round);
        experiment.in_turns(ExperimentPart::Corrected, round);
    }
    let mut details = experiment.details;
    details.interrupted = request.stop.load(Ordering::Relaxed);
    summary::summarize(&mut details, &request.plan.backends, &experiment.times);
    details
}

/// What does not take part, and why.
fn absent(backends: &[MohawkBackend]) -> Vec<String> {
    let has = |name: &str| backends.iter().any(|backend| backend.short_name() == name);
    let mut absent = Vec::new();
    for (name, sentence) in [
        (
            "mongo",
            "MongoDB in Mohawk's layout: no address of a mongod was given (--mongo HOST:PORT)",
        ),
        (
            "mohawk",
            "Mohawk itself: no address of a running one was given (--mohawk HOST:PORT); its rows are those that \
             its source returns, and its times are not measured",
        ),
    ] {
        if !has(name) {
            absent.push(sentence.to_owned());
        }
    }
    for backend in MohawkBackend::EMBEDDED {
        if !has(backend.short_name()) {
            absent.push(format!("{backend}: left out by --backend"));
        }
    }
    if !has("mohawk") {
        absent.push(
            "Hawkular on Cassandra: no address of a running one was given (--mohawk HOST:PORT takes one); our \
             endpoint's answers over a store in memory take the part of its rows, and nothing takes the part of its \
             times"
                .to_owned(),
        );
    }
    absent
}

impl Experiment<'_> {
    fn is_stopped(&self) -> bool {
        self.request.stop.load(Ordering::Relaxed)
    }

    /// Gives each backend its turn of a round, as far as the time allows.
    fn in_turns(&mut self, part: ExperimentPart, round: u32) {
        let (seed, rounds) = (self.request.plan.seed, self.request.plan.rounds);
        let count = self.request.backends.len();
        in_rounds(seed.wrapping_add(u64::from(round)), 1, count, |turn| {
            if self.is_stopped() {
                return ControlFlow::Break(());
            }
            let backend = &self.request.backends[turn.of];
            let about = format!("{}, {backend}, round {} of {rounds}", part.name(), round + 1);
            if self.is_out[turn.of] || self.left_out.contains(&(turn.of, part)) {
                return ControlFlow::Continue(());
            }
            let took = self.took.get(&(turn.of, part)).copied();
            let needed = took.unwrap_or_else(|| self.estimate(part, backend));
            if let Some(budget) = self.over_budget(needed) {
                let why = format!(
                    "{about}, and later ones: it would take about {needed:.0} s, and the {budget} s of a quick run \
                     were nearly over"
                );
                self.details.absent.push(why);
                self.left_out.push((turn.of, part));
                return ControlFlow::Continue(());
            }
            (self.say)(&about);
            let begun = self.clock.now();
            let taken = match part {
                ExperimentPart::AsItWas => self.one_as_it_was(turn.of, round),
                ExperimentPart::Corrected => self.one_corrected(turn.of, round),
            };
            let seconds = (self.clock.now() - begun) as f64 / SECOND_NS as f64;
            self.took.insert((turn.of, part), seconds);
            if let Err(error) = taken
                && !self.is_stopped()
            {
                self.details.failures.push(format!("{about}: {}", chain(&error)));
                self.is_out[turn.of] = true;
            }
            ControlFlow::Continue(())
        });
    }

    /// The budget, if a turn that needs this many seconds would exceed it.
    fn over_budget(&self, needed: f64) -> Option<u64> {
        let elapsed = (self.clock.now() - self.started) as f64 / SECOND_NS as f64;
        let budget = self.request.plan.budget_seconds?;
        (elapsed + needed > budget as f64).then_some(budget)
    }

    /// Seconds that the first turn of a backend takes, from what it took as it was.
    fn estimate(&self, part: ExperimentPart, backend: &MohawkBackend) -> f64 {
        if part == ExperimentPart::AsItWas {
            return 0.0;
        }
        let plan = &self.request.plan;
        let name = backend.to_string();
        let run = self.details.as_it_was.iter().find(|run| run.backend.name == name);
        let per_sample = run.map_or(0.0, |run| run.write_seconds / plan.count.max(1) as f64);
        let samples = samples_of_ways(plan.requests, plan.batch) + plan.feed + plan.rate * plan.seconds / 2;
        samples as f64 * per_sample + plan.seconds as f64
    }

    fn open(&mut self, of: usize, answers: Answers) -> Result<OpenEndpoint, Error> {
        self.places += 1;
        let options = EndpointOptions {
            program: self.request.program,
            folder: self.request.folder,
            place: self.places,
            answers,
            clock: &self.clock,
        };
        OpenEndpoint::open(&self.request.backends[of], &options)
    }

    fn one_as_it_was(&mut self, of: usize, round: u32) -> Result<(), Error> {
        let endpoint = self.open(of, Answers::AsTheyWere)?;
        let options = ClassicOptions {
            count: self.request.plan.count,
            seed: self.request.plan.seed,
            round,
            stop: &self.request.stop,
        };
        let run = as_it_was(&options, &endpoint, &self.clock);
        let ended = endpoint.end(&self.clock)?;
        let mut run: ClassicRun = run.map_err(|why| Error::unreachable("it did not answer").because_of(why))?;
        run.backend.durability = ended.durability;
        count_accepted(&mut run, ended.accepted, options.count);
        if ended.refused > 0 {
            run.wrong
                .push(format!("the endpoint refused {} samples or requests", ended.refused));
        }
        self.details.as_it_was.push(run);
        Ok(())
    }

    fn one_corrected(&mut self, of: usize, round: u32) -> Result<(), Error> {
        let endpoint = self.open(of, Answers::Corrected)?;
        let mut turn = CorrectedTurn {
            runs: Vec::new(),
            feed: None,
        };
        let ran = self.all_ways(&endpoint, round, &mut turn);
        let ended = endpoint.end(&self.clock);
        // What was finished is kept, whatever came later.
        if let Ok(ended) = &ended {
            let feeds = turn.feed.iter_mut().map(|feed| &mut feed.backend);
            for backend in turn.runs.iter_mut().map(|run| &mut run.backend).chain(feeds) {
                backend.durability.clone_from(&ended.durability);
            }
        }
        self.details.corrected.extend(turn.runs);
        self.details.feeds.extend(turn.feed);
        ended?;
        ran.map_err(|why| Error::unreachable("it did not answer").because_of(why))
    }

    fn all_ways(&mut self, endpoint: &OpenEndpoint, round: u32, turn: &mut CorrectedTurn) -> Outcome<()> {
        let plan = &self.request.plan;
        for way in Way::ALL {
            if self.is_stopped() {
                return Ok(());
            }
            let options = LoadOptions {
                way,
                requests: plan.requests,
                batch: plan.batch,
                connections: plan.connections,
                rate: plan.rate,
                seconds: plan.seconds,
                seed: plan.seed,
                round,
                stop: &self.request.stop,
            };
            let loaded = load(&options, endpoint, &self.clock)?;
            if self.is_stopped() {
                // A run that was cut short has no figures.
                return Ok(());
            }
            let key = (loaded.run.backend.name.clone(), loaded.run.way.clone());
            let times = self.times.entry(key).or_default();
            times.write.merge(&loaded.write);
            times.read.merge(&loaded.read);
            turn.runs.push(loaded.run);
        }
        turn.feed = Some(feed((plan.feed, plan.seed, round), endpoint, &self.clock)?);
        Ok(())
    }
}
