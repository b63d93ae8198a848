//! etcd, killed, cut off, and behind TLS and a password.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
#[cfg(feature = "hosts")]
use std::sync::Mutex;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::{Batch, SeriesId, Timestamp};
use tsb_run::Error;
use tsb_run::hm9000::{CorrectedOptions, Layout, Opening, OutageOptions, SimulatorOptions, with_outages};
use tsb_stores::conformance::libtest_mimic::{Failed, Trial};
#[cfg(feature = "hosts")]
use tsb_stores::parts::lock;
use tsb_stores::{StoreExt, TimeRange};

use crate::certificates::Certificates;
use crate::daemon::{Daemon, free_ports, output, until};
use crate::in_flight::{PATIENCE_S, is_whole_with_more, outlives_a_kill};
use crate::life;
use crate::outage::{Survivors, lets_in_only, nobody_answers, opened, outlives_every_manner, survives};
use crate::{Test, of_program, places};

pub(crate) fn trials() -> Vec<Trial> {
    let tests: &[(&str, Test)] = &[
        ("killed_and_restarted", killed),
        ("many_in_flight", many_in_flight),
        ("killed_with_many_in_flight", killed_with_many_in_flight),
        ("the_leader_is_killed", leader_killed),
        ("apps_are_reported_again_after_the_leader_is_killed", outages),
        ("a_server_that_misbehaves", misbehaves),
        ("nobody_answers", |_| nobody_answers("etcd")),
        #[cfg(feature = "hosts")]
        ("hosts_report_together", hosts_report_together),
        #[cfg(feature = "hosts")]
        ("hosts_outlive_the_leader_of_etcd", hosts_outlive_the_leader),
        ("tls_and_a_password", tls_and_password),
        ("samples_expire", expire),
        ("a_place_from_its_making_to_its_removal", place),
    ];
    of_program(places::ETCD, "TSB_TEST_ETCD_PROGRAM", tests)
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn command(program: &str, folder: &Path, client: &str, name: &str, peer: u16) -> Command {
    let mut command = Command::new(program);
    command.arg("--data-dir").arg(folder.join("data"));
    command.args(["--name", name, "--logger=zap"]);
    command.args(["--listen-client-urls", client, "--advertise-client-urls", client]);
    command.args([
        "--listen-peer-urls",
        &url(peer),
        "--initial-advertise-peer-urls",
        &url(peer),
    ]);
    command
}

/// One node.
fn single(program: &str) -> Result<Daemon, Failed> {
    let [port, peer] = free_ports()?;
    let program = program.to_owned();
    let daemon = Daemon::start(port, move |folder| {
        let mut command = command(&program, folder, &url(port), "one", peer);
        command.args(["--initial-cluster", &format!("one={}", url(peer))]);
        command
    })?;
    is_ready(&[&daemon])?;
    Ok(daemon)
}

/// Three nodes.
fn three(program: &str) -> Result<Vec<Daemon>, Failed> {
    let ports: [u16; 6] = free_ports()?;
    let of = |node: usize| (ports[2 * node], ports[2 * node + 1]);
    let cluster: Vec<String> = (0..3).map(|node| format!("n{node}={}", url(of(node).1))).collect();
    let cluster = cluster.join(",");
    let start = |node: usize| {
        let (port, peer) = of(node);
        let (program, cluster) = (program.to_owned(), cluster.clone());
        Daemon::start(port, move |folder| {
            let mut command = command(&program, folder, &url(port), &format!("n{node}"), peer);
            command.args(["--initial-cluster", &cluster]);
            command
        })
    };
    let daemons = (0..3).map(start).collect::<Result<Vec<_>, _>>()?;
    is_ready(&daemons.iter().collect::<Vec<_>>())?;
    Ok(daemons)
}

fn etcdctl(endpoints: &str, words: &[&str]) -> Result<String, Failed> {
    let mut command = Command::new("etcdctl");
    command
        .env("ETCDCTL_API", "3")
        .args(["--command-timeout=2s", "--endpoints", endpoints]);
    output(command.args(words))
}

fn is_ready(daemons: &[&Daemon]) -> Result<(), Failed> {
    for daemon in daemons {
        until("it answers", || etcdctl(&url(daemon.port()), &["get", "nothing"]))?;
    }
    Ok(())
}

/// Which of them leads.
fn leader(daemons: &[Daemon]) -> Result<usize, Failed> {
    for (place, daemon) in daemons.iter().enumerate() {
        let status = etcdctl(&url(daemon.port()), &["endpoint", "status", "-w", "fields"])?;
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(&format!("\"{name}\" : ")))
        };
        if field("MemberID").is_some() && field("MemberID") == field("Leader") {
            return Ok(place);
        }
    }
    Err("nobody leads".into())
}

fn spec(ports: &[u16], options: &str) -> String {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("etcd://{}/hazard?{options}", hosts.join(","))
}

fn killed(program: &str) -> Result<(), Failed> {
    let mut daemon = single(program)?;
    let store = opened(&spec(&[daemon.port()], ""))?;
    survives(&*store, Survivors::All, |clock| {
        daemon.kill()?;
        clock.wait_until(clock.now() + SECOND_NS);
        daemon.restart()
    })
}

fn many_in_flight(program: &str) -> Result<(), Failed> {
    let daemon = single(program)?;
    is_whole_with_more(|in_flight| format!("etcd://127.0.0.1:{}/flight{in_flight}", daemon.port()))
}

fn killed_with_many_in_flight(program: &str) -> Result<(), Failed> {
    let mut daemon = single(program)?;
    let spec = spec(&[daemon.port()], &format!("timeout={PATIENCE_S}s"));
    outlives_a_kill(&spec, || {
        daemon.kill()?;
        let clock = MonotonicClock::new();
        clock.wait_until(SECOND_NS);
        daemon.restart()
    })
}

#[cfg(feature = "hosts")]
fn hosts_report_together(program: &str) -> Result<(), Failed> {
    let server = single(program)?;
    let place = |name: &str| format!("etcd://127.0.0.1:{}/{name}", server.port());
    crate::hosts::report_together(&place("several"), &place("one"), &place("run"))
}

#[cfg(feature = "hosts")]
fn hosts_outlive_the_leader(program: &str) -> Result<(), Failed> {
    let daemons = three(program)?;
    let ports: Vec<String> = daemons
        .iter()
        .map(|daemon| format!("127.0.0.1:{}", daemon.port()))
        .collect();
    let members = ports.join(",");
    let daemons = Arc::new(Mutex::new((daemons, false)));
    let killed = Arc::clone(&daemons);
    let kill = move || {
        let (daemons, is_killed) = &mut *lock(&killed);
        *is_killed = leader(daemons).and_then(|leader| daemons[leader].kill()).is_ok();
    };
    crate::hosts::outlive(
        &format!("etcd://{members}/data"),
        &format!("etcd://{members}/run"),
        kill,
    )?;
    let is_killed = lock(&daemons).1;
    is_killed.then_some(()).ok_or_else(|| "no leader was killed".into())
}

/// The leader is gone for good: two members go on.
fn leader_killed(program: &str) -> Result<(), Failed> {
    let mut daemons = three(program)?;
    let leader = leader(&daemons)?;
    let mut ports: Vec<u16> = daemons.iter().map(Daemon::port).collect();
    // The leader is the one that the client asks first.
    ports.swap(0, leader);
    let store = opened(&spec(&ports, ""))?;
    if store.capabilities().copies != 2 {
        return Err(format!("three members, and {:?}", store.capabilities()).into());
    }
    survives(&*store, Survivors::All, |_| daemons[leader].kill())
}

/// The experiment of HM9000 goes on while the leader is killed and started again, twice.
fn outages(program: &str) -> Result<(), Failed> {
    let mut daemons = three(program)?;
    let hosts: Vec<String> = daemons
        .iter()
        .map(|daemon| format!("127.0.0.1:{}", daemon.port()))
        .collect();
    let layout: Layout = format!("etcd3:{}", hosts.join(",")).parse()?;
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    let folder = tempfile::tempdir()?;
    let opened = layout.open(&Opening {
        experiment: "hm9000",
        place: 1,
        folder: folder.path(),
        in_flight: 1,
        clock: Arc::clone(&clock),
    })?;
    let options = CorrectedOptions {
        simulator: SimulatorOptions {
            apps: 1_000,
            new_apps: 0,
            ..SimulatorOptions::default()
        },
        seconds: 600,
        workers: 8,
        servers: Vec::new(),
        stop: Arc::default(),
    };
    let outages = OutageOptions {
        count: 2,
        pause_s: 21..=22,
        seed: 1,
    };
    let mut kill = |_number| {
        let mut outage = || {
            let leader = leader(&daemons)?;
            daemons[leader].kill()?;
            clock.wait_until(clock.now() + 2 * SECOND_NS);
            daemons[leader].restart()
        };
        let because = |error: Failed| Error::plan("no leader was killed").because_of(error.message().unwrap_or("-"));
        outage().map_err(because)
    };
    let run = with_outages(&options, &outages, &opened.store(), &*clock, &mut kill)?;
    opened.remove()?;
    let are_all_over = run
        .outages
        .iter()
        .all(|outage| outage.recovered_after_seconds.is_some());
    if run.failure.is_some() || run.outages.len() != 2 || !are_all_over || run.run.lost > 0 || run.run.copies != 2 {
        return Err(format!("{run:?}").into());
    }
    Ok(())
}

fn misbehaves(program: &str) -> Result<(), Failed> {
    let daemon = single(program)?;
    outlives_every_manner(daemon.port(), |port| spec(&[port], ""))
}

fn tls_and_password(program: &str) -> Result<(), Failed> {
    let certificates = Certificates::make()?;
    let [port, peer] = free_ports()?;
    let https = format!("https://127.0.0.1:{port}");
    let (program, key, crt) = (
        program.to_owned(),
        certificates.file("server.key"),
        certificates.file("server.crt"),
    );
    let address = https.clone();
    let daemon = Daemon::start(port, move |folder| {
        let mut command = command(&program, folder, &address, "one", peer);
        command.args(["--initial-cluster", &format!("one={}", url(peer))]);
        command.arg("--key-file").arg(&key).arg("--cert-file").arg(&crt);
        command
    })?;
    let authority = certificates.authority().display().to_string();
    let ask = |words: &[&str]| etcdctl(&https, &[&["--cacert", &authority], words].concat());
    until("it answers", || ask(&["get", "nothing"]))?;
    ask(&["user", "add", "root:hunter2"])?;
    ask(&["user", "grant-role", "root", "root"])?;
    ask(&["auth", "enable"])?;
    lets_in_only(&certificates, "root", "hunter2", |options| {
        spec(&[daemon.port()], options)
    })
}

fn place(program: &str) -> Result<(), Failed> {
    let daemon = single(program)?;
    life::of_a_place(&spec(&[daemon.port()], ""), |command| {
        output(Command::new("sh").env("ETCDCTL_API", "3").args(["-c", command])).map(drop)
    })
}

/// A time to live of a second: a lease lasts for two, and what is bound to it goes with it.
fn expire(program: &str) -> Result<(), Failed> {
    let daemon = single(program)?;
    let store = opened(&spec(&[daemon.port()], "ttl=1s"))?;
    let written = store.write_all(&Batch::tick(SeriesId(0), Timestamp::from_secs(7), &[1.0, 2.0]))?;
    if store.samples(SeriesId(1), TimeRange::ALL)?.len() != 1 || written.accepted != 2 {
        return Err("a sample is not there that was written just now".into());
    }
    let mut newest = [None];
    store.newest(&[SeriesId(0)], &mut newest)?;
    if newest != [Some(Timestamp::from_secs(7))] {
        return Err(format!("the newest is {newest:?}").into());
    }
    until("it expires", || {
        let left = store.samples(SeriesId(0), TimeRange::ALL)?;
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?} are there").into())
        }
    })?;
    store.newest(&[SeriesId(0)], &mut newest)?;
    let stats = store.stats();
    if newest != [None] || (stats.samples, stats.expired, stats.superseded) != (0, 2, 0) {
        return Err(format!("afterwards the newest is {newest:?}, {stats:?}").into());
    }
    Ok(())
}
