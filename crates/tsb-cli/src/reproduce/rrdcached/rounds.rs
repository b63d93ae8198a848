//! The passes of one engine over all files, cold and warm, within a step and crossing one.
//! They are one turn of the engine in a round.

use tsb_core::report::experiment::rrdcached::Round;
use tsb_core::time::{Clock, MonotonicClock};
use tsb_rrd::Session;

use super::engine::{Engine, EngineKind};
use super::testbed::{STEP_S, Testbed};
use super::{Result, failed};

/// Makes all passes of one engine in one round.
pub(super) fn of(engine: &Engine, testbed: &mut Testbed, clock: &MonotonicClock, round: u32) -> Result<Vec<Round>> {
    testbed.align()?;
    testbed.drop_from_page_cache()?;
    let plan = [
        ("cold, across", STEP_S),
        ("warm, within", 1),
        ("warm, within", 1),
        ("warm, across", STEP_S),
    ];
    let mut client = engine.kind.is_server().then(|| engine.connect()).transpose()?;
    let mut rounds = Vec::new();
    for (nth, (name, later_s)) in plan.into_iter().enumerate() {
        testbed.begin_pass(later_s);
        let resident = testbed.resident();
        let (cpu, disk) = (engine.cpu_ns(), engine.disk_bytes());
        let started = clock.now();
        let (accepted, drained) = match &mut client {
            None => direct(engine.kind, testbed, clock)?,
            Some(client) => through(client, engine, testbed, clock)?,
        };
        testbed.sync()?;
        let synced = clock.now();
        let updates = testbed.len() as f64;
        let disk_now = engine.disk_bytes();
        let disk = disk.zip(disk_now).map(|(before, now)| {
            let per_update = |now: u64, before: u64| (now - before) as f64 / updates;
            (per_update(now.0, before.0), per_update(now.1, before.1))
        });
        let seconds = |from: u64, to: u64| (to - from) as f64 / 1e9;
        rounds.push(Round {
            files: testbed.len(),
            way: engine.kind.name().to_owned(),
            round,
            nth,
            pass: name.to_owned(),
            crossing: if later_s == STEP_S { testbed.len() } else { 0 },
            resident,
            accept_seconds: seconds(started, accepted),
            drain_seconds: seconds(accepted, drained),
            sync_seconds: seconds(drained, synced),
            cpu_us_per_update: (engine.cpu_ns() - cpu) as f64 / 1e3 / updates,
            read_bytes_per_update: disk.map(|disk| disk.0),
            written_bytes_per_update: disk.map(|disk| disk.1),
        });
    }
    Ok(rounds)
}

fn direct(kind: EngineKind, testbed: &Testbed, clock: &MonotonicClock) -> Result<(u64, u64)> {
    let mut session = Session::default();
    for index in 0..testbed.len() {
        match kind {
            #[cfg(feature = "librrd")]
            EngineKind::Librrd => testbed.update_with_librrd(index)?,
            _ => testbed.update(index, &mut session)?,
        }
    }
    let done = clock.now();
    Ok((done, done))
}

/// Sends one update at a time and waits for its reply, as the publication's client did; then
/// requests a drain, which ends when the counters say so.
fn through(
    client: &mut super::client::Client,
    engine: &Engine,
    testbed: &Testbed,
    clock: &MonotonicClock,
) -> Result<(u64, u64)> {
    let mut talk = || {
        let before = client.counters()?.values;
        for index in 0..testbed.len() {
            let path = testbed.path(index);
            client.ask(&["UPDATE", &path.to_string_lossy(), &testbed.update_text(index)])?;
        }
        let accepted = clock.now();
        client.ask(&["FLUSHALL"])?;
        client.await_written(before + testbed.len() as u64)?;
        Ok((accepted, clock.now()))
    };
    talk().map_err(|error: std::io::Error| failed("talk to", &engine.socket, &error))
}
