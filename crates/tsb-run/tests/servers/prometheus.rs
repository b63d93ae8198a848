//! Prometheus, killed, cut off, and with samples that are too old.

use std::path::Path;
use std::process::Command;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::{Batch, SeriesId, Timestamp};
use tsb_run::spec::open;
use tsb_stores::StoreExt;
use tsb_stores::conformance::libtest_mimic::{Failed, Trial};
use tsb_stores::error::chain;
use tsb_stores::store::{Reason, Refusals};

use crate::daemon::{Daemon, free_ports, output, until};
use crate::in_flight::{PATIENCE_S, is_whole_with_more, outlives_a_kill};
use crate::life;
use crate::outage::{Outcome, Survivors, nobody_answers, opened, outlives_every_manner, survives, tick};
use crate::{Test, of_program, places};

pub(crate) fn trials() -> Vec<Trial> {
    let tests: &[(&str, Test)] = &[
        ("killed_and_restarted", killed),
        ("many_in_flight", many_in_flight),
        ("killed_with_many_in_flight", killed_with_many_in_flight),
        ("a_server_that_misbehaves", misbehaves),
        ("nobody_answers", |_| nobody_answers("prometheus")),
        ("samples_too_old_for_the_server", too_old),
        ("a_server_without_a_receiver", without_a_receiver),
        ("a_place_from_its_making_to_its_removal", place),
        ("the_alerts_of_a_canary_are_rules", alerts),
    ];
    of_program(places::PROMETHEUS, "TSB_TEST_PROMETHEUS_PROGRAM", tests)
}

/// Its own tool reads the file of alerts that a user copies.
fn alerts(program: &str) -> Result<(), Failed> {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/canary/alerts.yml");
    let tool = Path::new(program).with_file_name("promtool");
    let said = output(Command::new(tool).args(["check", "rules"]).arg(rules))?;
    if !said.contains("SUCCESS: 6 rules found") {
        return Err(said.into());
    }
    Ok(())
}

fn command(program: &str, folder: &Path, port: u16, more: &[&str]) -> Command {
    let mut command = Command::new(program);
    // An empty configuration: it scrapes nothing, not even itself.
    command.arg("--config.file=/dev/null");
    command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    command.args(more);
    command
}

fn single(program: &str, more: &'static [&'static str]) -> Result<Daemon, Failed> {
    let [port] = free_ports()?;
    let program = program.to_owned();
    let daemon = Daemon::start(port, move |folder| command(&program, folder, port, more))?;
    let url = format!("http://127.0.0.1:{port}/-/ready");
    until("it is ready", || {
        output(Command::new("curl").args(["-sS", "--fail", "--max-time", "2", &url]))
    })?;
    Ok(daemon)
}

/// As a run needs it.
fn receiver(program: &str) -> Result<Daemon, Failed> {
    single(
        program,
        &["--web.enable-remote-write-receiver", "--web.enable-admin-api"],
    )
}

fn spec(port: u16) -> String {
    format!("prometheus://127.0.0.1:{port}/hazard")
}

fn killed(program: &str) -> Result<(), Failed> {
    let mut daemon = receiver(program)?;
    let store = opened(&spec(daemon.port()))?;
    survives(&*store, Survivors::All, |clock| {
        daemon.kill()?;
        clock.wait_until(clock.now() + SECOND_NS);
        daemon.restart()
    })
}

fn many_in_flight(program: &str) -> Result<(), Failed> {
    let daemon = receiver(program)?;
    is_whole_with_more(|in_flight| format!("prometheus://127.0.0.1:{}/flight{in_flight}", daemon.port()))
}

fn killed_with_many_in_flight(program: &str) -> Result<(), Failed> {
    let mut daemon = receiver(program)?;
    let spec = format!("{}?timeout={PATIENCE_S}s", spec(daemon.port()));
    outlives_a_kill(&spec, || {
        daemon.kill()?;
        let clock = MonotonicClock::new();
        clock.wait_until(SECOND_NS);
        daemon.restart()
    })
}

fn misbehaves(program: &str) -> Result<(), Failed> {
    let daemon = receiver(program)?;
    outlives_every_manner(daemon.port(), spec)
}

/// A sample two hours before the newest of the server is refused, although its series has none.
fn too_old(program: &str) -> Result<(), Failed> {
    let daemon = receiver(program)?;
    let store = opened(&spec(daemon.port()))?;
    if tick(&*store, 7_200)? != Outcome::Acknowledged {
        return Err("an empty server takes a sample of any time".into());
    }
    let mut refused = Refusals::new();
    let at = Timestamp::from_secs(1_700_000_000);
    // The series that have a sample have it later, so these are refused by the client; a client
    // that opens another place asks the server.
    let other = opened(&format!("prometheus://127.0.0.1:{}/other", daemon.port()))?;
    if other.capabilities().takes_back_ns != Some(3_600 * SECOND_NS as i64) {
        return Err(format!("{:?}", other.capabilities()).into());
    }
    let ack = other.write(&Batch::tick(SeriesId(0), at, &[1.0, 2.0]), &mut refused)?;
    let reasons: Vec<Reason> = refused.as_slice().iter().map(|refusal| refusal.reason).collect();
    if ack.accepted != 0 || reasons != [Reason::Late, Reason::Late] {
        return Err(format!("{ack:?}, {reasons:?}").into());
    }
    let again = other.write_all(&Batch::tick(SeriesId(0), at + 7_000 * SECOND_NS as i64, &[1.0, 2.0]))?;
    if again.accepted != 2 {
        return Err(format!("after a refusal: {again:?}").into());
    }
    Ok(())
}

fn without_a_receiver(program: &str) -> Result<(), Failed> {
    let daemon = single(program, &[])?;
    let error = open(&spec(daemon.port())).err();
    let said = chain(&error.ok_or("a server was opened that takes no remote write")?);
    if said.contains("--web.enable-remote-write-receiver") {
        Ok(())
    } else {
        Err(said.into())
    }
}

fn place(program: &str) -> Result<(), Failed> {
    let daemon = receiver(program)?;
    life::of_a_place(&spec(daemon.port()), |command| {
        output(Command::new("sh").args(["-c", command])).map(drop)
    })
}
