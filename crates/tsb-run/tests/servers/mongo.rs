//! MongoDB, killed, cut off, and behind TLS and a password.

use std::path::Path;
use std::process::Command;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_remote::mongo::driver::bson::doc;
use tsb_stores::conformance::libtest_mimic::{Failed, Trial};

use crate::certificates::Certificates;
use crate::daemon::{Daemon, free_ports};
use crate::in_flight::{PATIENCE_S, is_whole_with_more, outlives_a_kill};
use crate::life;
use crate::outage::{
    HANDSHAKE_S, Outcome, Survivors, found, lets_in_only, nobody_answers, opened, opened_within, outlives_every_manner,
    survives, tick,
};
use crate::{Test, of_program, places};

mod driver;

pub(crate) fn trials() -> Vec<Trial> {
    let tests: &[(&str, Test)] = &[
        ("killed_and_restarted_at_j1", |program| {
            killed(program, "j=1", Survivors::All)
        }),
        ("killed_and_restarted_at_w1", |program| {
            killed(program, "j=0", Survivors::ButTheEnd)
        }),
        #[cfg(feature = "hosts")]
        ("hosts_report_together", hosts_report_together),
        ("many_in_flight", many_in_flight),
        ("killed_with_many_in_flight", killed_with_many_in_flight),
        ("the_primary_is_killed_at_majority", |program| {
            primary_killed(program, "w=majority", Survivors::All)
        }),
        ("the_primary_is_killed_at_w1", |program| {
            primary_killed(program, "w=1", Survivors::ButTheEnd)
        }),
        ("a_server_that_misbehaves", misbehaves),
        ("nobody_answers", |_| nobody_answers("mongo")),
        ("tls_and_a_password", tls_and_password),
        ("a_user_of_one_database", user_of_one_database),
        ("a_place_from_its_making_to_its_removal", place),
    ];
    of_program(places::MONGO, "TSB_TEST_MONGOD", tests)
}

fn command(program: &str, folder: &Path, port: u16) -> Command {
    let mut command = Command::new(program);
    command.arg("--dbpath").arg(folder);
    command.args(["--bind_ip", "127.0.0.1", "--nounixsocket", "--port", &port.to_string()]);
    command.args(["--wiredTigerCacheSizeGB", "0.25"]);
    command
}

fn start(program: &str, more: &[&str]) -> Result<Daemon, Failed> {
    let [port] = free_ports()?;
    let program = program.to_owned();
    let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
    Daemon::start(port, move |folder| {
        let mut command = command(&program, folder, port);
        command.args(&more);
        command
    })
}

fn single(program: &str) -> Result<Daemon, Failed> {
    let daemon = start(program, &[])?;
    daemon.await_listening()?;
    Ok(daemon)
}

fn spec(ports: &[u16], options: &str) -> String {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("mongo://{}/hazard?layout=ticks&{options}", hosts.join(","))
}

/// Killed while ticks are written, and started again: the same client goes on. What `j=1`
/// acknowledged is there; at `w=1` the last tenth of a second may be gone, and nothing else.
fn killed(program: &str, options: &str, survivors: Survivors) -> Result<(), Failed> {
    let mut daemon = single(program)?;
    let store = opened(&spec(&[daemon.port()], options))?;
    survives(&*store, survivors, |clock| {
        daemon.kill()?;
        clock.wait_until(clock.now() + SECOND_NS);
        daemon.restart()
    })
}

#[cfg(feature = "hosts")]
fn hosts_report_together(program: &str) -> Result<(), Failed> {
    let daemon = single(program)?;
    let folder = tempfile::tempdir()?;
    let place = |name: &str| format!("mongo://127.0.0.1:{}/{name}", daemon.port());
    let address = format!("folder:{}", folder.path().display());
    crate::hosts::report_together(&place("several"), &place("one"), &address)
}

fn many_in_flight(program: &str) -> Result<(), Failed> {
    let daemon = single(program)?;
    is_whole_with_more(|in_flight| format!("mongo://127.0.0.1:{}/flight{in_flight}?layout=ticks", daemon.port()))
}

fn killed_with_many_in_flight(program: &str) -> Result<(), Failed> {
    let mut daemon = single(program)?;
    let spec = spec(&[daemon.port()], &format!("j=1&timeout={PATIENCE_S}s"));
    outlives_a_kill(&spec, || {
        daemon.kill()?;
        let clock = MonotonicClock::new();
        clock.wait_until(SECOND_NS);
        daemon.restart()
    })
}

/// The primary of a replica set is gone for good: the other two choose one of them, and what
/// only the dead one had is lost, unless a majority had to have it.
fn primary_killed(program: &str, options: &str, survivors: Survivors) -> Result<(), Failed> {
    let member = |_| start(program, &["--replSet", "hazard", "--oplogSize", "64"]);
    let mut daemons = (0..3).map(member).collect::<Result<Vec<_>, _>>()?;
    for daemon in &daemons {
        daemon.await_listening()?;
    }
    let ports: Vec<u16> = daemons.iter().map(Daemon::port).collect();
    driver::initiate(&ports)?;
    let store = opened(&spec(&ports, &format!("replica_set=hazard&{options}")))?;
    let primary = driver::primary(&ports)?;
    survives(&*store, survivors, |_| daemons[primary].kill())
}

fn misbehaves(program: &str) -> Result<(), Failed> {
    let daemon = single(program)?;
    outlives_every_manner(daemon.port(), |port| spec(&[port], "j=1"))
}

fn tls_and_password(program: &str) -> Result<(), Failed> {
    let certificates = Certificates::make()?;
    let pem = certificates.file("server.pem").display().to_string();
    let daemon = start(
        program,
        &["--auth", "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", &pem],
    )?;
    daemon.await_listening()?;
    let authority = certificates.authority().display().to_string();
    let tls = format!("&tls=true&tlsCAFile={authority}");
    driver::create_root(daemon.port(), &tls, ("me", "hunter2"))?;
    lets_in_only(&certificates, "me", "hunter2", |options| {
        spec(&[daemon.port()], options)
    })
}

/// The shell of MongoDB is no part of the server, so its driver does here what the command says.
fn place(program: &str) -> Result<(), Failed> {
    let daemon = single(program)?;
    let spec = spec(&[daemon.port()], "");
    life::of_a_place(&spec, |command| {
        let uri = format!("mongodb://127.0.0.1:{}/hazard", daemon.port());
        if command != format!("mongosh '{uri}' --eval 'db.dropDatabase()'") {
            return Err(format!("another command: {command}").into());
        }
        driver::drop_database(daemon.port(), "hazard")
    })
}

/// Who may not touch the server's own collections gets the other index of a time-series
/// collection, and writes and reads all the same.
fn user_of_one_database(program: &str) -> Result<(), Failed> {
    let certificates = Certificates::make()?;
    let daemon = start(program, &["--auth"])?;
    daemon.await_listening()?;
    let (root, me) = (("root", "hunter1"), ("me", "hunter2"));
    driver::create_root(daemon.port(), "", root)?;
    driver::create_writer(daemon.port(), root, me, "hazard")?;
    let credentials = certificates.credentials("right", "me:hunter2")?;
    let spec = format!(
        "mongo://127.0.0.1:{}/hazard?layout=series&credentials={credentials}",
        daemon.port()
    );
    let store = opened_within(&spec, HANDSHAKE_S)?;
    if tick(&*store, 1)? != Outcome::Acknowledged || found(&*store)? != [1] {
        return Err("who may does not write and read".into());
    }
    let keys = driver::index_keys(daemon.port(), me, "hazard", "samples")?;
    if keys.contains(&doc! { "s": 1, "t": 1 }) {
        Ok(())
    } else {
        Err(format!("the indexes are on {keys:?}").into())
    }
}
