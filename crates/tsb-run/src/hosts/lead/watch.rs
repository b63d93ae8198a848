//! Watches the hosts of a run until each has reported or is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use tsb_core::time::SECOND_NS;

use super::shown::{ShownIntervals, status, status_of, sum_of, tell};
use super::{Host, LOOK_NS, Leader};
use crate::error::Error;
use crate::hosts::documents::{ENDED, FAILED, STOP};
use crate::hosts::liveness::lives_ns;
use crate::observer::Phase;

/// How often it says how far they are, in nanoseconds.
const SAY_NS: u64 = SECOND_NS;
/// How long hosts may flush, read back and report, in nanoseconds.
const REPORT_NS: u64 = 3_600 * SECOND_NS;
/// Most hosts of which each has a line.
const LINES_MAX: usize = 16;

/// Whether a host has samples to send, as far as it was heard of.
fn is_before_flush(host: &Host) -> bool {
    ![Phase::Flushing, Phase::ReadingBack(0, 0), Phase::Reporting]
        .map(Phase::name)
        .contains(&host.progress.phase.as_str())
}

impl Leader<'_> {
    /// Waits until every host has reported or is lost.
    pub(super) fn watch(&self, hosts: &mut BTreeMap<String, Host>) -> Result<(), Error> {
        let planned_ns = self.context.timetable.planned_ns();
        let deadline_ns = planned_ns.map(|ns| self.clock.now().saturating_add(ns).saturating_add(REPORT_NS));
        let (mut say_at, mut is_stopped) = (0, false);
        let (mut intervals, mut was_sending) = (ShownIntervals::default(), true);
        loop {
            let ended: BTreeSet<String> = self
                .coordination
                .list::<bool>(ENDED)?
                .into_iter()
                .map(|(name, _)| name)
                .collect();
            self.find_lost(hosts, &ended)?;
            tell(&*self.controls.observer, hosts, &mut intervals);
            let is_sending = hosts.values().any(|host| host.lost.is_none() && is_before_flush(host));
            if std::mem::replace(&mut was_sending, is_sending) && !is_sending {
                self.controls.enter(Phase::Flushing);
            }
            if hosts
                .iter()
                .all(|(name, host)| host.lost.is_some() || ended.contains(name))
            {
                return Ok(());
            }
            let now = self.clock.now();
            if self.controls.stops.at_once.load(Ordering::SeqCst) {
                return Err(Error::interrupted("the run was given up before its hosts had reported"));
            }
            if !is_stopped {
                let by_host = self.coordination.get::<String>(STOP)?;
                let by_user = self.controls.stops.stop.load(Ordering::SeqCst);
                if let Some(by) = by_host.or_else(|| by_user.then(|| "the leader".to_owned())) {
                    is_stopped = true;
                    self.stop(&by)?;
                }
            }
            if now >= say_at {
                say_at = now + SAY_NS;
                self.say(hosts);
            }
            if deadline_ns.is_some_and(|deadline_ns| now >= deadline_ns) {
                let is_late = |(name, host): &(&String, &mut Host)| host.lost.is_none() && !ended.contains(*name);
                let late = hosts.iter_mut().filter(is_late);
                for (name, host) in late {
                    self.lose(name, host, "it did not report in time".to_owned())?;
                }
            }
            self.clock.wait_until(now + LOOK_NS);
        }
    }

    fn find_lost(&self, hosts: &mut BTreeMap<String, Host>, ended: &BTreeSet<String>) -> Result<(), Error> {
        let failed: BTreeMap<String, String> = self.coordination.list(FAILED)?.into_iter().collect();
        let alive = self.alive()?;
        for (name, host) in hosts.iter_mut() {
            if let Some(progress) = alive.get(name) {
                host.progress = progress.clone();
            }
            if host.lost.is_some() || ended.contains(name) {
                continue;
            }
            if let Some(why) = failed.get(name) {
                self.lose(name, host, why.clone())?;
            } else if !alive.contains_key(name) {
                let seconds = lives_ns(self.options.hosts) / SECOND_NS;
                self.lose(name, host, format!("it was not heard of for {seconds} s"))?;
            }
        }
        Ok(())
    }

    fn lose(&self, name: &str, host: &mut Host, why: String) -> Result<(), Error> {
        self.change_state(|state| {
            state.lost.insert(name.to_owned());
        })?;
        self.controls.warn(&format!("host {name} is lost: {why}"));
        host.lost = Some(why);
        Ok(())
    }

    /// A line for each host, and the sum.
    fn say(&self, hosts: &BTreeMap<String, Host>) {
        if hosts.len() <= LINES_MAX {
            for (name, host) in hosts {
                self.controls.progress(&status(name, host).to_string());
            }
        }
        self.controls
            .progress(&status_of("all", &sum_of(hosts), None).to_string());
    }
}
