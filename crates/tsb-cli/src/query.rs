//! `tsb query`: samples of a store that keeps them past its process, as lines of text.
//!
//! It asks and prints, one series a `--series`; it never makes a store or a series. It is
//! *not* a query language: for that, a store's own tools are there.

use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use tsb_core::{SeriesId, SeriesKey, Timestamp};
use tsb_stores::spec::Spec;
use tsb_stores::{Consolidation, Query, Resample, Store, TimeRange};

use crate::args::{QueryArgs, Rows};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::units;

/// Runs the command.
pub fn command(args: &QueryArgs) -> Result<Exit, Failure> {
    let spec: Spec = args
        .store
        .parse()
        .map_err(|error| Failure::usage(format!("cannot use --store {}", args.store)).because(&error))?;
    let store = existing(&spec)?;
    let keys = args
        .series
        .iter()
        .map(|text| key(text))
        .collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<SeriesId> = (0..keys.len() as u32).map(SeriesId).collect();
    let pairs: Vec<_> = ids.iter().copied().zip(keys.iter().cloned()).collect();
    let failed = |error: tsb_stores::Error| Failure::new(Exit::Invalid, format!("cannot query {spec}")).because(&error);
    store.define(&pairs).map_err(failed)?;
    let query = Query {
        series: &ids,
        range: TimeRange {
            start: bound(args.from.as_deref(), Timestamp::MIN)?,
            end: bound(args.to.as_deref(), Timestamp::MAX)?,
        },
        resample: resample(args)?,
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = print(&*store, &query, &keys, &mut out).map_err(failed)?;
    crate::output::delivered(written)?;
    store.close().map_err(failed)?;
    Ok(Exit::Done)
}

/// Opens a store that keeps samples, and is there.
pub fn existing(spec: &Spec) -> Result<Box<dyn Store>, Failure> {
    if spec.scheme() == "sqlite" && !Path::new(spec.path()).exists() {
        return Err(Failure::new(Exit::Unreachable, format!("cannot open store {spec}"))
            .because_of("there is no such file")
            .hint("give --store with the path that it has here"));
    }
    // Whoever reads removes nothing, whatever the run was told.
    let store = spec.without("drop").open();
    let store = store.map_err(|error| Failure::opening(spec, &error))?;
    if !store.capabilities().persistent {
        return Err(Failure::usage(format!("cannot read {store}"))
            .because_of("it keeps nothing past the process that filled it")
            .hint("the run itself has read everything back: its verdict is in the report"));
    }
    Ok(store)
}

/// Looks for damage of a file that reading its samples does not meet.
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

fn print(
    store: &dyn Store,
    query: &Query<'_>,
    keys: &[SeriesKey],
    out: &mut impl Write,
) -> tsb_stores::Result<std::io::Result<()>> {
    let mut written = writeln!(out, "series,time,value");
    store.query(query, &mut |series, times, values| {
        let mut text = String::new();
        let name = keys
            .get(series.index())
            .map_or(String::new(), |key| quoted(&key.to_string()));
        for (at, value) in times.iter().zip(values) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name},{at},{value:?}");
        }
        written = out.write_all(text.as_bytes());
        if written.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(written.and_then(|()| out.flush()))
}

/// As CSV wants it, where that is needed.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// `name` or `name{label=value,...}`, as reports print it.
fn key(text: &str) -> Result<SeriesKey, Failure> {
    let Some((name, labels)) = text.strip_suffix('}').and_then(|text| text.split_once('{')) else {
        return Ok(SeriesKey::new(text));
    };
    let pairs = labels.split(',').map(|pair| pair.split_once('='));
    let pairs: Option<Vec<_>> = pairs.collect();
    let pairs = pairs.ok_or_else(|| {
        Failure::usage(format!("cannot use --series {text}")).because_of("a series is written name{label=value,...}")
    })?;
    Ok(SeriesKey::with_labels(name, pairs))
}

/// Seconds since the epoch, with up to nine decimals.
fn bound(text: Option<&str>, otherwise: Timestamp) -> Result<Timestamp, Failure> {
    let Some(text) = text else { return Ok(otherwise) };
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
    let nanos = format!("{decimals:0<9}");
    let parsed = seconds
        .parse::<i64>()
        .ok()
        .zip(nanos.parse::<i64>().ok().filter(|_| nanos.len() == 9));
    let parsed = parsed.and_then(|(seconds, nanos)| seconds.checked_mul(1_000_000_000)?.checked_add(nanos));
    parsed.map(Timestamp).ok_or_else(|| {
        Failure::usage(format!("cannot read time {text}"))
            .because_of("a time is seconds since 1970, as in 1700000000.5")
    })
}

fn resample(args: &QueryArgs) -> Result<Option<Resample>, Failure> {
    let Some(step) = &args.step else { return Ok(None) };
    let step_ns = units::parse_duration(step)
        .map_err(|what| Failure::usage(format!("cannot use --step {step}")).because_of(what))?;
    let consolidation = match args.rows {
        Rows::Min => Consolidation::Min,
        Rows::Max => Consolidation::Max,
        Rows::Average => Consolidation::Average,
        Rows::Sum => Consolidation::Sum,
        Rows::Count => Consolidation::Count,
        Rows::First => Consolidation::First,
        Rows::Last => Consolidation::Last,
    };
    Ok(Some(Resample {
        step_ns: step_ns as i64,
        consolidation,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_written_as_reports_print_them() {
        for key_text in ["a", "cpu.user{host=h1}", "x{a=1,b=2}"] {
            assert_eq!(key(key_text).unwrap().to_string(), key_text);
        }
        assert!(key("a{b}").is_err());
        assert_eq!(quoted("x{a=1,b=2}"), "\"x{a=1,b=2}\"");
    }

    #[test]
    fn times_are_seconds() {
        assert_eq!(bound(Some("1.5"), Timestamp::MIN).unwrap(), Timestamp(1_500_000_000));
        assert_eq!(bound(None, Timestamp::MIN).unwrap(), Timestamp::MIN);
        for text in ["x", "1.0000000001", "99999999999999", "1.x"] {
            assert!(bound(Some(text), Timestamp::MIN).is_err(), "{text}");
        }
    }
}
