//! Reads everything back after a run, and audits it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tsb_core::Timestamp;
use tsb_core::emit::ExceptionKind;
use tsb_stores::Store;

use super::assemble::ledger_inputs;
use super::guarded_store::{caught, poisoned};
use super::preload::history_of;
use super::results::{Performed, ReadBack};
use super::run_context::RunContext;
use crate::audit::{Audit, Scope, is_unconfirmed, visibility_wait_ns};
use crate::beside::{beside, resumed};
use crate::controls::Controls;
use crate::observer::Phase;
use crate::units;

/// Audits the store. If it cannot be read, the result says why.
pub(super) fn read_back(
    context: &RunContext,
    store: &Arc<dyn Store>,
    base: Timestamp,
    performed: &Performed,
    controls: &Controls,
) -> ReadBack {
    let cpu_ns = AtomicU64::new(0);
    wait_until_visible(context, store, controls);
    let audited = audit(context, store, base, performed, &cpu_ns, controls);
    let mut read = ReadBack {
        cpu_ns: Some(cpu_ns.load(Ordering::Relaxed)),
        ..ReadBack::default()
    };
    match audited {
        Ok(audit) => read.audit = Some(audit),
        Err(error) => {
            let words = cannot("read back", store, &error);
            note(&error, words, &mut read.unread, &mut read.failure);
        }
    }
    read
}

/// Waits as long as the store states that an accepted sample may stay invisible.
fn wait_until_visible(context: &RunContext, store: &Arc<dyn Store>, controls: &Controls) {
    let wait_ns = visibility_wait_ns(&store.capabilities());
    if wait_ns > 0 {
        controls.note(&format!(
            "waiting {} ms, after which {store} states that all is visible",
            wait_ns / 1_000_000
        ));
        context.clock.wait_until(context.clock.now() + wait_ns);
    }
}

fn audit(
    context: &RunContext,
    store: &Arc<dyn Store>,
    base: Timestamp,
    performed: &Performed,
    cpu_ns: &AtomicU64,
    controls: &Controls,
) -> tsb_stores::Result<Audit> {
    let series = context.workload.catalog().len() as u64;
    controls.note(&format!("reading back {} series", units::count(series)));
    let history = history_of(context, base);
    let (rejected, _) = performed.rejects.named();
    let of_kinds = |wanted: &[ExceptionKind]| -> Vec<(u32, Range<u64>)> {
        let exceptions = performed.driven.exceptions.iter();
        let chosen = exceptions.filter(|(_, _, kind)| wanted.contains(kind));
        chosen.map(|(group, ticks, _)| (*group, ticks.clone())).collect()
    };
    let (unsent, unanswered) = (of_kinds(&[ExceptionKind::Shed]), of_kinds(&[ExceptionKind::Unknown]));
    let in_doubt = of_kinds(&[ExceptionKind::Unknown, ExceptionKind::Lost]);
    let scope = Scope {
        cpu_ns,
        store: &**store,
        workload: &context.workload,
        base,
        history: &history,
        since: context.since(base),
        ticks: &performed.driven.issued,
        rejected: &rejected,
        unsent: &unsent,
        unanswered: if context.plan.transport.is_wire() {
            &[]
        } else {
            &unanswered
        },
        is_cut_off: false,
        in_doubt: &in_doubt,
        unnamed: ledger_inputs(context, performed, &**store, None).unnamed(),
        is_unconfirmed: !context.plan.transport.is_wire() && is_unconfirmed(&store.capabilities()),
        clock: &*context.clock,
        heard: &performed.observed.heard,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let (done, clock) = (AtomicU64::new(0), &context.clock);
    let show = |is_over: &AtomicBool| {
        let mut shown = clock.now();
        while !is_over.load(Ordering::Acquire) {
            clock.wait_until(clock.now() + 20_000_000);
            controls.enter(Phase::ReadingBack(done.load(Ordering::Relaxed), series));
            if clock.now() - shown >= 1_000_000_000 {
                shown = clock.now();
                controls.progress(&format!(
                    "  {} of {} series read back",
                    units::count(done.load(Ordering::Relaxed)),
                    units::count(series)
                ));
            }
        }
    };
    let (audited, shown) = beside(show, || caught("the audit", || scope.run(&done)));
    resumed(shown);
    resumed(audited).unwrap_or_else(|said| Err(poisoned(&said)))
}

/// Words for a call that failed.
pub(super) fn cannot(verb: &str, store: &Arc<dyn Store>, error: &tsb_stores::Error) -> String {
    format!("cannot {verb} {store}: {}", crate::error::chain(error))
}

/// Stores the reason of a failed call. A server that does not answer says nothing about what it
/// holds, so that is `undone` and not a failure of the store.
pub(super) fn note(
    error: &tsb_stores::Error,
    words: String,
    undone: &mut Option<String>,
    failure: &mut Option<String>,
) {
    let place = if error.is_silence() { undone } else { failure };
    *place = Some(words);
}
