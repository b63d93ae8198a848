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
use tsb_core::time::MonotonicClock;

use super::as_it_was::{ClassicOptions, as_it_was, count_accepted};
use super::backend::{Answers, MohawkBackend};
use super::connection::Outcome;
use super::endpoint::{EndpointOptions, OpenEndpoint};
use super::load::{LoadOptions, Way, load};
use super::one_hertz::feed;
use crate::error::{Error, chain};
use crate::experiment::in_rounds;

pub use published::{MISTAKES, rows};

/// What is asked of the experiment.
#[derive(Debug)]
pub struct Request<'a> {
    /// The part that is reported.
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
    };
    experiment.details.absent = absent(&request.backends);
    experiment.in_turns("as it was", Experiment::one_as_it_was);
    experiment.in_turns("corrected", Experiment::one_corrected);
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
    absent.push(
        "Hawkular on Cassandra: this program has no client of Cassandra; its answers, over a store in memory, take \
         the part of its rows, and nothing takes the part of its times"
            .to_owned(),
    );
    absent
}

impl Experiment<'_> {
    fn is_stopped(&self) -> bool {
        self.request.stop.load(Ordering::Relaxed)
    }

    /// Gives each backend a turn in each round.
    fn in_turns(&mut self, what: &str, take: fn(&mut Self, usize, u32) -> Result<(), Error>) {
        let (seed, rounds) = (self.request.plan.seed, self.request.plan.rounds);
        in_rounds(seed, rounds, self.request.backends.len(), |turn| {
            if self.is_stopped() {
                return ControlFlow::Break(());
            }
            if self.is_out[turn.of] {
                return ControlFlow::Continue(());
            }
            let backend = &self.request.backends[turn.of];
            (self.say)(&format!("{what}: {backend}, round {} of {rounds}", turn.round + 1));
            if let Err(error) = take(self, turn.of, turn.round)
                && !self.is_stopped()
            {
                self.details
                    .failures
                    .push(format!("{what}, {backend}: {}", chain(&error)));
                self.is_out[turn.of] = true;
            }
            ControlFlow::Continue(())
        });
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
