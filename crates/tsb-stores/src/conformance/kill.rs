//! Kills: a second process writes until it is killed, and this one opens what it left.
//!
//! The check starts its own program again with arguments that no person types;
//! [`main`](super::main) and [`run`](super::run) recognise them, and write instead of
//! checking. A test target with a `main` of its own calls [`was_writer`] first.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};

use libtest_mimic::Arguments;
use tsb_core::Durability;

use super::cases::left::{Outlived, SERIES, Writer};
use super::failure::Failure;
use super::rng::Rng;
use super::{Context, Finding, Fixture};
use crate::store::Scope;

/// The filter that makes the program a writer.
const WRITER: &str = "tsb-conformance-writer";
/// What a process that is being started finds its parent's program by.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// Kills of one check.
const KILLS: u64 = 4;
/// The longest that a writer goes on if nobody kills it.
const MOST_WRITES: i64 = 1_000_000;

/// Whether `arguments` made this process a writer for one of `fixtures`. Then it has written
/// until it was killed, or could not, and has nothing else to do: return from `main`.
pub fn was_writer<F: Fixture>(arguments: &Arguments, fixtures: &[F]) -> bool {
    if arguments.filter.as_deref() != Some(WRITER) {
        return false;
    }
    if let [name, address, from] = arguments.skip.as_slice() {
        let said = match fixtures.iter().find(|fixture| fixture.name() == *name) {
            Some(fixture) => write_on(fixture, address, from.parse().unwrap_or_default())
                .err()
                .map(|failure| failure.to_string()),
            None => Some(format!("this program has no fixture {name}")),
        };
        if let Some(why) = said {
            let _ = writeln!(std::io::stdout(), "failed {why}");
        }
    }
    true
}

/// Writes, and says after each write how many are begun and how many are durable.
fn write_on(fixture: &impl Fixture, address: &str, from: i64) -> Result<(), Failure> {
    let place = fixture.place_at(address)?;
    let mut writer = Writer::after(&*place, Outlived::default().begun(from))?;
    let reaches = writer.store.capabilities().reaches;
    let mut out = std::io::stdout().lock();
    for number in 1..MOST_WRITES {
        writer.write()?;
        if number % 16 == 0 {
            writer.store.flush(Scope::All, reaches)?;
        }
        // A kill loses no page of the operating system: that level is what counts.
        let durable = writer.covered(Durability::Buffered);
        let said = writeln!(out, "wrote {} {durable}", writer.ticks()).and_then(|()| out.flush());
        said.map_err(|error| format!("cannot say it: {error}"))?;
    }
    Ok(())
}

/// The check.
pub(super) fn durable_survives(context: &Context) -> Result<Finding, Failure> {
    let place = context.fixture.place()?;
    let Some(address) = place.address() else {
        return Ok(Finding::NotShown("the place has no address for another process"));
    };
    let mut rng = Rng::new(7);
    let mut left = Outlived::default();
    let mut begun = 0;
    for kill in 0..KILLS {
        let lines = 1 + rng.below(100);
        let said = kill_one(&context.fixture.name(), &address, begun, lines)?;
        // One more may have been written, and not said.
        begun = said.wrote + 1;
        let opened = left.begun(begun).reopen(&*place, &[said.durable; SERIES]);
        left = opened
            .map_err(|what| format!("kill {kill}, after {lines} acks: {what}"))?
            .leave();
    }
    Ok(Finding::Holds)
}

/// What a writer said last.
#[derive(Clone, Copy, Debug)]
struct Said {
    wrote: i64,
    durable: i64,
}

/// Reads some lines of a writer, and kills it while it goes on.
fn kill_one(name: &str, address: &str, from: i64, lines: u64) -> Result<Said, Failure> {
    let words = |error: std::io::Error| Failure::from(format!("cannot run this program again: {error}"));
    let mut child = Command::new(THIS_PROGRAM)
        .args([WRITER, "--exact", "--skip", name, "--skip", address])
        .args(["--skip", &from.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(words)?;
    let out = child.stdout.take();
    let mut said = BufReader::new(out.ok_or_else(|| "a writer without an output".to_owned())?).lines();
    let mut last = Said {
        wrote: from,
        durable: 0,
    };
    let mut other = String::new();
    let mut take = |line: String| match parse(&line) {
        Some(said) => last = said,
        None => other = line,
    };
    said.by_ref()
        .take(lines as usize)
        .map_while(Result::ok)
        .for_each(&mut take);
    child.kill().map_err(words)?;
    // It wrote on until the kill reached it; a line that was cut off says nothing.
    let rest: Vec<String> = said.map_while(Result::ok).collect();
    rest.into_iter()
        .filter(|line| parse(line).is_some())
        .for_each(&mut take);
    child.wait().map_err(words)?;
    if last.wrote == from {
        return Err(format!(
            "the writer wrote nothing and said {other:?}; a `main` of its own has to call conformance::was_writer first"
        )
        .into());
    }
    Ok(last)
}

fn parse(line: &str) -> Option<Said> {
    let (wrote, durable) = line.strip_prefix("wrote ")?.split_once(' ')?;
    Some(Said {
        wrote: wrote.parse().ok()?,
        durable: durable.parse().ok()?,
    })
}
