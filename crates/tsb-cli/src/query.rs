//! `tsb query`: prints the series of a persistent store, or samples of some series, as text.
//!
//! It only reads: it never creates a store or a series. It is *not* a query language; use the
//! store's own tools for that.

mod files;
mod keys;
mod print;
mod times;

use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::{SeriesId, SeriesKey, Timestamp};
use tsb_run::spec::Spec;
use tsb_stores::{Consolidation, Query, Resample, Store, TimeRange};

use crate::args::{QueryArgs, RowConsolidation};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::ignore_broken_pipe;
use crate::{credentials, say};
use print::Printer;
use tsb_run::damage::ReportedDamage;
use tsb_run::{foreign, units};

/// Runs the command.
pub fn command(args: &QueryArgs) -> Result<Exit, Failure> {
    let text = args.spec();
    let spec = text
        .spec()
        .map_err(|error| Failure::usage(format!("cannot use store {text}")).because(&error))?;
    if let Some(pattern) = &args.list {
        return list(&keys::listed(&spec)?, pattern.as_deref());
    }
    let wanted = keys::parse_each(&args.series)?;
    let query = SeriesQuery::read(args)?;
    let mut printer = Printer::new(BufWriter::new(std::io::stdout().lock()), args.rfc3339);
    let is_whole = if files::are_plain(&spec) {
        files::print(&spec, &wanted, &query, &mut printer)?
    } else {
        from_store(&spec, &wanted, &query, &mut printer)?
    };
    let rows = printer.finish()?;
    if rows == 0 {
        say::line("tsb: there is no sample of these series in that time");
    }
    Ok(if is_whole { Exit::Done } else { Exit::Invalid })
}

/// The query for each series.
#[derive(Clone, Copy, Debug)]
struct SeriesQuery {
    range: TimeRange,
    resample: Option<Resample>,
}

impl SeriesQuery {
    fn read(args: &QueryArgs) -> Result<Self, Failure> {
        let now = MonotonicClock::new().wall();
        let bound = |flag: &str, text: &Option<String>, otherwise: Timestamp| match text {
            None => Ok(otherwise),
            Some(text) => times::parse(text, now)
                .map_err(|why| Failure::usage(format!("cannot read --{flag} {text}")).because_of(why)),
        };
        Ok(Self {
            range: TimeRange {
                start: bound("from", &args.from, Timestamp::MIN)?,
                end: bound("to", &args.to, Timestamp::MAX)?,
            },
            resample: resample(args)?,
        })
    }
}

fn resample(args: &QueryArgs) -> Result<Option<Resample>, Failure> {
    let Some(step) = &args.step else { return Ok(None) };
    let failure = || Failure::usage(format!("cannot use --step {step}"));
    let step_ns = units::parse_duration(step).map_err(|what| failure().because_of(what))?;
    if step_ns == 0 {
        return Err(failure().because_of("a step is longer than no time at all"));
    }
    let consolidation = match args.rows {
        RowConsolidation::Min => Consolidation::Min,
        RowConsolidation::Max => Consolidation::Max,
        RowConsolidation::Average => Consolidation::Average,
        RowConsolidation::Sum => Consolidation::Sum,
        RowConsolidation::Count => Consolidation::Count,
        RowConsolidation::First => Consolidation::First,
        RowConsolidation::Last => Consolidation::Last,
    };
    Ok(Some(Resample {
        step_ns: step_ns as i64,
        consolidation,
    }))
}

/// Prints the series that match, one per line, sorted.
fn list(known: &[SeriesKey], pattern: Option<&str>) -> Result<Exit, Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut names: Vec<String> = known.iter().map(keys::shown).collect();
    names.retain(|name| pattern.is_none_or(|pattern| keys::matches(pattern, name)));
    names.sort_unstable();
    let written = names
        .iter()
        .try_for_each(|name| writeln!(out, "{}", foreign::line(name)));
    ignore_broken_pipe(written.and_then(|()| out.flush()))?;
    if names.is_empty() {
        let all = units::count(known.len() as u64);
        say::line(format!("tsb: none of the store's {all} series matches"));
    }
    Ok(Exit::Done)
}

/// Prints the samples of a store. Returns `false` if damage may have lost some.
fn from_store(
    spec: &Spec,
    wanted: &[SeriesKey],
    query: &SeriesQuery,
    printer: &mut Printer<impl Write>,
) -> Result<bool, Failure> {
    // Opening would make the place where no run has been.
    let of_server = if spec.is_client() { keys::known(spec)? } else { None };
    let store = existing(&keys::completed(spec))?;
    let mut told = ReportedDamage::default();
    told.tell(&*store, crate::say::warning);
    // Before anything is defined, which would make the series.
    let known = if spec.is_client() {
        of_server
    } else {
        keys::known(spec)?
    };
    // Samples of a series may be in a journal alone, of which its file knows nothing.
    let has_journal = spec.option("write-cache.journal").is_some();
    let known = known.filter(|known| !has_journal || wanted.iter().all(|key| known.contains(key)));
    if let Some(known) = &known {
        keys::check(spec, wanted, known)?;
    }
    let ids: Vec<SeriesId> = (0..wanted.len() as u32).map(SeriesId).collect();
    let pairs: Vec<_> = ids.iter().copied().zip(wanted.iter().cloned()).collect();
    let failed = |error: tsb_stores::Error| Failure::new(Exit::Invalid, format!("cannot query {spec}")).because(&error);
    store.define(&pairs).map_err(failed)?;
    if known.is_none() {
        let mut newest = vec![None; ids.len()];
        store.newest(&ids, &mut newest).map_err(failed)?;
        if let Some(index) = newest.iter().position(Option::is_none) {
            return Err(Failure::usage(format!("cannot query {spec}"))
                .because_of(format!("it holds no sample of {}", keys::shown(&wanted[index]))));
        }
    }
    let query = Query {
        series: &ids,
        range: query.range,
        resample: query.resample,
    };
    let visited = store.query(&query, &mut |series, times, values| {
        let name = wanted.get(series.index()).map(keys::shown).unwrap_or_default();
        if printer.rows(&name, times.iter().copied().zip(values.iter().copied())) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    visited.map_err(failed)?;
    store.close().map_err(failed)?;
    told.tell(&*store, crate::say::warning);
    Ok(!told.may_lose_samples())
}

/// Opens an existing persistent store, or fails.
pub fn existing(spec: &Spec) -> Result<Box<dyn Store>, Failure> {
    check_there(spec)?;
    // Reading removes nothing, whatever the run was told.
    let store = credentials::complete(&spec.without("drop"))?.open();
    let store = store.map_err(|error| Failure::opening(spec, &error))?;
    if !store.capabilities().persistent {
        return Err(Failure::usage(format!("cannot read {store}"))
            .because_of("it keeps nothing past the process that filled it")
            .hint("the run itself has read everything back: its verdict is in the report"));
    }
    Ok(store)
}

/// Refuses files and folders that opening the store would create.
fn check_there(spec: &Spec) -> Result<(), Failure> {
    let what = match spec.scheme() {
        "sqlite" => "file",
        "rrd" | "mstore" => "folder",
        _ => return Ok(()),
    };
    if Path::new(spec.path()).exists() {
        return Ok(());
    }
    Err(Failure::new(Exit::Unreachable, format!("cannot open store {spec}"))
        .because_of(format!("there is no such {what}"))
        .hint("give the path that it has here"))
}

/// Checks a file for damage that reading its samples does not reveal. Only SQLite files are
/// checked.
pub fn check_structure(spec: &Spec) -> Result<(), Failure> {
    #[cfg(feature = "sqlite")]
    if spec.scheme() == "sqlite" {
        let checked = tsb_stores::sqlite::check(Path::new(spec.path()));
        return checked
            .map_err(|error| Failure::new(Exit::Invalid, format!("cannot trust the file of {spec}")).because(&error));
    }
    let _ = spec;
    Ok(())
}
