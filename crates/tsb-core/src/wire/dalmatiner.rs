//! DalmatinerDB's binary protocols: July 2014, August 2014, and the stream and batch modes
//! of its last version.
//!
//! The bytes are specified in docs/formats/dalmatiner.md. All integers are big endian, times are
//! whole seconds, and a series is a metric in a bucket. The series name is the metric, its parts
//! joined by dots. The only label that can be carried is `bucket`; a series without it is in the
//! bucket [`DEFAULT_BUCKET`].
//!
//! It answers the last version's requests that read ([`StreamDecoder::reading`]) and no query
//! language, and it listens on no socket.

mod decode;
mod encode;
mod pack;
mod point;
mod reads;
mod stream;

pub use decode::{AugustDecoder, JulyDecoder, record_length};
pub use encode::{DalmatinerEncoder, Form};
pub use stream::StreamDecoder;

pub(crate) use pack::DalmatinerPacker;

use crate::bytes::{cut, cut_slice};
use crate::series::{SeriesId, SeriesKey};
use crate::time::{SECOND_NS, Timestamp};
use crate::wire::name_lookup::NameLookup;
use crate::wire::{NotAdmitted, Sink};

/// The bucket of a series without the label `bucket`: that of the published benchmark.
pub const DEFAULT_BUCKET: &str = "tachyon";

/// The label that holds the bucket if it is not the default.
pub const BUCKET_LABEL: &str = "bucket";

/// The eight bytes in which DalmatinerDB keeps a value, as a number: exact where possible, and
/// otherwise a float without its last bit. `None` for NaN and infinities. Never 0, which is an
/// unset point.
///
/// ```
/// use tsb_core::wire::dalmatiner::{point_of, value_of};
///
/// assert_eq!(point_of(42.0), Some(0x0100_0000_0000_002a));
/// assert_eq!(value_of(0x0100_0000_0000_002a), Some(Ok(42.0)));
/// assert_eq!(value_of(0), None);
/// let third = 1.0 / 3.0;
/// assert_eq!(point_of(third).and_then(value_of), Some(Ok(f64::from_bits(third.to_bits() & !1))));
/// ```
#[inline(always)]
pub fn point_of(value: f64) -> Option<u64> {
    point::write8_rounded(value)
}

/// The value of a point of eight bytes; `None` if it is not set.
///
/// # Errors
/// What is wrong with a point that DalmatinerDB does not write, or that an f64 cannot represent.
#[inline(always)]
pub fn value_of(point: u64) -> Option<Result<f64, &'static str>> {
    point::read8(point)
}

/// The longest metric that an encoder accepts, in bytes.
pub const MAX_METRIC: usize = 16 << 10;

/// Frames are closed when their body reaches this number of bytes; datagrams have a limit of their own.
pub const PACKED: usize = 4096;

/// The bucket of a series.
///
/// # Errors
/// What in the key cannot be carried.
pub fn bucket(key: &SeriesKey) -> Result<&str, &'static str> {
    match key.labels() {
        [] => Ok(DEFAULT_BUCKET),
        [(label, bucket)] if label == BUCKET_LABEL => match bucket.len() {
            1..=255 if bucket != DEFAULT_BUCKET => Ok(bucket),
            1..=255 => Err("the bucket 'tachyon' is what a series without the label has"),
            _ => Err("its bucket is empty or longer than 255 bytes"),
        },
        _ => Err("it has labels, of which this wire has only 'bucket'"),
    }
}

/// The metric of a series in the protocols of 2014: one byte string.
///
/// # Errors
/// What in the key cannot be carried.
pub fn metric(key: &SeriesKey) -> Result<Vec<u8>, &'static str> {
    match key.name().len() {
        1..=MAX_METRIC => Ok(key.name().as_bytes().to_vec()),
        _ => Err("its name is empty or longer than 16 KiB"),
    }
}

/// The metric of a series in the last version: elements, each preceded by its length. A dot ends
/// an element; a dot or a backslash within an element is escaped by a backslash.
///
/// # Errors
/// What in the key cannot be carried.
pub fn elements(key: &SeriesKey) -> Result<Vec<u8>, &'static str> {
    if key.name().is_empty() {
        return Err("its name is empty");
    }
    let (mut wire, mut start) = (vec![0], 0);
    let mut text = key.name().bytes();
    while let Some(byte) = text.next() {
        let byte = match byte {
            b'.' => {
                start = wire.len();
                wire.push(0);
                continue;
            }
            b'\\' => {
                let escaped = text.next().filter(|byte| matches!(byte, b'.' | b'\\'));
                escaped.ok_or("a backslash stands before neither dot nor backslash")?
            }
            byte => byte,
        };
        wire.push(byte);
        wire[start] =
            u8::try_from(wire.len() - start - 1).map_err(|_| "a part of its name is longer than 255 bytes")?;
    }
    if wire.len() > MAX_METRIC {
        return Err("its name is longer than 16 KiB");
    }
    Ok(wire)
}

/// The series for a byte string in a bucket.
pub(crate) fn key_of_metric(bucket: &[u8], metric: &[u8]) -> Result<SeriesKey, &'static str> {
    let name = std::str::from_utf8(metric).map_err(|_| NOT_UTF8)?;
    if name.is_empty() {
        return Err("a metric has no name");
    }
    key_in(bucket, name)
}

/// The series for elements in a bucket.
///
/// # Errors
/// What is wrong with the name.
pub fn key_of_elements(bucket: &[u8], mut elements: &[u8]) -> Result<SeriesKey, &'static str> {
    let mut name = String::new();
    let mut is_first = true;
    while let Some([length]) = cut(&mut elements) {
        let element = cut_slice(&mut elements, usize::from(length)).ok_or("a metric's element is cut short")?;
        if !is_first {
            name.push('.');
        }
        is_first = false;
        for c in std::str::from_utf8(element).map_err(|_| NOT_UTF8)?.chars() {
            if matches!(c, '.' | '\\') {
                name.push('\\');
            }
            name.push(c);
        }
    }
    if name.is_empty() {
        return Err("a metric has no name");
    }
    key_in(bucket, &name)
}

const NOT_UTF8: &str = "a name is not UTF-8";

fn key_in(bucket: &[u8], name: &str) -> Result<SeriesKey, &'static str> {
    let bucket = std::str::from_utf8(bucket).map_err(|_| NOT_UTF8)?;
    Ok(if bucket == DEFAULT_BUCKET {
        SeriesKey::new(name)
    } else {
        SeriesKey::with_labels(name, [(BUCKET_LABEL, bucket)])
    })
}

/// The time of the first of `points` consecutive seconds; `None` if one is beyond the year 2262.
#[inline(always)]
pub(crate) fn first_of(seconds: u64, points: usize) -> Option<Timestamp> {
    let last = seconds.checked_add(points as u64)?;
    (last <= (i64::MAX / SECOND_NS as i64) as u64).then(|| Timestamp::from_secs(seconds as i64))
}

/// Passes on points of consecutive seconds.
///
/// # Errors
/// What is wrong with the last of the invalid points; all others are passed on.
#[inline(always)]
pub(crate) fn push_seconds(
    lookup: &mut NameLookup,
    (id, mut at): (Result<SeriesId, NotAdmitted>, Timestamp),
    points: impl Iterator<Item = Option<Result<f64, &'static str>>>,
    sink: &mut dyn Sink,
) -> Result<(), &'static str> {
    let mut outcome = Ok(());
    for point in points {
        match point {
            Some(Ok(value)) => lookup.push(id, at, value, sink),
            Some(Err(what)) => outcome = Err(what),
            None => {}
        }
        at = at + SECOND_NS as i64;
    }
    outcome
}

#[cfg(test)]
mod tests;
