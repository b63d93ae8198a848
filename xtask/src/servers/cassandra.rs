//! Starts Cassandra, a Java program from Maven: one node, or three that keep each row together.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{PAUSE_S, Server, Site, ports};
use crate::ci;
use crate::golang;
use crate::maven;
use crate::shell::{empty_folder, run};
use crate::terminal::pause;

pub(super) const VERSION: &str = "5.0.9";
/// Cassandra's own shell, from Python's registry.
const SHELL: &str = "cqlsh==6.2.2";
const MAIN: &str = "org.apache.cassandra.service.CassandraDaemon";

/// Looks, [`PAUSE_S`] apart, at whether a node answers.
const LOOKS: usize = 300;

/// What is the same for every node. Folders, ports and other addresses come by properties.
const YAML: &str = "\
cluster_name: tsb
num_tokens: 16
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
auto_snapshot: false
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: 127.0.0.1
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
endpoint_snitch: SimpleSnitch
";

/// Writes to `NODES` nodes, reads back from all of them, and leaves nothing.
const PROBE: &str = "\
CONSISTENCY ALL;
CREATE KEYSPACE IF NOT EXISTS tsb_probe WITH replication = {'class': 'SimpleStrategy', 'replication_factor': NODES};
CREATE TABLE IF NOT EXISTS tsb_probe.probe (id int PRIMARY KEY, answer text);
INSERT INTO tsb_probe.probe (id, answer) VALUES (1, 'forty-two');
SELECT answer FROM tsb_probe.probe WHERE id = 1;
DROP KEYSPACE tsb_probe;";

/// Parts of Java that Cassandra reaches into, as its own `jvm17-server.options` lists them.
const EXPORTS: [&str; 8] = [
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.rmi/sun.rmi.transport.tcp",
    "java.sql/java.sql",
];
const OPENS: [&str; 16] = [
    "java.base/java.lang.module",
    "java.base/java.net",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.lang",
    "java.base/java.lang.reflect",
];

/// As many nodes as there are addresses. All have the same ports: a driver learns the addresses of
/// the others from the first, and not their ports.
#[derive(Debug)]
pub(super) struct Cassandra {
    name: &'static str,
    addresses: &'static [&'static str],
    /// What each node may use of memory for its objects, and for what it holds in memory of its tables.
    heap: &'static str,
}

impl Cassandra {
    /// One node.
    pub(super) const LONE: Self = Self {
        name: "cassandra",
        addresses: &["127.0.0.1"],
        heap: "-Xmx1g",
    };
    /// Three nodes.
    pub(super) const THREE: Self = Self {
        name: "cassandra-three",
        addresses: &["127.0.0.1", "127.0.0.2", "127.0.0.3"],
        heap: "-Xmx512m",
    };

    /// Starts the nodes one after the other, as one joins at a time, and waits for each; the port of
    /// all of them.
    pub(super) fn spawn(&self, site: &mut Site) -> Result<u16> {
        let [port, storage_port] = ports::free()?;
        for (place, address) in self.addresses.iter().enumerate() {
            let name = format!("cassandra-{}", place + 1);
            let mut command = Command::new("java");
            command.arg(format!("@{}", arguments()?.display())).arg(self.heap);
            command.arg(format!("-Dcassandra.storagedir={}", site.subfolder(&name)?.display()));
            command.arg(format!("-Dcassandra.native_transport_port={port}"));
            command.arg(format!("-Dcassandra.storage_port={storage_port}"));
            command.arg(format!("-Dcassandra.settings.listen_address={address}"));
            command.arg(format!("-Dcassandra.settings.rpc_address={address}"));
            // There is nothing yet that a node would have to fetch from the others.
            command.arg("-Dcassandra.settings.auto_bootstrap=false");
            // What Cassandra's own configuration has.
            command.arg("-Dcassandra.settings.commitlog_sync=periodic");
            command.arg("-Dcassandra.settings.commitlog_sync_period=10000ms");
            site.spawn(&name, command.arg(MAIN), &[port, storage_port])?;
            await_nodes(site, port, place + 1)?;
        }
        Ok(port)
    }
}

impl Server for Cassandra {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self) -> Result<()> {
        ci::require(&["default-jre-headless", "maven", "python3-venv"])?;
        if arguments()?.is_file() {
            return Ok(());
        }
        let folder = empty_folder(folder()?)?;
        let server = maven::dependency("org.apache.cassandra", "cassandra-all", VERSION);
        maven::copy_with_dependencies(&server, &folder)?;
        run(Command::new("python3")
            .args(["-m", "venv", "shell"])
            .current_dir(&folder))?;
        run(Command::new(folder.join("shell/bin/python")).args(["-m", "pip", "--quiet", "install", SHELL]))?;
        fs::write(folder.join("cassandra.yaml"), YAML)?;
        // Last: with it the programs are whole.
        Ok(fs::write(arguments()?, java_arguments()?)?)
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let port = self.spawn(site)?;
        let hosts: Vec<String> = self
            .addresses
            .iter()
            .map(|address| format!("{address}:{port}"))
            .collect();
        let replicas = match self.addresses.len() {
            1 => String::new(),
            several => format!("?replicas={several}"),
        };
        Ok(format!("cassandra://{}/tsb{replicas}", hosts.join(",")))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let port = *site.ports().first().context("it has no port")?;
        answers_at(port, self.addresses.len())
    }

    fn program(&self) -> Option<String> {
        let arguments = arguments().ok()?;
        arguments.is_file().then(|| arguments.display().to_string())
    }
}

/// Waits until `nodes` nodes answer, of which the first listens at `port`.
fn await_nodes(site: &Site, port: u16, nodes: usize) -> Result<()> {
    for _ in 0..LOOKS {
        if let Some(name) = site.first_dead() {
            bail!("{name} has ended by itself");
        }
        if answers_at(port, nodes).is_ok() {
            return Ok(());
        }
        pause(PAUSE_S)?;
    }
    answers_at(port, nodes)
}

/// Writes to `nodes` nodes, of which the first listens at `port`, and reads back; an error while that
/// does not work.
fn answers_at(port: u16, nodes: usize) -> Result<()> {
    let mut shell = Command::new(folder()?.join("shell/bin/cqlsh"));
    let probe = PROBE.replace("NODES", &nodes.to_string());
    let output = shell.args(["127.0.0.1", &port.to_string(), "-e", &probe]).output()?;
    let answer = String::from_utf8_lossy(&output.stdout);
    if !answer.contains("forty-two") {
        bail!("it answers {answer:?} {:?}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The file with the arguments of Java that are the same for every node.
fn arguments() -> Result<PathBuf> {
    Ok(folder()?.join("java.args"))
}

fn folder() -> Result<PathBuf> {
    Ok(golang::folder()?.join(format!("cassandra-{VERSION}")))
}

fn java_arguments() -> Result<String> {
    let folder = folder()?;
    let jars = folder.join("jars");
    let agent = fs::read_dir(&jars)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("jamm-"))
        })
        .context("jamm, which measures objects of Java, is not among the jars")?;
    let mut arguments = vec![
        format!("-javaagent:{}", agent.display()),
        format!("-cp \"{}/*\"", jars.display()),
        format!("-Dcassandra.config=file://{}/cassandra.yaml", folder.display()),
        // What is set by `-Dcassandra.settings.NAME` overrides the file.
        "-Dcassandra.config.allow_system_properties=true".to_owned(),
        "-Dcassandra-foreground=yes".to_owned(),
        // A lone node waits for no others.
        "-Dcassandra.skip_wait_for_gossip_to_settle=0".to_owned(),
        "-Dcassandra.ring_delay_ms=100".to_owned(),
        "-Dcassandra.superuser_setup_delay_ms=-1".to_owned(),
        "-Djdk.attach.allowAttachSelf=true".to_owned(),
    ];
    arguments.extend(EXPORTS.map(|package| format!("--add-exports={package}=ALL-UNNAMED")));
    arguments.extend(OPENS.map(|package| format!("--add-opens={package}=ALL-UNNAMED")));
    arguments.push("--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED".to_owned());
    Ok(arguments.join("\n") + "\n")
}
