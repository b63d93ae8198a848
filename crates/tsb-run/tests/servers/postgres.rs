//! PostgreSQL, killed, cut off, and behind TLS and a password.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_run::spec::open;
use tsb_stores::conformance::libtest_mimic::{Failed, Trial};
use tsb_stores::{Scope, StoreExt, TimeRange};

use crate::certificates::Certificates;
use crate::daemon::{Daemon, free_ports, output, until};
use crate::in_flight::{PATIENCE_S, is_whole_with_more, outlives_a_kill};
use crate::life;
use crate::outage::{Survivors, lets_in_only, nobody_answers, opened, outlives_every_manner, survives};
use crate::{Test, of_program, places};

/// The user that runs a server where these tests are run as root, which no server accepts.
const USER: &str = "postgres";
/// Those of a server whose password nobody needs.
const TRUST: &str = "host all all 127.0.0.1/32 trust\n";

pub(crate) fn trials() -> Vec<Trial> {
    let tests: &[(&str, Test)] = &[
        ("killed_and_restarted", killed),
        ("killed_with_volatile_acks", killed_with_volatile_acks),
        ("many_in_flight", many_in_flight),
        ("killed_with_many_in_flight", killed_with_many_in_flight),
        ("a_server_that_misbehaves", misbehaves),
        ("nobody_answers", |_| nobody_answers("postgres")),
        ("tls_and_a_password", tls_and_password),
        ("a_place_from_its_making_to_its_removal", place),
        ("settings_decide_what_an_ack_is_worth", settings),
        ("what_cannot_be_used_is_refused", refusals),
    ];
    of_program(places::POSTGRES, "TSB_TEST_POSTGRES_PROGRAM", tests)
}

/// A program beside the server's, as a user that it accepts.
fn command(program: &str, name: &str) -> Command {
    let program = Path::new(program).with_file_name(name);
    let is_root = fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0);
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--init-groups"]);
    command.arg(program).current_dir("/");
    command
}

/// A server with these settings, and who may connect.
fn start(program: &str, settings: &[&str], access: &str, files: &[PathBuf]) -> Result<Server, Failed> {
    let [port] = free_ports()?;
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    give(folder.path())?;
    let mut initdb = command(program, "initdb");
    initdb
        .arg("-D")
        .arg(&data)
        .args(["-U", "tsb", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
    output(&mut initdb)?;
    fs::write(data.join("pg_hba.conf"), access)?;
    for file in files {
        let copy = data.join(file.file_name().unwrap_or_default());
        fs::copy(file, &copy)?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o600))?;
        give(&copy)?;
    }
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let (program, place) = (program.to_owned(), data.clone());
    let daemon = Daemon::start(port, move |_| {
        let mut command = command(&program, "postgres");
        command.arg("-D").arg(&place).args(["-p", &port.to_string()]);
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        for setting in &settings {
            command.args(["-c", setting]);
        }
        command
    })?;
    daemon.await_listening()?;
    Ok(Server {
        daemon,
        data,
        _folder: folder,
    })
}

/// Gives a file to the user that runs the server.
fn give(path: &Path) -> Result<(), Failed> {
    let is_root = fs::metadata("/proc/self")?.uid() == 0;
    if is_root {
        output(Command::new("chown").arg(format!("{USER}:")).arg(path))?;
    }
    Ok(())
}

struct Server {
    // Dropped, and so ended, before its folder is.
    daemon: Daemon,
    data: PathBuf,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Kills the server, waits until its processes have noticed, and starts it again.
    fn kill_and_restart(&mut self) -> Result<(), Failed> {
        self.daemon.kill()?;
        until("its processes end", || {
            let works_there = |process: &fs::DirEntry| {
                let folder = fs::read_link(process.path().join("cwd"));
                folder.is_ok_and(|folder| folder == self.data)
            };
            match fs::read_dir("/proc")?.flatten().find(works_there) {
                None => Ok(()),
                Some(process) => Err(format!("{} works there", process.path().display()).into()),
            }
        })?;
        let clock = MonotonicClock::new();
        clock.wait_until(SECOND_NS);
        self.daemon.restart()
    }

    fn spec(&self, options: &str) -> String {
        spec(self.daemon.port(), options)
    }

    fn sql(&self, statement: &str) -> Result<String, Failed> {
        let uri = format!("postgresql://tsb@127.0.0.1:{}/postgres", self.daemon.port());
        output(Command::new("psql").args([&uri, "-Atqc", statement]))
    }
}

fn spec(port: u16, options: &str) -> String {
    format!("postgres://tsb@127.0.0.1:{port}/postgres?{options}")
}

fn plain(program: &str) -> Result<Server, Failed> {
    let server = start(program, &[], TRUST, &[])?;
    until("it answers", || server.sql("SELECT 1"))?;
    Ok(server)
}

fn killed(program: &str) -> Result<(), Failed> {
    let mut server = plain(program)?;
    let store = opened(&server.spec("write=copy"))?;
    survives(&*store, Survivors::All, |_| server.kill_and_restart())
}

/// A commit that does not wait for the log may be gone, and nothing before it.
fn killed_with_volatile_acks(program: &str) -> Result<(), Failed> {
    let mut server = plain(program)?;
    let store = opened(&server.spec("write=insert&synchronous_commit=off"))?;
    survives(&*store, Survivors::ButTheEnd, |_| server.kill_and_restart())
}

fn many_in_flight(program: &str) -> Result<(), Failed> {
    let server = plain(program)?;
    is_whole_with_more(|in_flight| server.spec(&format!("schema=flight{in_flight}")))
}

fn killed_with_many_in_flight(program: &str) -> Result<(), Failed> {
    let mut server = plain(program)?;
    let spec = server.spec(&format!("timeout={PATIENCE_S}s"));
    outlives_a_kill(&spec, || server.kill_and_restart())
}

fn misbehaves(program: &str) -> Result<(), Failed> {
    let server = plain(program)?;
    outlives_every_manner(server.daemon.port(), |port| spec(port, "schema=hazard"))
}

fn tls_and_password(program: &str) -> Result<(), Failed> {
    let certificates = Certificates::make()?;
    let files = [certificates.file("server.key"), certificates.file("server.crt")];
    // The administrator alone comes in without TLS.
    let access = "host all tsb 127.0.0.1/32 trust\nhostssl all me 127.0.0.1/32 scram-sha-256\n";
    let settings = ["ssl=on", "ssl_key_file=server.key", "ssl_cert_file=server.crt"];
    let server = start(program, &settings, access, &files)?;
    until("it answers", || server.sql("SELECT 1"))?;
    server.sql("CREATE ROLE me LOGIN PASSWORD 'hunter2'; GRANT CREATE ON DATABASE postgres TO me")?;
    let port = server.daemon.port();
    lets_in_only(&certificates, "me", "hunter2", |options| {
        // Without credentials the user is somebody else.
        format!("postgres://127.0.0.1:{port}/postgres?{options}")
    })
}

fn place(program: &str) -> Result<(), Failed> {
    let server = plain(program)?;
    life::of_a_place(&server.spec("schema=hazard"), |command| {
        output(Command::new("sh").env("PGUSER", "tsb").args(["-c", command])).map(drop)
    })
}

/// What a store says of its acks, and the level that a flush reaches.
fn settings(program: &str) -> Result<(), Failed> {
    let server = plain(program)?;
    let without_fsync = start(program, &["fsync=off"], TRUST, &[])?;
    until("it answers", || without_fsync.sql("SELECT 1"))?;
    let (volatile, buffered, synced) = (Durability::Volatile, Durability::Buffered, Durability::Synced);
    for (spec, acknowledges, reaches) in [
        (server.spec(""), synced, synced),
        (server.spec("schema=a&synchronous_commit=off"), volatile, synced),
        (without_fsync.spec(""), buffered, buffered),
        (
            without_fsync.spec("schema=a&synchronous_commit=off"),
            volatile,
            buffered,
        ),
    ] {
        let store = opened(&spec)?;
        let capabilities = store.capabilities();
        if (capabilities.acknowledges, capabilities.reaches) != (acknowledges, reaches) {
            return Err(format!("{spec}: {capabilities:?}").into());
        }
        let written = store.write_all(&Batch::tick(SeriesId(0), Timestamp(7), &[1.0]))?;
        store.flush(Scope::All, reaches)?;
        let is_above = store.flush(Scope::All, Durability::Synced).is_ok();
        if written.durability != acknowledges
            || store.durable(reaches) != written.position
            || is_above != (reaches == synced)
        {
            return Err(format!("{spec}: {written:?}, {:?} after a flush", store.durable(reaches)).into());
        }
        store.close()?;
    }
    Ok(())
}

/// Schemas and databases of others, and what a server does not have.
fn refusals(program: &str) -> Result<(), Failed> {
    let server = plain(program)?;
    server.sql("CREATE SCHEMA theirs; CREATE TABLE theirs.orders (id int4)")?;
    let fresh = opened(&server.spec("schema=mine"))?;
    let _ = fresh.write_all(&Batch::tick(SeriesId(0), Timestamp(7), &[1.0]))?;
    fresh.close()?;
    let port = server.daemon.port();
    for (spec, what) in [
        (server.spec("schema=theirs"), "holds orders, which no run made"),
        (server.spec("schema=theirs&drop=1"), "holds orders, which no run made"),
        (server.spec("schema=public"), "name a schema of your own"),
        (
            server.spec("schema=new&hypertable=1"),
            "which this server does not have",
        ),
        (server.spec("schema=mine&hypertable=1"), "holds a plain table"),
        (
            format!("postgres://tsb@127.0.0.1:{port}/nowhere"),
            "make it with createdb",
        ),
    ] {
        let error = open(&spec).err().ok_or_else(|| format!("{spec} is opened"))?;
        let said = format!("{error}: {}", sources(&error));
        if !said.contains(what) {
            return Err(format!("{spec}: {said}").into());
        }
    }
    let again = open(&server.spec("schema=mine"))?;
    again.define(&[(SeriesId(0), SeriesKey::new("s0"))])?;
    let there = again.samples(SeriesId(0), TimeRange::ALL)?;
    if there != [(Timestamp(7), 1.0)] || again.stats().samples != 1 {
        return Err(format!("{there:?}, {:?}", again.stats()).into());
    }
    Ok(())
}

fn sources(error: &dyn std::error::Error) -> String {
    error
        .source()
        .map_or(String::new(), |source| format!("{source}: {}", sources(source)))
}
