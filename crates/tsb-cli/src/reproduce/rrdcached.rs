//! Measures what rrdcached gains, with kazeburo's files and procedure: the same work for each
//! engine, a cold cache that is proved cold, and the drain measured to its end.
//!
//! Three engines take turns on one set of files: direct updates by tsb-rrd, tsb's write cache,
//! and the real rrdcached if it is installed; the last two through the same client over a Unix
//! socket.

mod beyond;
mod client;
mod engine;
mod published;
mod rounds;
mod testbed;
mod text;
mod tuned;

use tsb_core::report::Written;
use tsb_core::report::experiment::rrdcached::{Beyond, Reproduction, Round, RrdcachedDetails, RrdcachedPlan};
use tsb_core::report::experiment::{Experiment, ExperimentPlan};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::experiment::Folder;

use super::say;
use crate::args::RrdcachedArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outputs;

use engine::{Engine, EngineKind, Tuning};
use testbed::Testbed;

/// The experiment's name.
const NAME: &str = "rrdcached";
/// Default numbers of files: those of the publication, or what two minutes allow.
const FILES: [usize; 6] = [1_000, 5_000, 10_000, 20_000, 40_000, 60_000];
const FILES_QUICK: [usize; 1] = [1_000];

/// The result type of this experiment.
type Result<T, E = Failure> = std::result::Result<T, E>;

/// Runs the experiment.
pub(super) fn command(args: &RrdcachedArgs) -> Result<Exit> {
    let outputs = Outputs::of_document(args.experiment.format, args.experiment.out.as_deref())?;
    let counts = counts(args);
    let folder = Folder::make(&args.dir)?;
    let clock = MonotonicClock::new();
    let mut testbed = Testbed::new(folder.path())?;
    let (mut rounds, mut beyond, mut wrong) = (Vec::new(), Vec::new(), 0);
    let kinds = kinds();
    for &count in &counts {
        testbed.grow(count, |made| say(&args.experiment, &format!("{made} of {count} files")))?;
        for &kind in &kinds {
            say(&args.experiment, &format!("{count} files, {}", kind.name()));
            let engine = Engine::start(kind, &testbed, folder.path(), Tuning::default())?;
            rounds.extend(rounds::of(&engine, &mut testbed, &clock)?);
            engine.stop()?;
            wrong += testbed.count_wrong()?;
        }
    }
    if let Some(&count) = counts.first() {
        testbed.shrink(count);
        say(&args.experiment, "beyond the document");
        let servers: Vec<EngineKind> = kinds.into_iter().filter(|&kind| kind != EngineKind::Direct).collect();
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
    let result = Reproduction {
        written: Written::here(),
        plan: plan(args, counts),
        took_seconds: clock.now() as f64 / SECOND_NS as f64,
        experiment: experiment(args.experiment.quick, rounds, beyond, wrong),
    };
    outputs.write_value(&result, || text::page(&result))?;
    Ok(if wrong == 0 { Exit::Done } else { Exit::Invalid })
}

fn counts(args: &RrdcachedArgs) -> Vec<usize> {
    let mut counts = match (args.files.as_slice(), args.experiment.quick) {
        ([], true) => FILES_QUICK.to_vec(),
        ([], false) => FILES.to_vec(),
        (given, _) => given.iter().map(|&count| count.max(1)).collect(),
    };
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn kinds() -> Vec<EngineKind> {
    let mut kinds = vec![EngineKind::Direct, EngineKind::Ours];
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
            dir: args.dir.display().to_string(),
        },
    }
}

fn experiment(is_quick: bool, rounds: Vec<Round>, beyond: Vec<Beyond>, wrong: u64) -> Experiment<RrdcachedDetails> {
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
        },
    }
}

fn failed(verb: &str, path: &std::path::Path, error: &(dyn std::error::Error + '_)) -> Failure {
    Failure::new(Exit::Unreachable, format!("cannot {verb} {}", path.display())).because(error)
}
