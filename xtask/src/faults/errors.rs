//! I/O errors: each system call on the files of a store fails in turn, once or permanently.
//!
//! strace injects the errors (`--inject`), so the program is the one that users have.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rustix::process::Signal;

use super::judge::{AllowedLoss, Outcome, SentTicks, examine};
use super::rng::Rng;
use super::service::{ProcessEnd, StartingProcess};
use super::trial::{Trial, TrialFolder};

/// Calls, and the errors that they may meet.
const FAILING: &[(&str, &[&str])] = &[
    ("openat", &["EIO", "ENOSPC", "EMFILE"]),
    ("write", &["EIO", "ENOSPC"]),
    ("writev", &["EIO", "ENOSPC"]),
    ("pwrite64", &["EIO", "ENOSPC"]),
    ("fsync", &["EIO", "ENOSPC"]),
    ("fdatasync", &["EIO", "ENOSPC"]),
    ("syncfs", &["EIO"]),
    ("ftruncate", &["EIO", "ENOSPC"]),
    ("fallocate", &["EIO", "ENOSPC"]),
    ("rename", &["EIO", "ENOSPC"]),
    ("unlink", &["EIO"]),
    ("close", &["EIO"]),
    ("mmap", &["ENOMEM"]),
    ("pread64", &["EIO"]),
    ("read", &["EIO"]),
    ("lseek", &["EIO"]),
    ("fcntl", &["EIO"]),
];
/// Ticks of the life that meets an error, and of the one before it.
const TICKS: u64 = 40;
/// The call that fails is drawn from this many first calls of its kind.
const FIRST_MAX: u64 = 60;

fn combination(round: u64) -> (&'static str, &'static str) {
    let all = FAILING
        .iter()
        .flat_map(|(call, errors)| errors.iter().map(move |error| (*call, *error)));
    let all: Vec<_> = all.collect();
    all[(round % all.len() as u64) as usize]
}

/// A life that meets an error, and a look at what it left.
pub(super) fn meet(trial: &Trial<'_>, seed: u64) -> Result<(Outcome, String)> {
    let mut rng = Rng::new(seed);
    let (call, error) = combination(seed);
    let first = 1 + rng.below(FIRST_MAX).min(rng.below(FIRST_MAX));
    let more = if rng.one_in(3) { "+" } else { "" };
    let how = format!("seed {seed}, {call} number {first}{more} of a thread fails with {error}");
    let place = TrialFolder::new(trial, "error", seed)?;
    let mut given = SentTicks::default();
    // A life without errors first, so that there is something to lose; not always.
    if rng.one_in(2) {
        live(trial, &place, &[], &mut given)?;
    }
    let mut around: Vec<String> = ["strace", "-f", "-qq", "-o", "/dev/null", "-e"]
        .map(str::to_owned)
        .into();
    around.push(format!("inject={call}:error={error}:when={first}{more}"));
    for path in paths(&place.root) {
        around.extend(["-P".to_owned(), path.to_string_lossy().into_owned()]);
    }
    let ended = live(trial, &place, &around, &mut given)?;
    given.faults.push(given.acked.len());
    let outcome = if ended.status.is_none() {
        Outcome::Hung(ended.complaint())
    } else if ended.has_panicked() {
        Outcome::Panicked(ended.complaint())
    } else {
        let allowed = AllowedLoss {
            keeps: trial.subject.after_kill,
            is_blind: false,
        };
        match examine(trial.program, trial.subject, &place.root, &mut given, allowed)? {
            Outcome::Whole if !ended.complaint().is_empty() => Outcome::WholeAndSaid(ended.complaint()),
            outcome => outcome,
        }
    };
    place.keep_if_wrong(&outcome);
    Ok((outcome, how))
}

/// Feeds one life until it ends or takes no more, and asks it to end.
fn live(trial: &Trial<'_>, place: &TrialFolder, around: &[String], given: &mut SentTicks) -> Result<ProcessEnd> {
    let service = match StartingProcess::spawn(trial.program, around, trial.subject, &place.root)?.listening()? {
        Ok(service) => service,
        Err(ended) => return Ok(ended),
    };
    if let Ok(mut client) = service.client(trial.subject) {
        for _ in 0..TICKS {
            let tick = given.next();
            let answer = client.send(tick);
            if !given.note(tick, &answer) {
                break;
            }
        }
    }
    Ok(service.stop(Signal::TERM))
}

/// The files of any store here, also those that it has yet to make.
fn paths(root: &Path) -> Vec<PathBuf> {
    let mut names: Vec<String> = [
        "m.db",
        "m.db-wal",
        "m.db-journal",
        "m.db-shm",
        "m.db-lock",
        "r",
        "j",
        "known",
        "known.new",
    ]
    .map(str::to_owned)
    .into();
    names.extend((1..60).map(|number| format!("j/tsb.journal.{number:010}")));
    for series in 0..super::stores::SERIES {
        names.extend([format!("r/s{series}.rrd"), format!("r/s{series}{{_field=v}}.rrd")]);
    }
    names.into_iter().map(|name| root.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_comes_up_with_every_error() {
        let all = FAILING.iter().map(|(_, errors)| errors.len()).sum::<usize>();
        let mut seen: Vec<_> = (0..all as u64).map(combination).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all);
        assert!(seen.contains(&("openat", "EMFILE")) && seen.contains(&("rename", "ENOSPC")));
        assert_eq!(combination(all as u64), combination(0));
    }
}
