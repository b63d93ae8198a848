//! Fills a store with history before the clock of a run starts: the same fleet from an earlier
//! moment on, in this process, as fast as the store takes it.
//!
//! The history ends where the timestamps of the run begin, so there is no gap between them; the
//! run starts when the store has taken all of it and flushed it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::Timestamp;
use tsb_core::emit::Live;
use tsb_core::ledger::{Counter, Ledger};
use tsb_core::report::PreloadReport;
use tsb_core::schedule::{Pace, Schedule, Timetable};
use tsb_core::time::SECOND_NS;
use tsb_core::workload::Workload;
use tsb_stores::{Scope, Store};

use super::calls::Calls;
use super::path::{Pass, PassResult, Watch};
use super::rejects::Rejects;
use super::run_context::{RunContext, timetable};
use super::sink::SinkTotals;
use crate::audit::History;
use crate::beside::{beside, resumed};
use crate::controls::Controls;
use crate::error::Error;
use crate::plan::Plan;
use crate::units;

/// The history of a plan whose run begins at timestamp `base`; empty if it asks for none.
///
/// # Errors
/// If the plan's schedule cannot be followed.
pub fn history(plan: &Plan, workload: &Workload, base: Timestamp) -> Result<History, Error> {
    let Some(length_ns) = plan.preload_ns else {
        return Ok(History::default());
    };
    let roster = timetable(plan, workload)?.roster;
    Ok(History::before(base, length_ns, workload, &roster))
}

/// The same of a run that is planned already.
pub(crate) fn history_of(context: &RunContext, base: Timestamp) -> History {
    let length_ns = context.plan.preload_ns.unwrap_or(0);
    History::before(base, length_ns, &context.workload, &context.timetable.roster)
}

/// What was written before the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preloaded {
    /// The timestamp at which it ends and the run begins.
    pub(super) base: Timestamp,
    length_ns: u64,
    accepted: u64,
    rejected: u64,
    took_ns: u64,
}

impl Preloaded {
    /// Samples that the store accepted.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }

    /// For the report.
    pub(super) fn report(&self) -> PreloadReport {
        let mut report = PreloadReport::default();
        report.length_ns = self.length_ns;
        report.accepted = self.accepted;
        report.rejected = self.rejected;
        report.took_ns = self.took_ns;
        report
    }

    /// Adds its samples to the counts of the run, in which the rejected ones are already.
    pub(super) fn count(&self, counts: &mut Ledger) {
        let sent = self.accepted + self.rejected;
        for (counter, samples) in [
            (Counter::Due, sent),
            (Counter::Sent, sent),
            (Counter::Accepted, self.accepted),
        ] {
            counts.add(counter, samples);
        }
        for (counter, samples) in [
            (Counter::Received, sent),
            (Counter::Confirmed, self.accepted),
            (Counter::Refused, self.rejected),
        ] {
            if counts.get(counter).is_some() {
                counts.add(counter, samples);
            }
        }
    }

    /// What a reader has to know.
    pub(super) fn note(&self) -> String {
        format!(
            "the store held {} of history ({} samples) when the clock started, written in {} and flushed; the ledger counts it, \
             and rates, times and CPU leave it out",
            units::exact_duration(self.length_ns),
            units::count(self.accepted),
            units::nanos(self.took_ns),
        )
    }
}

/// Writes the history that the plan asks for. `raw` is the store that is written to, and `store`
/// the one that all other calls go through.
///
/// # Errors
/// If the store did not take it, or a stop was asked for meanwhile.
pub(super) fn fill(
    context: &RunContext,
    raw: &Arc<dyn Store>,
    store: &dyn Store,
    controls: &Controls,
    (calls, rejects): (&Arc<Calls>, &Arc<Rejects>),
) -> Result<Option<Preloaded>, Error> {
    let Some(length_ns) = context.plan.preload_ns else {
        return Ok(None);
    };
    controls.note(&format!("writing {} of history", units::exact_duration(length_ns)));
    let of_all = controls.start.as_ref().and_then(|barrier| barrier.history_end());
    let base = of_all.unwrap_or_else(|| Timestamp::from_secs(context.clock.wall().as_secs()));
    let begun_ns = context.clock.now();
    let live = Live::new(context.plan.workers);
    let totals = Arc::new(SinkTotals::with_calls(calls));
    let timetable = Timetable {
        roster: context.timetable.roster.clone(),
        pace: Pace::Shape(Schedule::Unpaced),
        end_ns: None,
        fleet_end_ns: Some(length_ns),
    };
    let pass = Pass {
        context,
        timetable: &timetable,
        store: Arc::clone(raw),
        client: None,
        start_ns: begun_ns,
        base: base + -(length_ns as i64),
        stop: &controls.stops.stop,
        live: &live,
        totals: Arc::clone(&totals),
        rejects: Arc::clone(rejects),
        window: None,
        written: None,
        listening: &Watch::default(),
        start_relay: None,
        sockets: &controls.sockets,
    };
    let driven = shown(context, controls, &live, || pass.inproc())?;
    check(store, &driven, &totals)?;
    let flushed = store.flush(Scope::All, store.capabilities().reaches);
    flushed.map_err(|error| Error::calling(format!("cannot flush the history in {store}"), &error))?;
    Ok(Some(Preloaded {
        base,
        length_ns,
        accepted: driven.counts.accepted,
        rejected: driven.counts.rejected,
        took_ns: context.clock.now().saturating_sub(begun_ns),
    }))
}

/// Fills, and tells the observer once per second how much is written.
fn shown<T>(context: &RunContext, controls: &Controls, live: &Live, fill: impl FnOnce() -> T) -> T {
    let clock = &context.clock;
    let tell = |is_over: &AtomicBool| {
        let mut told_ns = clock.now();
        while !is_over.load(Ordering::Acquire) {
            clock.wait_until(clock.now() + SECOND_NS / 50);
            if clock.now() - told_ns >= SECOND_NS {
                told_ns = clock.now();
                let written = units::count(live.totals().accepted);
                controls.progress(&format!("  {written} samples of history written"));
            }
        }
    };
    let (filled, told) = beside(tell, fill);
    resumed(told);
    resumed(filled)
}

/// Refuses a history of which not every sample was answered for.
fn check(store: &dyn Store, driven: &PassResult, totals: &SinkTotals) -> Result<(), Error> {
    let what = || format!("cannot write the history into {store}");
    if let Some(error) = totals.failure() {
        return Err(Error::plan(what()).because(&*error));
    }
    if let Some(failure) = driven.failures.first() {
        return Err(Error::internal(what()).because_of(failure.clone()));
    }
    if driven.interrupted {
        return Err(Error::interrupted(what()).because_of("it was stopped before all of it was there"));
    }
    let counts = &driven.counts;
    if counts.done == counts.due {
        return Ok(());
    }
    let open = counts.due.samples - counts.done.samples.min(counts.due.samples);
    let failure = Error::unreachable(what());
    Err(match totals.hindrance() {
        Some(error) => failure.because(&*error),
        None => failure,
    }
    .because_of(format!("{} samples were not answered for", units::count(open))))
}
