//! Starts PostgreSQL as Debian packages it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Server, Site, ports};
use crate::ci;
use crate::shell::{capture, is_root, run};

/// Where Debian puts the programs of the server, which are not on the path.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// The user that the package brings. The server refuses to run as root.
const USER: &str = "postgres";

/// One server.
#[derive(Debug)]
pub(super) struct Postgres;

impl Server for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn install(&self) -> Result<()> {
        ci::require(&["postgresql-15", "postgresql-client-15"])
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let [port] = ports::free()?;
        let data = site.subfolder("data")?;
        if is_root()? {
            run(Command::new("chown").arg(format!("{USER}:")).arg(&data))?;
        }
        let mut initdb = unprivileged("initdb")?;
        initdb.arg("-D").arg(&data);
        initdb.args(["-U", "tsb", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        // It says much about what to do next.
        capture(&mut initdb).with_context(|| format!("cannot make a cluster in {}", data.display()))?;
        let mut server = unprivileged("postgres")?;
        server.arg("-D").arg(&data).args(["-p", &port.to_string()]);
        server.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        // Tests are many clients at once.
        server.args(["-c", "max_connections=300"]);
        site.spawn("postgres", &mut server, &[port])?;
        Ok(format!("postgres://tsb@127.0.0.1:{port}/tsb"))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let [port] = site.ports()[..] else {
            bail!("it has no port");
        };
        let ask = |database: &str, statement: &str| {
            let uri = format!("postgresql://tsb@127.0.0.1:{port}/{database}?connect_timeout=2");
            capture(Command::new("psql").args([&uri, "-v", "ON_ERROR_STOP=1", "-Atqc", statement]))
        };
        let there = ask("postgres", "SELECT count(*) FROM pg_database WHERE datname = 'tsb'")?;
        if there.trim() == "0" {
            ask("postgres", "CREATE DATABASE tsb")?;
        }
        let got = ask(
            "tsb",
            "CREATE TEMPORARY TABLE probe (v int4); INSERT INTO probe VALUES (42); SELECT v FROM probe",
        )?;
        if got.trim() != "42" {
            bail!("it answers {got:?}");
        }
        Ok(())
    }

    fn program(&self) -> Option<String> {
        let program = program("postgres");
        program.is_file().then(|| program.display().to_string())
    }
}

fn program(name: &str) -> PathBuf {
    Path::new(PROGRAMS).join(name)
}

/// A program of the server, as a user that it accepts.
fn unprivileged(name: &str) -> Result<Command> {
    if !is_root()? {
        return Ok(Command::new(program(name)));
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--init-groups"]);
    command.arg(program(name));
    // A folder that this user may not enter is an error before anything else is.
    command.current_dir("/");
    Ok(command)
}
