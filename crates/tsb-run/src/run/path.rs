//! Carries samples from the emitter into a store: by a call in this process, or through sockets.

mod directly;
mod requests;
mod watch;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tsb_core::breakdown::Breakdown;
use tsb_core::emit::{
    self, Counts, Ended, ExceptionKind, Live, Operation, Outcome, PhaseCpu, Settings, Source, Target, Writes,
};
use tsb_core::latency::Recording;
use tsb_core::net::{
    Address, AnyListener, Carrier, IngestCpu, Interrupter, ListenOptions, ListenerStats, NetError, Runtime,
    TargetReport,
};
use tsb_core::schedule::{Slot, Timetable};
use tsb_core::workload::{Generator, Workload};
use tsb_core::{Batch, Timestamp};
use tsb_stores::{AsyncStore, Error as StoreError, Store};

use super::loss_window::LossWindow;
use super::monitor::LOOK_NS;
use super::queries::WrittenTimes;
use super::rejects::Rejects;
use super::remote;
use super::route::{self, Route};
use super::run_context::RunContext;
use super::sink::{SinkTotals, StoreSink, Writer};
use crate::controls::RelayStarter;
use crate::error::Error;
use crate::plan::Transport;
use crate::units;

use watch::Timings;
pub use watch::Watch;
pub(super) use watch::lock;

/// The in-process target adds its counts to the shared ones this often.
const PUBLISH_EVERY: u32 = 256;

/// A workload's generator as the emitter's source.
#[derive(Debug)]
pub(super) struct Fleet<'w>(pub Generator<'w>);

impl Source for Fleet<'_> {
    type Kind = Writes;

    fn prepare(&mut self, slot: &Slot) -> Batch<'_> {
        self.0.operation(slot.group as usize, slot.tick)
    }
}

/// Hands batches to a store in the same thread.
#[derive(Debug)]
struct Inproc {
    writer: Writer,
    totals: Arc<SinkTotals>,
    unpublished: u32,
}

impl Target for Inproc {
    fn send(&mut self, operation: &Operation<'_>) -> Outcome {
        self.unpublished += 1;
        if self.unpublished == PUBLISH_EVERY {
            self.idle();
        }
        match self.writer.write(&operation.payload, Some(operation.due)) {
            Ok((accepted, rejected)) => Outcome::Done {
                accepted: accepted as u32,
                rejected: rejected as u32,
            },
            // A server may come back: what is due later is tried again.
            Err(error @ (StoreError::Unknown { .. } | StoreError::Unanswered { .. })) => {
                self.totals.hinder(error);
                Outcome::Unknown
            }
            Err(error @ StoreError::Unreachable { .. }) => {
                self.totals.hinder(error);
                Outcome::Shed
            }
            Err(error) => {
                self.totals.fail(error);
                Outcome::Fatal
            }
        }
    }

    fn idle(&mut self) {
        self.unpublished = 0;
        self.writer.publish();
    }
}

/// One pass over a path: what is driven, and when.
pub struct Pass<'a> {
    /// The plan, the workload and the clock.
    pub context: &'a RunContext,
    /// When each operation is due.
    pub timetable: &'a Timetable,
    /// The store that receives the samples.
    pub store: Arc<dyn Store>,
    /// The same store, if it takes many writes at a time.
    pub client: Option<&'a Arc<dyn AsyncStore>>,
    /// When it starts, on the clock.
    pub start_ns: u64,
    /// The timestamp of that moment.
    pub base: Timestamp,
    /// Ends it early.
    pub stop: &'a AtomicBool,
    /// Counters to watch.
    pub live: &'a Live,
    /// What sinks and in-process targets counted.
    pub totals: Arc<SinkTotals>,
    /// What was refused.
    pub rejects: Arc<Rejects>,
    /// Where waits for a higher durability are measured, if there is one.
    pub window: Option<&'a Arc<LossWindow>>,
    /// Where the sinks say how far they have written, if queries need to know.
    pub written: Option<&'a Arc<WrittenTimes>>,
    /// The listener while it runs, for the monitor.
    pub listening: &'a Watch,
    /// What stands between emitter and listener.
    pub start_relay: Option<&'a RelayStarter>,
    /// The folder for Unix sockets.
    pub sockets: &'a Path,
}

impl std::fmt::Debug for Pass<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass")
            .field("store", &self.store)
            .field("start_ns", &self.start_ns)
            .finish_non_exhaustive()
    }
}

/// What a pass came to.
#[derive(Debug, Default)]
pub struct PassResult {
    /// When it started, on the clock.
    pub start_ns: u64,
    /// How much later that was than planned: all samples were sent that much later than their timestamps
    /// say.
    pub late_start_ns: u64,
    /// From the first due time to the planned end or the last acceptance, if that is later.
    pub elapsed_ns: u64,
    /// From the first due time to the planned end; where the run was cut short, until then.
    pub asked_ns: u64,
    /// What the emitter counted.
    pub counts: Counts,
    /// The ticks of each group that were issued.
    pub issued: Vec<Range<u64>>,
    /// Issued operations that the target shed, that may have been applied or not, or that
    /// did not arrive whole: (group, ticks).
    pub exceptions: Vec<(u32, Range<u64>, ExceptionKind)>,
    /// Exceptions that are not in the list.
    pub exceptions_dropped: u64,
    /// Due until done.
    pub response: Recording,
    /// Start until read by a listener of ours that answers nothing; empty elsewhere.
    pub delivery: Recording,
    /// Start until done, or read until done.
    pub service: Recording,
    /// Samples in the operations that response, delivery and service are of.
    pub timed_samples: u64,
    /// Due until start.
    pub lag: Recording,
    /// The part of the lag that is our own.
    pub own_lag: Recording,
    /// What response times consist of.
    pub breakdown: Breakdown,
    /// Samples in the operations that lag and own_lag are of.
    pub started_samples: u64,
    /// CPU of the emitting threads.
    pub cpu: PhaseCpu,
    /// Time inside targets over all emitting threads, in nanoseconds.
    pub busy_ns: u64,
    /// What is only known of a wire.
    pub wire: Option<Wire>,
    /// The stop flag ended it: set by the user, by a supervisor, or by another host.
    pub interrupted: bool,
    /// Panics and lost connections, in words.
    pub failures: Vec<String>,
    /// Whether the emitter did not return, so that this was reconstructed from shared counters.
    pub is_partial: bool,
    /// Samples of operations that may have been sent and cannot be identified.
    pub unnamed_samples: u64,
    /// The most writes that were in flight at a time; 0 where each worker waits for its answer.
    pub most_in_flight: usize,
}

/// What is only known of a wire.
#[derive(Debug, Default)]
pub struct Wire {
    /// Bytes that the kernel took.
    pub sent_bytes: u64,
    /// Samples that were encoded and never left.
    pub unsent_samples: u64,
    /// Samples that the protocol cannot carry.
    pub skipped_samples: u64,
    /// Operations that nobody timed.
    pub untimed: u64,
    /// Of these, operations that did not arrive whole.
    pub lost_operations: u64,
    /// How the connections ended, in the words of a target's report, and how many did so.
    pub closings: BTreeMap<&'static str, u64>,
    /// Whether it is known of every operation that was handed over, whether it arrived.
    pub are_marked: bool,
    /// Whether all operations that did not arrive whole are named in [`PassResult::exceptions`].
    pub are_lost_named: bool,
    /// Datagrams that the kernel took.
    pub sent_datagrams: u64,
    /// Datagrams that one call may bring; 1 without segmentation.
    pub segments: u64,
    /// What the kernel granted each socket to send with.
    pub send_buffer_bytes: u64,
    /// What the listener saw, where it was ours.
    pub stats: Option<ListenerStats>,
    /// What the kernel granted it as receive buffer.
    pub receive_buffer_bytes: Option<u64>,
    /// CPU of the threads that decoded and applied, where the listener was ours.
    pub ingest_cpu: IngestCpu,
    /// CPU of the threads that carry the sockets, in nanoseconds.
    pub net_cpu_ns: u64,
}

impl Wire {
    /// Adds what a target or a connection did. Its errors go into `failures`.
    fn add(&mut self, report: &TargetReport, failures: &mut Vec<String>) {
        *self.closings.entry(remote::word(report.closing)).or_default() += 1;
        self.sent_bytes += report.written_bytes;
        self.unsent_samples += report.unsent_samples;
        self.skipped_samples += report.skipped_samples;
        self.untimed += report.untimed;
        self.sent_datagrams += report.datagrams;
        self.segments = report.segments;
        self.send_buffer_bytes = report.granted.send_bytes as u64;
        // The user knows of an interruption.
        let failed = report
            .errors
            .iter()
            .filter(|error| !matches!(error, NetError::Interrupted { .. }));
        failures.extend(failed.map(ToString::to_string));
    }
}

/// The server at `address` cannot be reached, or does not agree.
fn unreachable_server(address: &Address, error: &NetError) -> Error {
    let hint = match error {
        NetError::Answered { .. } => "something answers there: check the protocol, the port and the database",
        _ => "start the server first, or check the address",
    };
    Error::unreachable(format!("cannot send to {address}"))
        .because(error)
        .hint(hint)
}

impl PassResult {
    /// Takes the times over that were recorded where operations ended, and the operations that did
    /// not arrive whole.
    fn time_by(&mut self, timings: Timings) {
        self.exceptions.extend(lost_ticks(timings.named));
        self.response = timings.response.recording();
        self.delivery = timings.delivery.recording();
        self.service = timings.service.recording();
        self.breakdown = timings.breakdown;
        self.timed_samples = timings.samples;
    }

    /// A note on a pass that began so late that the ages of its samples show it.
    pub fn late_start_note(&self, context: &RunContext) -> Option<String> {
        let is_seen = self.late_start_ns >= LOOK_NS && !context.plan.is_closed_loop();
        is_seen.then(|| {
            format!(
                "all samples were sent {} later than their timestamps say, and look that much older: sending was \
                 not ready at the start",
                units::exact_duration(self.late_start_ns / 1_000_000 * 1_000_000)
            )
        })
    }

    /// Ends the pass with the last acceptance, if that is later than the planned end.
    fn end_with_last_acceptance(&mut self, totals: &SinkTotals) {
        let last_ns = totals.last_ns.load(Ordering::Relaxed);
        self.elapsed_ns = self.elapsed_ns.max(last_ns.saturating_sub(self.start_ns));
    }
}

impl Pass<'_> {
    /// Drives the whole pass and waits for its end.
    ///
    /// # Errors
    /// If the listener, a connection or the emitter cannot be started.
    pub fn drive(&self) -> Result<PassResult, Error> {
        match (self.context.plan.transport, self.client) {
            (Transport::Inproc, Some(client)) => self.directly(client),
            (Transport::Inproc, None) => self.inproc(),
            _ => self.wire(),
        }
    }

    /// The protocol and the transport of the plan, untimed.
    pub(super) fn route(&self) -> Route {
        Route::new(
            self.context.plan.protocol,
            self.context.plan.transport,
            &self.context.clock,
        )
    }

    fn writer(&self) -> Writer {
        Writer::new(
            Arc::clone(&self.store),
            Arc::clone(&self.rejects),
            Arc::clone(&self.totals),
        )
        .with_window(self.window)
    }

    /// By calls of the store in this process, whatever the plan says.
    pub(super) fn inproc(&self) -> Result<PassResult, Error> {
        let report = self.emit(|| {
            Ok(Inproc {
                writer: self.writer(),
                totals: Arc::clone(&self.totals),
                unpublished: 0,
            })
        })?;
        Ok(self.driven(report).0)
    }

    /// Over sockets of this machine into a listener of our own.
    fn wire(&self) -> Result<PassResult, Error> {
        let runtime = route::runtime()?;
        let route = self.route().timed();
        let listener = self.listen(&route, &runtime)?;
        let address = match (self.start_relay, listener.address()) {
            (Some(start_relay), Address::Inet(address)) => Address::Inet(start_relay(*address)),
            (_, address) => address.clone(),
        };
        let granted = listener.granted();
        self.listening.begin(listener);
        // An answer is when an operation is done, as its sender sees it.
        let is_answered = self.context.plan.transport.is_answered();
        // Datagrams bear the address of the relay that passed them on.
        let is_relayed = self.start_relay.is_some() && self.context.plan.transport.may_lose();
        let are_marked = !is_answered && !is_relayed;
        let route = if are_marked { route } else { self.route() };
        let (mut driven, mut wire) = self.send(&route, &address, None)?;
        if is_relayed {
            self.await_silence();
        }
        if let Some(report) = self.listening.stop(&*self.context.clock) {
            wire.ingest_cpu = report.cpu;
            wire.stats = Some(report.stats);
            wire.receive_buffer_bytes = Some(granted.receive_bytes as u64);
        }
        let timings = self.listening.take_timings();
        wire.lost_operations = timings.lost;
        wire.untimed += timings.lost;
        if !is_answered {
            let (lost, known) = (timings.lost, timings.response.total.count() + wire.untimed);
            wire.are_marked = known == driven.counts.handed_over.operations;
            wire.are_lost_named = wire.are_marked && wire.untimed == lost && timings.named.len() as u64 == lost;
            driven.time_by(timings);
        }
        driven.end_with_last_acceptance(&self.totals);
        wire.net_cpu_ns += runtime.stop();
        driven.wire = Some(wire);
        Ok(driven)
    }

    /// Waits until the relay has passed on what it has: nobody says when that is.
    fn await_silence(&self) {
        const SILENCE_NS: u64 = 300_000_000;
        let clock = &self.context.clock;
        let bytes = || self.listening.bytes();
        let mut seen = bytes();
        loop {
            clock.wait_until(clock.now() + SILENCE_NS);
            let now = bytes();
            if now == seen {
                return;
            }
            seen = now;
        }
    }

    /// Runs the emitter with a target for each worker.
    pub(super) fn send(
        &self,
        route: &Route,
        address: &Address,
        interrupters: Option<&Mutex<Vec<Interrupter>>>,
    ) -> Result<(PassResult, Wire), Error> {
        if self.context.plan.has_requests_in_flight() {
            return self.requests(route, address, interrupters);
        }
        let report = self.emit(|| {
            let (plan, workload) = (&self.context.plan, &self.context.workload);
            let target = route.connect(address, &plan.wire, plan.workers, workload, Workload::catalog);
            let target = target.inspect(|target| {
                if let Some(interrupters) = interrupters {
                    lock(interrupters).push(target.interrupter());
                }
            });
            target.map_err(|error| unreachable_server(address, &error))
        })?;
        let (mut driven, targets) = self.driven(report);
        let mut wire = Wire::default();
        for target in targets {
            wire.add(&target.finish(), &mut driven.failures);
        }
        Ok((driven, wire))
    }

    fn listen(&self, route: &Route, runtime: &Runtime) -> Result<AnyListener, Error> {
        self.listening
            .since(self.start_ns, self.context.plan.report_interval_ns);
        let registry = route::only(
            self.context.workload.catalog().clone(),
            self.context.plan.max_series as usize,
        );
        let (store, rejects, totals) = (
            Arc::clone(&self.store),
            Arc::clone(&self.rejects),
            Arc::clone(&self.totals),
        );
        let (clock, window) = (Arc::clone(&self.context.clock), self.window.cloned());
        let written = self.written.cloned();
        route.listen_here(runtime, self.sockets, self.listen_options(), move || {
            let writer = Writer::new(Arc::clone(&store), Arc::clone(&rejects), Arc::clone(&totals));
            StoreSink::new(writer.with_window(window.as_ref()), Arc::clone(&registry))
                .with_clock(Arc::clone(&clock))
                .with_written(written.clone())
        })
    }

    fn listen_options(&self) -> ListenOptions {
        let plan = &self.context.plan;
        let is_datagrams = plan.transport.carrier() == Carrier::Datagrams;
        ListenOptions {
            ingest_threads: plan.workers,
            // Every socket of ours is one sender.
            max_connections: ListenOptions::default()
                .max_connections
                .max(plan.wire.sockets + plan.workers + plan.http_connections()),
            receive_buffer_bytes: is_datagrams.then(|| plan.wire.receive_buffer(self.context.workload.catalog().len())),
            gro: plan.wire.gro,
            // Some fleets report once in a day.
            idle_timeout: None,
            ..ListenOptions::default()
        }
    }

    /// Runs the emitter with a target for each worker.
    fn emit<T: Target + Send>(
        &self,
        mut target: impl FnMut() -> Result<T, Error>,
    ) -> Result<emit::Report<Fleet<'_>, T>, Error> {
        let ranges = self.timetable.roster.split(self.context.plan.workers);
        let mut workers = Vec::with_capacity(ranges.len());
        for groups in ranges {
            let indexes = groups.start as usize..groups.end as usize;
            workers.push(emit::Worker {
                groups,
                source: Fleet(self.context.workload.generator(indexes, self.base)),
                target: target()?,
            });
        }
        let run = emit::Run {
            clock: &*self.context.clock,
            timetable: self.timetable,
            stop: self.stop,
            live: self.live,
            settings: Settings {
                start_ns: Some(self.start_ns.max(self.context.clock.now())),
                interval_ns: self.context.plan.report_interval_ns,
                sent_share: self.context.workload.sent_share(),
                ..Settings::default()
            },
        };
        emit::run(&run, workers).map_err(|error| Error::internal("cannot start the emitter").because(&error))
    }

    /// The part that all transports share; and the targets, to be asked for theirs.
    fn driven<T>(&self, report: emit::Report<Fleet<'_>, T>) -> (PassResult, Vec<T>) {
        let groups = self.context.workload.groups().len();
        let mut issued = vec![0..0; groups];
        let mut exceptions = Vec::new();
        let mut failures = Vec::new();
        let mut busy_ns = 0;
        for worker in &report.workers {
            for group in worker.groups.clone() {
                issued[group as usize] = worker.issued_ticks(self.timetable, group);
            }
            let named = worker.exceptions.iter();
            exceptions.extend(named.map(|exception| (exception.group, exception.ticks.clone(), exception.kind)));
            if let Ended::Panicked(message) = &worker.ended {
                failures.push(format!("a worker panicked: {message}"));
            }
            busy_ns += worker.busy_ns;
        }
        let driven = PassResult {
            start_ns: report.start_ns,
            late_start_ns: report.start_ns.saturating_sub(self.start_ns),
            elapsed_ns: report.elapsed_ns(),
            asked_ns: report.asked_ns(),
            counts: report.counts,
            issued,
            exceptions,
            exceptions_dropped: report.workers.iter().map(|worker| worker.exceptions_dropped).sum(),
            response: Recording::default(),
            delivery: Recording::default(),
            service: Recording::default(),
            timed_samples: report.latency.done_samples,
            lag: Recording::default(),
            own_lag: Recording::default(),
            breakdown: Breakdown::new(),
            started_samples: report.latency.started_samples,
            cpu: report.cpu(),
            busy_ns,
            wire: None,
            interrupted: report.workers.iter().any(|worker| worker.ended == Ended::Stopped),
            failures,
            is_partial: false,
            unnamed_samples: 0,
            most_in_flight: 0,
        };
        let emit::Report { latency, workers, .. } = report;
        let targets = workers.into_iter().map(|worker| worker.target).collect();
        let driven = PassResult {
            response: latency.response,
            service: latency.service,
            lag: latency.lag,
            own_lag: latency.own_lag,
            breakdown: latency.breakdown,
            ..driven
        };
        (driven, targets)
    }
}

/// Operations by group, their ticks in a row as one entry.
fn lost_ticks(mut named: Vec<(u32, u64)>) -> Vec<(u32, Range<u64>, ExceptionKind)> {
    named.sort_unstable();
    let mut all: Vec<(u32, Range<u64>, ExceptionKind)> = Vec::new();
    for (group, tick) in named {
        match all.last_mut() {
            Some((last, ticks, _)) if *last == group && ticks.end == tick => ticks.end += 1,
            _ => all.push((group, tick..tick + 1, ExceptionKind::Lost)),
        }
    }
    all
}

/// How much was accepted so far, whichever way it went.
pub(super) fn accepted(live: &Live, totals: &SinkTotals, transport: Transport) -> u64 {
    match transport {
        // The workers count what a call has answered, the sinks what a client answers later.
        Transport::Inproc => live.totals().accepted.max(totals.accepted.load(Ordering::Relaxed)),
        _ => totals.accepted.load(Ordering::Relaxed),
    }
}
