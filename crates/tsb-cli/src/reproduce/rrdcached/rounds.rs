//! The passes of one engine over all files: cold and crossing a step, warm within the step, then
//! warm and crossing the next.

use tsb_core::report::experiment::Round;
use tsb_core::time::{Clock, MonotonicClock};
use tsb_rrd::Session;

use super::bed::{Bed, STEP_S};
use super::way::{Kind, Way};
use super::{Tried, failed};

/// Makes all passes with one engine.
pub(super) fn of(way: &Way, bed: &mut Bed, clock: &MonotonicClock) -> Tried<Vec<Round>> {
    bed.align()?;
    bed.chill()?;
    let plan = [
        ("cold, across", STEP_S),
        ("warm, within", 1),
        ("warm, within", 1),
        ("warm, across", STEP_S),
    ];
    let mut speaker = (way.kind != Kind::Direct).then(|| way.connect()).transpose()?;
    let mut rounds = Vec::new();
    for (name, later_s) in plan {
        bed.turn(later_s);
        let resident = bed.resident();
        let (cpu, disk) = (way.cpu_ns(), way.disk_bytes());
        let started = clock.now();
        let (accepted, drained) = match &mut speaker {
            None => direct(bed, clock)?,
            Some(speaker) => through(speaker, way, bed, clock)?,
        };
        bed.sync()?;
        let synced = clock.now();
        let updates = bed.len() as f64;
        let disk_now = way.disk_bytes();
        let disk = disk.zip(disk_now).map(|(before, now)| {
            let per_update = |now: u64, before: u64| (now - before) as f64 / updates;
            (per_update(now.0, before.0), per_update(now.1, before.1))
        });
        let seconds = |from: u64, to: u64| (to - from) as f64 / 1e9;
        rounds.push(Round {
            files: bed.len(),
            way: way.kind.name().to_owned(),
            pass: name.to_owned(),
            crossing: if later_s == STEP_S { bed.len() } else { 0 },
            resident,
            accept_seconds: seconds(started, accepted),
            drain_seconds: seconds(accepted, drained),
            sync_seconds: seconds(drained, synced),
            cpu_us_per_update: (way.cpu_ns() - cpu) as f64 / 1e3 / updates,
            read_bytes_per_update: disk.map(|disk| disk.0),
            written_bytes_per_update: disk.map(|disk| disk.1),
        });
    }
    Ok(rounds)
}

fn direct(bed: &Bed, clock: &MonotonicClock) -> Tried<(u64, u64)> {
    let mut session = Session::default();
    for index in 0..bed.len() {
        bed.update(index, &mut session)?;
    }
    let done = clock.now();
    Ok((done, done))
}

/// Sends one update at a time and waits for its reply, as the publication's client did; then
/// requests a drain, which ends when the counters say so.
fn through(speaker: &mut super::speaker::Speaker, way: &Way, bed: &Bed, clock: &MonotonicClock) -> Tried<(u64, u64)> {
    let mut talk = || {
        let before = speaker.counters()?.values;
        for index in 0..bed.len() {
            let path = bed.path(index);
            speaker.ask(&["UPDATE", &path.to_string_lossy(), &bed.reading(index)])?;
        }
        let accepted = clock.now();
        speaker.ask(&["FLUSHALL"])?;
        speaker.await_written(before + bed.len() as u64)?;
        Ok((accepted, clock.now()))
    };
    talk().map_err(|error: std::io::Error| failed("talk to", &way.socket, &error))
}
