//! `cargo xtask servers`: real servers on loopback, started and stopped by one command.
//!
//! Each server is one file here and an entry in `SERVERS`, or several for its variants. Its packages are in
//! `ci/packages.rs`, its tests in `ci/servers.rs`, and its row of results in `measure/servers/targets.rs`. It
//! gets a folder below `target/servers`, free ports, and a record of its processes, which is written before anything
//! else can fail: `down` stops those processes and no others.

mod carbon;
mod cassandra;
mod clickhouse;
mod disturb;
mod etcd;
mod go_carbon;
mod graphite;
mod influxdb;
mod kairosdb;
mod layouts;
mod mongod;
mod mongod_set;
mod owner;
mod ports;
mod postgres;
mod process;
mod prometheus;
mod python;
mod questdb;
mod rrdcached;
mod site;
mod victoriametrics;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::shell::{Stopwatch, capture};
use crate::table::Table;
use crate::terminal::pause;
use site::{Condition, Lock, Site};

/// How long a server may take until it has answered a write and a read.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two questions whether it has.
const PAUSE_S: &str = "0.1";

/// A kind of server. A new one implements this in a file of its own.
trait Server: Sync {
    /// The name on the command line.
    fn name(&self) -> &'static str;

    /// Brings its programs here if they are not; the error says what somebody has to install.
    fn install(&self) -> Result<()>;

    /// Starts its processes with [`Site::spawn`]; returns its store spec.
    fn start(&self, site: &mut Site) -> Result<String>;

    /// Writes and reads back; an error while that does not work.
    fn answers(&self, site: &Site) -> Result<()>;

    /// The program that a test may start by itself, once it is installed.
    fn program(&self) -> Option<String>;

    /// Which of its processes leads the others, from 0.
    fn leader(&self, _site: &Site) -> Result<usize> {
        bail!("{} has no leader", self.name())
    }
}

const SERVERS: &[&dyn Server] = &[
    &rrdcached::Rrdcached,
    &mongod::Mongod,
    &mongod_set::MongodSet,
    &etcd::Etcd::SINGLE,
    &etcd::Etcd::THREE,
    &prometheus::Prometheus,
    &influxdb::Influxdb,
    &victoriametrics::VictoriaMetrics,
    &carbon::Carbon::CACHE,
    &carbon::Carbon::RELAY,
    &go_carbon::GoCarbon,
    &clickhouse::ClickHouse,
    &questdb::QuestDb,
    &cassandra::Cassandra::LONE,
    &cassandra::Cassandra::THREE,
    &kairosdb::KairosDb::ON_H2,
    &kairosdb::KairosDb::ON_CASSANDRA,
    &postgres::Postgres,
];

/// Runs the command.
pub(crate) fn command(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["up", names @ ..] => up(names),
        ["table", rest @ ..] => layouts::print(rest),
        ["equal", rest @ ..] => layouts::print_equal(rest),
        ["down", names @ ..] => down(names),
        ["disturb", rest @ ..] => disturb::command(rest),
        ["status", "--format", "json", names @ ..] => {
            println!("{:#}", status(&choose(names)?)?);
            Ok(())
        }
        ["status", names @ ..] => {
            print!("{}", table(&status(&choose(names)?)?));
            Ok(())
        }
        _ => bail!(
            "servers: write up, down or status, then names (--format json after status); disturb, a name and what \
             happens to it; table or equal"
        ),
    }
}

/// Starts the servers that are asked for; those that run already are left alone.
pub(crate) fn up(names: &[&str]) -> Result<()> {
    let _lock = Lock::take()?;
    for server in choose(names)? {
        up_one(server)?;
    }
    Ok(())
}

/// Stops the servers that are asked for: exactly the processes that `up` recorded.
pub(crate) fn down(names: &[&str]) -> Result<()> {
    let _lock = Lock::take()?;
    for server in choose(names)? {
        let mut site = Site::open(server.name())?;
        let stopped = site.stop()?;
        println!("{}: {}", server.name(), stopped_in_words(stopped));
    }
    Ok(())
}

/// From now on this program keeps the files of servers in `folder` instead of `target/servers`, and
/// knows of no others.
pub(crate) fn keep_in(folder: &Path) {
    site::keep_in(folder);
}

/// Sends SIGKILL to every process of a server that runs, waits for `pause_s` seconds, and starts them again
/// with the files and ports that they had; returns when the server answers.
pub(crate) fn kill_and_restart(name: &str, pause_s: &str) -> Result<()> {
    let _lock = Lock::take()?;
    let [server] = choose(&[name])?[..] else {
        bail!("{name} is no server");
    };
    let mut site = Site::open(name)?;
    if site.condition() != Condition::Up {
        bail!("{name} is not up");
    }
    site.kill()?;
    pause(pause_s)?;
    let watch = Stopwatch::start();
    loop {
        // One may end at once, for a lock of its earlier life or a port that is not free yet.
        site.spawn_dead()?;
        match server.answers(&site) {
            Ok(()) => return judge(&site),
            Err(why) if watch.elapsed() > PATIENCE => {
                let why = why.context(format!("no answer within {} s after a kill", PATIENCE.as_secs()));
                return Err(why.context(site.last_words()));
            }
            Err(_) => pause(PAUSE_S)?,
        }
    }
}

/// The processes of a server, as they were started.
pub(crate) fn pids_of(name: &str) -> Result<Vec<u32>> {
    let state = Site::open(name)?.state();
    let processes = state["processes"].as_array().into_iter().flatten();
    let pids = processes.filter_map(|process| process["pid"].as_u64()?.try_into().ok());
    Ok(pids.collect())
}

/// The folder of a server.
pub(crate) fn folder_of(name: &str) -> Result<PathBuf> {
    Ok(Site::open(name)?.folder().to_owned())
}

/// The version that a recipe pins; none where a package of the system brings the program.
pub(crate) fn pinned_version(name: &str) -> Option<&'static str> {
    match name {
        "cassandra" | "cassandra-three" => Some(cassandra::VERSION),
        "kairosdb" | "kairosdb-on-cassandra" => Some(kairosdb::VERSION),
        "questdb" => Some(questdb::VERSION),
        "go-carbon" => crate::golang::GO_CARBON.version(),
        "mongod" | "mongod-set" => Some(python::MONGOD_VERSION),
        _ => None,
    }
}

/// Whether a server runs.
pub(crate) fn is_up(name: &str) -> bool {
    Site::open(name).is_ok_and(|site| site.condition() == Condition::Up)
}

/// The first server that runs.
pub(crate) fn first_up() -> Option<&'static str> {
    SERVERS.iter().map(|server| server.name()).find(|name| is_up(name))
}

/// The program of a server, once it is installed.
pub(crate) fn program_of(name: &str) -> Option<String> {
    SERVERS.iter().find(|server| server.name() == name)?.program()
}

/// The store spec of a server that runs.
pub(crate) fn store_of(name: &str) -> Result<String> {
    let site = Site::open(name)?;
    if site.condition() != Condition::Up {
        bail!("{name} is not up");
    }
    Ok(site.store().to_owned())
}

/// The second port of the last process of a server that runs, at which it takes `put` lines.
pub(crate) fn put_port_of(name: &str) -> Result<u16> {
    let ports = Site::open(name)?.all_ports();
    ports.last().copied().with_context(|| format!("{name} has no port"))
}

/// Asks a server over HTTP, with more arguments for curl; its answer.
fn curl(url: &str, more: &[&str]) -> Result<String> {
    let mut command = Command::new("curl");
    command.args(["-sS", "--fail", "--max-time", "2"]).args(more);
    capture(command.arg(url))
}

fn choose(names: &[&str]) -> Result<Vec<&'static dyn Server>> {
    if names.is_empty() {
        return Ok(SERVERS.to_vec());
    }
    let find = |name: &&str| {
        let found = SERVERS.iter().find(|server| server.name() == *name);
        found.copied().with_context(|| {
            let known: Vec<&str> = SERVERS.iter().map(|server| server.name()).collect();
            format!("there is no server {name}; there are {}", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}

fn up_one(server: &dyn Server) -> Result<()> {
    let name = server.name();
    let mut site = Site::open(name)?;
    match site.condition() {
        Condition::Up => {
            println!("{name}: is up already: {}", site.store());
            return Ok(());
        }
        Condition::Broken => {
            println!("{name}: some of its processes have ended; it is started anew");
            site.stop()?;
        }
        Condition::Down => {}
    }
    server.install().with_context(|| format!("cannot install {name}"))?;
    let watch = Stopwatch::start();
    match launch(server, &mut site, &watch) {
        Ok(()) => {
            let seconds = watch.elapsed().as_secs_f64();
            println!("{name}: up after {seconds:.1} s: {}", site.store());
            Ok(())
        }
        Err(error) => {
            let said = site.last_words();
            site.stop()?;
            bail!("cannot start {name}: {error:#}{said}")
        }
    }
}

fn launch(server: &dyn Server, site: &mut Site, watch: &Stopwatch) -> Result<()> {
    site.clear()?;
    let store = server.start(site)?;
    loop {
        if let Some(dead) = site.first_dead() {
            bail!("{dead} has ended by itself");
        }
        match server.answers(site) {
            Ok(()) => {
                judge(site)?;
                return site.name_store(&store);
            }
            Err(why) if watch.elapsed() > PATIENCE => {
                return Err(why.context(format!("no answer within {} s", PATIENCE.as_secs())));
            }
            Err(_) => pause(PAUSE_S)?,
        }
    }
}

/// Whether what has answered is what was started: an answer may have come before a process
/// died, or from another program that has the port.
fn judge(site: &Site) -> Result<()> {
    if let Some(dead) = site.first_dead() {
        bail!("{dead} has ended by itself");
    }
    if let Some((name, port)) = site.first_foreign_port() {
        bail!("another program listens on port {port}, which was to be that of {name}");
    }
    Ok(())
}

fn stopped_in_words(stopped: usize) -> String {
    match stopped {
        0 => "was not up".to_owned(),
        1 => "stopped".to_owned(),
        processes => format!("stopped, {processes} processes"),
    }
}

fn status(servers: &[&dyn Server]) -> Result<Value> {
    let one = |server: &&dyn Server| -> Result<Value> {
        let site = Site::open(server.name())?;
        let mut state = site.state();
        state["program"] = json!(server.program());
        Ok(state)
    };
    let states = servers.iter().map(one).collect::<Result<Vec<_>>>()?;
    Ok(Value::Array(states))
}

fn table(states: &Value) -> String {
    let mut table = Table::new(&["server", "state", ">pid", ">ports", ">RSS MiB", "store"]);
    for state in states.as_array().into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, condition, store) = (text(&state["name"]), text(&state["state"]), text(&state["store"]));
        let processes = state["processes"].as_array().cloned().unwrap_or_default();
        if processes.is_empty() {
            table.row(&[&name, &condition]);
        }
        for process in processes {
            let ports: Vec<String> = process["ports"]
                .as_array()
                .into_iter()
                .flatten()
                .map(Value::to_string)
                .collect();
            let rss_mib = process["rss_bytes"]
                .as_u64()
                .map(|bytes| format!("{:.0}", bytes as f64 / 1_048_576.0));
            let rss = rss_mib.unwrap_or_else(|| "ended".to_owned());
            let pid = process["pid"].to_string();
            table.row(&[&name, &condition, &pid, &ports.join(","), &rss, &store]);
        }
    }
    table.render()
}

#[cfg(test)]
mod tests;
