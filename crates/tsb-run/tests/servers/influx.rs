//! InfluxDB 1.x, killed, cut off, and with TLS and a password.

use std::path::Path;
use std::process::Command;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::spec::open;
use tsb_stores::conformance::libtest_mimic::{Failed, Trial};

use crate::certificates::Certificates;
use crate::daemon::{Daemon, free_ports, output, until};
use crate::in_flight::{PATIENCE_S, outlives_a_kill};
use crate::life;
use crate::outage::{Survivors, found, lets_in_only, nobody_answers, opened, outlives_every_manner, survives, tick};
use crate::{Test, of_program, places};

pub(crate) fn trials() -> Vec<Trial> {
    let tests: &[(&str, Test)] = &[
        ("killed_and_restarted", killed),
        ("killed_with_many_in_flight", killed_with_many_in_flight),
        ("a_server_that_misbehaves", misbehaves),
        ("nobody_answers", |_| nobody_answers("influx")),
        ("tls_and_a_password", tls_and_password),
        ("a_place_from_its_making_to_its_removal", place),
        ("series_are_found_only_where_they_were_written", measurement),
    ];
    of_program(places::INFLUX, "TSB_TEST_INFLUX_PROGRAM", tests)
}

/// The configuration of a server in a folder of its own; `http` is more of the section of its listener.
fn configured(folder: &Path, port: u16, rpc: u16, http: &str) -> std::io::Result<()> {
    let folder_of = |name: &str| folder.join(name).display().to_string();
    let text = format!(
        "reporting-disabled = true\nbind-address = \"127.0.0.1:{rpc}\"\n\
         [meta]\ndir = {:?}\n[data]\ndir = {:?}\nwal-dir = {:?}\n\
         [monitor]\nstore-enabled = false\n\
         [http]\nbind-address = \"127.0.0.1:{port}\"\nlog-enabled = false\n{http}\n",
        folder_of("meta"),
        folder_of("data"),
        folder_of("wal"),
    );
    std::fs::write(folder.join("influxdb.conf"), text)
}

fn server(program: &str, http: &str) -> Result<Daemon, Failed> {
    let [port, rpc] = free_ports()?;
    let (program, http) = (program.to_owned(), http.to_owned());
    let scheme = if http.contains("https-enabled") {
        "https"
    } else {
        "http"
    };
    let daemon = Daemon::start(port, move |folder| {
        let mut command = Command::new(&program);
        // Without its configuration the server ends at once, and says so.
        let _ = configured(folder, port, rpc, &http);
        command.arg("-config").arg(folder.join("influxdb.conf"));
        command
    })?;
    until("it answers", || {
        let url = format!("{scheme}://127.0.0.1:{port}/ping");
        output(Command::new("curl").args(["-sS", "--insecure", "--fail", &url]))
    })?;
    Ok(daemon)
}

fn spec(port: u16, options: &str) -> String {
    format!("influx://127.0.0.1:{port}/hazard?{options}")
}

fn killed(program: &str) -> Result<(), Failed> {
    let mut daemon = server(program, "")?;
    let store = opened(&spec(daemon.port(), ""))?;
    survives(&*store, Survivors::All, |clock| {
        daemon.kill()?;
        clock.wait_until(clock.now() + SECOND_NS);
        daemon.restart()
    })
}

fn killed_with_many_in_flight(program: &str) -> Result<(), Failed> {
    let mut daemon = server(program, "")?;
    let spec = spec(daemon.port(), &format!("timeout={PATIENCE_S}s"));
    outlives_a_kill(&spec, || {
        daemon.kill()?;
        MonotonicClock::new().wait_until(SECOND_NS);
        daemon.restart()
    })
}

fn misbehaves(program: &str) -> Result<(), Failed> {
    let daemon = server(program, "")?;
    outlives_every_manner(daemon.port(), |port| spec(port, ""))
}

fn tls_and_password(program: &str) -> Result<(), Failed> {
    let certificates = Certificates::make()?;
    let file = |name: &str| certificates.file(name).display().to_string();
    let daemon = server(
        program,
        &format!(
            "auth-enabled = true\nhttps-enabled = true\nhttps-certificate = {:?}\nhttps-private-key = {:?}",
            file("server.crt"),
            file("server.key")
        ),
    )?;
    let query = format!("https://127.0.0.1:{}/query", daemon.port());
    let create = "q=CREATE USER me WITH PASSWORD 'hunter2' WITH ALL PRIVILEGES";
    let authority = file("ca.pem");
    let arguments = [
        "-sS",
        "--fail",
        "--cacert",
        &authority,
        &query,
        "--data-urlencode",
        create,
    ];
    output(Command::new("curl").args(arguments))?;
    lets_in_only(&certificates, "me", "hunter2", |options| spec(daemon.port(), options))
}

/// A database holds series in one measurement or in many, and is opened as what it holds.
fn measurement(program: &str) -> Result<(), Failed> {
    let daemon = server(program, "")?;
    let (in_one, in_many) = (spec(daemon.port(), "measurement=all"), spec(daemon.port(), ""));
    for (spec, other, words) in [
        (&in_one, &in_many, "holds series in the measurement \"all\""),
        (&in_many, &in_one, "holds series in measurements of their own"),
    ] {
        let store = opened(&format!("{spec}&drop=1"))?;
        tick(&*store, 1)?;
        drop(store);
        if found(&*opened(spec)?)? != [1] {
            return Err(format!("{spec}: the tick is not there").into());
        }
        let error = open(other).err().ok_or("it is opened as what it is not")?;
        if !error.to_string().contains(words) {
            return Err(format!("{error}: not {words:?}").into());
        }
    }
    Ok(())
}

fn place(program: &str) -> Result<(), Failed> {
    let daemon = server(program, "")?;
    life::of_a_place(&spec(daemon.port(), ""), |command| {
        output(Command::new("sh").args(["-c", command])).map(drop)
    })
}
