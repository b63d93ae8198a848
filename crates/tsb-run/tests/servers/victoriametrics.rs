//! VictoriaMetrics, killed, cut off, and with a password.

use std::process::Command;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::{Durability, SeriesId, Timestamp};
use tsb_run::spec::open;
use tsb_stores::conformance::libtest_mimic::{Failed, Trial};
use tsb_stores::{Scope, Store, StoreExt, TimeRange};

use crate::canary::{ImportRelay, finds_each_fault};
use crate::certificates::Certificates;
use crate::daemon::{Daemon, free_ports, output, until};
use crate::in_flight::{
    AROUND_OUTAGE_NS, PATIENCE_S, names_what_a_kill_took, names_what_was_lost_on_the_way, per_second,
};
use crate::life;
use crate::outage::{Outcome, nobody_answers, opened, outlives_every_manner, tick};
use crate::{Test, of_program, places};

pub(crate) fn trials() -> Vec<Trial> {
    let tests: &[(&str, Test)] = &[
        ("killed_and_restarted", killed),
        ("killed_in_the_middle_of_a_run", killed_in_a_run),
        ("lines_that_nobody_acknowledges", lines),
        ("a_canary_finds_what_a_relay_and_a_kill_did", canary),
        ("a_server_that_misbehaves", misbehaves),
        ("nobody_answers", |_| nobody_answers("victoriametrics")),
        ("a_password", password),
        ("tls", tls),
        ("a_place_from_its_making_to_its_removal", place),
        ("what_it_would_drop_is_refused", dropped),
    ];
    of_program(places::VICTORIAMETRICS, "TSB_TEST_VICTORIAMETRICS_PROGRAM", tests)
}

fn server(program: &str, options: &[&str]) -> Result<Daemon, Failed> {
    let [port] = free_ports()?;
    let program = program.to_owned();
    let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    let scheme = if options.iter().any(|option| option == "-tls") {
        "https"
    } else {
        "http"
    };
    let daemon = Daemon::start(port, move |folder| {
        let mut command = Command::new(&program);
        command.arg(format!("-storageDataPath={}", folder.join("data").display()));
        command.arg(format!("-httpListenAddr=127.0.0.1:{port}")).args(&options);
        command
    })?;
    until("it answers", || {
        output(Command::new("curl").args(["-sS", "--insecure", &format!("{scheme}://127.0.0.1:{port}/ping")]))
    })?;
    Ok(daemon)
}

/// Only who trusts its certificate opens a place.
fn tls(program: &str) -> Result<(), Failed> {
    let certificates = Certificates::make()?;
    let file = |name: &str| certificates.file(name).display().to_string();
    let (certificate, key) = (file("server.crt"), file("server.key"));
    let encrypted = [format!("-tlsCertFile={certificate}"), format!("-tlsKeyFile={key}")];
    let daemon = server(
        program,
        &["-tls", &encrypted[0], &encrypted[1], "-retentionPeriod=100y"],
    )?;
    let trust = format!("tls=1&tls_ca={}", file("ca.pem"));
    let store = opened(&spec(daemon.port(), &trust))?;
    tick(&*store, 1)?;
    if ticks(&*store, 1)? != [1] {
        return Err("the tick is not there".into());
    }
    for (options, words) in [
        ("tls=1".to_owned(), "invalid peer certificate"),
        (String::new(), "connection closed"),
        (format!("tls_ca={}", file("ca.pem")), "no effect without tls=1"),
    ] {
        let error = open(&spec(daemon.port(), &options)).err().ok_or("it is let in")?;
        if !tsb_stores::error::chain(&error).contains(words) {
            return Err(format!("{options}: {}", tsb_stores::error::chain(&error)).into());
        }
    }
    Ok(())
}

fn spec(port: u16, options: &str) -> String {
    format!("victoriametrics://127.0.0.1:{port}/hazard?{options}")
}

/// The ticks that are there of the first series, once the last of `number` is visible.
fn ticks(store: &dyn Store, number: i64) -> Result<Vec<i64>, Failed> {
    let at = |number: i64| Timestamp::from_secs(1_700_000_000 + number);
    until("it is visible", || {
        let samples = store.samples(SeriesId(0), TimeRange::ALL)?;
        if samples.last().is_some_and(|(last, _)| *last == at(number)) {
            return Ok(samples.iter().map(|(at, _)| at.as_secs() - 1_700_000_000).collect());
        }
        Err(format!("{} samples are there, not that of tick {number}", samples.len()).into())
    })
}

/// Lines of OpenTSDB, which the server takes without a word.
fn lines(program: &str) -> Result<(), Failed> {
    let [put] = free_ports()?;
    let listener = format!("-opentsdbListenAddr=127.0.0.1:{put}");
    let mut daemon = server(program, &["-retentionPeriod=100y", &listener])?;
    let spec = spec(daemon.port(), &format!("put=127.0.0.1:{put}&timeout=2s"));
    names_what_was_lost_on_the_way(&per_second(&spec, AROUND_OUTAGE_NS)?, || {
        daemon.kill()?;
        MonotonicClock::new().wait_until(2 * SECOND_NS);
        daemon.restart()
    })
}

/// Behind a relay that loses, alters and delays samples, and killed in the middle.
fn canary(program: &str) -> Result<(), Failed> {
    let mut daemon = server(program, &[])?;
    let relay = ImportRelay::to(daemon.port())?;
    let spec = spec(relay.port(), "timeout=2s");
    finds_each_fault(&spec, &relay, || {
        daemon.kill()?;
        daemon.restart()
    })
}

/// What was flushed before a kill is there afterwards; of what was not, any part may be.
fn killed(program: &str) -> Result<(), Failed> {
    let mut daemon = server(program, &["-retentionPeriod=100y"])?;
    let store = opened(&spec(daemon.port(), ""))?;
    for number in 0..100 {
        if tick(&*store, number)? != Outcome::Acknowledged {
            return Err(format!("tick {number} was not acknowledged").into());
        }
        if number == 59 {
            store.flush(Scope::All, Durability::Synced)?;
        }
    }
    daemon.kill()?;
    let (clock, mut number) = (MonotonicClock::new(), 100);
    let mut outcomes = vec![tick(&*store, number)?];
    daemon.restart()?;
    while outcomes.last() != Some(&Outcome::Acknowledged) {
        if clock.now() > 60 * SECOND_NS {
            return Err(format!("it does not write again: {outcomes:?}").into());
        }
        number += 1;
        outcomes.push(tick(&*store, number)?);
    }
    let there = ticks(&*store, number)?;
    let flushed: Vec<i64> = (0..60).collect();
    if there.get(..60) != Some(&flushed[..]) || outcomes[0] == Outcome::Acknowledged {
        return Err(format!("ticks {there:?} are there, outcomes {outcomes:?}").into());
    }
    println!(
        "victoriametrics: a kill took {} of 40 ticks that were not flushed",
        40 - (there.len() - 60).min(40)
    );
    Ok(())
}

fn killed_in_a_run(program: &str) -> Result<(), Failed> {
    let mut daemon = server(program, &[])?;
    let spec = spec(daemon.port(), &format!("timeout={PATIENCE_S}s"));
    names_what_a_kill_took(&spec, || {
        daemon.kill()?;
        MonotonicClock::new().wait_until(SECOND_NS);
        daemon.restart()
    })
}

fn misbehaves(program: &str) -> Result<(), Failed> {
    let daemon = server(program, &["-retentionPeriod=100y"])?;
    outlives_every_manner(daemon.port(), |port| spec(port, ""))
}

/// A server that asks who it is lets in who knows the password, and nobody else.
fn password(program: &str) -> Result<(), Failed> {
    let options = &[
        "-retentionPeriod=100y",
        "-httpAuth.username=root",
        "-httpAuth.password=hunter2",
    ];
    let daemon = server(program, options)?;
    let of = |credentials: &str| format!("victoriametrics://{credentials}127.0.0.1:{}/hazard?", daemon.port());
    let store = opened(&of("root:hunter2@")).map_err(|error| format!("{error:?}"))?;
    if tick(&*store, 1)? != Outcome::Acknowledged || ticks(&*store, 1)? != [1] {
        return Err("who may does not write and read".into());
    }
    for wrong in ["", "root:hunter234@"] {
        let error = open(&of(wrong)).err().ok_or("it is let in without the password")?;
        let words = format!("{error:?}");
        if words.contains("hunter") || !words.contains("401") {
            return Err(words.into());
        }
    }
    Ok(())
}

fn place(program: &str) -> Result<(), Failed> {
    let daemon = server(program, &[])?;
    life::of_a_place(&spec(daemon.port(), ""), |command| {
        output(Command::new("sh").args(["-c", command])).map(drop)
    })
}

/// A server with a retention of a month would drop these samples of 2023, and say nothing.
fn dropped(program: &str) -> Result<(), Failed> {
    let daemon = server(program, &[])?;
    let store = opened(&spec(daemon.port(), ""))?;
    let mut refused = tsb_stores::Refusals::new();
    let batch = tsb_core::Batch::tick(SeriesId(0), Timestamp::from_secs(1_700_000_000), &[1.0]);
    let ack = store.write(&batch, &mut refused)?;
    let reasons: Vec<_> = refused.as_slice().iter().map(|refusal| refusal.reason).collect();
    if ack.accepted == 0 && reasons == [tsb_stores::Reason::Expired] {
        return Ok(());
    }
    Err(format!("{ack:?}, {reasons:?}").into())
}
