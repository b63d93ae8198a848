//! Cassandra, killed, cut off, and with a password.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;

use tsb_core::Durability;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::spec::open;
use tsb_stores::conformance::libtest_mimic::{Failed, Trial};
use tsb_stores::{Error, Scope, Store};

use crate::daemon::{Daemon, free_ports, output, until};
use crate::in_flight::{PATIENCE_S, outlives_a_kill};
use crate::life;
use crate::outage::{
    Outcome, Survivors, found, nobody_answers, opened, opened_within, outlives_every_manner, survives_in_parts, tick,
};
use crate::{Test, of_program, places};

mod three;

pub(crate) fn trials() -> Vec<Trial> {
    let tests: &[(&str, Test)] = &[
        ("killed_while_the_commit_log_is_synced_later", killed),
        ("killed_after_each_write_was_synced", killed_synced),
        ("killed_with_many_in_flight", killed_with_many_in_flight),
        ("a_server_that_misbehaves", misbehaves),
        ("nobody_answers", |_| nobody_answers("cassandra")),
        ("a_password", password),
        ("a_place_from_its_making_to_its_removal", place),
        ("tables_of_another_program_are_refused", of_another_program),
        ("what_does_not_fit_the_keyspace_is_refused", unfitting),
        ("a_node_of_three_is_killed", three::a_node_is_killed),
    ];
    of_program(places::CASSANDRA, "TSB_TEST_CASSANDRA_PROGRAM", tests)
}

/// When the commit log is synced: what Cassandra's own configuration has.
const PERIODIC: &[&str] = &[
    "-Dcassandra.settings.commitlog_sync=periodic",
    "-Dcassandra.settings.commitlog_sync_period=10000ms",
];

/// Each write waits for it, which may be that of several.
const GROUP: &[&str] = &[
    "-Dcassandra.settings.commitlog_sync=group",
    "-Dcassandra.settings.commitlog_sync_group_window=10ms",
];

/// A node whose program is a file with arguments of Java.
struct Node {
    daemon: Daemon,
    /// Cassandra's own shell.
    shell: PathBuf,
}

impl Node {
    /// A node with more of Java's properties.
    fn start(arguments: &str, properties: &'static [&'static str]) -> Result<Self, Failed> {
        Self::start_at(Ipv4Addr::LOCALHOST, free_ports()?, arguments, properties)
    }

    /// A node at an address and two ports, for clients and for other nodes.
    fn start_at(
        address: Ipv4Addr,
        [port, storage_port]: [u16; 2],
        arguments: &str,
        properties: &'static [&'static str],
    ) -> Result<Self, Failed> {
        let folder = Path::new(arguments).parent().ok_or("the program has no folder")?;
        let shell = folder.join("shell/bin/cqlsh");
        let arguments = format!("@{arguments}");
        let daemon = Daemon::start_at(SocketAddrV4::new(address, port), move |folder| {
            let mut command = Command::new("java");
            command.arg(&arguments).arg("-Xmx512m");
            command.arg(format!("-Dcassandra.storagedir={}", folder.display()));
            command.arg(format!("-Dcassandra.native_transport_port={port}"));
            command.arg(format!("-Dcassandra.storage_port={storage_port}"));
            command.arg(format!("-Dcassandra.settings.listen_address={address}"));
            command.arg(format!("-Dcassandra.settings.rpc_address={address}"));
            // There is nothing yet that a node would have to fetch from others.
            command.arg("-Dcassandra.settings.auto_bootstrap=false");
            command
                .args(properties)
                .arg("org.apache.cassandra.service.CassandraDaemon");
            command
        })?;
        daemon.await_listening()?;
        Ok(Self { daemon, shell })
    }

    fn spec(&self, options: &str) -> String {
        spec(self.daemon.port(), options)
    }

    /// Runs statements.
    fn run(&self, statements: &str) -> Result<String, Failed> {
        let port = self.daemon.port().to_string();
        output(Command::new(&self.shell).args(["127.0.0.1", &port, "-e", statements]))
    }

    fn kill_and_restart(&mut self) -> Result<(), Failed> {
        self.daemon.kill()?;
        MonotonicClock::new().wait_until(SECOND_NS);
        self.daemon.restart()
    }
}

fn spec(port: u16, options: &str) -> String {
    format!("cassandra://127.0.0.1:{port}/hazard?{options}")
}

/// An ack is volatile: a kill of the process may take the end of what was acknowledged.
fn killed(arguments: &str) -> Result<(), Failed> {
    let mut node = Node::start(arguments, PERIODIC)?;
    let store = opened(&node.spec(""))?;
    is_acknowledged(&*store, Durability::Volatile)?;
    survives_in_parts(&*store, Survivors::ButTheEnd, |_| node.kill_and_restart())
}

/// Each write waits until the commit log is synced: a kill takes nothing.
fn killed_synced(arguments: &str) -> Result<(), Failed> {
    let mut node = Node::start(arguments, GROUP)?;
    let store = opened(&node.spec(""))?;
    is_acknowledged(&*store, Durability::Synced)?;
    survives_in_parts(&*store, Survivors::All, |_| node.kill_and_restart())
}

fn is_acknowledged(store: &dyn Store, level: Durability) -> Result<(), Failed> {
    let claimed = store.capabilities().acknowledges;
    if claimed == level {
        Ok(())
    } else {
        Err(format!("an ack is {claimed:?}, and not {level:?}").into())
    }
}

fn killed_with_many_in_flight(arguments: &str) -> Result<(), Failed> {
    let mut node = Node::start(arguments, GROUP)?;
    let spec = node.spec(&format!("timeout={PATIENCE_S}s"));
    outlives_a_kill(&spec, || node.kill_and_restart())
}

fn misbehaves(arguments: &str) -> Result<(), Failed> {
    let node = Node::start(arguments, PERIODIC)?;
    outlives_every_manner(node.daemon.port(), |port| spec(port, ""))
}

/// A server with passwords lets in who knows one, and nobody else.
fn password(arguments: &str) -> Result<(), Failed> {
    let node = Node::start(
        arguments,
        &[
            "-Dcassandra.settings.authenticator=PasswordAuthenticator",
            "-Dcassandra.settings.commitlog_sync=batch",
        ],
    )?;
    let of = |credentials: &str| format!("cassandra://{credentials}127.0.0.1:{}/hazard?", node.daemon.port());
    // The server makes its first user after it has begun to listen.
    let store = until("its first user is let in", || {
        opened_within(&of("cassandra:cassandra@"), 30)
    })?;
    if tick(&*store, 1)? != Outcome::Acknowledged {
        return Err("who may does not write".into());
    }
    if found(&*store)? != [1] {
        return Err("who may does not read".into());
    }
    for wrong in ["", "cassandra:hunter2@"] {
        let error = open(&of(wrong)).err().ok_or("it is let in without the password")?;
        let words = format!("{error:?}");
        if words.contains("hunter") || !words.to_lowercase().contains("authentication") {
            return Err(words.into());
        }
    }
    Ok(())
}

fn place(arguments: &str) -> Result<(), Failed> {
    let node = Node::start(arguments, PERIODIC)?;
    life::of_an_uncounted_place(&node.spec(""), |command| {
        let command = command.replacen("cqlsh", &node.shell.to_string_lossy(), 1);
        output(Command::new("sh").args(["-c", &command])).map(drop)
    })
}

fn of_another_program(arguments: &str) -> Result<(), Failed> {
    let node = Node::start(arguments, PERIODIC)?;
    node.run(
        "CREATE KEYSPACE hazard WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; \
         CREATE TABLE hazard.theirs (id int PRIMARY KEY); INSERT INTO hazard.theirs (id) VALUES (42)",
    )?;
    let error = open(&node.spec("drop=1")).err().ok_or("it is opened")?;
    if !error.to_string().contains("\"theirs\"") {
        return Err(error.into());
    }
    let there = node.run("SELECT id FROM hazard.theirs")?;
    if there.contains("42") {
        Ok(())
    } else {
        Err(there.into())
    }
}

/// Names, buckets and levels that do not fit, and a flush that nothing can do.
fn unfitting(arguments: &str) -> Result<(), Failed> {
    let node = Node::start(arguments, PERIODIC)?;
    let store = opened(&node.spec("bucket=1h"))?;
    match store.flush(Scope::All, Durability::Synced) {
        Err(Error::Unsupported { .. }) => {}
        other => return Err(format!("a flush: {other:?}").into()),
    }
    for (spec, what) in [
        (node.spec("bucket=1d"), "has buckets of 3600000000000 ns"),
        (node.spec("bucket=1h&consistency=two"), "needs more replicas"),
        (
            format!("cassandra://127.0.0.1:{}/not-one", node.daemon.port()),
            "letters, digits and _",
        ),
    ] {
        let error = open(&spec)
            .err()
            .ok_or_else(|| format!("{spec} is opened"))?
            .to_string();
        if !error.contains(what) {
            return Err(error.into());
        }
    }
    Ok(())
}
