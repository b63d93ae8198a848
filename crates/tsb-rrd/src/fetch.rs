//! Reads the rows of an archive in time order.

use crate::error::{Error, Result};
use crate::file::{RrdFile, Session};
use crate::header::get;
use crate::layout::{Archive, Cf, Layout, UNKNOWN};

/// One row: its end, and one value per data source.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// End of the row, in seconds since the epoch: the time that `rrdtool fetch` prints.
    pub end_s: i64,
    /// One value per data source; NaN is unknown.
    pub values: Vec<f64>,
}

/// The rows of an archive that end within `[from_s, to_s)`, oldest first.
///
/// # Errors
/// As for an update; [`Error::Locked`](crate::Error::Locked) while another process writes.
///
/// ```
/// use tsb_rrd::{Archive, Cf, DataSource, DsKind, Layout, RrdFile, Session};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("load.rrd");
/// let layout = Layout::new(
///     10,
///     vec![DataSource::new("load", DsKind::Gauge, 20)],
///     vec![Archive::new(Cf::Average, 0.5, 1, 100)],
/// )?;
/// tsb_rrd::create(&path, &layout, 1_700_000_000, 7)?;
/// let (file, mut session) = (RrdFile::open(&path)?, Session::default());
/// file.update(&mut session, &["1700000010:1.5", "1700000020:2.5"])?;
/// let rows = tsb_rrd::rows(&file, &mut session, 0, 1_700_000_010, 1_700_000_021)?;
/// let means: Vec<f64> = rows.iter().map(|row| row.values[0]).collect();
/// assert_eq!(means, [1.5, 2.5]);
/// # Ok(())
/// # }
/// ```
pub fn rows(file: &RrdFile, session: &mut Session, archive: usize, from_s: i64, to_s: i64) -> Result<Vec<Row>> {
    file.shared(|| read(file, session, archive, from_s, to_s))
}

fn read(file: &RrdFile, session: &mut Session, archive: usize, from_s: i64, to_s: i64) -> Result<Vec<Row>> {
    file.load(session)?;
    let layout = file.layout();
    let Some(definition) = layout.archives.get(archive) else {
        return Ok(Vec::new());
    };
    let span_s = span_of(layout, definition);
    let newest_s = session.live.newest().seconds.div_euclid(span_s) * span_s;
    let row_len = layout.row_len();
    let in_all = definition.rows;
    // Age of a row in rows; 0 is the newest.
    let youngest = (newest_s.saturating_sub(to_s.min(newest_s + 1)).div_euclid(span_s) + 1).max(0) as u64;
    // With rows of one second, "from the beginning of time" would overflow by adding one.
    let oldest = newest_s.saturating_sub(from_s).div_euclid(span_s).saturating_add(1);
    let oldest = oldest.clamp(0, in_all as i64) as u64;
    let newest_row = session.live.row(archive);
    let mut found = Vec::with_capacity(oldest.saturating_sub(youngest) as usize);
    let mut bytes = Vec::new();
    let mut age = oldest;
    while age > youngest {
        // Up to the end of the archive, where it wraps around, or to the last requested row.
        let row = (newest_row + in_all - (age - 1)) % in_all;
        let run = (in_all - row).min(age - youngest);
        bytes.resize(run as usize * row_len, 0);
        file.read_at(&mut bytes, layout.row_offset(archive, row))?;
        for (index, row) in bytes.chunks_exact(row_len).enumerate() {
            found.push(Row {
                end_s: newest_s - (age - 1 - index as u64) as i64 * span_s,
                values: row.chunks_exact(8).map(|value| f64::from_bits(get(value, 0))).collect(),
            });
        }
        age -= run;
    }
    Ok(found)
}

/// The result of `rrdtool fetch`.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// Start of the first row, in seconds since the epoch.
    pub start_s: i64,
    /// End of the last row.
    pub end_s: i64,
    /// Seconds per row.
    pub step_s: i64,
    /// One value per data source, row by row; NaN is unknown.
    pub values: Vec<f64>,
}

/// The rows from `start_s` to `end_s`, and at least one more, of the best archive: the finest that
/// reaches back to `start_s`, or else the one that reaches back furthest. A row that it does not
/// have is unknown. At most `limit` values.
///
/// # Errors
/// As [`rows`]; [`Error::Definition`] if no archive has this function, if the end is before the
/// start, or if the result would exceed the limit.
pub fn fetch(
    file: &RrdFile,
    session: &mut Session,
    cf: Cf,
    (start_s, end_s): (i64, i64),
    limit: usize,
) -> Result<Fetched> {
    file.shared(|| answer(file, session, cf, (start_s, end_s), limit))
}

/// End of the oldest row of an archive, in seconds since the epoch.
///
/// # Errors
/// As [`rows`], except that it takes no lock; [`Error::Definition`] if the archive does not exist.
pub fn first(file: &RrdFile, session: &mut Session, archive: usize) -> Result<i64> {
    file.load(session)?;
    let Some(definition) = file.layout().archives.get(archive) else {
        return Err(Error::Definition("invalid rraindex number".to_owned()));
    };
    let span_s = span_of(file.layout(), definition);
    let newest_s = session.live.newest().seconds.div_euclid(span_s) * span_s;
    Ok(newest_s - (definition.rows as i64 - 1) * span_s)
}

fn span_of(layout: &Layout, archive: &Archive) -> i64 {
    (archive.steps * layout.step_s) as i64
}

fn answer(
    file: &RrdFile,
    session: &mut Session,
    cf: Cf,
    (start_s, end_s): (i64, i64),
    limit: usize,
) -> Result<Fetched> {
    if start_s < 0 || start_s > end_s {
        return Err(Error::Definition(format!(
            "start ({start_s}) should be less than end ({end_s})"
        )));
    }
    file.load(session)?;
    let layout = file.layout();
    let newest_s = session.live.newest().seconds;
    let Some(archive) = best(layout, cf, newest_s, start_s) else {
        let what = "the RRD does not contain an RRA matching the chosen CF";
        return Err(Error::Definition(what.to_owned()));
    };
    let step_s = span_of(layout, &layout.archives[archive]);
    let start_s = start_s - start_s % step_s;
    let end_s = end_s.saturating_add(step_s - end_s % step_s);
    let count = usize::try_from((end_s - start_s) / step_s).unwrap_or(usize::MAX);
    let width = layout.sources.len();
    if count.saturating_mul(width) > limit {
        return Err(Error::Definition(format!("more than {limit} values are asked for")));
    }
    let mut values = vec![UNKNOWN; count * width];
    for row in read(file, session, archive, start_s + step_s, end_s.saturating_add(1))? {
        let index = (row.end_s - start_s) / step_s - 1;
        let place = usize::try_from(index).ok().and_then(|index| {
            let at = index * width;
            values.get_mut(at..at + width)
        });
        if let Some(place) = place {
            place.copy_from_slice(&row.values);
        }
    }
    Ok(Fetched {
        start_s,
        end_s,
        step_s,
        values,
    })
}

/// The best archive: by how far back it reaches, then by its step.
fn best(layout: &Layout, cf: Cf, newest_s: i64, start_s: i64) -> Option<usize> {
    let answers = |archive: &Archive| archive.cf == cf || archive.steps == 1;
    let candidates = layout.archives.iter().enumerate();
    let candidates = candidates.filter(|(_, archive)| answers(archive));
    let reach = candidates.map(|(index, archive)| {
        let span_s = span_of(layout, archive);
        let oldest_s = newest_s - newest_s % span_s - span_s * archive.rows as i64;
        // Archives that reach back far enough count as equal.
        ((oldest_s - start_s).max(0), span_s, index)
    });
    reach.min().map(|(_, _, index)| index)
}
