//! The payload of a block of samples: time axes, then one column of values per series.
//!
//! Each column is stored in the first encoding that fits: constant, integers (the shorter of two
//! forms), decimals, XOR. Bit patterns are preserved exactly,
//! including NaN payloads and negative zero.

use super::error::TraceDefect;
use super::format::{MAX_BLOCK_SAMPLES, MAX_EXACT, damaged, read_count, too_much};
use crate::bytes::Reader;
use crate::bytes::varint::{self, unzigzag};
use crate::series::SeriesId;
use crate::time::Timestamp;

/// One series within one block. `times` and `values` have equal length and are never empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BlockColumn {
    pub(crate) times: Vec<Timestamp>,
    pub(crate) values: Vec<f64>,
}

/// Receives one decoded column; an error ends the decoding.
pub(crate) type ColumnVisitor<'a> = dyn FnMut(SeriesId, &[Timestamp], &[f64]) -> Result<(), TraceDefect> + 'a;

const AXIS_EXPLICIT: u8 = 0;
const AXIS_SLICE: u8 = 1;

const FORM_CONSTANT: u8 = 0;
const FORM_DELTA: u8 = 1;
const FORM_DELTA_OF_DELTA: u8 = 2;
const FORM_DECIMAL: u8 = 3;
const FORM_XOR: u8 = 4;

const POWERS: [f64; 10] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// Appends the payload of the segments, which come in ascending order of their ids.
pub(crate) fn encode(segments: &[(SeriesId, &BlockColumn)], out: &mut Vec<u8>) {
    let (axes, axis_of) = axes_of(segments);
    varint::put(out, axes.len() as u64);
    for (index, times) in axes.iter().enumerate() {
        let within = if index == 0 { None } else { find_slice(axes[0], times) };
        if let Some(start) = within {
            out.push(AXIS_SLICE);
            varint::put(out, start as u64);
            varint::put(out, times.len() as u64);
        } else {
            out.push(AXIS_EXPLICIT);
            varint::put(out, times.len() as u64);
            put_integers(out, times.iter().map(|time| time.0), DeltaOrder::DeltaOfDelta);
        }
    }
    varint::put(out, segments.len() as u64);
    let mut next = 0;
    for ((id, segment), axis) in segments.iter().zip(axis_of) {
        varint::put(out, u64::from(id.0 - next));
        next = id.0 + 1;
        varint::put(out, axis as u64);
        put_values(out, &segment.values);
    }
}

/// The distinct time columns, longest first, and the index of each segment's column.
fn axes_of<'a>(segments: &[(SeriesId, &'a BlockColumn)]) -> (Vec<&'a [Timestamp]>, Vec<usize>) {
    let mut axes: Vec<&[Timestamp]> = Vec::new();
    let mut known = std::collections::HashMap::new();
    if let Some((_, longest)) = segments.iter().max_by_key(|(_, segment)| segment.times.len()) {
        axes.push(&longest.times);
        known.insert(&longest.times[..], 0);
    }
    let axis_of = segments.iter().map(|(_, segment)| {
        *known.entry(&segment.times[..]).or_insert_with(|| {
            axes.push(&segment.times);
            axes.len() - 1
        })
    });
    let axis_of = axis_of.collect();
    (axes, axis_of)
}

/// Position of `part` within `whole`. Checks only one position, so that a long axis of equal times
/// does not make the search quadratic.
fn find_slice(whole: &[Timestamp], part: &[Timestamp]) -> Option<usize> {
    let start = whole.iter().position(|time| Some(time) == part.first())?;
    whole[start..].starts_with(part).then_some(start)
}

/// Decodes a payload; passes each column to `visit` in ascending order of ids. `base` is the
/// payload's offset in the file, `defined` the number of known series.
pub(crate) fn decode(
    payload: &[u8],
    base: u64,
    defined: usize,
    visit: &mut ColumnVisitor<'_>,
) -> Result<(), TraceDefect> {
    let mut cursor = Reader::based(payload, base);
    let axes = decode_axes(&mut cursor)?;
    let columns = read_count(&mut cursor, "columns in one block", MAX_BLOCK_SAMPLES)?;
    let mut samples = 0;
    let mut next = 0_u64;
    let mut values = Vec::new();
    for _ in 0..columns {
        let id = cursor.varint()?.checked_add(next);
        let Some(id) = id.filter(|&id| id < defined as u64) else {
            return Err(damaged(cursor.offset(), "samples of a series that was not announced"));
        };
        next = id + 1;
        let axis = cursor.varint()?;
        let Some(times) = usize::try_from(axis).ok().and_then(|axis| axes.get(axis)) else {
            return Err(damaged(cursor.offset(), "a column without a time axis"));
        };
        samples += times.len() as u64;
        if samples > MAX_BLOCK_SAMPLES {
            return Err(too_much(&cursor, "samples in one block", MAX_BLOCK_SAMPLES));
        }
        values.clear();
        read_values(&mut cursor, times.len(), &mut values)?;
        visit(SeriesId(id as u32), times, &values)?;
    }
    if cursor.rest().is_empty() {
        Ok(())
    } else {
        Err(damaged(cursor.offset(), "bytes left over at the end of a block"))
    }
}

fn decode_axes(cursor: &mut Reader<'_>) -> Result<Vec<Vec<Timestamp>>, TraceDefect> {
    let count = read_count(cursor, "time axes in one block", MAX_BLOCK_SAMPLES)?;
    let mut axes: Vec<Vec<Timestamp>> = Vec::new();
    let mut total = 0;
    for _ in 0..count {
        let form = cursor.byte()?;
        let start = match form {
            AXIS_EXPLICIT => None,
            AXIS_SLICE => Some(read_count(cursor, "timestamps in one block", MAX_BLOCK_SAMPLES)?),
            _ => return Err(damaged(cursor.offset(), "a time axis of unknown form")),
        };
        let length = read_count(cursor, "timestamps in one block", MAX_BLOCK_SAMPLES)?;
        total += length as u64;
        if total > MAX_BLOCK_SAMPLES {
            return Err(too_much(cursor, "timestamps in one block", MAX_BLOCK_SAMPLES));
        }
        if length == 0 {
            return Err(damaged(cursor.offset(), "a time axis without a timestamp"));
        }
        let mut times = Vec::new();
        if let Some(start) = start {
            let slice = axes.first().and_then(|whole| whole.get(start..start + length));
            let Some(slice) = slice else {
                return Err(damaged(cursor.offset(), "a time axis that reaches past the first"));
            };
            times.extend_from_slice(slice);
        } else {
            read_integers(cursor, length, DeltaOrder::DeltaOfDelta, &mut |_, time| {
                times.push(Timestamp(time));
                Ok(())
            })?;
        }
        axes.push(times);
    }
    Ok(axes)
}

fn put_values(out: &mut Vec<u8>, values: &[f64]) {
    let first = values[0].to_bits();
    if values.iter().all(|value| value.to_bits() == first) {
        out.push(FORM_CONSTANT);
        out.extend_from_slice(&first.to_le_bytes());
    } else if let Some(integers) = as_integers(values, 1.0) {
        put_shorter(out, &integers);
    } else if let Some((power, integers)) = as_decimals(values) {
        out.extend_from_slice(&[FORM_DECIMAL, power]);
        put_integers(out, integers.into_iter(), DeltaOrder::Delta);
    } else {
        out.push(FORM_XOR);
        put_xor(out, values);
    }
}

fn read_values(cursor: &mut Reader<'_>, length: usize, values: &mut Vec<f64>) -> Result<(), TraceDefect> {
    match cursor.byte()? {
        FORM_CONSTANT => {
            let value = f64::from_bits(cursor.u64()?);
            values.resize(length, value);
            Ok(())
        }
        FORM_DELTA => read_scaled(cursor, length, DeltaOrder::Delta, 1.0, values),
        FORM_DELTA_OF_DELTA => read_scaled(cursor, length, DeltaOrder::DeltaOfDelta, 1.0, values),
        FORM_DECIMAL => {
            let power = cursor.byte()?;
            match POWERS.get(usize::from(power)) {
                Some(&scale) if power > 0 => read_scaled(cursor, length, DeltaOrder::Delta, scale, values),
                _ => Err(damaged(cursor.offset(), "a column of decimals of unknown scale")),
            }
        }
        FORM_XOR => read_xor(cursor, length, values),
        _ => Err(damaged(cursor.offset(), "a column of unknown form")),
    }
}

/// The values as integers over `scale`, if each is restored bit for bit.
fn as_integers(values: &[f64], scale: f64) -> Option<Vec<i64>> {
    let exact = MAX_EXACT as f64;
    let integers = values.iter().map(|&value| {
        let integer = (value * scale).round();
        // Negative zero and NaN fail the comparison of bits.
        let is_exact = integer.abs() <= exact && (integer as i64 as f64 / scale).to_bits() == value.to_bits();
        is_exact.then_some(integer as i64)
    });
    integers.collect()
}

fn as_decimals(values: &[f64]) -> Option<(u8, Vec<i64>)> {
    (1..POWERS.len() as u8).find_map(|power| Some((power, as_integers(values, POWERS[usize::from(power)])?)))
}

/// Whether differences are stored, or differences of differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeltaOrder {
    Delta,
    DeltaOfDelta,
}

fn put_shorter(out: &mut Vec<u8>, integers: &[i64]) {
    let start = out.len();
    out.push(FORM_DELTA);
    put_integers(out, integers.iter().copied(), DeltaOrder::Delta);
    let middle = out.len();
    out.push(FORM_DELTA_OF_DELTA);
    put_integers(out, integers.iter().copied(), DeltaOrder::DeltaOfDelta);
    if out.len() - middle < middle - start {
        out.drain(start..middle);
    } else {
        out.truncate(middle);
    }
}

/// Writes the first integer, then the differences; a run of zeros is a zero byte and its length
/// minus one. Arithmetic wraps, so any integers can be restored.
fn put_integers(out: &mut Vec<u8>, mut integers: impl Iterator<Item = i64>, order: DeltaOrder) {
    let Some(mut last) = integers.next() else {
        return;
    };
    varint::put_signed(out, last);
    let mut before = 0_i64;
    let mut zeros = 0_u64;
    for integer in integers {
        let delta = integer.wrapping_sub(last);
        last = integer;
        let token = delta.wrapping_sub(before);
        if order == DeltaOrder::DeltaOfDelta {
            before = delta;
        }
        if token == 0 {
            zeros += 1;
        } else {
            put_zeros(out, &mut zeros);
            varint::put_signed(out, token);
        }
    }
    put_zeros(out, &mut zeros);
}

fn put_zeros(out: &mut Vec<u8>, zeros: &mut u64) {
    if *zeros > 0 {
        out.push(0);
        varint::put(out, *zeros - 1);
        *zeros = 0;
    }
}

fn read_integers(
    cursor: &mut Reader<'_>,
    length: usize,
    order: DeltaOrder,
    visit: &mut dyn FnMut(&Reader<'_>, i64) -> Result<(), TraceDefect>,
) -> Result<(), TraceDefect> {
    let mut last = cursor.signed()?;
    visit(cursor, last)?;
    let mut before = 0_i64;
    let mut left = length as u64 - 1;
    while left > 0 {
        let token = cursor.varint()?;
        let repeat = if token == 0 {
            let run = cursor.varint()?;
            if run >= left {
                return Err(damaged(cursor.offset(), "a run that is longer than its column"));
            }
            run + 1
        } else {
            1
        };
        left -= repeat;
        for _ in 0..repeat {
            let delta = unzigzag(token).wrapping_add(before);
            if order == DeltaOrder::DeltaOfDelta {
                before = delta;
            }
            last = last.wrapping_add(delta);
            visit(cursor, last)?;
        }
    }
    Ok(())
}

fn read_scaled(
    cursor: &mut Reader<'_>,
    length: usize,
    order: DeltaOrder,
    scale: f64,
    values: &mut Vec<f64>,
) -> Result<(), TraceDefect> {
    read_integers(cursor, length, order, &mut |cursor, integer| {
        if integer.unsigned_abs() > MAX_EXACT {
            return Err(damaged(cursor.offset(), "an integer beyond 2^53 in a column"));
        }
        values.push(integer as f64 / scale);
        Ok(())
    })
}

/// Writes the XOR of each value with the previous one: a byte that says which bytes are non-zero
/// (low four bits: number of zero bytes at the low end; high four: number of bytes that follow),
/// then those bytes.
fn put_xor(out: &mut Vec<u8>, values: &[f64]) {
    let mut before = 0_u64;
    for value in values {
        let bits = value.to_bits() ^ before;
        before = value.to_bits();
        if bits == 0 {
            out.push(0);
            continue;
        }
        let low = bits.trailing_zeros() / 8;
        let count = 8 - bits.leading_zeros() / 8 - low;
        out.push((count << 4 | low) as u8);
        let bytes = (bits >> (8 * low)).to_le_bytes();
        out.extend_from_slice(&bytes[..count as usize]);
    }
}

fn read_xor(cursor: &mut Reader<'_>, length: usize, values: &mut Vec<f64>) -> Result<(), TraceDefect> {
    let mut before = 0_u64;
    for _ in 0..length {
        let control = cursor.byte()?;
        let (low, count) = (control & 15, control >> 4);
        if low + count > 8 {
            return Err(damaged(cursor.offset(), "a value of more than eight bytes"));
        }
        let mut bytes = [0; 8];
        bytes[usize::from(low)..usize::from(low + count)].copy_from_slice(cursor.take(usize::from(count))?);
        before ^= u64::from_le_bytes(bytes);
        values.push(f64::from_bits(before));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
