//! Runs that several hosts share, into real servers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tsb_core::latency::Summary;
use tsb_core::ledger::Counter;
use tsb_core::report::{HostEnd, Run};
use tsb_core::time::SECOND_NS;
use tsb_core::verdict::Status;
use tsb_run::hosts::{Coordination, CoordinatorAddress, JoinOptions, LeadOptions, join, lead};
use tsb_run::{AskedRate, Controls, Error, Message, Observer, Plan, Transport, run_plan};
use tsb_stores::conformance::libtest_mimic::Failed;

const HOSTS: [&str; 3] = ["a", "b", "c"];

/// A run at the fleet's own pace.
fn plan(store: &str, seconds: u64) -> Result<Plan, Failed> {
    let mut plan = Plan {
        stores: vec![store.parse()?],
        transport: Transport::Inproc,
        duration_ns: Some(seconds * SECOND_NS),
        rate: AskedRate::Natural,
        calibrate: false,
        ..Plan::default()
    };
    plan.workload.series = Some(540);
    plan.workload.interval_ns = Some(SECOND_NS / 10);
    Ok(plan.complete()?)
}

/// Calls a function when the first line about all hosts is said: they have begun.
struct OnceBegun(Box<dyn Fn() + Send + Sync>);

impl Observer for OnceBegun {
    fn message(&self, message: Message<'_>) {
        if matches!(message, Message::Progress(text) if text.starts_with("all: ")) {
            (self.0)();
        }
    }
}

/// A run that three hosts share, each a thread.
fn shared(plan: &Plan, address: &str, begun: impl Fn() + Send + Sync + 'static) -> Result<Run, Failed> {
    let address: CoordinatorAddress = address.parse()?;
    let folder = tempfile::tempdir()?;
    let options = LeadOptions {
        hosts: HOSTS.len(),
        clock_listen: "127.0.0.1:0".parse()?,
        wait: Duration::from_mins(1),
        is_watched: false,
    };
    let controls = Controls {
        observer: Arc::new(OnceBegun(Box::new(begun))),
        ..Controls::default()
    };
    let join_as = |name: &str, journal: &Path| -> Result<Run, Error> {
        let options = JoinOptions {
            name: name.to_owned(),
            journal: journal.to_owned(),
            wait: Duration::from_mins(1),
        };
        join(
            &Coordination::open(&address)?,
            &options,
            &Controls::default(),
            &tsb_run::open,
        )
    };
    let run = std::thread::scope(|threads| {
        let hosts = HOSTS.map(|name| {
            let journal = folder.path().join(name);
            threads.spawn(move || join_as(name, &journal))
        });
        let coordination = Coordination::open(&address)?;
        let nobody_is_lost = |_: &_| Err("no host was killed".to_owned());
        let made = lead(
            &coordination,
            plan,
            &options,
            &controls,
            &tsb_run::open,
            &nobody_is_lost,
        )?;
        for host in hosts {
            host.join().map_err(|_| Error::internal("a host panicked"))??;
        }
        Ok::<Run, Error>(made.run)
    });
    Ok(run?)
}

fn same(what: &str, several: &impl std::fmt::Debug, one: &impl std::fmt::Debug) -> Result<(), Failed> {
    let (several, one) = (format!("{several:?}"), format!("{one:?}"));
    if several == one {
        Ok(())
    } else {
        Err(format!("{what}: {several} of three hosts, {one} of one process").into())
    }
}

/// Nothing is lost, and every host reported.
fn is_whole(run: &Run) -> Result<(), Failed> {
    let reported = run.hosts.iter().filter(|host| host.ended == HostEnd::Reported).count();
    let is_good = ![Status::Invalid, Status::Unverified].contains(&run.verdict.status);
    let counts = &run.ledger.counts;
    if is_good && counts.is_balanced() && counts.count(Counter::Lost) == 0 && reported == HOSTS.len() {
        return Ok(());
    }
    Err(format!("{:?}, {counts:?}, {:?}", run.verdict, run.hosts).into())
}

/// What three hosts report together is what one process reports, count for count.
pub(crate) fn report_together(store: &str, other_store: &str, address: &str) -> Result<(), Failed> {
    let one = run_plan(&plan(other_store, 3)?, &Controls::default(), &tsb_run::open)?.run;
    let several = shared(&plan(store, 3)?, address, || ())?;
    is_whole(&several)?;
    same("the ledger", &several.ledger, &one.ledger)?;
    same("the fingerprint", &several.fingerprint, &one.fingerprint)?;
    same("what was issued", &several.issued, &one.issued)?;
    // One that is cut off by the end of the run may have none.
    let full = several.intervals.iter().rev().skip(1);
    let without = full.filter(|interval| interval.response_cells.is_none()).count();
    same("intervals without times", &without, &0)?;
    let timed = |summary: Summary| (summary.count, summary.samples);
    let (of_several, of_one) = (timed(several.latency.response), timed(one.latency.response));
    same("the operations", &of_several, &of_one)
}

/// A run goes on while its coordination has no leader.
pub(crate) fn outlive(store: &str, address: &str, kill: impl Fn() + Send + Sync + 'static) -> Result<(), Failed> {
    let killed = std::sync::Once::new();
    let run = shared(&plan(store, 8)?, address, move || killed.call_once(&kill))?;
    is_whole(&run)
}
