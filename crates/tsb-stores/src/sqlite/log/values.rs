//! Encodes values as differences to the previous value of their series.
//!
//! A group of 64 values has one bit per value for "changed", a code of four bits for each changed
//! value, and the differences. A difference is an integer after scaling by a power of ten; the
//! encoder verifies that adding it restores the exact value, and otherwise stores the value
//! unchanged.

use tsb_core::SeriesId;
use tsb_core::bytes::varint::{unzigzag, zigzag};
use tsb_core::bytes::{BytesError, Fault, Reader};

/// Values per group.
const GROUP: usize = 64;
/// Code of a value that is stored unchanged.
const RAW: u8 = 15;
/// A code below [`RAW`] is the index of a power, times this, plus the length code of the
/// difference.
const LENGTHS: u8 = 3;
const POWERS: [f64; 5] = [1e0, 1e2, 1e3, 1e4, 1e6];
/// For a series whose last value fitted no power, only the first power is tried.
const NO_POWER: u8 = POWERS.len() as u8;
/// Upper bound of the bytes of a group.
const MAX_BYTES: usize = 8 + GROUP / 2 + GROUP * 8;
/// Adding and subtracting this rounds a number below 2^51 to an integer.
const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52

/// The state of every series: its last value, and the power that fitted it.
#[derive(Debug, Default)]
pub(super) struct Values {
    last: Vec<f64>,
    powers: Vec<u8>,
    listed: Vec<f64>,
    listed_powers: Vec<u8>,
}

/// The value that results from a difference.
#[inline(always)]
fn add(last: f64, difference: i64, power: usize) -> f64 {
    if power == 0 {
        last + difference as f64
    } else {
        (rounded(last * POWERS[power]) + difference as f64) / POWERS[power]
    }
}

#[inline(always)]
fn rounded(value: f64) -> f64 {
    (value + ROUND) - ROUND
}

/// The difference from `last` to `value`, if it is exact and fits 32 bits.
#[inline(always)]
fn difference(last: f64, value: f64, power: usize) -> Option<u64> {
    let difference = if power == 0 {
        rounded(value - last)
    } else {
        rounded(value * POWERS[power]) - rounded(last * POWERS[power])
    } as i64;
    let folded = zigzag(difference);
    (add(last, difference, power).to_bits() == value.to_bits() && folded >> 32 == 0).then_some(folded)
}

/// [`difference`] with the first power that fits, starting with the one used last.
#[inline(always)]
fn find(last: f64, value: f64, power: &mut u8) -> (u8, u64) {
    let tried = usize::from(*power) % POWERS.len();
    if let Some(folded) = difference(last, value, tried) {
        *power = tried as u8;
        return (tried as u8, folded);
    }
    find_other(last, value, power)
}

#[cold]
fn find_other(last: f64, value: f64, power: &mut u8) -> (u8, u64) {
    let powers = if *power == NO_POWER { 0 } else { POWERS.len() };
    for other in 0..powers {
        if let Some(folded) = difference(last, value, other) {
            *power = other as u8;
            return (other as u8, folded);
        }
    }
    *power = NO_POWER;
    (NO_POWER, value.to_bits())
}

impl Values {
    fn reserve(&mut self, end: usize) {
        if self.last.len() < end {
            self.last.resize(end, 0.0);
            self.powers.resize(end, 0);
        }
    }

    /// Encodes the values of neighbouring series.
    pub(super) fn put_run(&mut self, first: u32, values: &[f64], out: &mut Vec<u8>) {
        let range = first as usize..first as usize + values.len();
        self.reserve(range.end);
        put(&mut self.last[range.clone()], &mut self.powers[range], values, out);
    }

    /// Encodes the values of a list of series.
    pub(super) fn put_list(&mut self, ids: impl Iterator<Item = u32> + Clone, values: &[f64], out: &mut Vec<u8>) {
        self.gather(ids.clone());
        put(&mut self.listed, &mut self.listed_powers, values, out);
        self.scatter(ids);
    }

    fn gather(&mut self, ids: impl Iterator<Item = u32> + Clone) {
        self.reserve(ids.clone().max().map_or(0, |id| id as usize + 1));
        self.listed.clear();
        self.listed_powers.clear();
        for id in ids {
            self.listed.push(self.last[id as usize]);
            self.listed_powers.push(self.powers[id as usize]);
        }
    }

    fn scatter(&mut self, ids: impl Iterator<Item = u32>) {
        for ((id, last), power) in ids.zip(&self.listed).zip(&self.listed_powers) {
            self.last[id as usize] = *last;
            self.powers[id as usize] = *power;
        }
    }

    /// Decodes values encoded by [`Values::put_run`].
    pub(super) fn get_run(
        &mut self,
        first: u32,
        len: usize,
        cursor: &mut Reader<'_>,
        values: &mut Vec<f64>,
    ) -> Result<(), BytesError> {
        let range = first as usize..first as usize + len;
        self.reserve(range.end);
        get(&mut self.last[range], cursor, values)
    }

    /// Decodes values encoded by [`Values::put_list`].
    pub(super) fn get_list(
        &mut self,
        ids: &[SeriesId],
        cursor: &mut Reader<'_>,
        values: &mut Vec<f64>,
    ) -> Result<(), BytesError> {
        let ids = ids.iter().map(|id| id.0);
        self.gather(ids.clone());
        get(&mut self.listed, cursor, values)?;
        self.scatter(ids);
        Ok(())
    }
}

fn put(last: &mut [f64], powers: &mut [u8], values: &[f64], out: &mut Vec<u8>) {
    let mut bytes = [0u8; MAX_BYTES];
    let groups = last.chunks_mut(GROUP).zip(powers.chunks_mut(GROUP));
    for ((last, powers), values) in groups.zip(values.chunks(GROUP)) {
        let len = put_group(last, powers, values, &mut bytes);
        out.extend_from_slice(&bytes[..len]);
    }
}

/// Encodes one group. Returns the number of bytes.
#[inline(always)]
fn put_group(last: &mut [f64], powers: &mut [u8], values: &[f64], bytes: &mut [u8; MAX_BYTES]) -> usize {
    let mut changed = 0u64;
    for (index, (last, value)) in last.iter().zip(values).enumerate() {
        changed |= u64::from(last.to_bits() != value.to_bits()) << index;
    }
    bytes[..8].copy_from_slice(&changed.to_le_bytes());
    let mut at = 8 + (changed.count_ones() as usize).div_ceil(2);
    let mut codes = 0usize;
    let mut left = changed;
    while left != 0 {
        let index = left.trailing_zeros() as usize;
        left &= left - 1;
        let value = values[index];
        let (power, number) = find(last[index], value, &mut powers[index]);
        let length = u8::from(number >= 1 << 8) + u8::from(number >= 1 << 16);
        let (code, len) = if power == NO_POWER {
            (RAW, 8)
        } else {
            (power * LENGTHS + length, 1 << length)
        };
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        at += len;
        let place = 8 + codes / 2;
        bytes[place] = if codes.is_multiple_of(2) {
            code
        } else {
            bytes[place] | code << 4
        };
        codes += 1;
        last[index] = value;
    }
    at
}

/// Decodes values; `last` holds the last values of their series.
fn get(last: &mut [f64], cursor: &mut Reader<'_>, values: &mut Vec<f64>) -> Result<(), BytesError> {
    values.clear();
    for last in last.chunks_mut(GROUP) {
        let changed = cursor.u64()?;
        if last.len() < GROUP && changed >> last.len() != 0 {
            return Err(cursor.error(Fault::Invalid));
        }
        let codes = cursor.take((changed.count_ones() as usize).div_ceil(2))?;
        let mut left = changed;
        let mut count = 0;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let code = codes[count / 2] >> (4 * (count % 2)) & 15;
            count += 1;
            last[index] = if code == RAW {
                cursor.f64()?
            } else {
                let folded = match code % LENGTHS {
                    0 => u64::from(cursor.byte()?),
                    1 => u64::from(cursor.u16()?),
                    _ => u64::from(cursor.u32()?),
                };
                add(last[index], unzigzag(folded), usize::from(code / LENGTHS))
            };
        }
        values.extend_from_slice(last);
    }
    Ok(())
}
