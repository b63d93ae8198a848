//! Starts the journal of a run and fills in its header.

use tsb_core::net::Carrier;
use tsb_core::proc::boot_id;
use tsb_core::{Durability, Timestamp};
use tsb_stores::Store;

use super::run_context::RunContext;
use crate::controls::Controls;
use crate::journal::{Acceptance, Followed, Follower, Header};
use crate::plan::{Plan, Transport};

/// Begins the journal of a run if one is wanted. A store without persistence cannot be checked
/// after the process has ended, so it gets a journal only if the user named one.
pub(super) fn follower<'a>(
    controls: &'a Controls,
    context: &RunContext,
    base: Timestamp,
    followed: Followed<'a>,
) -> Option<Follower<'a>> {
    let store = followed.store?;
    let journal = controls.journal.as_ref()?;
    let is_wanted = journal.is_named() || store.capabilities().persistent;
    is_wanted.then(|| Follower::begin(journal, header(context, store, base), followed))
}

/// The header of the journal of `tsb run`.
fn header(context: &RunContext, store: &dyn Store, base: Timestamp) -> Header {
    let capabilities = store.capabilities();
    let levels = (capabilities.acknowledges, capabilities.reaches);
    of_context("run", context, store.to_string(), base, levels)
}

/// The header of the journal of `tsb emit`, which sends to a server and knows nothing of its
/// store.
pub fn header_of_emit(context: &RunContext, server: String, base: Timestamp) -> Header {
    let level = Durability::Unconfirmed;
    of_context("emit", context, server, base, (level, level))
}

fn of_context(
    command: &str,
    context: &RunContext,
    store: String,
    base: Timestamp,
    (acknowledges, reaches): (Durability, Durability),
) -> Header {
    let workers = context.timetable.roster.split(context.plan.workers);
    Header {
        command: command.to_owned(),
        tsb_version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        boot_id: boot_id(),
        base_ns: base.0,
        since_ns: context.since(base).map(|since| since.0),
        store,
        plan: serde_json::to_value(&context.plan).unwrap_or_default(),
        workers: workers.into_iter().map(|groups| (groups.start, groups.end)).collect(),
        acknowledges,
        reaches,
    }
}

/// How the run learns that a sample was accepted, if the receiver is ours, or a client of this
/// process, which may take many writes at a time (`is_async`).
pub(super) fn acceptance(plan: &Plan, is_async: bool) -> Acceptance {
    match (plan.transport, plan.transport.carrier()) {
        (Transport::Inproc, _) if is_async => Acceptance::AnsweredLater,
        (Transport::Inproc, _) => Acceptance::Answered,
        (_, Carrier::Requests) => acceptance_of_emit(plan),
        (_, Carrier::Stream) => Acceptance::Stream,
        (_, Carrier::Datagrams) => Acceptance::Datagrams,
    }
}

/// The same for a foreign receiver.
pub fn acceptance_of_emit(plan: &Plan) -> Acceptance {
    match plan.transport.is_answered() {
        true if plan.has_requests_in_flight() => Acceptance::AnsweredLater,
        true => Acceptance::Answered,
        false => Acceptance::Silent,
    }
}
