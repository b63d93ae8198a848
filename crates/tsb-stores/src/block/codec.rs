//! The column codec: encodes up to 256 values losslessly, to the bit.
//!
//! It knows no series, timestamps or blocks. Byte format: `docs/formats/block.md`. Most real
//! columns are integers, or decimals that become integers when multiplied by a power of ten; the
//! encoder verifies that by converting back to the same bits. Other values are encoded by their
//! bits in numeric order. Integers are stored as a constant, as a few changes, as offsets from a
//! minimum, as differences, or as marked changes with packed differences (`integers`).

#[cfg(feature = "sqlite")]
pub(crate) mod check;
mod integers;
mod offsets;
mod pack;

#[cfg(test)]
mod tests;

use super::extreme::{Extreme, Runs};
use integers::IntegerEncoder;

/// Maximum number of values in a column.
pub(super) const MAX: usize = 256;

/// Adding this rounds a number below 2^51 to an integer, which is then in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
const ROUND_BITS: u64 = ROUND.to_bits();
/// Maximum number of decimals that is tried.
const MAX_DECIMALS: u8 = 12;
/// The domain for bits in numeric order; other domains are numbers of decimals.
const BITS: u8 = 15;
const POWERS: [f64; MAX_DECIMALS as usize + 1] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12];
/// The first byte of a column that begins with a list of values outside its domain. It takes the
/// place of kind 7 of the domain 0, which therefore must stay unused.
const SPECIALS: u8 = 7;
/// At most one in this many values may be special.
const SPECIAL_SHARE: usize = 16;

/// Working memory of the encoder, kept so that it need not be cleared per block.
#[derive(Debug)]
pub(super) struct Encoder {
    scaled: [f64; MAX],
    integers: IntegerEncoder,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            scaled: [0.0; MAX],
            integers: IntegerEncoder::default(),
        }
    }
}

impl Encoder {
    /// Appends `values` to `out`. Returns the largest; NaN if none is a number. `values.len()`
    /// must be in [1, 256].
    #[inline(always)]
    pub(super) fn column(&mut self, values: &[f64], out: &mut Vec<u8>) -> f64 {
        match classify(values) {
            Class::Constant => {
                constant(values[0], out);
                values[0]
            }
            Class::Integers => self.integers.exact(values, 0, out),
            Class::Other => {
                self.other(values, out);
                values.iter().fold(f64::NAN, |most, &value| larger(most, value))
            }
        }
    }

    /// A column that is not all integers.
    #[inline(always)]
    fn other(&mut self, values: &[f64], out: &mut Vec<u8>) {
        for decimals in 0..=MAX_DECIMALS {
            if !likely(values, decimals) {
                continue;
            }
            let scaled = &mut self.scaled[..values.len()];
            let misfits = scale(values, decimals, scaled);
            if misfits == 0 {
                self.integers.exact(scaled, decimals, out);
                return;
            }
            if misfits * SPECIAL_SHARE <= values.len() {
                specials(values, decimals, scaled, misfits, out);
                self.integers.exact(scaled, decimals, out);
                return;
            }
        }
        self.integers.any(values.iter().map(|&value| ordered(value)), BITS, out);
    }

    /// Appends integers of any size, such as timestamps.
    pub(super) fn whole(&mut self, values: &[i64], out: &mut Vec<u8>) {
        self.integers.any(values.iter().copied(), 0, out);
    }
}

/// The larger of two numbers; the first if they are equal. NaN is ignored.
#[inline]
pub(super) fn larger(most: f64, value: f64) -> f64 {
    if value > most || most.is_nan() { value } else { most }
}

/// The class of a column, found in one pass.
enum Class {
    Constant,
    Integers,
    Other,
}

// The loops of the codec are plain folds over integers, which the compiler vectorizes for every
// processor; minima and maxima of floats it does not.
#[inline(always)]
fn classify(values: &[f64]) -> Class {
    let first = values[0].to_bits();
    let (mut differ, mut inexact, mut range) = (0, 0, 0);
    for value in values {
        let (bits, shifted) = (value.to_bits(), value + ROUND);
        differ |= bits ^ first;
        // -0.0 would come back as 0.0, so its bits differ. NaN and infinities come back
        // unchanged, but are out of range.
        inexact |= (shifted - ROUND).to_bits() ^ bits;
        range |= shifted.to_bits() ^ ROUND_BITS;
    }
    if differ == 0 {
        Class::Constant
    } else if inexact == 0 && range >> 52 == 0 {
        Class::Integers
    } else {
        Class::Other
    }
}

/// `value * 10^decimals` as an integer below 2^51, and whether dividing it restores the exact
/// bits.
#[inline(always)]
fn scaled(value: f64, power: f64) -> (f64, bool) {
    let shifted = value * power + ROUND;
    let integer = shifted - ROUND;
    let exact = (integer / power).to_bits() == value.to_bits();
    (integer, exact && (shifted.to_bits() ^ ROUND_BITS) >> 52 == 0)
}

/// Whether most of a few sampled values have at most this many decimals.
fn likely(values: &[f64], decimals: u8) -> bool {
    const LOOKS: usize = 16;
    let stride = values.len().div_ceil(LOOKS);
    let looked = values.iter().step_by(stride);
    let misfits = looked
        .filter(|&&value| !scaled(value, POWERS[usize::from(decimals)]).1)
        .count();
    misfits * 8 <= values.len().div_ceil(stride)
}

/// Scales a column. Returns how many values cannot be restored; their places get the previous
/// value, or the first that fits.
#[inline(always)]
fn scale(values: &[f64], decimals: u8, to: &mut [f64]) -> usize {
    let power = POWERS[usize::from(decimals)];
    let mut misfits = 0;
    for (to, value) in to.iter_mut().zip(values) {
        let (integer, exact) = scaled(*value, power);
        misfits += usize::from(!exact);
        *to = integer;
    }
    if misfits == 0 || misfits == values.len() {
        return misfits;
    }
    let fits = |value: f64| scaled(value, power).1;
    let first = values.iter().position(|&value| fits(value)).unwrap_or(0);
    let mut last = to[first];
    for (to, value) in to.iter_mut().zip(values) {
        if fits(*value) {
            last = *to;
        } else {
            *to = last;
        }
    }
    misfits
}

/// Appends the list of the values that could not be scaled.
fn specials(values: &[f64], decimals: u8, integers: &[f64], misfits: usize, out: &mut Vec<u8>) {
    let power = POWERS[usize::from(decimals)];
    out.extend_from_slice(&[SPECIALS, misfits as u8]);
    for (position, (value, integer)) in values.iter().zip(integers).enumerate() {
        if (integer / power).to_bits() != value.to_bits() {
            out.push(position as u8);
            out.extend_from_slice(&value.to_bits().to_le_bytes());
        }
    }
}

/// Appends a column of one value.
fn constant(value: f64, out: &mut Vec<u8>) {
    for decimals in 0..=MAX_DECIMALS {
        let (integer, exact) = scaled(value, POWERS[usize::from(decimals)]);
        if exact {
            integers::put_constant(integer as i64, decimals, out);
            return;
        }
    }
    integers::put_constant(ordered(value), BITS, out);
}

/// The bits of a number as an integer in numeric order: -NaN is first, NaN last.
#[inline]
const fn ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The inverse of [`ordered`].
#[inline]
const fn unordered(integer: i64) -> f64 {
    f64::from_bits((integer ^ ((integer >> 63) as u64 >> 1) as i64) as u64)
}

/// Working memory of the decoder.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    integers: integers::IntegerDecoder,
}

impl Decoder {
    /// Decodes `out.len()` values that one call of [`Encoder::column`] encoded.
    #[inline(always)]
    pub(super) fn column(&mut self, bytes: &[u8], out: &mut [f64]) {
        let (listed, bytes) = split_specials(bytes);
        let domain = bytes[0] >> 4;
        if domain == BITS {
            let integers = self.integers.read(bytes, out.len());
            for (out, integer) in out.iter_mut().zip(integers) {
                *out = unordered(*integer);
            }
        } else if !self
            .integers
            .constant_or_steps(bytes, out, |integer| number(integer, domain))
        {
            let integers = self.integers.read(bytes, out.len());
            for (out, integer) in out.iter_mut().zip(integers) {
                *out = exact(*integer);
            }
            if domain > 0 {
                let power = POWERS[usize::from(domain)];
                for out in out.iter_mut() {
                    *out /= power;
                }
            }
        }
        for special in listed.chunks_exact(9) {
            let mut bits = [0; 8];
            bits.copy_from_slice(&special[1..]);
            out[usize::from(special[0])] = f64::from_bits(u64::from_le_bytes(bits));
        }
    }

    /// Computes the extreme of each run of `len` values that one call of [`Encoder::column`]
    /// encoded, in the first places of `out`; the rest of it is scratch. The runs must end at
    /// `len` at the latest.
    ///
    /// In a domain of decimals numbers are in the order of their integers, so only the extreme
    /// of the integers is converted.
    #[inline(always)]
    pub(super) fn extremes(
        &mut self,
        bytes: &[u8],
        len: usize,
        (extreme, runs): (Extreme, Runs<'_>),
        out: &mut [f64; MAX],
    ) {
        let (listed, column) = split_specials(bytes);
        let domain = column[0] >> 4;
        if domain == BITS || !listed.is_empty() {
            self.column(bytes, &mut out[..len]);
            // A run never begins before its place.
            for (place, run) in runs.iter().enumerate() {
                out[place] = extreme.of_values(&out[run]);
            }
        } else if let Some(integer) = integers::constant(column) {
            out[..runs.ends.len()].fill(number(integer, domain));
        } else {
            let integers = self.integers.read(column, len);
            for (out, run) in out.iter_mut().zip(runs.iter()) {
                *out = number(extreme.of_integers(&integers[run]), domain);
            }
        }
    }

    /// Decodes what one call of [`Encoder::whole`] encoded.
    pub(super) fn whole(&mut self, bytes: &[u8], len: usize) -> &[i64] {
        self.integers.read(bytes, len)
    }
}

/// Splits off the list of specials (empty if there is none) from the column after it.
#[inline(always)]
fn split_specials(bytes: &[u8]) -> (&[u8], &[u8]) {
    if bytes[0] == SPECIALS {
        bytes[2..].split_at(usize::from(bytes[1]) * 9)
    } else {
        (&[], bytes)
    }
}

/// A float that is an integer below 2^51, as that integer plus [`ROUND_BITS`]: the differences of
/// such numbers are the differences of the integers.
#[inline(always)]
fn raised(value: f64) -> i64 {
    (value + ROUND).to_bits() as i64
}

/// An integer below 2^51 as a float, without the slow conversion instruction.
#[inline(always)]
fn exact(integer: i64) -> f64 {
    f64::from_bits(ROUND_BITS.wrapping_add(integer as u64)) - ROUND
}

/// The value of an integer in a domain of decimals.
#[inline(always)]
fn number(integer: i64, decimals: u8) -> f64 {
    exact(integer) / POWERS[usize::from(decimals)]
}
