//! A child writes until it is killed; the parent opens what it left.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tsb_core::Durability;
use tsb_core::time::{Clock, MonotonicClock};
use tsb_stores::Store;

use crate::script;

/// The argument that makes the program a child.
pub(crate) const CHILD: &str = "crash-child";

/// Writes, and says after each write how many are durable.
pub(crate) fn child(arguments: &[String]) {
    let [path, commit, synchronous, from] = arguments else {
        panic!("a child has four arguments");
    };
    let from: u64 = from.parse().unwrap();
    let options = script::options(commit, synchronous);
    // A kill loses no page of the operating system: that level is what counts.
    let level = Durability::Buffered;
    let store = script::open(Path::new(path), options).unwrap();
    let mut out = std::io::stdout().lock();
    for number in from..from + 1_000_000 {
        script::perform(&store, number).unwrap();
        // Positions count from the opening, as the writes of this child do.
        let durable = script::durable_writes(&store, from, number + 1, level);
        writeln!(out, "{} {durable}", number + 1).unwrap();
        out.flush().unwrap();
    }
}

/// Kills a child so many times, at a moment of its own each time.
pub(crate) fn rounds(commit: &str, synchronous: &str, rounds: u32) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.db");
    let (mut held_writes, mut widest) = (0, 0);
    for round in 0..rounds {
        let (begun, durable) = kill_one(&path, commit, synchronous, held_writes, round);
        let store = script::open(&path, script::options(commit, synchronous)).map_err(|error| format!("{error:?}"))?;
        let contents = script::read(&store).map_err(|error| format!("{error:?}"))?;
        store.close().map_err(|error| format!("{error:?}"))?;
        let whole = script::whole_writes(&contents, durable.max(held_writes), begun)
            .map_err(|what| format!("commit={commit} synchronous={synchronous}, kill {round}: {what}"))?;
        widest = widest.max(begun - 1 - whole.min(begun - 1));
        held_writes = whole;
    }
    let samples = widest * u64::from(script::SERIES / 4);
    println!(
        "commit={commit} synchronous={synchronous}: {rounds} kills, {held_writes} writes kept, widest loss window {widest} writes ({samples} samples)"
    );
    Ok(())
}

/// Lets a child write for a while; how many writes it can have begun, and how many it said
/// were durable.
fn kill_one(path: &Path, commit: &str, synchronous: &str, from: u64, round: u32) -> (u64, u64) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg(CHILD)
        .arg(path)
        .args([commit, synchronous, &from.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let clock = MonotonicClock::new();
    let wait = Duration::from_micros(u64::from(round.wrapping_mul(2_654_435_761) % 60_000));
    // The pipe holds thousands of lines: nobody waits for us.
    clock.wait_until(clock.now() + wait.as_nanos() as u64);
    child.kill().unwrap();
    let last = lines
        .map_while(Result::ok)
        .filter(|line| line.split(' ').count() == 2)
        .last();
    child.wait().unwrap();
    let last = last.unwrap_or(first);
    let (written, durable) = last.split_once(' ').unwrap();
    let (written, durable): (u64, u64) = (written.parse().unwrap(), durable.parse().unwrap());
    (written + 1, durable)
}
