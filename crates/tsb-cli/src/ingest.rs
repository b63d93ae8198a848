//! `tsb ingest`: listeners to which any client of their protocols may write.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tsb_core::net::{
    AnyListener, Carrier, IngestCpu, ListenOptions, ListenerStats, ListenerTotals, ListenerView, NetError, Registry,
    Runtime, Undefined,
};
use tsb_core::report::Interval;
use tsb_core::resource::Usage;
use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::wire::{Budget, NotAdmitted, Room};
use tsb_core::{SeriesId, SeriesKey, Timestamp};
use tsb_run::spec::Typed;
use tsb_stores::{Damage, Error, Store};

use crate::args::IngestArgs;
use crate::endpoint::Endpoint;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Outputs, first_failure};
use crate::plan::WirePlan;
use crate::{credentials, interrupt};
use tsb_run::damage::ReportedDamage;
use tsb_run::ends::IngestPlan;
use tsb_run::run::{
    GuardedStore, HawkularListen, Observations, ReadThrough, Rejects, Route, SinkTotals, StoreSink, WaitOutcome, Writer,
};
use tsb_run::units;

mod abandonable;
mod files;
mod hawkular;
mod report;
mod watch;

use abandonable::{AbandonedStore, serve_abandonable};
use watch::{IngestIntervals, ProgressSource, WatchOptions, refuse_remote, watch};

/// The state that the listeners of one command share.
struct Service {
    /// The store, guarded so that a stuck call can be abandoned.
    store: Arc<GuardedStore>,
    /// The same store without the guard, for the path of a sample.
    raw: Arc<dyn Store>,
    registry: Arc<Registry>,
    rejects: Arc<Rejects>,
    totals: Arc<SinkTotals>,
    clock: Arc<dyn Clock>,
    /// The scheme of the store's spec.
    scheme: String,
}

/// A service and its listeners.
struct ServiceProgress<'a> {
    service: &'a Service,
    listeners: &'a [AnyListener],
}

impl ProgressSource for ServiceProgress<'_> {
    fn listeners(&self) -> Vec<ListenerStats> {
        self.listeners.iter().map(AnyListener::stats).collect()
    }

    fn accepted(&self) -> u64 {
        self.service.totals.accepted.load(Ordering::Relaxed)
    }

    fn detail(&self) -> String {
        format!("{} series", units::count(self.service.registry.len() as u64))
    }

    fn damage(&self) -> Vec<Damage> {
        self.service.store.stats().damage
    }

    fn has_failed(&self) -> bool {
        self.service.totals.failure().is_some()
    }
}

/// The results of serving.
struct ServiceResults {
    stats: Vec<ListenerStats>,
    cpu: IngestCpu,
    elapsed_ns: u64,
    seen: Observations,
    closed: tsb_stores::Result<()>,
}

/// Runs the command.
pub fn command(args: &IngestArgs) -> Result<Exit, Failure> {
    crate::plan::no_effect::check_ingest(args)?;
    let limits = limits(args)?;
    let store_timeouts = crate::run::store_timeouts(args.store_timeout.as_deref())?;
    let duration_ns = args.duration.as_deref().map(|text| {
        let read = units::parse_duration(text);
        read.map_err(|why| Failure::usage(format!("cannot read --duration {text}")).because_of(why))
    });
    let duration_ns = duration_ns.transpose()?;
    if args.listen.iter().any(files::is_for) {
        return files::command(args, &limits, store_timeouts, duration_ns);
    }
    let outputs = Outputs::open(&args.output)?;
    // Install the signal handlers before the first "listening" line: from then on a signal must
    // end the command in order.
    let signals = interrupt::signals();
    let service = Arc::new(Service::open(args, &limits)?);
    let mut told = ReportedDamage::default();
    told.tell(&*service.store, crate::say::warning);
    let runtime =
        Runtime::start().map_err(|error| Failure::new(Exit::Bug, "cannot start the runtime").because(&error))?;
    let mut listeners = Vec::new();
    for url in &args.listen {
        listeners.push(service.listen(url, args.allow_remote, &limits, &runtime)?);
    }
    let views: Vec<ListenerView> = listeners.iter().map(AnyListener::view).collect();
    let (started, base) = (service.clock.now(), service.clock.wall());
    let intervals = Arc::new(IngestIntervals::begin(started));
    let calls = Arc::clone(&service.totals.calls);
    let came = {
        let (service, options) = (Arc::clone(&service), WatchOptions::of(args, duration_ns));
        let intervals = Arc::clone(&intervals);
        serve_abandonable(&signals, store_timeouts, &calls, move |stop, over| {
            let progress = ServiceProgress {
                service: &service,
                listeners: &listeners,
            };
            watch(&progress, &options, &*service.clock, stop, &mut told, &intervals);
            over.within(0);
            let results = service.end(listeners, started, &mut told, &intervals);
            drop(runtime);
            results
        })?
    };
    let (results, abandoned) = match came {
        WaitOutcome::Returned(results) => (results, None),
        WaitOutcome::Abandoned(why) => (service.results_without_store(&views, started, &intervals), Some(why)),
    };
    let is_stopped = signals.stops.stop.load(Ordering::SeqCst);
    let plan = plan(args, &limits, duration_ns, true);
    let abandoned = abandoned.map(|why| AbandonedStore { why, is_stopped });
    service.report(plan, results, base, abandoned, &outputs)
}

/// What was asked for. The limits of series do not apply if clients name files.
fn plan(args: &IngestArgs, limits: &Limits, duration_ns: Option<u64>, has_series: bool) -> IngestPlan {
    let listen = args.listen.iter().map(ToString::to_string).collect();
    let mut plan = IngestPlan::new(listen, args.store.to_string(), limits.listen.max_connections as u64);
    plan.duration_ns = duration_ns;
    plan.once = args.once;
    plan.max_series = has_series.then_some(limits.max_series as u64);
    plan.max_name_bytes = has_series.then_some(limits.max_name_bytes);
    plan.allow_remote = args.allow_remote;
    // `store_timeouts` has refused what is not a duration.
    let store_timeout = args.store_timeout.as_deref();
    plan.store_timeout_ns = store_timeout.and_then(|text| units::parse_duration(text).ok());
    plan
}

/// The plan, the time of listening, the observations, and the failures.
struct ReportInput {
    plan: IngestPlan,
    base: Timestamp,
    elapsed_ns: u64,
    intervals: Vec<Interval>,
    resources: Vec<Usage>,
    failures: Vec<String>,
    abandoned: Option<AbandonedStore>,
}

struct Limits {
    max_series: usize,
    max_name_bytes: u64,
    listen: ListenOptions,
}

fn limits(args: &IngestArgs) -> Result<Limits, Failure> {
    let count = |flag: &str, text: &str| {
        let read = units::parse_count(text);
        read.map_err(|why| Failure::usage(format!("cannot read --{flag} {text}")).because_of(why))
    };
    let bytes = units::parse_bytes(&args.max_name_bytes);
    let bytes = bytes.map_err(|why| {
        Failure::usage(format!("cannot read --max-name-bytes {}", args.max_name_bytes)).because_of(why)
    })?;
    Ok(Limits {
        max_series: count("max-series", &args.max_series)? as usize,
        max_name_bytes: bytes,
        listen: ListenOptions {
            max_connections: count("max-connections", &args.max_connections)? as usize,
            ..ListenOptions::default()
        },
    })
}

/// Threads that decode, write and read where a listener is read through: a slow read holds up the
/// other connections of its thread.
const READ_THREADS: usize = 4;

/// The options of one listener.
fn listen_options(endpoint: &Endpoint, limits: &Limits) -> ListenOptions {
    let mut wire = WirePlan::default();
    endpoint.options.apply(&mut wire);
    let is_datagrams = endpoint.transport.carrier() == Carrier::Datagrams;
    ListenOptions {
        // Nobody knows how large a tick of strangers is: that of a thousand hosts.
        receive_buffer_bytes: is_datagrams.then(|| wire.receive_buffer(54_000)),
        gro: wire.gro,
        idle_timeout: idle_timeout(endpoint.options.idle_ns, is_datagrams),
        ..limits.listen.clone()
    }
}

/// The failure of a listener that could not be bound, with a hint.
fn unbound(url: &Typed, error: &NetError) -> Failure {
    let failure = Failure::new(Exit::Unreachable, format!("cannot listen on {url}")).because(error);
    match error {
        NetError::Bind { source, .. } if source.kind() == ErrorKind::AddrInUse => {
            failure.hint("stop the process that listens there, or choose another address")
        }
        NetError::Bind { source, .. } if source.kind() == ErrorKind::AlreadyExists => {
            failure.hint("move it away, or choose another path")
        }
        _ => failure,
    }
}

/// Idle timeout: `asked_ns` if given, else the default for connections, and none for datagrams,
/// whose senders are replaced when there are too many.
fn idle_timeout(asked_ns: Option<u64>, is_datagrams: bool) -> Option<Duration> {
    match asked_ns {
        Some(0) => None,
        Some(asked_ns) => Some(Duration::from_nanos(asked_ns)),
        None if is_datagrams => None,
        None => ListenOptions::default().idle_timeout,
    }
}

/// The reason why a store did not define a series, as the ledger names it.
fn undefined(error: &Error) -> Undefined {
    let why = match error {
        Error::TooManySeries { .. } => NotAdmitted::SeriesLimit,
        Error::TooManyNameBytes { .. } => NotAdmitted::NameBytes,
        _ => NotAdmitted::Undefined,
    };
    let cause = Failure::new(Exit::Invalid, "cannot define a series").because(error);
    Undefined {
        why,
        cause: cause.one_line(),
    }
}

impl Service {
    fn open(args: &IngestArgs, limits: &Limits) -> Result<Self, Failure> {
        let failure = |error: &Error| Failure::opening(&args.store, error);
        let spec = args.store.spec().map_err(|error| failure(&error))?;
        let store = credentials::complete(&spec)?.open().map_err(|error| failure(&error))?;
        let raw: Arc<dyn Store> = Arc::from(store);
        let totals = Arc::new(SinkTotals::default());
        let broken = |said| Failure::new(Exit::Bug, "cannot use the store").because_of(format!("it {said}"));
        let store = Arc::new(GuardedStore::new(&raw, &totals.calls).map_err(broken)?);
        let defined = Arc::clone(&store);
        let define = move |id: SeriesId, key: &SeriesKey| {
            defined.define(&[(id, key.clone())]).map_err(|error| undefined(&error))
        };
        Ok(Self {
            registry: Arc::new(Registry::new(limits.max_series, define).within(limits.max_name_bytes)),
            store,
            raw,
            rejects: Arc::new(Rejects::new()),
            totals,
            clock: Arc::new(MonotonicClock::new()),
            scheme: spec.scheme().to_owned(),
        })
    }

    fn listen(
        &self,
        url: &Typed,
        allow_remote: bool,
        limits: &Limits,
        runtime: &Runtime,
    ) -> Result<AnyListener, Failure> {
        let failure = || Failure::usage(format!("cannot listen on {url}"));
        let names = Budget::new(usize::try_from(limits.max_name_bytes).unwrap_or(usize::MAX));
        let room = Room {
            names,
            ..Room::default()
        };
        let (listener, at) = if hawkular::is_for(url) {
            self.listen_hawkular(url, allow_remote, limits, runtime, room)?
        } else {
            let endpoint: Endpoint = url.expose().parse().map_err(|why: String| failure().because_of(why))?;
            endpoint.check_listening().map_err(|why| failure().because_of(why))?;
            let address = endpoint.resolve().map_err(|error| failure().because(&error))?;
            refuse_remote(url, &address, allow_remote)?;
            let route = Route {
                read: Some(self.read_through()),
                ..Route::new(endpoint.protocol, endpoint.transport, &self.clock)
            };
            let mut options = listen_options(&endpoint, limits);
            if route.can_read() {
                options.ingest_threads = READ_THREADS;
            }
            let bound = route.listen(runtime, &address, options, room, self.sinks());
            let listener = bound.map_err(|error| unbound(url, &error))?;
            let at = endpoint.url_at(listener.address());
            (listener, at)
        };
        crate::say::line(format_args!(
            "listening on {at} into {}, receive buffer {}",
            self.store,
            units::bytes(listener.granted().receive_bytes as f64),
        ));
        Ok(listener)
    }

    /// What requests that read are answered from.
    fn read_through(&self) -> ReadThrough {
        ReadThrough {
            // Through the guard: a read that does not return can be abandoned.
            store: Arc::clone(&self.store) as _,
            registry: Arc::clone(&self.registry),
        }
    }

    /// The sinks of connections.
    fn sinks(&self) -> impl Fn() -> StoreSink + Send + Sync + 'static {
        let (store, registry) = (Arc::clone(&self.raw), Arc::clone(&self.registry));
        let (rejects, totals) = (Arc::clone(&self.rejects), Arc::clone(&self.totals));
        move || {
            let writer = Writer::new(Arc::clone(&store), Arc::clone(&rejects), Arc::clone(&totals));
            StoreSink::new(writer, Arc::clone(&registry))
        }
    }

    /// A listener that is read through, too. Returns its URL as well.
    fn listen_hawkular(
        &self,
        url: &Typed,
        allow_remote: bool,
        limits: &Limits,
        runtime: &Runtime,
        room: Room,
    ) -> Result<(AnyListener, String), Failure> {
        let asked = hawkular::Asked::read(url.expose(), &self.scheme);
        let asked = asked.map_err(|why| Failure::usage(format!("cannot listen on {url}")).because_of(why))?;
        refuse_remote(url, &asked.address, allow_remote)?;
        let options = ListenOptions {
            ingest_threads: READ_THREADS,
            idle_timeout: idle_timeout(asked.idle_ns, false),
            ..limits.listen.clone()
        };
        let listen = HawkularListen {
            answers: asked.answers,
            room,
            read: self.read_through(),
        };
        let bound = listen.listen(runtime, &asked.address, options, &self.clock, self.sinks());
        let listener = bound.map_err(|error| unbound(url, &error))?;
        let at = hawkular::url_at(listener.address());
        Ok((listener, at))
    }

    /// Stops the listeners and closes the store.
    fn end(
        &self,
        listeners: Vec<AnyListener>,
        started: u64,
        told: &mut ReportedDamage,
        intervals: &IngestIntervals,
    ) -> ServiceResults {
        let reports: Vec<ListenerTotals> = listeners.into_iter().map(AnyListener::stop).collect();
        let mut cpu = IngestCpu::default();
        for report in &reports {
            cpu.merge(&report.cpu);
        }
        let (elapsed_ns, seen) = self.seen(started, intervals);
        let closed = self.store.close();
        told.tell(&*self.store, crate::say::warning);
        ServiceResults {
            stats: reports.into_iter().map(|report| report.stats).collect(),
            cpu,
            elapsed_ns,
            seen,
            closed,
        }
    }

    /// The results that are known if a call into the store does not return.
    fn results_without_store(
        &self,
        views: &[ListenerView],
        started: u64,
        intervals: &IngestIntervals,
    ) -> ServiceResults {
        // Its end may never come.
        std::mem::forget(self.store.leave());
        let (elapsed_ns, seen) = self.seen(started, intervals);
        ServiceResults {
            stats: views.iter().map(ListenerView::stats).collect(),
            cpu: IngestCpu::default(),
            elapsed_ns,
            seen,
            closed: Ok(()),
        }
    }

    /// Length of listening in nanoseconds, and the observations.
    fn seen(&self, started: u64, intervals: &IngestIntervals) -> (u64, Observations) {
        let now = self.clock.now();
        let (intervals, resources) = intervals.end(now, self.totals.accepted.load(Ordering::Relaxed));
        (now - started, Observations { intervals, resources })
    }

    /// Writes the report, and returns the first failure.
    fn report(
        &self,
        plan: IngestPlan,
        results: ServiceResults,
        base: Timestamp,
        abandoned: Option<AbandonedStore>,
        outputs: &Outputs,
    ) -> Result<Exit, Failure> {
        let store = &self.store;
        let written = self
            .totals
            .failure()
            .map(|error| Failure::new(Exit::Invalid, format!("cannot write to {store}")).because(&*error));
        let closed = results
            .closed
            .err()
            .map(|error| Failure::new(Exit::Invalid, format!("cannot close {store}")).because(&error));
        let failures: Vec<Failure> = written.into_iter().chain(closed).collect();
        let input = ReportInput {
            plan,
            base,
            elapsed_ns: results.elapsed_ns,
            intervals: results.seen.intervals,
            resources: results.seen.resources,
            failures: failures.iter().map(Failure::one_line).collect(),
            abandoned,
        };
        let result = self.result(results.stats, &results.cpu, &input);
        // A result that did not reach its reader comes first, as in every command.
        let unwritten = outputs.write_partial(&result, || report::text(&result)).err();
        first_failure(unwritten.into_iter().chain(failures))?;
        Ok(input.abandoned.map_or(Exit::Done, |abandoned| abandoned.exit()))
    }
}
