//! `tsb conformance`: checks every clause of the store contract on the store of a spec.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tsb_core::report::conformance::{CheckReport, CheckResult, ConformanceReport};
use tsb_run::panic_message;
use tsb_run::place::RoundPlace;
use tsb_run::spec::Spec;
use tsb_stores::conformance::{Bounded, Check, CheckOutcome, Fixture, Place, Tier, checks};
use tsb_stores::{Error, Store};

use crate::args::{ConformanceArgs, DocumentFormat};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{document, print};
use crate::{credentials, interrupt, say};

/// Series of a store with a low limit.
const MAX_SERIES: usize = 20;

/// Runs the command.
///
/// # Errors
/// If the store cannot be opened at a fresh place, or the result cannot be written.
pub fn command(args: &ConformanceArgs) -> Result<Exit, Failure> {
    let failure = || Failure::usage(format!("cannot use --store {}", args.store));
    let spec = args.store.spec().map_err(|error| failure().because(&error))?;
    let spec = credentials::complete(&spec)?;
    let places = Arc::new(Places::new(spec));
    check_places(&places).map_err(|why| why.unwrap_or_else(failure))?;
    let stop = interrupt::flag();
    let mut report = ConformanceReport::new(places.spec.to_string());
    let is_wanted = |check: &Check| args.only.as_deref().is_none_or(|text| name(check).contains(text));
    let wanted: Vec<Check> = checks(SpecFixture(Arc::clone(&places)))
        .into_iter()
        .filter(is_wanted)
        .collect();
    if wanted.is_empty() {
        return Err(Failure::usage("cannot check anything")
            .because_of("no check that applies to this store has that text in its name")
            .hint("leave out --only: the result lists all names"));
    }
    for check in &wanted {
        if stop.load(Ordering::Relaxed) {
            report.interrupted = true;
            break;
        }
        let checked = run(check, args.long);
        if args.format == DocumentFormat::Text {
            print(line(&checked).as_bytes())?;
        }
        report.checks.push(checked);
    }
    match args.format {
        DocumentFormat::Text => print(summary(&report).as_bytes())?,
        DocumentFormat::Json => print(document(&report)?.as_bytes())?,
    }
    places.remove();
    Ok(match (report.count(CheckResult::Fail), report.interrupted) {
        (1.., _) => Exit::Invalid,
        (0, true) => Exit::Interrupted,
        (0, false) => Exit::Done,
    })
}

/// Opens the store once, so that a store that cannot be opened is the failure of the command, and
/// refuses a persistent one whose place is not known.
fn check_places(places: &Places) -> Result<(), Option<Failure>> {
    let place = places.next().map_err(|error| Some(Failure::from(error)))?;
    let opened = place.spec().open();
    let store = opened.map_err(|error| Some(Failure::opening(&places.spec, &error)))?;
    let is_shared = store.capabilities().persistent && place.place().is_none();
    let closed = store.close();
    if is_shared {
        return Err(Some(
            Failure::usage(format!("cannot check {}", places.spec))
                .because_of("it keeps samples, and every check needs an empty place of its own")
                .hint("name a place that tsb can number, as in ?place=DIR"),
        ));
    }
    closed.map_err(|error| Some(Failure::new(Exit::Invalid, format!("cannot close {store}")).because(&error)))
}

/// The name of a check without that of the store.
fn name(check: &Check) -> &str {
    check.name().rsplit("::").next().unwrap_or_default()
}

fn run(check: &Check, is_long: bool) -> CheckReport {
    let report = CheckReport::new(check.clause(), name(check));
    if check.tier() == Tier::Long && !is_long {
        return report.because(CheckResult::Skip, "it writes a million samples; --long runs it");
    }
    match catch_unwind(AssertUnwindSafe(|| check.run())) {
        Ok(Ok(CheckOutcome::Holds)) => report,
        Ok(Ok(CheckOutcome::NotShown(why))) => report.because(CheckResult::Skip, why),
        Ok(Ok(_)) => report.because(CheckResult::Skip, "it has another outcome"),
        Ok(Err(what)) => report.because(CheckResult::Fail, what),
        Err(panic) => report.because(CheckResult::Fail, format!("panicked: {}", panic_message(&*panic))),
    }
}

fn line(check: &CheckReport) -> String {
    let why = check.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
    format!("{} {}{}\n", check.outcome.name(), check.name, why.replace('\n', " "))
}

fn summary(report: &ConformanceReport) -> String {
    let [passed, failed, skipped] =
        [CheckResult::Pass, CheckResult::Fail, CheckResult::Skip].map(|outcome| report.count(outcome));
    let word = if failed > 0 { "does not keep" } else { "keeps" };
    let stopped = if report.interrupted {
        "; stopped before the last check"
    } else {
        ""
    };
    format!(
        "{} {word} the contract as far as it was checked: {passed} passed, {failed} failed, {skipped} skipped{stopped}\n",
        report.store
    )
}

/// The places of all checks, beside that of the spec. They are removed at the end, since a check
/// may drop a place while its store is open.
#[derive(Debug)]
struct Places {
    spec: Spec,
    count: AtomicU32,
    used: Mutex<Vec<RoundPlace>>,
}

impl Places {
    fn new(spec: Spec) -> Self {
        Self {
            spec,
            count: AtomicU32::new(0),
            used: Mutex::default(),
        }
    }

    /// A fresh place, which the caller removes.
    fn next(&self) -> Result<RoundPlace, tsb_run::Error> {
        RoundPlace::new(&self.spec, 1 + self.count.fetch_add(1, Ordering::Relaxed))
    }

    /// The spec of a fresh place.
    fn spec(&self) -> tsb_stores::Result<Spec> {
        let place = self.next().map_err(|error| Error::Backend {
            action: "make a place for a check".to_owned(),
            source: error.into(),
        })?;
        let spec = place.spec().clone();
        self.used.lock().unwrap_or_else(PoisonError::into_inner).push(place);
        Ok(spec)
    }

    /// Removes all places, and says which could not be removed.
    fn remove(&self) {
        let used = std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner));
        for place in used {
            if let Err(error) = place.remove() {
                say::failure(Failure::from(error));
            }
        }
    }
}

/// The store of a spec, at places of its own.
#[derive(Debug)]
struct SpecFixture(Arc<Places>);

impl Fixture for SpecFixture {
    fn name(&self) -> String {
        self.0.spec.scheme().to_owned()
    }

    fn place(&self) -> tsb_stores::Result<Box<dyn Place>> {
        Ok(Box::new(SpecPlace(self.0.spec()?)))
    }

    fn bounded(&self) -> tsb_stores::Result<Option<Bounded>> {
        let limited = |spec: &Spec| spec.with("max_series", &MAX_SERIES.to_string());
        if limited(&self.0.spec).option("max_series").is_none() {
            return Ok(None);
        }
        Ok(Some(Bounded {
            store: limited(&self.0.spec()?).open()?,
            max_series: MAX_SERIES,
            fills_up: false,
        }))
    }
}

struct SpecPlace(Spec);

impl Place for SpecPlace {
    fn open(&self) -> tsb_stores::Result<Box<dyn Store>> {
        self.0.open()
    }
}
