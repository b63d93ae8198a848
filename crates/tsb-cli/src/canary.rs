//! `tsb canary`: a small known stream in a live store, checked for as long as it runs.

mod metrics;
mod text;

use std::sync::{Arc, Mutex, PoisonError};

use tsb_core::report::canary::NamedFault;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::canary::{Canary, CanaryObserver, CanaryOptions};
use tsb_run::{chain, foreign, units};

use crate::args::{CanaryArgs, DocumentFormat};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::metrics::{MetricsServer, MetricsSource};
use crate::output::{Target, document, print};
use crate::{credentials, say};

/// The least time between two lines about failed calls of one kind.
const REPEAT_NS: u64 = 60 * SECOND_NS;

/// Runs the command.
///
/// # Errors
/// If the store cannot be opened or cannot keep such a stream, or a result cannot be written.
pub fn command(args: &CanaryArgs) -> Result<Exit, Failure> {
    let failure = || Failure::usage(format!("cannot use --store {}", args.store));
    let spec = args.store.spec().map_err(|error| failure().because(&error))?;
    let options = options(args)?;
    let duration_ns = args
        .duration
        .as_deref()
        .map(|text| duration("duration", text))
        .transpose()?;
    let target = args.out.as_deref().map(Target::prepare).transpose()?;
    let spec = credentials::complete(&spec)?;
    let signals = interrupt::signals();
    let observer = Arc::new(Told {
        is_exposed: args.expose.is_some(),
        ..Told::default()
    });
    let server = args.expose.map(|address| {
        let source = Arc::clone(&observer) as Arc<dyn MetricsSource>;
        MetricsServer::start(address, args.expose_remote, source)
    });
    let server = server.transpose()?;
    let store = spec.open().map_err(|error| Failure::opening(&spec, &error))?;
    let clock = Arc::new(MonotonicClock::new());
    let mut canary = Canary::start(store.into(), clock, options, &*observer)?;
    observer.stepped(&canary);
    say::line(text::started(&canary.report()));
    if let Some(server) = &server {
        say::line(format!("tsb: metrics on http://{}/metrics", server.address()));
    }
    let ended = canary.run(&signals.stops, duration_ns, &*observer);
    let report = canary.report();
    let closed = canary.close();
    let text = match args.format {
        DocumentFormat::Text => text::result(&report),
        DocumentFormat::Json => document(&report)?,
    };
    print(text.as_bytes())?;
    if let Some(target) = target {
        target.write(document(&report)?.as_bytes())?;
    }
    ended?;
    closed?;
    Ok(if report.is_sound() { Exit::Done } else { Exit::Invalid })
}

fn options(args: &CanaryArgs) -> Result<CanaryOptions, Failure> {
    let refused = |why: String| Failure::usage(format!("cannot use --series {}", args.series)).because_of(why);
    let mut options = CanaryOptions::default();
    options.name.clone_from(&args.name);
    options.store_name = Some(args.store.to_string());
    let series = units::parse_count(&args.series).map_err(refused)?;
    options.series = u32::try_from(series).map_err(|_| refused("a canary has at most 10,000".to_owned()))?;
    options.interval_ns = duration("interval", &args.interval)?;
    options.keeps_ns = duration("keep", &args.keep)?;
    options.lost_after_ns = duration("lost-after", &args.lost_after)?;
    Ok(options)
}

fn duration(flag: &str, text: &str) -> Result<u64, Failure> {
    units::parse_duration(text).map_err(|why| Failure::usage(format!("cannot use --{flag} {text}")).because_of(why))
}

/// Prints what the canary finds, and keeps its metrics as text.
#[derive(Debug, Default)]
struct Told {
    clock: MonotonicClock,
    /// Somebody may read the metrics.
    is_exposed: bool,
    metrics: Mutex<String>,
    /// The last line about a failed call of each kind, and when it was printed.
    failures: Mutex<Vec<(&'static str, u64)>>,
}

impl CanaryObserver for Told {
    fn fault(&self, fault: &NamedFault) {
        say::line(format!("tsb: {}", foreign::line(&text::fault(fault))));
    }

    fn failed(&self, what: &'static str, error: &tsb_stores::Error) {
        let now_ns = self.clock.now();
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let before = failures.iter_mut().find(|(kind, _)| *kind == what);
        match before {
            Some((_, at_ns)) if now_ns < *at_ns + REPEAT_NS => return,
            Some((_, at_ns)) => *at_ns = now_ns,
            None => failures.push((what, now_ns)),
        }
        let why = chain(error);
        let what = if what == "write" {
            "write".to_owned()
        } else {
            format!("question '{what}'")
        };
        say::line(format!("tsb: the {what} failed: {why}"));
    }

    fn stepped(&self, canary: &Canary) {
        if !self.is_exposed {
            return;
        }
        let text = metrics::text(canary, self.clock.wall());
        *self.metrics.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

impl MetricsSource for Told {
    fn text(&self) -> String {
        let text = self.metrics.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if text.is_empty() { "# EOF\n".to_owned() } else { text }
    }
}
