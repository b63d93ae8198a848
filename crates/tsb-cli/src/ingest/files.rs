//! `tsb ingest --listen rrdcached+unix:PATH`: serves the clients of rrdcached.
//!
//! These clients name RRD files, not series, so the usual path does not apply: the store is a
//! write cache over the files of a folder, and the cache does the counting.

use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tsb_core::net::{Address, ListenOptions, Listener, ListenerStats, ListenerView, Runtime};
use tsb_core::report::{DurabilityReport, Interval, Rate};
use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::verdict::{Status, Verdict};
use tsb_rrdcached::{FileCache, FileCacheStats};
use tsb_run::spec::Typed;
use tsb_stores::{Damage, Error};

use super::abandonable::{AbandonedStore, serve_abandonable};
use super::watch::{IngestIntervals, ProgressSource, WatchOptions, refuse_remote, watch};
use super::{Limits, idle_timeout, plan, unbound};
use crate::args::{IngestArgs, MAX_NAME_BYTES, MAX_SERIES};
use crate::endpoint::parse_idle;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{Outputs, first_failure};
use tsb_run::damage::ReportedDamage;
use tsb_run::ends::{CachedFiles, CachedLedger, FilesReport, IngestPlan};
use tsb_run::run::{Calls, StoreTimeouts, WaitOutcome, at_once};
use tsb_run::units;

const SCHEME: &str = "rrdcached+";
const FORM: &str = "it has the form rrdcached+unix:PATH or rrdcached+tcp://HOST:PORT, such as \
    rrdcached+unix:/run/rrdcached.sock";
/// Threads that execute client commands: a flush blocks the other clients of its thread.
const THREADS: usize = 4;

/// Whether a URL is of this kind.
pub(super) fn is_for(url: &Typed) -> bool {
    url.expose().starts_with(SCHEME)
}

/// The results of serving.
struct CacheResults {
    listeners: Vec<ListenerStats>,
    elapsed_ns: u64,
    intervals: Vec<Interval>,
    closed: tsb_stores::Result<()>,
}

/// Runs the command.
pub(super) fn command(
    args: &IngestArgs,
    limits: &Limits,
    store_timeouts: StoreTimeouts,
    duration_ns: Option<u64>,
) -> Result<Exit, Failure> {
    check(args)?;
    let outputs = Outputs::open_without_page(&args.output)?;
    // Before anyone hears that it listens: from then on a signal asks for an orderly end.
    let signals = interrupt::signals();
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    let opened = args.store.spec().and_then(|spec| spec.open_files(&clock));
    let cache = opened.map_err(|error| match error {
        Error::Spec { .. } => Failure::opening(&args.store, &error)
            .hint("a listener of rrdcached's protocol takes --store write-cache+rrd:DIR"),
        error => Failure::opening(&args.store, &error),
    })?;
    let cache = Arc::new(cache);
    let mut told = ReportedDamage::default();
    told.tell_list(cache.damage(), crate::say::warning);
    let runtime =
        Runtime::start().map_err(|error| Failure::new(Exit::Bug, "cannot start the runtime").because(&error))?;
    let mut listeners = Vec::new();
    for url in &args.listen {
        listeners.push(listen(
            url,
            args.allow_remote,
            &limits.listen,
            &cache,
            &clock,
            &runtime,
        )?);
    }
    let views: Vec<ListenerView> = listeners.iter().map(Listener::view).collect();
    let started = clock.now();
    let calls = Arc::<Calls>::default();
    let came = {
        let options = WatchOptions::of(args, duration_ns);
        let (cache, clock, made) = (Arc::clone(&cache), Arc::clone(&clock), Arc::clone(&calls));
        serve_abandonable(&signals, store_timeouts, &calls, move |stop, over| {
            let progress = CacheProgress {
                cache: &cache,
                listeners: &listeners,
            };
            let intervals = IngestIntervals::begin(started);
            watch(&progress, &options, &*clock, stop, &mut told, &intervals);
            over.within(0);
            let listeners = {
                let _call = made.begin("what its clients had asked for");
                listeners.into_iter().map(|listener| listener.stop().stats).collect()
            };
            let now = clock.now();
            let (intervals, _) = intervals.end(now, cache.stats().account.accepted);
            let closed = {
                let _call = made.begin("close");
                cache.close()
            };
            told.tell_list(cache.damage(), crate::say::warning);
            drop(runtime);
            CacheResults {
                listeners,
                elapsed_ns: now - started,
                intervals,
                closed,
            }
        })?
    };
    let plan = plan(args, limits, duration_ns, false);
    match came {
        WaitOutcome::Returned(results) => report(plan, &cache, results, &outputs),
        WaitOutcome::Abandoned(why) => {
            let is_stopped = signals.stops.stop.load(Ordering::SeqCst);
            let abandoned = AbandonedStore { why, is_stopped };
            report_abandoned(plan, cache, &views, clock.now() - started, &abandoned, &outputs)
        }
    }
}

/// Refuses options that cannot be combined.
fn check(args: &IngestArgs) -> Result<(), Failure> {
    if let Some(other) = args.listen.iter().find(|url| !is_for(url)) {
        let what = "files by their names and series do not go into one store";
        return Err(Failure::usage(format!("cannot listen on {other}")).because_of(what));
    }
    let given = [
        (args.max_series != MAX_SERIES).then_some("--max-series"),
        (args.max_name_bytes != MAX_NAME_BYTES).then_some("--max-name-bytes"),
    ];
    match given.into_iter().flatten().next() {
        None => Ok(()),
        Some(flag) => Err(Failure::usage(format!("cannot use {flag} here"))
            .because_of("clients name files, and not series")
            .hint("bound the files with --store 'write-cache+rrd:DIR?max_series=N'")),
    }
}

/// Writes the report, and returns the first failure.
fn report(plan: IngestPlan, cache: &FileCache, results: CacheResults, outputs: &Outputs) -> Result<Exit, Failure> {
    let elapsed_ns = results.elapsed_ns;
    let mut result = result(plan, Some(cache), results.listeners, elapsed_ns);
    result.intervals = results.intervals;
    let unwritten = outputs.write_value(&result, || text(cache, elapsed_ns)).err();
    let closed = results.closed.err().map(|error| {
        let folder = cache.folder().display();
        Failure::new(Exit::Invalid, format!("cannot close the files of {folder}")).because(&error)
    });
    // A result that did not reach its reader comes first, as in every command.
    first_failure(unwritten.into_iter().chain(closed))?;
    Ok(Exit::Done)
}

/// The same if a call into the cache does not return. Its counters are read with a time limit,
/// as a writing thread may hold their lock.
fn report_abandoned(
    plan: IngestPlan,
    cache: Arc<FileCache>,
    views: &[ListenerView],
    elapsed_ns: u64,
    abandoned: &AbandonedStore,
    outputs: &Outputs,
) -> Result<Exit, Failure> {
    let listeners: Vec<ListenerStats> = views.iter().map(ListenerView::stats).collect();
    let (asked, seen) = (plan.clone(), listeners.clone());
    let known = at_once(move || {
        let known = (result(asked, Some(&cache), seen, elapsed_ns), text(&cache, elapsed_ns));
        // Its end may never come.
        std::mem::forget(cache);
        known
    });
    let (mut result, text) = known.unwrap_or_else(|| (result(plan, None, listeners, elapsed_ns), String::new()));
    let why = format!("{}: the files were not closed", abandoned.why);
    let text = format!("{text}{why}\n");
    result.interrupted = Some(abandoned.is_stopped);
    result.verdict = Some(Verdict::new(Status::Unverified, vec![why]));
    outputs.write_value(&result, || text)?;
    Ok(abandoned.exit())
}

fn listen(
    url: &Typed,
    allow_remote: bool,
    options: &ListenOptions,
    cache: &Arc<FileCache>,
    clock: &Arc<dyn Clock>,
    runtime: &Runtime,
) -> Result<Listener, Failure> {
    let asked = read(url.expose()).map_err(|why| Failure::usage(format!("cannot listen on {url}")).because_of(why));
    let (address, idle_ns) = asked?;
    refuse_remote(url, &address, allow_remote)?;
    let options = ListenOptions {
        ingest_threads: THREADS,
        idle_timeout: idle_timeout(idle_ns, false),
        ..options.clone()
    };
    let bound = tsb_rrdcached::listen(runtime, &address, options, cache, Arc::clone(clock));
    let listener = bound.map_err(|error| unbound(url, &error))?;
    let transport = if address.path().is_some() { "unix" } else { "tcp" };
    crate::say::line(format_args!(
        "listening on {SCHEME}{transport}://{} for the files of {}",
        listener.address(),
        cache.folder().display(),
    ));
    Ok(listener)
}

/// Parses a URL into the address and the idle timeout in nanoseconds, if given.
fn read(url: &str) -> Result<(Address, Option<u64>), String> {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let mut idle_ns = None;
    for option in query.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("idle", value)) => idle_ns = Some(parse_idle(value).map_err(|why| format!("option idle: {why}"))?),
            _ => {
                return Err(format!(
                    "unknown option {option:?}; its only option is idle, such as ?idle=5m"
                ));
            }
        }
    }
    Ok((address_of(place)?, idle_ns))
}

/// The address after the scheme. Accepts rrdtool's form `unix:PATH` as well.
fn address_of(url: &str) -> Result<Address, String> {
    let place = url.strip_prefix(SCHEME).unwrap_or(url);
    if let Some(path) = place.strip_prefix("unix:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        let is_good = path.len() > 1 && path.starts_with('/');
        return is_good
            .then(|| Address::Unix(PathBuf::from(path)))
            .ok_or_else(|| FORM.to_owned());
    }
    let host = place.strip_prefix("tcp://").ok_or(FORM)?;
    let mut addresses = host.to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    addresses.next().map(Address::Inet).ok_or_else(|| FORM.to_owned())
}

/// The cache and its listeners.
struct CacheProgress<'a> {
    cache: &'a FileCache,
    listeners: &'a [Listener],
}

impl ProgressSource for CacheProgress<'_> {
    fn listeners(&self) -> Vec<ListenerStats> {
        self.listeners.iter().map(Listener::stats).collect()
    }

    fn accepted(&self) -> u64 {
        self.cache.stats().account.accepted
    }

    fn damage(&self) -> Vec<Damage> {
        self.cache.damage()
    }

    fn detail(&self) -> String {
        let account = self.cache.stats().account;
        let (written, pending) = (units::count(account.written), units::count(account.pending));
        format!("{written} written, {pending} wait")
    }
}

/// The report; without the cache's part if `cache` is `None`.
fn result(plan: IngestPlan, cache: Option<&FileCache>, listeners: Vec<ListenerStats>, elapsed_ns: u64) -> FilesReport {
    let malformed = listeners.iter().map(|stats| stats.malformed).sum();
    let mut report = FilesReport::new(plan, elapsed_ns, listeners);
    report.cached = cache.map(|cache| cached(cache, malformed, elapsed_ns));
    report
}

fn cached(cache: &FileCache, malformed: u64, elapsed_ns: u64) -> CachedFiles {
    let stats = cache.stats();
    let account = stats.account;
    let mut cached = CachedFiles::new(
        format!("write-cache(files of {})", cache.folder().display()),
        DurabilityReport::new(cache.acknowledges(), 1),
        Rate::held(accepted_per_second(&stats, elapsed_ns)),
        CachedLedger::new(stats.values_rejected, account.accepted, account.balances()),
    );
    cached.commands.malformed = malformed;
    cached.commands.updates = stats.updates_received;
    cached.commands.flushes = stats.flushes_received;
    let counts = &mut cached.cache;
    counts.replayed = account.replayed;
    counts.written = account.written;
    counts.pending = account.pending;
    counts.forgotten = account.forgotten;
    counts.failed = account.failed;
    counts.passes = stats.updates_written;
    counts.write_failures = stats.write_failures;
    counts.files = stats.files;
    counts.journal_bytes = stats.journal_bytes;
    cached.damage = cache.damage();
    cached
}

fn accepted_per_second(stats: &FileCacheStats, elapsed_ns: u64) -> f64 {
    stats.account.accepted as f64 * 1e9 / elapsed_ns.max(1) as f64
}

/// The report as text: the same figures, in order.
fn text(cache: &FileCache, elapsed_ns: u64) -> String {
    let stats = cache.stats();
    let account = stats.account;
    let count = units::count;
    let rate = accepted_per_second(&stats, elapsed_ns);
    let factor = account.written as f64 / stats.updates_written.max(1) as f64;
    let figures = format!(
        "received {}, rejected {}, accepted {} values, {}/s\n\
         accepted {} + replayed {} = written {} + pending {} + forgotten {} + failed {}\n\
         {} passes over files, {factor:.1} values each\n",
        count(account.accepted + stats.values_rejected),
        count(stats.values_rejected),
        count(account.accepted),
        units::scaled(rate),
        count(account.accepted),
        count(account.replayed),
        count(account.written),
        count(account.pending),
        count(account.forgotten),
        count(account.failed),
        count(stats.updates_written),
    );
    let damage = cache.damage();
    let damage = damage.iter().map(|damage| format!("{damage}\n"));
    damage.fold(figures, |text, line| text + &line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_may_be_silent_for_as_long_as_the_url_says() {
        let (_, idle_ns) = read("rrdcached+tcp://127.0.0.1:1?idle=5m").unwrap();
        assert_eq!(idle_timeout(idle_ns, false), Some(std::time::Duration::from_mins(5)));
        let (_, idle_ns) = read("rrdcached+unix:/run/a.sock?idle=off").unwrap();
        assert_eq!(idle_timeout(idle_ns, false), None);
        assert_eq!(read("rrdcached+unix:/run/a.sock").unwrap().1, None);
        assert!(idle_timeout(None, false).is_some() && idle_timeout(None, true).is_none());
        assert!(
            read("rrdcached+unix:/run/a.sock?wait=1s")
                .unwrap_err()
                .contains("?idle=5m")
        );
    }

    #[test]
    fn an_address_is_a_path_or_a_port() {
        for url in ["rrdcached+unix:/run/a.sock", "rrdcached+unix:///run/a.sock"] {
            assert_eq!(address_of(url), Ok(Address::Unix(PathBuf::from("/run/a.sock"))));
        }
        let inet = address_of("rrdcached+tcp://127.0.0.1:42217").unwrap();
        assert_eq!(inet.to_string(), "127.0.0.1:42217");
        for bad in [
            "rrdcached+unix:",
            "rrdcached+unix:a.sock",
            "rrdcached+udp://127.0.0.1:1",
            "rrdcached+tcp://x",
        ] {
            assert!(address_of(bad).is_err(), "{bad}");
        }
    }
}
