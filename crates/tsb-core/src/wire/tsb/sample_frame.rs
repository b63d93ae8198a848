//! The body of a frame of samples, which is the same in a stream and in datagrams.

use super::frame::{self, HEADER, IDS, PREFIX, TIMES};
use crate::batch::{Batch, Ids, Times};

/// The shape of the frame of a batch, and the length of its body in bytes. `first` is the first id
/// on the wire, if they are consecutive; otherwise the frame has a column of ids.
#[inline]
pub(super) fn shape(batch: &Batch<'_>, first: Option<u32>) -> (u8, usize) {
    let (id_bytes, id_shape) = if first.is_some() { (0, 0) } else { (4, IDS) };
    let (time_bytes, time_shape) = match batch.times() {
        Times::One(_) => (0, 0),
        Times::Each(_) => (8, TIMES),
    };
    let length = PREFIX + batch.len() * (id_bytes + time_bytes + 8);
    (id_shape | time_shape, length)
}

/// Appends the frame of a batch, whose header says what [`shape`] returned. `wire_ids` has the id on
/// the wire of each series.
#[inline]
pub(super) fn push(header: &[u8; HEADER], batch: &Batch<'_>, first: Option<u32>, wire_ids: &[u32], out: &mut Vec<u8>) {
    let count = batch.len();
    let at = match batch.times() {
        Times::One(at) => at.as_nanos(),
        Times::Each(_) => 0,
    };
    let mut head = [0; HEADER + PREFIX];
    head[..HEADER].copy_from_slice(header);
    head[HEADER..HEADER + 4].copy_from_slice(&(count as u32).to_le_bytes());
    head[HEADER + 4..HEADER + 8].copy_from_slice(&first.unwrap_or(0).to_le_bytes());
    head[HEADER + 8..].copy_from_slice(&at.to_le_bytes());
    let start = out.len();
    out.extend_from_slice(&head);
    if first.is_none() {
        match batch.ids() {
            Ids::Range(first) => {
                let ids = &wire_ids[first.index()..first.index() + count];
                push_column(ids, |id| id.to_le_bytes(), out);
            }
            Ids::Each(ids) => push_column(ids, |id| wire_ids[id.index()].to_le_bytes(), out),
        }
    }
    if let Times::Each(times) = batch.times() {
        push_column(times, |at| at.as_nanos().to_le_bytes(), out);
    }
    push_column(batch.values(), |value| value.to_le_bytes(), out);
    frame::seal(&mut out[start..]);
}

/// Appends a column with a single reservation and a wide copy, since its length is known.
#[inline(always)]
fn push_column<T, const N: usize>(items: &[T], bytes_of: impl Fn(&T) -> [u8; N], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + N * items.len(), 0);
    let (cells, _) = out[start..].as_chunks_mut::<N>();
    for (bytes, item) in cells.iter_mut().zip(items) {
        *bytes = bytes_of(item);
    }
}
