//! The binary form: a header of four 32-bit numbers, then columns. Everything is little-endian.

use tsb_core::bytes::{BytesError, Fault, Reader};
use tsb_core::{Ids, SeriesId, Times, Timestamp};
use tsb_stores::store::Reason;

use super::key::word_of;
use super::message::{Answer, Body, LEVELS, Malformed, REASONS, ROWS_MAX, Request};
use crate::Chunk;

/// Length of a header in bytes: length of the payload, verb, number, count.
const HEADER: usize = 16;
/// Maximum length of an answer's payload in bytes.
pub(super) const PAYLOAD_MAX: usize = ROWS_MAX * 16 + 8;
/// Stands for no timestamp: no sample can have it.
const NO_TIME: i64 = i64::MAX;

const DEFINE: u32 = 1;
const WRITE: u32 = 2;
const QUERY: u32 = 3;
const NEWEST: u32 = 4;
const FLUSH: u32 = 5;
const STATS: u32 = 6;
const CLOSE: u32 = 7;
const OK: u32 = 16;
const REFUSED: u32 = 17;
const ROWS: u32 = 18;
const NEWEST_ANSWER: u32 = 19;
const STATS_ANSWER: u32 = 20;
const ERROR: u32 = 21;

/// Appends a request.
pub(super) fn put(number: u32, request: &Request<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    let (verb, count) = match request {
        Request::Define(series) => {
            for (id, key) in *series {
                let line = word_of(key);
                put_u32(out, id.0);
                put_u32(out, line.len() as u32);
                out.extend_from_slice(line.as_bytes());
            }
            (DEFINE, series.len())
        }
        Request::Write(batch) => {
            put_batch(batch, out);
            (WRITE, batch.len())
        }
        Request::Query { series, range } => {
            out.extend_from_slice(&range.start.0.to_le_bytes());
            out.extend_from_slice(&range.end.0.to_le_bytes());
            put_ids(out, series.iter().copied());
            (QUERY, series.len())
        }
        Request::Newest(series) => {
            put_ids(out, series.iter().copied());
            (NEWEST, series.len())
        }
        Request::Flush(level) => {
            let code = LEVELS.iter().position(|known| known == level);
            put_u32(out, code.unwrap_or_default() as u32);
            (FLUSH, 0)
        }
        Request::Stats => (STATS, 0),
        Request::Close => (CLOSE, 0),
    };
    let payload = (out.len() - start - HEADER) as u32;
    for (slot, value) in [payload, verb, number, count as u32].into_iter().enumerate() {
        out[start + 4 * slot..start + 4 * slot + 4].copy_from_slice(&value.to_le_bytes());
    }
}

/// Timestamps, values, then ids: the wide columns are aligned.
fn put_batch(batch: &tsb_core::Batch<'_>, out: &mut Vec<u8>) {
    match batch.times() {
        Times::One(at) => (0..batch.len()).for_each(|_| out.extend_from_slice(&at.0.to_le_bytes())),
        Times::Each(times) => times.iter().for_each(|at| out.extend_from_slice(&at.0.to_le_bytes())),
    }
    for value in batch.values() {
        out.extend_from_slice(&value.to_bits().to_le_bytes());
    }
    match batch.ids() {
        Ids::Range(first) => put_ids(out, (first.0..).map(SeriesId).take(batch.len())),
        Ids::Each(ids) => put_ids(out, ids.iter().copied()),
    }
}

fn put_ids(out: &mut Vec<u8>, ids: impl Iterator<Item = SeriesId>) {
    ids.for_each(|id| put_u32(out, id.0));
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Removes the next answer from `bytes`; `None` if it has not arrived completely.
pub(super) fn take(bytes: &mut &[u8]) -> Result<Option<Answer>, Malformed> {
    let Some((header, behind)) = bytes.split_first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let mut reader = Reader::new(header);
    let mut next = || reader.u32().map_err(|error| malformed(0, error));
    let (length, verb, number, count) = (next()? as usize, next()?, next()?, next()? as usize);
    if !(OK..=ERROR).contains(&verb) {
        return Err(Malformed(format!("an answer begins with the unknown verb {verb}")));
    }
    if length > PAYLOAD_MAX || count > ROWS_MAX {
        return Err(Malformed(format!(
            "an answer announces {length} bytes and {count} rows, more than {PAYLOAD_MAX} and {ROWS_MAX}"
        )));
    }
    let Some((payload, rest)) = behind.split_at_checked(length) else {
        return Ok(None);
    };
    *bytes = rest;
    let mut reader = Reader::new(payload);
    let body = body(verb, count, &mut reader).map_err(|error| malformed(verb, error))?;
    if !reader.rest().is_empty() {
        return Err(Malformed(format!(
            "an answer with the verb {verb} has {} bytes too many",
            reader.rest().len()
        )));
    }
    Ok(Some(Answer { number, body }))
}

fn malformed(verb: u32, error: BytesError) -> Malformed {
    Malformed(format!("the payload of an answer with the verb {verb}: {error}"))
}

fn body(verb: u32, count: usize, reader: &mut Reader<'_>) -> Result<Body, BytesError> {
    // A count cannot allocate more than its bytes can hold.
    let is_held = |each: usize, reader: &Reader<'_>| count * each <= reader.rest().len();
    Ok(match verb {
        OK => Body::Ok,
        REFUSED if is_held(8, reader) => Body::Refused((0..count).map(|_| refusal(reader)).collect::<Result<_, _>>()?),
        ROWS if is_held(16, reader) => {
            let series = SeriesId(reader.u32()?);
            reader.u32()?;
            let times = (0..count).map(|_| Ok(Timestamp(reader.u64()? as i64)));
            let times = times.collect::<Result<_, _>>()?;
            let values = (0..count).map(|_| reader.f64()).collect::<Result<_, _>>()?;
            Body::Rows(Chunk { series, times, values })
        }
        NEWEST_ANSWER if is_held(8, reader) => {
            let time = |_| {
                reader
                    .u64()
                    .map(|at| Some(at as i64).filter(|at| *at != NO_TIME).map(Timestamp))
            };
            Body::Newest((0..count).map(time).collect::<Result<_, _>>()?)
        }
        STATS_ANSWER => Body::Stats {
            samples: reader.u64()?,
            bytes: reader.u64()?,
        },
        ERROR => Body::Error(String::from_utf8_lossy(reader.take(reader.rest().len())?).into_owned()),
        _ => return Err(reader.error(Fault::Ended)),
    })
}

fn refusal(reader: &mut Reader<'_>) -> Result<(u32, Reason), BytesError> {
    let index = reader.u32()?;
    let code = reader.u32()? as usize;
    let reason = code.checked_sub(1).and_then(|code| REASONS.get(code)).copied();
    Ok((index, reason.ok_or_else(|| reader.error(Fault::Invalid))?))
}
