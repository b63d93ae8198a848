//! The update algorithm: values become rates, rates fill steps, and steps are consolidated into
//! rows.
//!
//! The order of floating-point operations is librrd's, because the last bit depends on it.

use crate::error::{Error, Result};
use crate::layout::{Archive, Cf, DataSource, DsKind, Layout, UNKNOWN};
use crate::live_header::{CdpPrep, LiveHeader};
use crate::number::{difference, number};
use crate::parse::{Moment, moment, split_time};
use crate::rows::Rows;

/// What COUNTER adds to a negative difference; if it is still negative, the 64-bit wrap is added.
const WRAP_32: f64 = 4_294_967_295.0;
const WRAP_64: f64 = 18_446_744_069_414_584_320.0;

/// Reusable buffers for updates of any number of files.
#[derive(Debug, Default)]
pub struct Scratch {
    // Rate times seconds since the last update, per data source; NaN is unknown.
    amounts: Vec<f64>,
    // The same for the part in the step that was open, if several steps end.
    open_amounts: Vec<f64>,
    // Rate of the steps that end, per data source.
    rates: Vec<f64>,
    // Number of rows that each archive gets.
    counts: Vec<u64>,
    // For each archive, the number of steps after `open` at which its open row is full. Between
    // two updates of a pass this is computed by subtraction, otherwise by division.
    to_ends: Vec<u64>,
    open: Option<u64>,
    // Whether a step has ended since the pass began.
    has_ended: bool,
    // End of the newest known row of the first archive since the pass began.
    known_row_s: Option<i64>,
}

impl Scratch {
    /// Begins a pass.
    pub(crate) fn start(&mut self) {
        self.has_ended = false;
        self.known_row_s = None;
        self.open = None;
    }

    /// Whether a step has ended in this pass. If not, only the open step's part of the live header
    /// has changed.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// End of the newest row of the first archive that this pass completed and whose first value
    /// is known.
    pub(crate) fn known_row_s(&self) -> Option<i64> {
        self.known_row_s
    }
}

/// Applies one update, `time:value[:value...]`, to the live header, and appends the rows that it
/// completes.
///
/// # Errors
/// [`Error::NotLater`], [`Error::InvalidUpdate`] or [`Error::Unsupported`]. As in librrd, the live
/// header may have changed nevertheless: data sources before the invalid value keep their new
/// value.
pub fn apply(layout: &Layout, live: &mut LiveHeader, text: &str, scratch: &mut Scratch, rows: &mut Rows) -> Result<()> {
    let (time, values) = split_time(text)?;
    check_count(layout, values, text)?;
    let at = moment(time)?;
    let last = live.newest();
    if at <= last {
        return Err(Error::NotLater {
            at: at.to_string(),
            last: last.to_string(),
        });
    }
    let interval = (at.seconds - last.seconds) as f64 + (at.micros - last.micros) as f64 / 1e6;
    scratch.amounts.clear();
    for (index, (source, value)) in layout.sources.iter().zip(values.split(':')).enumerate() {
        let amount = amount(live, index, source, value, interval)?;
        scratch.amounts.push(amount);
        live.set_last(index, value.as_bytes());
    }
    let span = Span::between(layout.step_s, last, at, interval);
    if span.steps == 0 {
        extend_step(live, &scratch.amounts, interval);
    } else {
        scratch.has_ended = true;
        end_steps(layout, live, scratch, rows, span);
    }
    live.set_newest(at);
    Ok(())
}

pub(crate) fn check_count(layout: &Layout, values: &str, text: &str) -> Result<()> {
    let count = values.bytes().filter(|&byte| byte == b':').count() + 1;
    let what = match count.cmp(&layout.sources.len()) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Less => "fewer values than data sources",
        std::cmp::Ordering::Greater => "more values than data sources",
    };
    Err(Error::InvalidUpdate {
        text: text.to_owned(),
        what,
    })
}

/// Rate times seconds for a value; NaN if unknown.
fn amount(live: &mut LiveHeader, index: usize, source: &DataSource, value: &str, interval: f64) -> Result<f64> {
    let heartbeat = source.heartbeat_s as f64;
    if heartbeat < interval {
        live.set_last(index, b"U");
    }
    if value.starts_with('U') || heartbeat < interval {
        return Ok(UNKNOWN);
    }
    let (amount, rate) = amount_and_rate(live.last(index), source.kind, value, interval)?;
    // Comparisons with NaN are false: a NaN bound bounds nothing, and a NaN rate exceeds nothing.
    if rate > source.max || rate < source.min {
        return Ok(UNKNOWN);
    }
    Ok(amount)
}

/// Rate times seconds, and the rate, of a value, by the kind of its data source.
fn amount_and_rate(last: &[u8], kind: DsKind, value: &str, interval: f64) -> Result<(f64, f64)> {
    const NONE: (f64, f64) = (UNKNOWN, UNKNOWN);
    let is_first = last.first() == Some(&b'U');
    let float = |text: &[u8]| {
        number(text).ok_or_else(|| Error::InvalidUpdate {
            text: String::from_utf8_lossy(text).into_owned(),
            what: "not a number",
        })
    };
    Ok(match kind {
        DsKind::Gauge => {
            let rate = float(value.as_bytes())?;
            (rate * interval, rate)
        }
        DsKind::Absolute => {
            let amount = float(value.as_bytes())?;
            (amount, amount / interval)
        }
        DsKind::Counter | DsKind::Derive => {
            check_integer(kind, value)?;
            if is_first {
                return Ok(NONE);
            }
            let mut amount = difference(value.as_bytes(), last);
            if kind == DsKind::Counter {
                if amount < 0.0 {
                    amount += WRAP_32;
                }
                if amount < 0.0 {
                    amount += WRAP_64;
                }
            }
            (amount, amount / interval)
        }
        DsKind::DCounter | DsKind::DDerive => {
            if is_first {
                return Ok(NONE);
            }
            let (new, old) = (float(value.as_bytes())?, float(last)?);
            let is_reset = (new > 0.0 && old > new) || (new < 0.0 && new > old);
            if kind == DsKind::DCounter && is_reset {
                return Ok(NONE);
            }
            (new - old, (new - old) / interval)
        }
    })
}

pub(crate) fn check_integer(kind: DsKind, value: &str) -> Result<()> {
    let digits = match kind {
        DsKind::Derive => value.strip_prefix('-').unwrap_or(value),
        _ => value,
    };
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(());
    }
    Err(Error::InvalidUpdate {
        text: value.to_owned(),
        what: "not a whole number",
    })
}

/// The time between two updates, split at the last end of a step.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// Total length, in seconds.
    interval: f64,
    /// Seconds up to the last end of a step.
    before: f64,
    /// Seconds after it.
    after: f64,
    /// Number of steps that end in it.
    steps: u64,
    /// Number of the step that was open, counted from the epoch.
    open: u64,
}

impl Span {
    fn between(step_s: u64, last: Moment, at: Moment, interval: f64) -> Self {
        let (from, to) = (last.seconds as u64, at.seconds as u64);
        let (from_start, to_start) = (from - from % step_s, to - to % step_s);
        let (before, after) = if to_start > from_start {
            (
                (to_start - from) as f64 - last.micros as f64 / 1e6,
                (to % step_s) as f64 + at.micros as f64 / 1e6,
            )
        } else {
            (interval, 0.0)
        };
        Self {
            interval,
            before,
            after,
            steps: (to_start - from_start) / step_s,
            open: from_start / step_s,
        }
    }
}

/// Handles an update within the open step.
fn extend_step(live: &mut LiveHeader, amounts: &[f64], interval: f64) {
    for (source, &amount) in amounts.iter().enumerate() {
        let pending = live.pending(source);
        if amount.is_nan() {
            let unknown = live.unknown_s(source) as f64 + interval.floor();
            live.set_unknown_s(source, unknown as u64);
        } else if pending.is_nan() {
            live.set_pending(source, amount);
        } else {
            live.set_pending(source, pending + amount);
        }
    }
}

/// Handles an update after the end of one or more steps.
fn end_steps(layout: &Layout, live: &mut LiveHeader, scratch: &mut Scratch, rows: &mut Rows, mut span: Span) {
    let open_s = span.before as u64 % layout.step_s;
    if span.steps > 1 && open_s > 0 {
        split_open(scratch, open_s as f64, span.interval);
        let first = Span {
            interval: open_s as f64,
            before: open_s as f64,
            after: 0.0,
            steps: 1,
            open: span.open,
        };
        let open_amounts = std::mem::take(&mut scratch.open_amounts);
        rates(layout, live, &open_amounts, &mut scratch.rates, first);
        scratch.open_amounts = open_amounts;
        consolidate(layout, live, scratch, rows, first);
        span.interval -= open_s as f64;
        span.before -= open_s as f64;
        span.steps -= 1;
        span.open += 1;
    }
    let amounts = std::mem::take(&mut scratch.amounts);
    rates(layout, live, &amounts, &mut scratch.rates, span);
    scratch.amounts = amounts;
    consolidate(layout, live, scratch, rows, span);
}

/// Separates the open step's share from the amounts.
fn split_open(scratch: &mut Scratch, open_s: f64, interval: f64) {
    scratch.open_amounts.clear();
    for amount in &mut scratch.amounts {
        if amount.is_nan() || interval <= 0.0 {
            scratch.open_amounts.push(UNKNOWN);
        } else {
            let open_amount = *amount * open_s / interval;
            *amount -= open_amount;
            scratch.open_amounts.push(open_amount);
        }
    }
}

/// Computes the rate of the ended steps for each data source; the remainder starts the next step.
fn rates(layout: &Layout, live: &mut LiveHeader, amounts: &[f64], rates: &mut Vec<f64>, span: Span) {
    rates.clear();
    let seconds = span.steps.wrapping_mul(layout.step_s);
    for (index, (source, &amount)) in layout.sources.iter().zip(amounts).enumerate() {
        let mut unknown_before = 0.0;
        let mut pending = live.pending(index);
        let unknown_s = live.unknown_s(index);
        if amount.is_nan() {
            unknown_before = span.before;
        } else {
            if pending.is_nan() {
                pending = 0.0;
            }
            pending += amount / span.interval * span.before;
        }
        let is_late = span.interval > source.heartbeat_s as f64;
        // librrd uses only 32 bits of the count here.
        let rate = if is_late || layout.step_s as f64 / 2.0 < f64::from(unknown_s as i32) {
            UNKNOWN
        } else {
            pending / (seconds.wrapping_sub(unknown_s) as f64 - unknown_before)
        };
        rates.push(rate);
        if amount.is_nan() {
            live.set_unknown_s(index, span.after.floor() as u64);
            live.set_pending(index, UNKNOWN);
        } else {
            live.set_unknown_s(index, 0);
            live.set_pending(index, amount / span.interval * span.after);
        }
    }
}

/// Sets `to_ends` for the time at which step `open` was open.
fn open_rows(layout: &Layout, scratch: &mut Scratch, open: u64) {
    if scratch.open != Some(open) {
        let archives = layout.archives.iter();
        scratch.to_ends.clear();
        scratch
            .to_ends
            .extend(archives.map(|archive| archive.steps - open % archive.steps));
    }
}

/// Number of rows that an archive gets from `steps` ended steps, if its open row needs `to_end`
/// more, and the number that the next row then needs.
fn rows_ended(archive: &Archive, steps: u64, to_end: u64) -> (u64, u64) {
    match steps.checked_sub(to_end) {
        None => (0, to_end - steps),
        // The common case, without a division.
        Some(0) => (1, archive.steps),
        Some(over) => {
            let count = (over / archive.steps + 1).min(archive.rows);
            (count, archive.steps - over % archive.steps)
        }
    }
}

/// Adds the rate of the ended steps to every archive, and writes the completed rows.
fn consolidate(layout: &Layout, live: &mut LiveHeader, scratch: &mut Scratch, rows: &mut Rows, span: Span) {
    scratch.counts.clear();
    open_rows(layout, scratch, span.open);
    scratch.open = Some(span.open + span.steps);
    for (index, (archive, to_row_end)) in layout.archives.iter().zip(&mut scratch.to_ends).enumerate() {
        let to_end = *to_row_end;
        let (count, next_end) = rows_ended(archive, span.steps, to_end);
        *to_row_end = next_end;
        for (mut cell, &rate) in live.cells(index).zip(&scratch.rates) {
            if archive.steps == 1 {
                // No consolidation: one step is one row, and a second value fills the remaining
                // rows.
                cell.set_primary(rate);
                if span.steps > 1 {
                    cell.set_secondary(rate);
                }
            } else if count > 0 {
                end_row(&mut cell, archive, rate, span.steps, to_end);
            } else if rate.is_nan() {
                let unknown = cell.unknown();
                cell.set_unknown(unknown.wrapping_add(span.steps));
            } else {
                let value = extended_value(cell.value(), archive.cf, rate, span.steps as f64);
                cell.set_value(value);
            }
        }
        scratch.counts.push(count);
    }
    for (index, &count) in scratch.counts.iter().enumerate() {
        write_rows(layout, live, rows, index, count);
    }
    if let (Some(&count @ 1..), Some(archive)) = (scratch.counts.first(), layout.archives.first()) {
        let known = known_row(live, archive, count, span);
        scratch.known_row_s = known.map(|row| (row * layout.step_s) as i64).or(scratch.known_row_s);
    }
}

/// End of the newest known row among those just completed, in steps since the epoch.
fn known_row(live: &LiveHeader, archive: &Archive, count: u64, span: Span) -> Option<u64> {
    let is_known = |is_first: bool| {
        let value = live.row_value(0, 0, is_first);
        !f64::from_bits(crate::header::get(value, 0)).is_nan()
    };
    let last = (span.open + span.steps) / archive.steps * archive.steps;
    if count > 1 && is_known(false) {
        return Some(last);
    }
    // If rows were skipped because the archive holds fewer, the first row written is not the first
    // that ended.
    let first = last - (count - 1) * archive.steps;
    is_known(true).then_some(first)
}

/// Completes a row: sets its value, the value of further rows, and the start of the next one.
fn end_row(cell: &mut CdpPrep<'_>, archive: &Archive, rate: f64, steps: u64, to_end: u64) {
    let mut unknown = cell.unknown();
    if rate.is_nan() {
        unknown = unknown.wrapping_add(to_end);
        cell.set_secondary(UNKNOWN);
    } else {
        cell.set_secondary(rate);
    }
    if unknown as f64 > archive.steps as f64 * archive.xff {
        cell.set_primary(UNKNOWN);
    } else {
        let known = archive.steps.wrapping_sub(unknown);
        let primary = completed_value(cell.value(), archive.cf, rate, to_end as f64, known as f64);
        cell.set_primary(primary);
    }
    let carried = (steps - to_end) % archive.steps;
    cell.set_value(initial_value(archive.cf, rate, carried));
    cell.set_unknown(if rate.is_nan() { carried } else { 0 });
}

/// The value of a completed row.
fn completed_value(value: f64, cf: Cf, rate: f64, to_end: f64, known: f64) -> f64 {
    let or = |number: f64, other: f64| if number.is_nan() { other } else { number };
    match cf {
        Cf::Average => (or(value, 0.0) + or(rate, 0.0) * to_end) / known,
        Cf::Max => {
            let (old, new) = (or(value, f64::NEG_INFINITY), or(rate, f64::NEG_INFINITY));
            if new > old { new } else { old }
        }
        Cf::Min => {
            let (old, new) = (or(value, f64::INFINITY), or(rate, f64::INFINITY));
            if new < old { new } else { old }
        }
        Cf::Last => rate,
    }
}

/// The initial value of the open row, with `carried` steps already in it.
fn initial_value(cf: Cf, rate: f64, carried: u64) -> f64 {
    if carried == 0 || rate.is_nan() {
        return match cf {
            Cf::Max => f64::NEG_INFINITY,
            Cf::Min => f64::INFINITY,
            Cf::Average => 0.0,
            Cf::Last => UNKNOWN,
        };
    }
    match cf {
        Cf::Average => rate * carried as f64,
        _ => rate,
    }
}

/// The value of the open row with `steps` more steps in it.
fn extended_value(value: f64, cf: Cf, rate: f64, steps: f64) -> f64 {
    match cf {
        Cf::Average if value.is_nan() => rate * steps,
        Cf::Average => value + rate * steps,
        // Of equal values the older is kept: they may be zeros of different signs.
        Cf::Min if value <= rate => value,
        Cf::Max if value >= rate => value,
        _ => rate,
    }
}

/// Advances an archive by `count` rows: the first gets one value, the others another.
fn write_rows(layout: &Layout, live: &mut LiveHeader, rows: &mut Rows, archive: usize, count: u64) {
    let in_all = layout.archives[archive].rows;
    let mut left = count;
    let mut is_first = true;
    while left > 0 {
        let row = live.row(archive) + 1;
        let row = if row >= in_all { 0 } else { row };
        let run = if is_first { 1 } else { left.min(in_all - row) };
        let values = (0..layout.sources.len()).map(|source| live.row_value(archive, source, is_first));
        rows.push(archive, (layout.row_offset(archive, row), run), values);
        live.set_row(archive, row + run - 1);
        left -= run;
        is_first = false;
    }
}
