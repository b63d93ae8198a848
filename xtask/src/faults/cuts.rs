//! Power cuts: records the system calls of the program once, and reconstructs its files as a
//! power cut at any moment would leave them.
//!
//! The trace also shows what had been acknowledged by then: it contains what the listener sent.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::judge::{AllowedLoss, Outcome, SentTicks, examine};
use super::medium::{Medium, UnsyncedKept};
use super::rng::Rng;
use super::service::StartingProcess;
use super::stores::{Guarantee, SERIES, StoreUnderTest, Wire};
use super::trace::{self, Argument, Call, Event, Trace};
use super::trial::{Trial, TrialFolder};

/// Ticks per recorded process.
const TICKS: u64 = 60;
/// Recordings of one place until one can be used.
const RECORDINGS_MAX: u32 = 8;
/// How each recorded process ends: the second opens what a kill left, the third what was closed
/// in order.
const ENDS: [Signal; 3] = [Signal::KILL, Signal::TERM, Signal::KILL];

/// The lives of a place, as traces.
#[derive(Debug)]
pub(super) struct Recording {
    root: PathBuf,
    lives: Vec<ProcessTrace>,
}

#[derive(Debug)]
struct ProcessTrace {
    trace: Trace,
    /// Ticks in the order in which they were sent.
    sent: Vec<u64>,
}

impl Recording {
    /// Runs the program under strace. A call that a kill cut off may have been made or not,
    /// which no trace says: where the model then differs from the files, the lives are
    /// recorded again.
    pub(super) fn new(trial: &Trial<'_>, seed: u64) -> Result<Self> {
        for _ in 1..RECORDINGS_MAX {
            if let Ok(recording) = Self::once(trial, seed) {
                return Ok(recording);
            }
        }
        Self::once(trial, seed)
    }

    fn once(trial: &Trial<'_>, seed: u64) -> Result<Self> {
        let place = TrialFolder::new(trial, "recording", seed)?;
        let mut given = SentTicks::default();
        let mut lives = Vec::new();
        for (life, end) in ENDS.into_iter().enumerate() {
            let file = PathBuf::from(format!("{}.trace{life}", place.root.display()));
            let (trace, sent) = record(trial, &place.root, &file, &mut given, end)?;
            let _ = fs::remove_file(&file);
            if let Some(mapped) = trace.mapped.iter().find(|path| is_unseen(&place.root, path)) {
                bail!(
                    "{} is written through a mapping, which no trace shows",
                    mapped.display()
                );
            }
            lives.push(ProcessTrace { trace, sent });
        }
        let root = place.root.clone();
        let recording = Self { root, lives };
        recording.check(trial, &place, seed)?;
        Ok(recording)
    }

    /// Checks that the model reproduces the real files; otherwise its results mean nothing.
    fn check(&self, trial: &Trial<'_>, place: &TrialFolder, seed: u64) -> Result<()> {
        let copy = TrialFolder::new(trial, "model", seed)?;
        let mut medium = Medium::new(&self.root);
        for life in &self.lives {
            for &event in &life.trace.events {
                medium.apply(&life.trace, event)?;
            }
            medium.end_process();
        }
        medium.cut(UnsyncedKept::Everything, None, &mut Rng::new(0), &copy.root)?;
        compare(&place.root, &copy.root)
    }

    /// How many moments there are.
    pub(super) fn moments(&self) -> usize {
        self.lives.iter().map(|life| life.trace.events.len()).sum()
    }

    /// The medium at a moment, and what had been acknowledged.
    fn cut_at(&self, subject: &StoreUnderTest, moment: usize) -> Result<(Medium, SentTicks)> {
        let mut medium = Medium::new(&self.root);
        let mut given = SentTicks::default();
        let mut left = moment;
        for life in &self.lives {
            let events = &life.trace.events[..left.min(life.trace.events.len())];
            let mut answers = 0;
            for &event in events {
                medium.apply(&life.trace, event)?;
                if let Event::Begins(index) = event {
                    answers += acks(subject, &life.trace.calls[index]);
                }
            }
            let acked = match subject.wire {
                Wire::Influx => answers,
                Wire::Rrdcached => answers / SERIES as usize,
            };
            given.acked.extend(life.sent.iter().take(acked));
            given.unsure.extend(life.sent.iter().skip(acked).take(1));
            given.faults.push(given.acked.len());
            left -= events.len();
            if left == 0 {
                break;
            }
            medium.end_process();
        }
        Ok((medium, given))
    }

    /// Cuts the power at a moment that the seed chooses, and opens what is left.
    pub(super) fn cut(&self, trial: &Trial<'_>, seed: u64) -> Result<(Outcome, String)> {
        let mut rng = Rng::new(seed);
        let moment = rng.below(self.moments() as u64 + 1) as usize;
        let leaves = rng.pick(&UnsyncedKept::ALL);
        // RRD files have no checksum and no order of writes: half of the cuts give them the
        // order, and are judged in full; what the others tear, the format cannot show.
        let end = trial.subject.unordered;
        let ordered = end.filter(|_| rng.one_in(2));
        let place = TrialFolder::new(trial, "cut", seed)?;
        let (medium, mut given) = self.cut_at(trial.subject, moment)?;
        medium.cut(leaves, ordered, &mut rng, &place.root)?;
        let allowed = AllowedLoss {
            keeps: trial.subject.after_cut,
            // What was promised to nobody may be anything.
            is_blind: trial.subject.after_cut == Guarantee::Nothing || end.is_some() && ordered.is_none(),
        };
        let outcome = examine(trial.program, trial.subject, &place.root, &mut given, allowed)?;
        place.keep_if_wrong(&outcome);
        let how = format!(
            "seed {seed}, moment {moment} of {}, {leaves:?} left, in order: {ordered:?}",
            self.moments()
        );
        Ok((outcome, how))
    }
}

/// One life under strace.
fn record(
    trial: &Trial<'_>,
    root: &Path,
    file: &Path,
    given: &mut SentTicks,
    end: Signal,
) -> Result<(Trace, Vec<u64>)> {
    let target = file.to_string_lossy().into_owned();
    let around = [
        "strace",
        "-f",
        "-y",
        "-xx",
        "-s",
        "4000000",
        "-o",
        &target,
        "-e",
        trace::CALLS,
    ];
    let around = around.map(str::to_owned);
    let starting = StartingProcess::spawn(trial.program, &around, trial.subject, root)?;
    let Ok(service) = starting.listening()? else {
        bail!("{} does not listen under strace", trial.subject.name);
    };
    let mut client = service.client(trial.subject)?;
    let mut sent = Vec::new();
    for _ in 0..TICKS {
        let tick = given.next();
        sent.push(tick);
        let answer = client.send(tick);
        if !given.note(tick, &answer) {
            bail!(
                "{} does not take tick {tick} under strace: {answer:?}",
                trial.subject.name
            );
        }
    }
    service.stop(end);
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok((trace::read(&text)?, sent))
}

/// Samples or ticks that a call acknowledges.
fn acks(subject: &StoreUnderTest, call: &Call) -> usize {
    if !matches!(call.name.as_str(), "sendto" | "sendmsg" | "write" | "writev") {
        return 0;
    }
    let is_socket = matches!(call.arguments.first(), Some(Argument::Descriptor(_, path))
        if ["TCP:", "UNIX", "socket:"].iter().any(|kind| path.to_string_lossy().starts_with(kind)));
    let bytes = match call.arguments.get(1) {
        Some(Argument::Bytes(bytes)) if is_socket => bytes.clone(),
        Some(Argument::Buffers(buffers)) if is_socket => buffers.concat(),
        _ => return 0,
    };
    let word: &[u8] = match subject.wire {
        Wire::Influx => b"HTTP/1.1 204",
        Wire::Rrdcached => b"0 errors, enqueued",
    };
    bytes.windows(word.len()).filter(|window| *window == word).count()
}

/// Endings of files that are written through a mapping, and of which a cut may leave any earlier
/// state: the index of SQLite's write-ahead log, which is made anew after a cut, and the count
/// beside a journal. The model leaves the count as `write` made it; later states of it are cut in
/// `crates/tsb-rrdcached/tests/cache_crash/power.rs`.
const MAPPED: [&str; 2] = ["-shm", ".journal.count"];

fn is_mapped(path: &Path) -> bool {
    let path = path.to_string_lossy();
    MAPPED.iter().any(|ending| path.ends_with(ending))
}

/// Whether writes to a mapped file below `root` matter and are not in the trace.
fn is_unseen(root: &Path, path: &Path) -> bool {
    path.starts_with(root) && !is_mapped(path)
}

/// Whether two folders hold the same files; those of [`MAPPED`] are left out.
fn compare(a: &Path, b: &Path) -> Result<()> {
    let mut names: Vec<_> = fs::read_dir(a)?
        .chain(fs::read_dir(b)?)
        .map(|entry| Ok(entry?.file_name()))
        .collect::<Result<_>>()?;
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (left, right) = (a.join(&name), b.join(&name));
        if is_mapped(&left) {
            continue;
        }
        if left.is_dir() {
            compare(&left, &right)?;
        } else if fs::read(&left).ok() != fs::read(&right).ok() {
            bail!("the model of the medium has another {}", left.display());
        }
    }
    Ok(())
}
