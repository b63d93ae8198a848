//! Kill checks: a second process writes until it is killed, and this one checks what it left.
//!
//! The check starts its own program again with special arguments; [`main`](super::main) and
//! [`run`](super::run) recognize them, and write instead of checking. A test target with a `main`
//! of its own must call [`was_writer`] first.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};

use libtest_mimic::Arguments;
use tsb_core::Durability;

use super::cases::tick_writer::{SERIES, TickWriter, WrittenTicks};
use super::failure::Failure;
use super::rng::Rng;
use super::{CheckOutcome, Context, Fixture};
use crate::store::Scope;

/// The filter argument that turns the program into a writer.
const WRITER: &str = "tsb-conformance-writer";
/// The path by which a new process finds its parent's program.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// Number of kills per check.
const KILLS: u64 = 4;
/// Upper bound of a writer's writes, in case it is never killed.
const MOST_WRITES: i64 = 1_000_000;

/// Whether `arguments` made this process a writer for one of `fixtures`. If so, it has written
/// until it failed or reached its limit, and `main` must return.
pub fn was_writer<F: Fixture>(arguments: &Arguments, fixtures: &[F]) -> bool {
    if arguments.filter.as_deref() != Some(WRITER) {
        return false;
    }
    if let [name, address, from] = arguments.skip.as_slice() {
        let failure = match fixtures.iter().find(|fixture| fixture.name() == *name) {
            Some(fixture) => write_on(fixture, address, from.parse().unwrap_or_default())
                .err()
                .map(|failure| failure.to_string()),
            None => Some(format!("this program has no fixture {name}")),
        };
        if let Some(why) = failure {
            let _ = writeln!(std::io::stdout(), "failed {why}");
        }
    }
    true
}

/// Writes, and reports after each write how many ticks are written and how many are durable.
fn write_on(fixture: &impl Fixture, address: &str, from: i64) -> Result<(), Failure> {
    let place = fixture.place_at(address)?;
    let mut writer = TickWriter::after(&*place, WrittenTicks::default().begun(from))?;
    let reaches = writer.store.capabilities().reaches;
    let mut out = std::io::stdout().lock();
    for number in 1..MOST_WRITES {
        writer.write()?;
        if number % 16 == 0 {
            writer.store.flush(Scope::All, reaches)?;
        }
        // A kill loses no data of the operating system, so this level counts.
        let durable = writer.covered(Durability::Buffered);
        let reported = writeln!(out, "wrote {} {durable}", writer.ticks()).and_then(|()| out.flush());
        reported.map_err(|error| format!("cannot say it: {error}"))?;
    }
    Ok(())
}

/// The check.
pub(super) fn durable_survives(context: &Context) -> Result<CheckOutcome, Failure> {
    let place = context.fixture.place()?;
    let Some(address) = place.address() else {
        return Ok(CheckOutcome::NotShown("the place has no address for another process"));
    };
    let mut rng = Rng::new(7);
    let mut left = WrittenTicks::default();
    let mut begun = 0;
    for kill in 0..KILLS {
        let lines = 1 + rng.below(100);
        let report = kill_one(&context.fixture.name(), &address, begun, lines)?;
        // One more tick may have been written without a report.
        begun = report.wrote + 1;
        let opened = left.begun(begun).reopen(&*place, &[report.durable; SERIES]);
        left = opened
            .map_err(|what| format!("kill {kill}, after {lines} acks: {what}"))?
            .drop_unclosed();
    }
    Ok(CheckOutcome::Holds)
}

/// The last report of a writer.
#[derive(Clone, Copy, Debug)]
struct WriterReport {
    wrote: i64,
    durable: i64,
}

/// Reads some reports of a writer, and kills it while it goes on.
fn kill_one(name: &str, address: &str, from: i64, lines: u64) -> Result<WriterReport, Failure> {
    let words = |error: std::io::Error| Failure::from(format!("cannot run this program again: {error}"));
    let mut child = Command::new(THIS_PROGRAM)
        .args([WRITER, "--exact", "--skip", name, "--skip", address])
        .args(["--skip", &from.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(words)?;
    let out = child.stdout.take();
    let mut lines_of_child = BufReader::new(out.ok_or_else(|| "a writer without an output".to_owned())?).lines();
    let mut last = WriterReport {
        wrote: from,
        durable: 0,
    };
    let mut other = String::new();
    let mut take = |line: String| match parse(&line) {
        Some(report) => last = report,
        None => other = line,
    };
    lines_of_child
        .by_ref()
        .take(lines as usize)
        .map_while(Result::ok)
        .for_each(&mut take);
    child.kill().map_err(words)?;
    // It wrote on until the kill; an incomplete line is ignored.
    let rest: Vec<String> = lines_of_child.map_while(Result::ok).collect();
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

fn parse(line: &str) -> Option<WriterReport> {
    let (wrote, durable) = line.strip_prefix("wrote ")?.split_once(' ')?;
    Some(WriterReport {
        wrote: wrote.parse().ok()?,
        durable: durable.parse().ok()?,
    })
}
