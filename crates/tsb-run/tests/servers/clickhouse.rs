//! ClickHouse, killed, cut off, overloaded, and with a password.

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
        ("nobody_answers", |_| nobody_answers("clickhouse")),
        ("a_password", password),
        ("a_place_from_its_making_to_its_removal", place),
        ("too_many_parts_are_overload", too_many_parts),
        ("a_flush_to_synced_is_refused", synced),
        ("a_database_of_another_program_is_refused", of_another_program),
    ];
    of_program(places::CLICKHOUSE, "TSB_TEST_CLICKHOUSE_PROGRAM", tests)
}

/// The configuration of a server in a folder of its own. The limit of parts is what makes inserts fail.
fn configured(folder: &Path, [http, tcp]: [u16; 2], password: &str, parts_max: u32) -> std::io::Result<()> {
    let path = folder.display();
    let config = format!(
        "<yandex><logger><level>error</level><console>true</console></logger>\
         <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>\
         <path>{path}/data/</path><tmp_path>{path}/tmp/</tmp_path><mark_cache_size>67108864</mark_cache_size>\
         <users_config>users.xml</users_config><default_profile>default</default_profile>\
         <default_database>default</default_database>\
         <merge_tree><parts_to_delay_insert>{parts_max}</parts_to_delay_insert>\
         <parts_to_throw_insert>{parts_max}</parts_to_throw_insert></merge_tree></yandex>"
    );
    let users = format!(
        "<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default>\
         <password>{password}</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>\
         <quota>default</quota></default></users></yandex>"
    );
    std::fs::write(folder.join("config.xml"), config)?;
    std::fs::write(folder.join("users.xml"), users)
}

fn server_with(program: &str, password: &'static str, parts_max: u32) -> Result<Daemon, Failed> {
    let ports = free_ports::<2>()?;
    let program = program.to_owned();
    let daemon = Daemon::start(ports[0], move |folder| {
        let mut command = Command::new(&program);
        // Without its configuration the server ends at once, and says so.
        let _ = configured(folder, ports, password, parts_max);
        command.arg(format!("--config-file={}", folder.join("config.xml").display()));
        command
    })?;
    until("it answers", || {
        let url = format!("http://127.0.0.1:{}/ping", daemon.port());
        output(Command::new("curl").args(["-sS", "--fail", &url]))
    })?;
    Ok(daemon)
}

fn server(program: &str) -> Result<Daemon, Failed> {
    server_with(program, "", 300)
}

/// Runs a statement.
fn run(port: u16, statement: &str) -> Result<String, Failed> {
    let url = format!("http://127.0.0.1:{port}/");
    output(Command::new("curl").args(["-sS", "--fail", &url, "--data-binary", statement]))
}

fn spec(port: u16, options: &str) -> String {
    format!("clickhouse://127.0.0.1:{port}/hazard?{options}")
}

/// An ack is buffered: a kill of the process takes nothing.
fn killed(program: &str) -> Result<(), Failed> {
    let mut daemon = server(program)?;
    let store = opened(&spec(daemon.port(), ""))?;
    survives(&*store, Survivors::All, |clock| {
        daemon.kill()?;
        clock.wait_until(clock.now() + SECOND_NS);
        daemon.restart()
    })
}

fn killed_with_many_in_flight(program: &str) -> Result<(), Failed> {
    let mut daemon = server(program)?;
    let spec = spec(daemon.port(), &format!("timeout={PATIENCE_S}s"));
    outlives_a_kill(&spec, || {
        daemon.kill()?;
        MonotonicClock::new().wait_until(SECOND_NS);
        daemon.restart()
    })
}

fn misbehaves(program: &str) -> Result<(), Failed> {
    let daemon = server(program)?;
    outlives_every_manner(daemon.port(), |port| spec(port, ""))
}

/// A server with a password lets in who knows it, and nobody else.
fn password(program: &str) -> Result<(), Failed> {
    let daemon = server_with(program, "hunter2", 300)?;
    let of = |credentials: &str| format!("clickhouse://{credentials}127.0.0.1:{}/hazard?", daemon.port());
    let store = opened(&of("default:hunter2@"))?;
    if tick(&*store, 1)? != Outcome::Acknowledged || found(&*store)? != [1] {
        return Err("who may does not write and read".into());
    }
    for wrong in ["", "default:hunter234@"] {
        let error = open(&of(wrong)).err().ok_or("it is let in without the password")?;
        let words = format!("{error:?}");
        if words.contains("hunter") || !words.contains("assword") {
            return Err(words.into());
        }
    }
    Ok(())
}

fn place(program: &str) -> Result<(), Failed> {
    let daemon = server(program)?;
    life::of_a_place(&spec(daemon.port(), ""), |command| {
        output(Command::new("sh").args(["-c", command])).map(drop)
    })
}

/// A server that has more parts than it takes refuses a write, of which nothing is there.
fn too_many_parts(program: &str) -> Result<(), Failed> {
    let daemon = server_with(program, "", 2)?;
    let store = opened(&spec(daemon.port(), ""))?;
    run(daemon.port(), "SYSTEM STOP MERGES")?;
    let mut taken = Vec::new();
    for number in 0..10 {
        let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(1_700_000_000 + number), &[1.0]);
        match store.write(&batch, &mut Refusals::new()) {
            Ok(_) => taken.push(number),
            Err(Error::Overloaded { what, .. }) if what.contains("Too many parts") => {}
            Err(error) => return Err(format!("write {number}: {error:?}").into()),
        }
    }
    let samples = store.samples(SeriesId(0), TimeRange::ALL)?;
    let there: Vec<i64> = samples.iter().map(|(at, _)| at.as_secs() - 1_700_000_000).collect();
    if !taken.is_empty() && taken.len() < 10 && there == taken {
        return Ok(());
    }
    Err(format!("{taken:?} were taken, and {there:?} are there").into())
}

fn synced(program: &str) -> Result<(), Failed> {
    let daemon = server(program)?;
    let store = opened(&spec(daemon.port(), ""))?;
    match store.flush(Scope::All, Durability::Synced) {
        Err(Error::Unsupported { .. }) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn of_another_program(program: &str) -> Result<(), Failed> {
    let daemon = server(program)?;
    run(daemon.port(), "CREATE DATABASE hazard")?;
    run(daemon.port(), "CREATE TABLE hazard.theirs (x UInt8) ENGINE = TinyLog")?;
    let error = open(&spec(daemon.port(), "drop=1")).err().ok_or("it is opened")?;
    if !error.to_string().contains("\"theirs\"") {
        return Err(error.into());
    }
    run(daemon.port(), "SELECT count() FROM hazard.theirs").map(drop)
}
