//! Reads RRD files by their own headers: each file states its step, data sources and archives,
//! so `rrd:` needs no options, and files of rrdtool can be read too.

use std::io::Write;
use std::path::Path;

use tsb_core::{SeriesKey, Timestamp};
use tsb_rrd::{Cf, Layout, Row, RrdFile, Session};
use tsb_run::spec::Spec;
use tsb_stores::{Consolidation, Damage, DamageKind, Resample};

use super::print::Printer;
use super::{SeriesQuery, keys};
use crate::exit::Exit;
use crate::failure::Failure;
use tsb_run::damage::ReportedDamage;

const SECOND_NS: i64 = 1_000_000_000;

/// Whether a store is a folder of RRD files without a wrapper.
pub(super) fn are_plain(spec: &Spec) -> bool {
    spec.scheme() == "rrd" && !spec.is_wrapped()
}

/// Prints the known rows of each series; with several data sources, as `KEY:SOURCE`. Returns
/// whether all files could be read: an unreadable file is reported, and the others are still
/// printed.
pub(super) fn print(
    spec: &Spec,
    wanted: &[SeriesKey],
    asked: &SeriesQuery,
    printer: &mut Printer<impl Write>,
) -> Result<bool, Failure> {
    let folder = Path::new(spec.path());
    if let Some(known) = keys::known(spec)? {
        keys::check(spec, wanted, &known)?;
    }
    let mut damaged = Vec::new();
    for key in wanted {
        let path = tsb_stores::rrd::file_of(folder, key).ok_or_else(|| gone(spec, key))?;
        let file = match RrdFile::open(&path) {
            Ok(file) => file,
            Err(error) => {
                damaged.push(damage(&path, &error)?);
                continue;
            }
        };
        let layout = file.layout();
        let (archive, shift_s) = archive(layout, asked.resample)
            .map_err(|why| Failure::usage(format!("cannot resample {}", path.display())).because_of(why))?;
        // A row is asked for by its end, and printed with it or with its start.
        let from_s = seconds_up(asked.range.start).saturating_add(shift_s);
        let to_s = seconds_up(asked.range.end).saturating_add(shift_s);
        let rows = match tsb_rrd::rows(&file, &mut Session::default(), archive, from_s, to_s) {
            Ok(rows) => rows,
            Err(error) => {
                damaged.push(damage(&path, &error)?);
                continue;
            }
        };
        let sources = layout.sources();
        for (index, source) in sources.iter().enumerate() {
            let name = match sources.len() {
                1 => keys::shown(key),
                _ => format!("{}:{}", keys::shown(key), source.name),
            };
            if !printer.rows(&name, known(&rows, index, shift_s)) {
                return Ok(true);
            }
        }
    }
    let mut told = ReportedDamage::default();
    told.tell_list(damaged, crate::say::warning);
    Ok(!told.may_lose_samples())
}

/// Converts an error about damage to a [`Damage`]; any other error is a failure.
fn damage(path: &Path, error: &tsb_rrd::Error) -> Result<Damage, Failure> {
    match error.cause() {
        tsb_rrd::Error::Damaged { offset, what } => {
            let what = format!("{what}, at byte {offset}");
            Ok(Damage::new(DamageKind::Unreadable, path, what))
        }
        _ => Err(Failure::new(Exit::Invalid, format!("cannot read {}", path.display())).because(error)),
    }
}

fn gone(spec: &Spec, key: &SeriesKey) -> Failure {
    Failure::usage(format!("cannot query {spec}")).because_of(format!("it holds no series {}", keys::shown(key)))
}

fn known(rows: &[Row], source: usize, shift_s: i64) -> impl Iterator<Item = (Timestamp, f64)> + '_ {
    let values = rows.iter().map(move |row| (row.end_s - shift_s, row.values[source]));
    let known = values.filter(|(_, value)| !value.is_nan());
    known.map(|(at_s, value)| (Timestamp(at_s.saturating_mul(SECOND_NS)), value))
}

fn seconds_up(at: Timestamp) -> i64 {
    (i128::from(at.0) + i128::from(SECOND_NS) - 1).div_euclid(i128::from(SECOND_NS)) as i64
}

/// The archive that answers, and how many seconds before its end a row is dated.
fn archive(layout: &Layout, resample: Option<Resample>) -> Result<(usize, i64), String> {
    let Some(resample) = resample else { return Ok((0, 0)) };
    let cf = match resample.consolidation {
        Consolidation::Average => Some(Cf::Average),
        Consolidation::Min => Some(Cf::Min),
        Consolidation::Max => Some(Cf::Max),
        Consolidation::Last => Some(Cf::Last),
        _ => None,
    };
    let span_s = |steps: u64| (layout.step_s() * steps) as i64;
    let archives = layout.archives();
    let found = archives.iter().position(|archive| {
        Some(archive.cf) == cf && span_s(archive.steps).checked_mul(SECOND_NS) == Some(resample.step_ns)
    });
    if let Some(index) = found {
        return Ok((index, span_s(archives[index].steps)));
    }
    let there = archives
        .iter()
        .map(|archive| format!("{} of {}s", archive.cf.name().to_lowercase(), span_s(archive.steps)));
    let there: Vec<String> = there.collect();
    Err(format!("no archive has such rows; there are {}", there.join(", ")))
}

#[cfg(test)]
mod tests {
    use tsb_rrd::{Archive, DataSource, DsKind};

    use super::*;

    #[test]
    fn the_archive_is_the_one_with_that_step_and_function() {
        let sources = vec![DataSource::new("value", DsKind::Gauge, 600)];
        let archives = vec![Archive::new(Cf::Average, 0.5, 1, 10), Archive::new(Cf::Max, 0.5, 6, 10)];
        let layout = Layout::new(300, sources, archives).unwrap();
        let of = |step_s: i64, consolidation| {
            let step_ns = step_s * SECOND_NS;
            archive(&layout, Some(Resample { step_ns, consolidation }))
        };
        assert_eq!(archive(&layout, None), Ok((0, 0)));
        assert_eq!(of(1800, Consolidation::Max), Ok((1, 1800)));
        for (step_s, consolidation) in [(1800, Consolidation::Average), (300, Consolidation::Sum)] {
            let why = of(step_s, consolidation).unwrap_err();
            assert!(why.contains("average of 300s, max of 1800s"), "{why}");
        }
    }
}
