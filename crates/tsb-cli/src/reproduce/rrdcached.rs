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

use std::path::PathBuf;

use tsb_core::report::Written;
use tsb_core::report::experiment::{Beyond, Experiment, ExperimentPlan, Reproduction, Round};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use crate::args::ReproduceArgs;
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
pub(super) fn command(args: &ReproduceArgs) -> Result<Exit> {
    let outputs = Outputs::of_document(args.format, args.out.as_deref())?;
    let counts = counts(args);
    let folder = Folder::make(&args.dir)?;
    let clock = MonotonicClock::new();
    let mut testbed = Testbed::new(&folder.0)?;
    let (mut rounds, mut beyond, mut wrong) = (Vec::new(), Vec::new(), 0);
    let kinds = kinds();
    for &count in &counts {
        testbed.grow(count, |made| say(args, &format!("{made} of {count} files")))?;
        for &kind in &kinds {
            say(args, &format!("{count} files, {}", kind.name()));
            let engine = Engine::start(kind, &testbed, &folder.0, Tuning::default())?;
            rounds.extend(rounds::of(&engine, &mut testbed, &clock)?);
            engine.stop()?;
            wrong += testbed.count_wrong()?;
        }
    }
    if let Some(&count) = counts.first() {
        testbed.shrink(count);
        say(args, "beyond the document");
        let servers: Vec<EngineKind> = kinds.into_iter().filter(|&kind| kind != EngineKind::Direct).collect();
        beyond = beyond::all(&servers, &mut testbed, &folder.0, &clock, args.quick)?;
        beyond.extend(tuned::all(&servers, &mut testbed, &folder.0, &clock, args.quick)?);
        wrong += testbed.count_wrong()?;
    }
    let result = Reproduction {
        written: Written::here(),
        plan: plan(args, counts),
        took_seconds: clock.now() as f64 / SECOND_NS as f64,
        experiment: experiment(args.quick, rounds, beyond, wrong),
    };
    outputs.write_value(&result, || text::page(&result))?;
    Ok(if wrong == 0 { Exit::Done } else { Exit::Invalid })
}

fn counts(args: &ReproduceArgs) -> Vec<usize> {
    let mut counts = match (args.files.as_slice(), args.quick) {
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

fn say(args: &ReproduceArgs, what: &str) {
    if !args.quiet {
        crate::say::line(what);
    }
}

/// What was asked for.
fn plan(args: &ReproduceArgs, files: Vec<usize>) -> ExperimentPlan {
    ExperimentPlan {
        experiment: NAME.to_owned(),
        is_quick: args.quick,
        files,
        dir: args.dir.display().to_string(),
    }
}

fn experiment(is_quick: bool, rounds: Vec<Round>, beyond: Vec<Beyond>, wrong: u64) -> Experiment {
    let daemon = if engine::has_daemon() {
        "the installed rrdcached"
    } else {
        "not run: no program rrdcached is installed"
    };
    Experiment {
        name: NAME.to_owned(),
        is_quick,
        is_debug_build: cfg!(debug_assertions),
        daemon: daemon.to_owned(),
        files_wrong: wrong,
        rows: published::rows(&rounds),
        rounds,
        beyond,
        mistakes: published::MISTAKES.map(str::to_owned).to_vec(),
    }
}

/// A temporary folder, removed when the experiment ends.
struct Folder(PathBuf);

impl Folder {
    fn make(dir: &std::path::Path) -> Result<Self> {
        let made = dir.canonicalize().and_then(|dir| {
            let folder = dir.join(format!("tsb-reproduce-{}", std::process::id()));
            std::fs::create_dir(&folder)?;
            Ok(folder)
        });
        made.map(Self).map_err(|error| failed("make a folder in", dir, &error))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays is named by its folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn failed(verb: &str, path: &std::path::Path, error: &(dyn std::error::Error + '_)) -> Failure {
    Failure::new(Exit::Unreachable, format!("cannot {verb} {}", path.display())).because(error)
}
