//! QuestDB, killed, cut off, and with a password.

use std::path::Path;
use std::process::Command;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::{Batch, Durability, SeriesId, Timestamp};
use tsb_run::spec::open;
use tsb_stores::conformance::libtest_mimic::{Failed, Trial};
use tsb_stores::{Error, Refusals, Scope, Store, StoreExt, TimeRange};

use crate::daemon::{Daemon, free_ports, output, until};
use crate::in_flight::{PATIENCE_S, outlives_a_kill};
use crate::life;
use crate::outage::{Outcome, Survivors, found, nobody_answers, opened, outlives_every_manner, survives, tick};
use crate::{Test, of_program, places};

pub(crate) fn trials() -> Vec<Trial> {
    let tests: &[(&str, Test)] = &[
        ("killed_and_restarted", killed),
        ("killed_with_many_in_flight", killed_with_many_in_flight),
        ("a_server_that_misbehaves", misbehaves),
        ("nobody_answers", |_| nobody_answers("questdb")),
        ("a_password", password),
        ("a_place_from_its_making_to_its_removal", place),
        ("a_flush_shows_what_was_acknowledged", flush),
        ("what_no_line_carries_is_refused", refused),
        ("tables_of_another_program_are_refused", of_another_program),
    ];
    of_program(places::QUESTDB, "TSB_TEST_QUESTDB_PROGRAM", tests)
}

/// The configuration of a server in a folder of its own.
fn configured(folder: &Path, port: u16, more: &str) -> std::io::Result<()> {
    let config = format!(
        "http.bind.to=127.0.0.1:{port}\nhttp.min.enabled=false\npg.enabled=false\nline.tcp.enabled=false\n\
         line.udp.enabled=false\ntelemetry.enabled=false\nshared.worker.count=2\n{more}"
    );
    std::fs::create_dir_all(folder.join("conf"))?;
    std::fs::write(folder.join("conf/server.conf"), config)
}

/// A server whose program is a jar.
fn server_with(jar: &str, more: &'static str) -> Result<Daemon, Failed> {
    let [port] = free_ports()?;
    let jar = jar.to_owned();
    let daemon = Daemon::start(port, move |folder| {
        let mut command = Command::new("java");
        // With a configuration that cannot be written, the server listens elsewhere, and the test fails.
        let _ = configured(folder, port, more);
        command.args([
            "-Xmx256m",
            "--add-exports",
            "java.base/jdk.internal.math=ALL-UNNAMED",
            "-cp",
            &jar,
        ]);
        command.args(["io.questdb.ServerMain", "-d"]).arg(folder);
        command
    })?;
    until("it answers", || {
        let url = format!("http://127.0.0.1:{}/settings", daemon.port());
        output(Command::new("curl").args(["-sS", "--fail", &url]))
    })?;
    Ok(daemon)
}

fn server(jar: &str) -> Result<Daemon, Failed> {
    server_with(jar, "")
}

/// Runs a statement.
fn run(port: u16, statement: &str) -> Result<String, Failed> {
    let url = format!("http://127.0.0.1:{port}/exec");
    let query = format!("query={statement}");
    output(Command::new("curl").args(["-sS", "--fail", "-G", &url, "--data-urlencode", &query]))
}

fn spec(port: u16, options: &str) -> String {
    format!("questdb://127.0.0.1:{port}/hazard?{options}")
}

/// An ack is buffered: a kill of the process takes nothing.
fn killed(jar: &str) -> Result<(), Failed> {
    let mut daemon = server(jar)?;
    let store = opened(&spec(daemon.port(), ""))?;
    survives(&*store, Survivors::All, |clock| {
        daemon.kill()?;
        clock.wait_until(clock.now() + SECOND_NS);
        daemon.restart()
    })
}

fn killed_with_many_in_flight(jar: &str) -> Result<(), Failed> {
    let mut daemon = server(jar)?;
    let spec = spec(daemon.port(), &format!("timeout={PATIENCE_S}s"));
    outlives_a_kill(&spec, || {
        daemon.kill()?;
        MonotonicClock::new().wait_until(SECOND_NS);
        daemon.restart()
    })
}

fn misbehaves(jar: &str) -> Result<(), Failed> {
    let daemon = server(jar)?;
    outlives_every_manner(daemon.port(), |port| spec(port, ""))
}

/// A server with a password lets in who knows it, and nobody else.
fn password(jar: &str) -> Result<(), Failed> {
    let daemon = server_with(jar, "http.user=me\nhttp.password=hunter2\n")?;
    let of = |credentials: &str| format!("questdb://{credentials}127.0.0.1:{}/hazard?", daemon.port());
    let store = opened(&of("me:hunter2@"))?;
    if tick(&*store, 1)? != Outcome::Acknowledged {
        return Err("who may does not write".into());
    }
    store.flush(Scope::All, Durability::Buffered)?;
    if found(&*store)? != [1] {
        return Err("who may does not read".into());
    }
    for wrong in ["", "me:hunter234@"] {
        let error = open(&of(wrong)).err().ok_or("it is let in without the password")?;
        let words = format!("{error:?}");
        if words.contains("hunter") || !words.contains("assword") {
            return Err(words.into());
        }
    }
    Ok(())
}

fn place(jar: &str) -> Result<(), Failed> {
    let daemon = server(jar)?;
    life::of_a_place(&spec(daemon.port(), ""), |command| {
        output(Command::new("sh").args(["-c", command])).map(drop)
    })
}

/// What was acknowledged before a flush is there after it, and a flush to the disk is refused.
fn flush(jar: &str) -> Result<(), Failed> {
    let daemon = server(jar)?;
    let store = opened(&spec(daemon.port(), ""))?;
    for number in 0..100 {
        tick(&*store, number)?;
        store.flush(Scope::All, Durability::Buffered)?;
        let there = found(&*store)?;
        if there.len() as i64 != number + 1 {
            return Err(format!("after tick {number}, {} are there", there.len()).into());
        }
    }
    match store.flush(Scope::All, Durability::Synced) {
        Err(Error::Unsupported { .. }) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// Of a batch, the samples that no line carries are refused, and the others are there.
fn refused(jar: &str) -> Result<(), Failed> {
    let daemon = server(jar)?;
    let store = opened(&spec(daemon.port(), ""))?;
    let values = [1.0, f64::NAN, f64::INFINITY, f64::from_bits(1)];
    let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(1), &values);
    let ack = store.write(&batch, &mut Refusals::new())?;
    let early = store.write(&Batch::tick(SeriesId(4), Timestamp(-1), &[1.0]), &mut Refusals::new())?;
    store.flush(Scope::All, Durability::Buffered)?;
    let there = |id| -> Result<Vec<f64>, Failed> {
        let samples = store.samples(SeriesId(id), TimeRange::ALL)?;
        Ok(samples.into_iter().map(|(_, value)| value).collect())
    };
    let found = (0..5).map(there).collect::<Result<Vec<_>, _>>()?;
    if found == [vec![1.0], vec![], vec![], vec![f64::from_bits(1)], vec![]] {
        return Ok(());
    }
    Err(format!("{ack:?}, {early:?}: {found:?}").into())
}

fn of_another_program(jar: &str) -> Result<(), Failed> {
    let daemon = server(jar)?;
    run(daemon.port(), "CREATE TABLE hazard_samples (x INT)")?;
    let error = open(&spec(daemon.port(), "drop=1")).err().ok_or("it is opened")?;
    if !error.to_string().contains("\"hazard_samples\"") {
        return Err(error.into());
    }
    run(daemon.port(), "SELECT count() FROM hazard_samples").map(drop)
}
