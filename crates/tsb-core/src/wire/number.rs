//! Conversion between numbers and text, for all text codecs.
//!
//! Writing gives the shortest decimal that reads back to the same bits; reading gives the bits
//! that `str::parse::<f64>` gives. Common forms (integers, a few decimals) take a path without
//! division loops or unpredictable branches; all others use `zmij` and the standard library.
//! Protocol grammar does *not* belong here: what else a protocol accepts (underscores, `T`, unit
//! suffixes) is handled in its codec.

mod digits;
mod read;
mod write;

pub use read::parse_f64;
pub(crate) use read::{
    Decimal, LAST_START, WINDOW, Window, bytes16, find_from, read_decimal, window_at, window_or_copy,
};
pub(crate) use write::{IntegerDigits, cents};
pub use write::{MAX_TEXT, format_f64, format_i64, push_f64, push_i64};

#[cfg(test)]
mod tests;
