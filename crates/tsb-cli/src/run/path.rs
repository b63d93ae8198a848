//! The way of a sample from the emitter into a store: a call, or a TCP connection.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsb_core::emit::{
    self, Counts, Ended, ExceptionKind, Live, Operation, Outcome, PhaseCpu, Settings, Source, Target,
};
use tsb_core::latency::{Interval, Recording};
use tsb_core::net::{
    EmitOptions, Intake, ListenOptions, Listener, ListenerStats, Mileposts, Registry, Runtime, TcpTarget, Timing,
};
use tsb_core::resource::cpu_of_threads;
use tsb_core::schedule::{Slot, Timetable};
use tsb_core::workload::Generator;
use tsb_core::{Batch, Timestamp};
use tsb_stores::Store;

use super::engine::Between;
use super::rejects::Rejects;
use super::sink::{SinkTotals, StoreSink, Writer};
use super::stage::Stage;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::plan::Transport;

/// Operations in flight that one connection can time.
const MILEPOSTS: usize = 1 << 16;
/// The in-process target adds its counts to the shared ones this often.
const PUBLISH_EVERY: u32 = 256;

/// A workload's generator as the emitter's source.
#[derive(Debug)]
pub(super) struct Fleet<'w>(pub Generator<'w>);

impl Source for Fleet<'_> {
    fn prepare(&mut self, slot: &Slot) -> Batch<'_> {
        self.0.operation(slot.group as usize, slot.tick)
    }
}

/// Hands batches to a store in the same thread.
#[derive(Debug)]
struct Inproc {
    writer: Writer,
    unpublished: u32,
}

impl Target for Inproc {
    fn send(&mut self, operation: &Operation<'_>) -> Outcome {
        self.unpublished += 1;
        if self.unpublished == PUBLISH_EVERY {
            self.idle();
        }
        match self.writer.write(&operation.batch) {
            Some((accepted, rejected)) => Outcome::Done {
                accepted: accepted as u32,
                rejected: rejected as u32,
            },
            None => Outcome::Fatal,
        }
    }

    fn idle(&mut self) {
        self.unpublished = 0;
        self.writer.publish();
    }
}

/// One pass over a path: what is driven, and when.
pub struct Pass<'a> {
    /// The work.
    pub stage: &'a Stage,
    /// Its times.
    pub timetable: &'a Timetable,
    /// Where it goes.
    pub store: Arc<dyn Store>,
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
    /// The listener while it runs, for whoever watches.
    pub listening: &'a Watch,
    /// What stands between emitter and listener.
    pub between: Option<&'a Between>,
}

impl std::fmt::Debug for Pass<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass")
            .field("store", &self.store)
            .field("start_ns", &self.start_ns)
            .finish_non_exhaustive()
    }
}

/// What a watcher sees of a listener while the pass goes on.
#[derive(Debug, Default)]
pub struct Watch {
    listener: Mutex<Option<Listener>>,
    timings: Mutex<Timings>,
    ingest_cpu_ns: AtomicU64,
}

/// Response and service times that the mileposts told, by interval.
#[derive(Debug, Default)]
struct Timings {
    response: Recording,
    service: Recording,
    samples: u64,
    since_ns: u64,
}

impl Watch {
    /// CPU of the threads that decoded and applied, in nanoseconds.
    pub fn ingest_cpu_ns(&self) -> u64 {
        self.ingest_cpu_ns.load(Ordering::Relaxed)
    }

    /// Ends an interval at `now`: what was timed since the last call is its histogram.
    /// Returns the response times of that interval.
    pub fn cut(&self, now_ns: u64) -> Option<tsb_core::latency::Histogram> {
        let listener = lock(&self.listener);
        let listener = listener.as_ref()?;
        let mut timing = Timing::new();
        listener.drain_timing(&mut timing);
        Some(self.add(&timing, now_ns))
    }

    fn add(&self, timing: &Timing, now_ns: u64) -> tsb_core::latency::Histogram {
        let mut timings = lock(&self.timings);
        let start_ns = std::mem::replace(&mut timings.since_ns, now_ns);
        timings.samples += timing.samples;
        let pairs = [(&timing.response, true), (&timing.service, false)];
        for (histogram, is_response) in pairs {
            let recording = if is_response {
                &mut timings.response
            } else {
                &mut timings.service
            };
            recording.total.merge(histogram);
            recording.intervals.push(Interval {
                start_ns,
                end_ns: now_ns,
                histogram: histogram.clone(),
            });
        }
        timing.response.clone()
    }
}

/// What a pass came to.
#[derive(Debug)]
pub struct Driven {
    /// When it started, on the clock.
    pub start_ns: u64,
    /// From the first due time to the planned end or the last acceptance, if that is later.
    pub elapsed_ns: u64,
    /// What the emitter counted.
    pub counts: Counts,
    /// The ticks of each group that were issued.
    pub issued: Vec<Range<u64>>,
    /// Issued operations that the target shed, or that may have been applied or not:
    /// (group, ticks).
    pub exceptions: Vec<(u32, Range<u64>, ExceptionKind)>,
    /// Exceptions that are not in the list.
    pub exceptions_dropped: u64,
    /// Due to done.
    pub response: Recording,
    /// Start to done.
    pub service: Recording,
    /// Samples behind those two.
    pub timed_samples: u64,
    /// Due to start.
    pub lag: Recording,
    /// The part of the lag that is our own.
    pub own_lag: Recording,
    /// Samples behind those two.
    pub started_samples: u64,
    /// CPU of the emitting threads.
    pub cpu: PhaseCpu,
    /// Time inside targets over all emitting threads, in nanoseconds.
    pub busy_ns: u64,
    /// What is only known of a wire.
    pub wire: Option<Wire>,
    /// Stopped by the user.
    pub interrupted: bool,
    /// Panics and lost connections, in words.
    pub failures: Vec<String>,
}

/// What is only known of a wire.
#[derive(Debug, Default)]
pub struct Wire {
    /// Bytes that the kernel took.
    pub sent_bytes: u64,
    /// Samples that were encoded and never left.
    pub unsent_samples: u64,
    /// Operations that nobody timed.
    pub untimed: u64,
    /// What the listener saw, where it was ours.
    pub stats: Option<ListenerStats>,
    /// What the kernel granted it as receive buffer.
    pub receive_buffer_bytes: Option<u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn runtime() -> Result<Runtime, Failure> {
    Runtime::start().map_err(|error| Failure::new(Exit::Bug, "cannot start the network runtime").because(&error))
}

impl Pass<'_> {
    /// Drives the whole pass and waits for its end.
    pub fn drive(&self) -> Result<Driven, Failure> {
        match self.stage.plan.transport {
            Transport::Inproc => self.inproc(),
            Transport::Tcp => self.tcp(),
        }
    }

    fn writer(&self) -> Writer {
        Writer::new(
            Arc::clone(&self.store),
            Arc::clone(&self.rejects),
            Arc::clone(&self.totals),
        )
    }

    fn inproc(&self) -> Result<Driven, Failure> {
        let report = self.emit(|| {
            Ok(Inproc {
                writer: self.writer(),
                unpublished: 0,
            })
        })?;
        Ok(self.driven(report).0)
    }

    /// Over loopback into a listener of our own.
    fn tcp(&self) -> Result<Driven, Failure> {
        let runtime = runtime()?;
        let mileposts = Mileposts::new(MILEPOSTS);
        let listener = self.listen(&runtime, &mileposts)?;
        let address = self
            .between
            .map_or(listener.address(), |between| between(listener.address()));
        let granted = listener.granted();
        *lock(&self.listening.listener) = Some(listener);
        let (mut driven, mut wire) = self.send(address, Some(&mileposts))?;
        if let Some(listener) = lock(&self.listening.listener).take() {
            // Threads that have ended are not counted any more.
            self.listening
                .ingest_cpu_ns
                .store(cpu_of_threads("tsb-ingest"), Ordering::Relaxed);
            let report = listener.stop();
            self.listening.add(&report.timing, self.stage.clock.now());
            wire.untimed += report.timing.unfinished;
            wire.stats = Some(report.stats);
            wire.receive_buffer_bytes = Some(granted.receive_bytes as u64);
        }
        let mut timings = lock(&self.listening.timings);
        driven.response = std::mem::take(&mut timings.response);
        driven.service = std::mem::take(&mut timings.service);
        driven.timed_samples = timings.samples;
        let last_ns = self.totals.last_ns.load(Ordering::Relaxed);
        driven.elapsed_ns = driven.elapsed_ns.max(last_ns.saturating_sub(driven.start_ns));
        driven.wire = Some(wire);
        Ok(driven)
    }

    /// Over TCP to somebody else's listener.
    pub fn remote(&self, address: SocketAddr) -> Result<Driven, Failure> {
        let (mut driven, wire) = self.send(address, None)?;
        driven.wire = Some(wire);
        Ok(driven)
    }

    /// Runs the emitter with a connection for each worker.
    fn send(&self, address: SocketAddr, mileposts: Option<&Arc<Mileposts>>) -> Result<(Driven, Wire), Failure> {
        let report = self.emit(|| {
            let (workload, protocol) = (Arc::clone(&self.stage.workload), self.stage.plan.protocol);
            let make = move || match protocol.encoder(workload.catalog()) {
                Ok(encoder) => encoder,
                Err(error) => unreachable!("the stage has made an encoder of this catalog: {error}"),
            };
            let clock = Arc::clone(&self.stage.clock);
            let connected = TcpTarget::connect(address, EmitOptions::default(), make, clock, mileposts.cloned());
            connected.map_err(|error| {
                Failure::new(Exit::Unreachable, format!("cannot reach {address}"))
                    .because(&error)
                    .hint("start the server first, or check the address")
            })
        })?;
        let (mut driven, targets) = self.driven(report);
        let mut wire = Wire::default();
        for target in targets {
            let report = target.finish();
            wire.sent_bytes += report.written_bytes;
            wire.unsent_samples += report.unsent_samples;
            wire.untimed += report.untimed;
            driven.failures.extend(report.errors.iter().map(ToString::to_string));
        }
        Ok((driven, wire))
    }

    fn listen(&self, runtime: &Runtime, mileposts: &Arc<Mileposts>) -> Result<Listener, Failure> {
        lock(&self.listening.timings).since_ns = self.start_ns;
        let catalog = self.stage.workload.catalog().clone();
        let limit = self.stage.plan.max_series as usize;
        let registry = Arc::new(Registry::with_catalog(catalog, limit, |_, _| {
            Err("not a series of this run".to_owned())
        }));
        let (store, rejects, totals) = (
            Arc::clone(&self.store),
            Arc::clone(&self.rejects),
            Arc::clone(&self.totals),
        );
        let (protocol, clock) = (self.stage.plan.protocol, Arc::clone(&self.stage.clock));
        let intake = move |_peer| Intake {
            decoder: protocol.decoder(Arc::clone(&clock)),
            sink: Box::new(
                StoreSink::new(
                    Writer::new(Arc::clone(&store), Arc::clone(&rejects), Arc::clone(&totals)),
                    Arc::clone(&registry),
                )
                .with_clock(Arc::clone(&clock)),
            ),
        };
        let clock = Arc::clone(&self.stage.clock);
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = ListenOptions {
            ingest_threads: self.stage.plan.workers,
            ..ListenOptions::default()
        };
        let bound = Listener::bind(
            runtime.handle(),
            local,
            options,
            intake,
            clock,
            Some(Arc::clone(mileposts)),
        );
        bound.map_err(|error| Failure::new(Exit::Unreachable, "cannot listen on loopback").because(&error))
    }

    /// Runs the emitter with a target for each worker.
    fn emit<T: Target + Send>(
        &self,
        mut target: impl FnMut() -> Result<T, Failure>,
    ) -> Result<emit::Report<Fleet<'_>, T>, Failure> {
        let ranges = self.timetable.roster.split(self.stage.plan.workers);
        let mut workers = Vec::with_capacity(ranges.len());
        for groups in ranges {
            let indexes = groups.start as usize..groups.end as usize;
            workers.push(emit::Worker {
                groups,
                source: Fleet(self.stage.workload.generator(indexes, self.base)),
                target: target()?,
            });
        }
        let run = emit::Run {
            clock: &*self.stage.clock,
            timetable: self.timetable,
            stop: self.stop,
            live: self.live,
            settings: Settings {
                start_ns: Some(self.start_ns.max(self.stage.clock.now())),
                interval_ns: self.stage.plan.report_interval_ns,
                ..Settings::default()
            },
        };
        emit::run(&run, workers).map_err(|error| Failure::new(Exit::Bug, "cannot start the emitter").because(&error))
    }

    /// The part that all transports share; and the targets, to be asked for theirs.
    fn driven<T>(&self, report: emit::Report<Fleet<'_>, T>) -> (Driven, Vec<T>) {
        let groups = self.stage.workload.groups().len();
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
        let driven = Driven {
            start_ns: report.start_ns,
            elapsed_ns: report.elapsed_ns(),
            counts: report.counts,
            issued,
            exceptions,
            exceptions_dropped: report.workers.iter().map(|worker| worker.exceptions_dropped).sum(),
            response: Recording::default(),
            service: Recording::default(),
            timed_samples: report.latency.done_samples,
            lag: Recording::default(),
            own_lag: Recording::default(),
            started_samples: report.latency.started_samples,
            cpu: report.cpu(),
            busy_ns,
            wire: None,
            interrupted: report.workers.iter().any(|worker| worker.ended == Ended::Stopped),
            failures,
        };
        let emit::Report { latency, workers, .. } = report;
        let targets = workers.into_iter().map(|worker| worker.target).collect();
        let driven = Driven {
            response: latency.response,
            service: latency.service,
            lag: latency.lag,
            own_lag: latency.own_lag,
            ..driven
        };
        (driven, targets)
    }
}

/// How much was accepted so far, whichever way it went.
pub(super) fn accepted(live: &Live, totals: &SinkTotals, transport: Transport) -> u64 {
    match transport {
        Transport::Inproc => live.totals().accepted,
        Transport::Tcp => totals.accepted.load(Ordering::Relaxed),
    }
}
