//! Disturbs a server that runs, and returns when it is whole again: for `tsb reproduce hm9000 --outage`.

use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::process::Process;
use super::site::{Condition, Lock, Site};
use super::{PATIENCE, PAUSE_S, Server, choose, judge};
use crate::ci;
use crate::shell::Stopwatch;
use crate::terminal::pause;

/// How long a process stays killed, in seconds.
const DEAD_S: &str = "2";
/// How long a process is paused, and how long a disk is slow, in seconds.
const DISTURBED_S: &str = "5";
/// How much longer a slow disk takes for a sync, in microseconds.
const SYNC_US: &str = "200000";

/// What disturbs a server, and returns when that is over.
type Disturbance = fn(&dyn Server, &mut Site) -> Result<()>;

/// What can be done to a server.
const KINDS: [(&str, Disturbance); 3] = [
    ("leader-killed", kill_leader),
    ("member-paused", pause_member),
    ("slow-disk", slow_disk),
];

/// `disturb NAME KIND`.
pub(super) fn command(arguments: &[&str]) -> Result<()> {
    let kinds = || KINDS.map(|(kind, _)| kind).join(", ");
    let [name, kind] = arguments else {
        bail!("servers disturb: write a name and one of {}", kinds());
    };
    let found = KINDS.iter().find(|(known, _)| known == kind);
    let (_, act) = found.with_context(|| format!("there is no disturbance {kind}; there are {}", kinds()))?;
    let _lock = Lock::take()?;
    let [server] = choose(&[name])?[..] else {
        bail!("{name} is no server");
    };
    let mut site = Site::open(name)?;
    if site.condition() != Condition::Up {
        bail!("{name} is not up; cargo xtask servers up {name} starts it");
    }
    act(server, &mut site)?;
    await_answer(server, &site)
}

/// SIGKILL to the leader; after two seconds it is started again with its files.
fn kill_leader(server: &dyn Server, site: &mut Site) -> Result<()> {
    let leader = leader(server, site)?;
    leader.kill();
    leader.await_end()?;
    pause(DEAD_S)?;
    site.spawn_dead()
}

/// SIGSTOP for five seconds to a member that does not lead.
fn pause_member(server: &dyn Server, site: &mut Site) -> Result<()> {
    let leader = leader(server, site)?;
    let member = site.processes().iter().find(|process| **process != leader);
    let member = member.with_context(|| format!("{} has no second member", server.name()))?;
    member.signal(Signal::STOP);
    let paused = pause(DISTURBED_S);
    member.signal(Signal::CONT);
    paused
}

/// For five seconds each sync of the leader takes 200 ms longer. strace delays the calls, which slows down the
/// others of that process as well.
fn slow_disk(server: &dyn Server, site: &mut Site) -> Result<()> {
    ci::require(&["strace"])?;
    let leader = leader(server, site)?;
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e"]);
    strace.arg(format!("inject=fsync,fdatasync:delay_enter={SYNC_US}"));
    let mut strace = strace.arg("-p").arg(leader.pid().to_string()).spawn()?;
    pause(DISTURBED_S)?;
    if let Some(status) = strace.try_wait()? {
        bail!("strace ended with {status}: it cannot follow process {}", leader.pid());
    }
    // IMPORTANT: asked to end, so that it lets go of the process; a killed one may leave it stopped.
    kill_process(Pid::from_child(&strace), Signal::INT).context("cannot end strace")?;
    strace.wait().context("cannot wait for strace")?;
    Ok(())
}

fn leader(server: &dyn Server, site: &Site) -> Result<Process> {
    let place = server.leader(site)?;
    let process = site.processes().get(place);
    Ok(process
        .with_context(|| format!("{} has no process {place}", server.name()))?
        .clone())
}

fn await_answer(server: &dyn Server, site: &Site) -> Result<()> {
    let watch = Stopwatch::start();
    loop {
        match server.answers(site) {
            Ok(()) => return judge(site),
            Err(why) if watch.elapsed() > PATIENCE => {
                let why = why.context(format!("no answer within {} s after a disturbance", PATIENCE.as_secs()));
                return Err(why.context(site.last_words()));
            }
            Err(_) => pause(PAUSE_S)?,
        }
    }
}
