//! The leader of runs that hosts share, and a host that joins them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tsb_core::report::{Report, Run};
use tsb_core::verdict::Status;
use tsb_run::hosts::{self, Coordination, CoordinatorAddress, JoinOptions, LeadOptions};
use tsb_run::journal::Contents;
use tsb_run::run::{MadeRun, MakeRun};
use tsb_run::spec::Typed;
use tsb_run::{Controls, Error, Plan, units};

use super::local::LocalHosts;
use crate::args::{HostsArgs, JoinArgs, SharedRunArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::live::Display;
use crate::output::Outputs;
use crate::{credentials, interrupt, plan, run, say, thresholds, verify};

/// Makes runs by several hosts: one, or those of a comparison or a search.
#[derive(Debug)]
struct SharedRuns<'a> {
    coordination: Coordination,
    options: LeadOptions,
    /// The store as it was typed, if all runs have it: with its credentials, lost parts are read back.
    store: Option<&'a Typed>,
    local: Option<LocalHosts>,
}

impl<'a> SharedRuns<'a> {
    fn start(args: &HostsArgs, store: Option<&'a Typed>, display: Option<&Display>) -> Result<Self, Failure> {
        let has_view = display.is_some_and(Display::has_view);
        // Only one run is shown.
        let local = args
            .hosts_local
            .map(|hosts| LocalHosts::start(hosts, display.is_none(), has_view));
        let local = local.transpose()?;
        let address = match &local {
            Some(local) => local.address().parse()?,
            None => address_of(args.coordinator.as_ref())?,
        };
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(Self {
            coordination: Coordination::open(&address)?,
            options: LeadOptions {
                hosts: args.hosts.or(args.hosts_local).unwrap_or(1),
                clock_listen: args.clock_listen.unwrap_or(any),
                wait: duration("--hosts-wait", &args.hosts_wait)?,
                is_watched: display.is_some_and(Display::is_watched),
            },
            store,
            local,
        })
    }
}

impl MakeRun for SharedRuns<'_> {
    fn divides(&self) -> bool {
        true
    }

    fn make(&self, plan: &Plan, controls: &Controls) -> Result<MadeRun, Error> {
        let lost = |contents: &Contents| verify::lost(contents, self.store).map_err(|failure| failure.one_line());
        hosts::lead(
            &self.coordination,
            plan,
            &self.options,
            controls,
            &credentials::open,
            &lost,
        )
    }
}

/// Makes the runs of a comparison or a search: by hosts if they share them, else in this process.
///
/// # Errors
/// If the hosts cannot be started, or their address not be used.
pub fn maker(args: &HostsArgs) -> Result<Box<dyn MakeRun>, Failure> {
    if args.is_shared() {
        Ok(Box::new(SharedRuns::start(args, None, None)?))
    } else {
        Ok(Box::new(credentials::open))
    }
}

/// Leads a run, and writes its report.
///
/// # Errors
/// If the run cannot be shared, or its report not be written.
pub fn lead(args: &SharedRunArgs) -> Result<Exit, Failure> {
    let of_run = &plan::with_file(&args.run)?;
    plan::no_effect::check_run(of_run)?;
    let plan = plan::load(of_run)?;
    if of_run.print_plan {
        return run::print_plan(&plan);
    }
    plan::no_effect::check_shared(of_run)?;
    tsb_run::run::check_comparable(&plan)?;
    run::check_labels(of_run.label.len(), 1)?;
    let thresholds = thresholds::of_run(of_run)?;
    let outputs = Outputs::open(&of_run.output)?;
    let display = Display::open(of_run, &interrupt::signals())?;
    let mut runs = SharedRuns::start(&args.hosts, of_run.options.store.first(), Some(&display))?;
    let controls = Controls {
        store_timeouts: run::store_timeouts(of_run.store_timeout.as_deref())?,
        ..display.controls()
    };
    let mut measured = runs.make(&plan, &controls)?.run;
    if let Some(local) = &mut runs.local {
        local.wait();
    }
    measured.label = of_run.label.first().cloned();
    drop((controls, display, runs));
    let mut report = Report::new(vec![measured]);
    let is_passed = thresholds::check(&mut report.runs, &thresholds);
    outputs.write(&report)?;
    Ok(run::exit_of(&report, is_passed))
}

/// Takes part in a run, or in one after the other.
///
/// # Errors
/// If there is none, or this host cannot take part.
pub fn join(args: &JoinArgs) -> Result<Exit, Failure> {
    let address = address_of(Some(&args.coordinator))?;
    let options = JoinOptions {
        name: args.name.clone().unwrap_or_else(own_name),
        journal: args.journal.clone().unwrap_or_else(temporary_journal),
        wait: duration("--wait", &args.wait)?,
    };
    let signals = interrupt::signals();
    let display = Display::of_host(args.quiet, &signals);
    let controls = Controls {
        store_timeouts: run::store_timeouts(args.store_timeout.as_deref())?,
        ..display.controls()
    };
    let coordination = Coordination::open(&address)?;
    let mut exit = Exit::Done;
    let mut each = |run: Result<Run, Error>| match run {
        Ok(run) => {
            if !args.quiet {
                say::line(format!("tsb: the part of {} is {}", options.name, run.verdict.status));
            }
            if run.verdict.status == Status::Invalid {
                exit = Exit::Invalid;
            }
        }
        Err(error) => say::failure(Failure::from(error)),
    };
    let joined = if args.again {
        hosts::join_each(&coordination, &options, &controls, &credentials::open, &mut each)
    } else {
        hosts::join(&coordination, &options, &controls, &credentials::open).map(|run| each(Ok(run)))
    };
    if args.journal.is_none() {
        // It was published, and is of no use without the run.
        let _ = std::fs::remove_file(&options.journal);
    }
    joined?;
    Ok(exit)
}

fn address_of(typed: Option<&Typed>) -> Result<CoordinatorAddress, Failure> {
    let typed = typed.map_or("", Typed::expose);
    let mut address: CoordinatorAddress = typed.parse()?;
    if let Some(spec) = address.spec_mut() {
        *spec = credentials::complete(spec)?;
    }
    Ok(address)
}

fn duration(flag: &str, text: &str) -> Result<Duration, Failure> {
    let ns = units::parse_duration(text);
    let ns = ns.map_err(|why| Failure::usage(format!("cannot read {flag} {text}")).because_of(why))?;
    Ok(Duration::from_nanos(ns))
}

/// The host's name and the process, in the characters that a name may have.
fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let kept = host.trim().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-');
    format!(
        "{}-{}",
        kept.collect::<String>().trim_start_matches('-'),
        std::process::id()
    )
    .trim_start_matches('-')
    .to_owned()
}

fn temporary_journal() -> PathBuf {
    std::env::temp_dir().join(format!("tsb-join-{}.journal", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_name_that_a_key_may_have() {
        let name = own_name();
        assert!(name.starts_with(|c: char| c.is_ascii_alphanumeric()), "{name}");
        assert!(name.ends_with(&std::process::id().to_string()), "{name}");
    }
}
