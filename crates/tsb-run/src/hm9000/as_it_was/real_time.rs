//! As it was, on a real store and by the machine's clock: a ticker, the listener and the fetcher,
//! each in a thread of its own as they were processes of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use tsb_core::time::{Clock, SECOND_NS};
use tsb_stores::Result;
use tsb_stores::keyed::KeyedStore;

use super::until::Until;
use super::{FETCH_S, Heard, Report, cluster};
use crate::error::Error;
use crate::hm9000::defects::{Defect, Defects};
use crate::hm9000::listener::{Heartbeat, Heartbeats, Listener, fetch_desired, poll};
use crate::hm9000::simulator::{Event, Simulator, SimulatorOptions};
use crate::hm9000::truth::Truth;

/// Messages that wait for the listener at most; then the bus blocks the ticker.
const BUS: usize = 8_192;
/// Of the polls that say fresh, the first is checked by a scan, and then one in this many.
const CHECK_EVERY: usize = 5;

/// A run as it was by the machine's clock.
#[derive(Clone, Debug)]
pub struct RealTime {
    /// The cluster.
    pub simulator: SimulatorOptions,
    /// The defects in force.
    pub defects: Defects,
    /// Length of the run, in seconds.
    pub seconds: u64,
    /// Ends the run early.
    pub stop: Arc<AtomicBool>,
}

/// What the bus carries, with the time at which it was published.
type Message = (u64, Heard);

/// What the listener counts.
#[derive(Default)]
struct Syncs {
    failed: u64,
    slow: u64,
}

impl RealTime {
    /// Runs it on an empty store. Errors of the store become lines, as they did.
    ///
    /// # Errors
    /// [`Error::Internal`] if a thread cannot be started or has panicked.
    pub fn run(&self, store: &Arc<dyn KeyedStore>, clock: &Arc<dyn Clock>) -> std::result::Result<Report, Error> {
        // What the listener and the fetcher have not written when the run ends is not waited for.
        let until = Arc::new(Until {
            store: Arc::clone(store),
            is_over: AtomicBool::new(false),
        });
        let (bus, heard) = sync_channel(BUS);
        let (fetches, wanted) = sync_channel(1);
        std::thread::scope(|scope| {
            let listening = scope.spawn({
                let until = Arc::clone(&until);
                move || self.listen(&until, clock, &heard)
            });
            let fetching = scope.spawn({
                let until = Arc::clone(&until);
                move || fetch(&until, clock, &wanted)
            });
            let report = self.tick(
                Simulator::new(cluster(self.simulator, &self.defects)),
                store,
                &**clock,
                (&bus, &fetches),
            );
            until.is_over.store(true, Ordering::Release);
            drop((bus, fetches));
            let (listened, fetched) = (listening.join(), fetching.join());
            let syncs = fetched.and(listened).map_err(|panic| {
                Error::internal("a thread of the experiment panicked").because_of(crate::panic_message(&*panic))
            })?;
            let mut report = report.map_err(|error| Error::internal("cannot tick").because(&error))?;
            (report.syncs_failed, report.syncs_slow) = (syncs.failed, syncs.slow);
            Ok(report)
        })
    }

    /// Ticks, sleeps for a second, and asks.
    fn tick(
        &self,
        mut simulator: Simulator,
        store: &Arc<dyn KeyedStore>,
        clock: &dyn Clock,
        (bus, fetches): (&SyncSender<Message>, &SyncSender<Simulator>),
    ) -> Result<Report> {
        let mut report = Report::default();
        let (mut truth, mut heartbeats) = (Truth::default(), Heartbeats::default());
        let is_coordinated = self.defects.has(Defect::CoordinatedTick);
        let (start, mut fresh_polls) = (clock.now(), 0_usize);
        for second in 0..self.seconds {
            if second.is_multiple_of(FETCH_S) {
                // A fetch that still runs is not asked again.
                let _ = fetches.try_send(simulator.clone());
            }
            truth.learn(&simulator)?;
            let began = clock.now();
            publish(&mut simulator, began, bus, |simulator, dea| {
                truth.report(simulator, dea, began);
                heartbeats.of(simulator, dea)
            })?;
            report.ticked(clock.now() - began);
            let due = if is_coordinated {
                clock.now() + SECOND_NS
            } else {
                start + (second + 1) * SECOND_NS
            };
            clock.wait_until(due);
            let answer = poll(store, clock);
            let elapsed = clock.now() - start;
            let is_fresh = matches!(&answer, Ok(keys) if keys.is_fresh());
            let is_checked = is_fresh && fresh_polls.is_multiple_of(CHECK_EVERY);
            fresh_polls += usize::from(is_fresh);
            // A scan that fails finds nothing out; the poll stands as it is.
            let gap = is_checked.then(|| truth.gap(store, clock.now()).ok()).flatten();
            report.polled(elapsed, &answer, gap);
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(report)
    }

    fn listen(&self, store: &Arc<Until>, clock: &Arc<dyn Clock>, heard: &Receiver<Message>) -> Syncs {
        let mut syncs = Syncs::default();
        let mut listener = Listener::with_defects(Arc::clone(store), Arc::clone(clock), self.defects.clone());
        let mut next_sync = clock.now() + SECOND_NS;
        loop {
            let left = Duration::from_nanos(next_sync.saturating_sub(clock.now()));
            match heard.recv_timeout(left) {
                // A failed bump or count was logged, and nothing followed from it.
                Ok((at, Heard::Advertise)) => drop(listener.hear_advertise(at)),
                Ok((at, Heard::Heartbeat(heartbeat))) => drop(listener.hear_heartbeat(heartbeat, at)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return syncs,
            }
            let began = clock.now();
            if began >= next_sync {
                let synced = listener.sync();
                if store.is_over.load(Ordering::Acquire) {
                    return syncs;
                }
                syncs.failed += u64::from(synced.is_err());
                syncs.slow += u64::from(synced.is_ok() && clock.now() - began >= SECOND_NS);
                next_sync = (next_sync + SECOND_NS).max(clock.now());
            }
        }
    }
}

/// One second of the cluster. Fails if an identifier is no key, which cannot be.
fn publish(
    simulator: &mut Simulator,
    now: u64,
    bus: &SyncSender<Message>,
    mut heartbeat: impl FnMut(&Simulator, u32) -> Result<Heartbeat>,
) -> Result<()> {
    let mut outcome = Ok(());
    simulator.tick(|simulator, event| {
        let message = match event {
            Event::Advertise(_) => Ok(Heard::Advertise),
            Event::Heartbeat(dea) => heartbeat(simulator, dea).map(Heard::Heartbeat),
        };
        match message {
            // The listener goes only after the ticker.
            Ok(message) => drop(bus.send((now, message))),
            Err(error) => outcome = Err(error),
        }
    });
    outcome
}

fn fetch(store: &Arc<Until>, clock: &Arc<dyn Clock>, wanted: &Receiver<Simulator>) {
    while let Ok(simulator) = wanted.recv() {
        // A fetch that fails leaves the desired state as it was; the next one is a minute later.
        let _ = fetch_desired(store, &**clock, &simulator);
    }
}
