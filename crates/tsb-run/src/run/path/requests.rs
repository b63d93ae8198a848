//! Sends over HTTP with several requests outstanding: hands the operations over to the connections,
//! and each ends when its answer comes.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use tsb_core::Durability;
use tsb_core::emit::Outcome;
use tsb_core::net::{Address, HttpSender, Interrupter};
use tsb_core::workload::Workload;
use tsb_stores::{Ack, Error as StoreError, Position, Refusals, Result as StoreResult, WriteLane};

use super::{Pass, PassResult, Wire, lock};
use crate::error::Error;
use crate::run::rejects::Rejects;
use crate::run::route::Route;
use crate::run::sink::SinkTotals;

impl Pass<'_> {
    /// Runs the emitter over the connections of a pool, and waits until every request has ended.
    pub(super) fn requests(
        &self,
        route: &Route,
        address: &Address,
        interrupters: Option<&Mutex<Vec<Interrupter>>>,
    ) -> Result<(PassResult, Wire), Error> {
        let plan = &self.context.plan;
        let pool = route
            .connect_pool(address, plan, &self.context.workload, Workload::catalog)
            .map_err(|error| super::unreachable_server(address, &error))?;
        if let Some(interrupters) = interrupters {
            lock(interrupters).push(pool.interrupter());
        }
        // What the listener's store did is counted where it happened; these are the sender's counts.
        let (totals, rejects) = (Arc::new(SinkTotals::default()), Arc::new(Rejects::new()));
        let serve = |lane| {
            pool.handle().spawn(send_lane(pool.sender(), lane));
            Ok(())
        };
        self.listening.since(self.start_ns, plan.report_interval_ns);
        let mut driven = self.hand_over((&totals, &rejects), None, &serve)?;
        self.listening.cut(self.context.clock.now());
        driven.time_by(self.listening.take_timings());
        driven
            .failures
            .extend(totals.failure().map(|error| crate::error::chain(&*error)));
        let mut wire = Wire::default();
        let (reports, cpu_ns) = pool.finish();
        for report in &reports {
            wire.add(report, &mut driven.failures);
        }
        wire.net_cpu_ns = cpu_ns;
        Ok((driven, wire))
    }
}

/// Makes the writes of a lane until it is over.
async fn send_lane(sender: HttpSender, mut lane: Box<dyn WriteLane>) {
    // An answer counts refused samples, and does not name them.
    let nameless = Refusals::new();
    while poll_fn(|context| lane.poll_next(context)).await {
        let outcome = sender.write(&lane.batch()).await;
        lane.done(result_of(outcome), &nameless);
    }
}

/// An outcome as a client of a server returns it. The report of the connection has the cause.
fn result_of(outcome: Outcome) -> StoreResult<Ack> {
    let (action, source) = ("send a request".to_owned(), "see the failures of its connection".into());
    match outcome {
        Outcome::Done { accepted, rejected } => Ok(Ack::new(
            accepted as usize,
            rejected as usize,
            Position(0),
            Durability::Unconfirmed,
        )),
        Outcome::Shed => Err(StoreError::Unreachable { action, source }),
        Outcome::Sent | Outcome::Unknown | Outcome::Fatal => Err(StoreError::Unknown { action, source }),
    }
}
