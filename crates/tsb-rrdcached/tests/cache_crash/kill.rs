//! A child writes until it is killed after so many acks; the parent opens what it left.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::script;

/// The argument that makes the program a child.
pub(crate) const CHILD: &str = "cache-crash-child";

/// Writes, and says each ack.
pub(crate) fn child(arguments: &[String]) {
    let [folder, policy] = arguments else {
        panic!("a child has two arguments");
    };
    let cache = script::cache(folder.as_ref(), policy).unwrap();
    script::define(&cache).unwrap();
    let mut out = std::io::stdout().lock();
    for number in 0..1_000_000_u64 {
        script::perform(&cache, number).unwrap();
        writeln!(out, "{}", number + 1).unwrap();
        out.flush().unwrap();
    }
}

/// Kills a child after so many acks, again and again: nothing that was acknowledged is lost.
pub(crate) fn rounds(policy: &str, acks: u64, rounds: u32) -> Result<(), String> {
    for round in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(CHILD)
            .arg(folder.path())
            .arg(policy)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let seen = lines.by_ref().take(acks as usize).count() as u64;
        child.kill().unwrap();
        // It wrote on until the kill reached it.
        let last = lines.filter_map(|line| line.parse::<u64>().ok()).last();
        child.wait().unwrap();
        let promised = last.unwrap_or(seen).max(seen);
        let what = |what: String| format!("policy {policy}, kill {round} after {promised} acks: {what}");
        let cache = script::cache(folder.path(), policy).map_err(|error| what(format!("{error:?}")))?;
        script::define(&cache).map_err(|error| what(format!("{error:?}")))?;
        script::check(&cache, &folder.path().join("files"), promised, promised + 1).map_err(what)?;
    }
    println!("policy {policy}: {rounds} kills after {acks} acks, nothing lost");
    Ok(())
}
