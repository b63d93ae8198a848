//! Maxima in a list, each stored by the ones before it.

use tsb_core::bytes::{BytesError, Reader, varint};

/// Flag: the maximum is that of the entry before.
const SAME_MAXIMUM: u8 = 4;
/// Flag: the maximum is an integer, stored as the difference to the last integer maximum.
const WHOLE_MAXIMUM: u8 = 8;

/// The values that the next maximum is encoded against.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastMaximum {
    maximum: f64,
    whole: i64,
}

impl LastMaximum {
    /// The flags of the next maximum.
    pub(super) fn flags(&self, maximum: f64) -> u8 {
        if self.is_same(maximum) {
            SAME_MAXIMUM
        } else if whole(maximum).is_some() {
            WHOLE_MAXIMUM
        } else {
            0
        }
    }

    fn is_same(&self, maximum: f64) -> bool {
        maximum.to_bits() == self.maximum.to_bits()
    }

    /// Appends the next maximum, for which [`LastMaximum::flags`] must have been stored.
    pub(super) fn put(&mut self, maximum: f64, out: &mut Vec<u8>) {
        match whole(maximum) {
            _ if self.is_same(maximum) => {}
            Some(whole) => {
                varint::put_signed(out, whole - self.whole);
                self.whole = whole;
            }
            None => out.extend_from_slice(&maximum.to_bits().to_le_bytes()),
        }
        self.maximum = maximum;
    }

    /// Reads the next maximum.
    pub(super) fn get(&mut self, flags: u8, cursor: &mut Reader<'_>) -> Result<f64, BytesError> {
        if flags & SAME_MAXIMUM != 0 {
            return Ok(self.maximum);
        }
        self.maximum = if flags & WHOLE_MAXIMUM != 0 {
            self.whole = self.whole.wrapping_add(cursor.signed()?);
            self.whole as f64
        } else {
            cursor.f64()?
        };
        Ok(self.maximum)
    }
}

/// The value as an integer, if it is one, below 2^53, and not a negative zero.
fn whole(value: f64) -> Option<i64> {
    let whole = value as i64;
    (whole.unsigned_abs() < 1 << 53 && (whole as f64).to_bits() == value.to_bits()).then_some(whole)
}
