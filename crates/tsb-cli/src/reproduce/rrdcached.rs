//! Measures what rrdcached gains, with kazeburo's files and procedure: the same work for each
//! engine, a cold cache that is proved cold, and the drain measured to its end.
//!
//! In each round every engine has a turn on one set of files: direct updates by tsb-rrd and, with
//! its feature, by librrd; tsb's write cache, and the real rrdcached if it is installed, both
//! through the same client over a Unix socket.

mod beyond;
mod client;
mod engine;
mod published;
mod rounds;
mod simulated;
mod testbed;
pub(super) mod text;
mod tuned;

use std::ops::ControlFlow;
use std::path::Path;

use tsb_core::report::Written;
use tsb_core::report::experiment::rrdcached::{
    Beyond, Reproduction, Round, RrdcachedDetails, RrdcachedPlan, Simulated,
};
use tsb_core::report::experiment::{Experiment, ExperimentPlan};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::experiment::{Folder, in_rounds};

use super::say;
use crate::args::RrdcachedArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outputs;
use crate::render::html::rrdcached_page;

use engine::{Engine, EngineKind, Tuning};
use testbed::Testbed;

/// The experiment's name.
pub(super) const NAME: &str = "rrdcached";
/// Seed of the order of turns.
const SEED: u64 = 1;
/// Default numbers of files: those of the publication, or what two minutes allow.
const FILES: [usize; 6] = [1_000, 5_000, 10_000, 20_000, 40_000, 60_000];
const FILES_QUICK: [usize; 1] = [1_000];
/// And of predictions.
const FILES_SIMULATED: [usize; 1] = [5_000];

/// The result type of this experiment.
type Result<T, E = Failure> = std::result::Result<T, E>;

/// Runs the experiment.
pub(super) fn command(args: &RrdcachedArgs) -> Result<Exit> {
    let common = &args.experiment;
    let outputs = Outputs::of_experiment(common.format, common.out.as_deref(), common.html.as_deref())?;
    let counts = counts(args);
    let folder = Folder::make(&common.dir, "reproduce")?;
    let clock = MonotonicClock::new();
    let mut testbed = Testbed::new(folder.path())?;
    let (mut rounds, mut beyond, mut wrong) = (Vec::new(), Vec::new(), 0);
    let kinds = kinds();
    let mut simulated = None;
    if args.simulate {
        simulated = Some(simulated::of(
            args,
            &counts,
            &kinds,
            &mut testbed,
            folder.path(),
            &clock,
        )?);
        wrong += testbed.count_wrong()?;
    } else {
        for &count in &counts {
            testbed.grow(count, |made| say(&args.experiment, &format!("{made} of {count} files")))?;
            rounds.extend(turns(args, &kinds, &mut testbed, folder.path(), &clock, &mut wrong)?);
        }
        if let Some(&count) = counts.first() {
            testbed.shrink(count);
            say(&args.experiment, "beyond the document");
            let servers: Vec<EngineKind> = kinds.into_iter().filter(|kind| kind.is_server()).collect();
            beyond = beyond::all(&servers, &mut testbed, folder.path(), &clock, args.experiment.quick)?;
            beyond.extend(tuned::all(
                &servers,
                &mut testbed,
                folder.path(),
                &clock,
                args.experiment.quick,
            )?);
            wrong += testbed.count_wrong()?;
        }
    }
    let result = Reproduction {
        written: Written::here(),
        plan: plan(args, counts),
        took_seconds: clock.now() as f64 / SECOND_NS as f64,
        experiment: experiment(args.experiment.quick, rounds, beyond, simulated, wrong),
    };
    outputs.write_with_page(&result, || text::page(&result), || rrdcached_page(&result))?;
    Ok(if wrong == 0 { Exit::Done } else { Exit::Invalid })
}

/// Gives every engine a turn in each round, in an order of the round.
fn turns(
    args: &RrdcachedArgs,
    kinds: &[EngineKind],
    testbed: &mut Testbed,
    folder: &Path,
    clock: &MonotonicClock,
    wrong: &mut u64,
) -> Result<Vec<Round>> {
    let mut failure = None;
    let found = in_rounds(SEED, args.rounds, kinds.len(), |turn| {
        let Some(&kind) = kinds.get(turn.of) else {
            return ControlFlow::Break(());
        };
        let what = format!("{} files, round {}, {}", testbed.len(), turn.round + 1, kind.name());
        say(&args.experiment, &what);
        let mut take = || {
            let engine = Engine::start(kind, testbed, folder, Tuning::default())?;
            let passes = rounds::of(&engine, testbed, clock, turn.round)?;
            engine.stop()?;
            *wrong += testbed.count_wrong()?;
            Ok(passes)
        };
        take().map_or_else(
            |error| {
                failure = Some(error);
                ControlFlow::Break(())
            },
            ControlFlow::Continue,
        )
    });
    failure.map_or_else(|| Ok(found.into_iter().flatten().flatten().collect()), Err)
}

fn counts(args: &RrdcachedArgs) -> Vec<usize> {
    let mut counts = match (args.files.as_slice(), args.experiment.quick) {
        ([], true) => FILES_QUICK.to_vec(),
        ([], false) if args.simulate => FILES_SIMULATED.to_vec(),
        ([], false) => FILES.to_vec(),
        (given, _) => given.iter().map(|&count| count.max(1)).collect(),
    };
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn kinds() -> Vec<EngineKind> {
    let mut kinds = vec![
        EngineKind::Direct,
        #[cfg(feature = "librrd")]
        EngineKind::Librrd,
        EngineKind::Ours,
    ];
    kinds.extend(engine::has_daemon().then_some(EngineKind::Daemon));
    kinds
}

/// What was asked for.
fn plan(args: &RrdcachedArgs, files: Vec<usize>) -> ExperimentPlan<RrdcachedPlan> {
    ExperimentPlan {
        experiment: NAME.to_owned(),
        is_quick: args.experiment.quick,
        asked: RrdcachedPlan {
            files,
            rounds: args.rounds,
            dir: args.experiment.dir.display().to_string(),
        },
    }
}

fn experiment(
    is_quick: bool,
    rounds: Vec<Round>,
    beyond: Vec<Beyond>,
    simulated: Option<Simulated>,
    wrong: u64,
) -> Experiment<RrdcachedDetails> {
    let daemon = if engine::has_daemon() {
        "the installed rrdcached"
    } else {
        "not run: no program rrdcached is installed"
    };
    Experiment {
        name: NAME.to_owned(),
        is_quick,
        is_debug_build: cfg!(debug_assertions),
        rows: published::rows(&rounds),
        mistakes: published::MISTAKES.map(str::to_owned).to_vec(),
        details: RrdcachedDetails {
            daemon: daemon.to_owned(),
            files_wrong: wrong,
            rounds,
            beyond,
            simulated,
        },
    }
}

fn failed(verb: &str, path: &std::path::Path, error: &(dyn std::error::Error + '_)) -> Failure {
    Failure::new(Exit::Unreachable, format!("cannot {verb} {}", path.display())).because(error)
}
