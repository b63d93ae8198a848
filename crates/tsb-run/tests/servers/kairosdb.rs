//! KairosDB on H2, killed, cut off, and beside another program's metrics.

use std::process::Command;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::{Batch, SeriesId, Timestamp};
use tsb_run::spec::open;
use tsb_stores::conformance::libtest_mimic::{Failed, Trial};
use tsb_stores::{Refusals, Store, StoreExt, TimeRange};

use crate::daemon::{Daemon, free_ports, output, until};
use crate::in_flight::{
    AROUND_OUTAGE_NS, PATIENCE_S, names_what_a_kill_took, names_what_was_lost_on_the_way, per_second,
};
use crate::outage::{Survivors, nobody_answers, opened, outlives_every_manner, survives_in_parts};
use crate::{Test, of_program, places};

pub(crate) fn trials() -> Vec<Trial> {
    let tests: &[(&str, Test)] = &[
        ("killed_and_restarted", killed),
        ("killed_with_many_in_flight", killed_with_many_in_flight),
        ("lines_that_nobody_acknowledges", lines),
        ("a_server_that_misbehaves", misbehaves),
        ("nobody_answers", |_| nobody_answers("kairosdb")),
        ("what_json_cannot_hold_is_refused", refused),
        ("metrics_of_another_program_are_refused", of_another_program),
    ];
    of_program(places::KAIROSDB, "TSB_TEST_KAIROSDB_PROGRAM", tests)
}

/// A server whose program is a file with arguments of Java.
fn server(arguments: &str) -> Result<Daemon, Failed> {
    server_with(arguments, "service.telnet: \"<disabled>\"")
}

/// A server with one more line in its configuration.
fn server_with(arguments: &str, line: &str) -> Result<Daemon, Failed> {
    let [port] = free_ports()?;
    let line = line.to_owned();
    let arguments = format!("@{arguments}");
    let daemon = Daemon::start(port, move |folder| {
        let conf = folder.join("kairosdb.conf");
        let text = format!(
            "kairosdb: {{\n{line}\njetty.port: {port}\njetty.address: \"127.0.0.1\"\n\
             datastore.h2.database_path: \"{0}/h2\"\nqueue_processor.queue_path: \"{0}/queue\"\n\
             query_cache.cache_dir: \"{0}/cache\"\n}}\n",
            folder.display()
        );
        // Without a configuration, the server listens elsewhere, and the test fails.
        let _ = std::fs::write(&conf, text);
        let mut command = Command::new("java");
        command.args([&arguments, "-Xmx512m", "org.kairosdb.core.Main", "-c", "run", "-p"]);
        command.arg(conf).current_dir(folder);
        command
    })?;
    answers(&daemon)?;
    Ok(daemon)
}

fn answers(daemon: &Daemon) -> Result<(), Failed> {
    until("it answers", || {
        let url = url(daemon.port(), "version");
        output(Command::new("curl").args(["-sS", "--fail", &url]))
    })
    .map(drop)
}

fn url(port: u16, path: &str) -> String {
    format!("http://127.0.0.1:{port}/api/v1/{path}")
}

fn spec(port: u16, options: &str) -> String {
    format!("kairosdb://127.0.0.1:{port}/hazard?{options}")
}

/// An ack is volatile: a kill of the process may take the end of what was acknowledged.
fn killed(arguments: &str) -> Result<(), Failed> {
    let mut daemon = server(arguments)?;
    let store = opened(&spec(daemon.port(), ""))?;
    survives_in_parts(&*store, Survivors::ButTheEnd, |_| {
        daemon.kill()?;
        daemon.restart()?;
        answers(&daemon)
    })
}

/// Lines of the telnet protocol, which the server takes without a word.
fn lines(arguments: &str) -> Result<(), Failed> {
    let [put] = free_ports()?;
    let listener = format!("telnetserver.port: {put}\ntelnetserver.address: \"127.0.0.1\"");
    let mut daemon = server_with(arguments, &listener)?;
    let spec = spec(daemon.port(), &format!("put=127.0.0.1:{put}&timeout=2s"));
    names_what_was_lost_on_the_way(&per_second(&spec, AROUND_OUTAGE_NS)?, || {
        daemon.kill()?;
        MonotonicClock::new().wait_until(2 * SECOND_NS);
        daemon.restart()?;
        answers(&daemon)
    })
}

fn killed_with_many_in_flight(arguments: &str) -> Result<(), Failed> {
    let mut daemon = server(arguments)?;
    let spec = spec(daemon.port(), &format!("timeout={PATIENCE_S}s"));
    names_what_a_kill_took(&spec, || {
        daemon.kill()?;
        daemon.restart()?;
        answers(&daemon)
    })
}

fn misbehaves(arguments: &str) -> Result<(), Failed> {
    let daemon = server(arguments)?;
    outlives_every_manner(daemon.port(), |port| spec(port, ""))
}

/// Of a batch, the samples that JSON or milliseconds cannot hold are refused, and the others are there.
fn refused(arguments: &str) -> Result<(), Failed> {
    let daemon = server(arguments)?;
    let store = opened(&spec(daemon.port(), ""))?;
    let values = [1.0, f64::NAN, f64::INFINITY, f64::from_bits(1), -0.0];
    let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(1), &values);
    let ack = store.write(&batch, &mut Refusals::new())?;
    let odd = store.write(&Batch::tick(SeriesId(5), Timestamp(1), &[1.0]), &mut Refusals::new())?;
    let expected: [&[f64]; 6] = [&[1.0], &[], &[], &[f64::from_bits(1)], &[-0.0], &[]];
    until("what was taken is there", || {
        let there = |id| -> Result<Vec<u64>, Failed> {
            let samples = store.samples(SeriesId(id), TimeRange::ALL)?;
            Ok(samples.into_iter().map(|(_, value)| value.to_bits()).collect())
        };
        let found = (0..6).map(there).collect::<Result<Vec<_>, _>>()?;
        let wanted = expected.map(|values| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>());
        if found == wanted {
            return Ok(());
        }
        Err(format!("{ack:?}, {odd:?}: {found:?}").into())
    })
}

fn of_another_program(arguments: &str) -> Result<(), Failed> {
    let daemon = server(arguments)?;
    let curl = |path: &str, body: &str| {
        let url = url(daemon.port(), path);
        output(Command::new("curl").args(["-sS", "--fail", &url, "--data", body]))
    };
    curl(
        "datapoints",
        r#"[{"name":"hazard.theirs","datapoints":[[1,42.5]],"tags":{"a":"b"}}]"#,
    )?;
    let theirs = || {
        curl(
            "datapoints/query",
            r#"{"start_absolute":0,"end_absolute":9,"metrics":[{"name":"hazard.theirs"}]}"#,
        )
    };
    let is_there = |answer: String| {
        if answer.contains("[1,42.5]") {
            Ok(())
        } else {
            Err(Failed::from(answer))
        }
    };
    until("their sample is there", || is_there(theirs()?))?;
    let error = open(&spec(daemon.port(), "drop=1")).err().ok_or("it is opened")?;
    if !error.to_string().contains("\"hazard.theirs\"") {
        return Err(error.into());
    }
    is_there(theirs()?)
}
