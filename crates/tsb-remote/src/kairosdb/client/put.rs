//! Writes a batch as lines of the telnet protocol, which the server does not answer.

use tsb_core::wire::put::{Dialect, wire_name};
use tsb_core::{Batch, BatchBuf, SeriesKey};

use super::super::body::MS_NS;
use super::super::connection::spec_error;
use super::super::names::tagged;
use super::{KairosDbClient, TIMES};
use crate::json_samples::unwritable;
use crate::unanswered::{UnansweredSender, catalog_beyond};
use tsb_stores::error::Result;
use tsb_stores::parts::read;
use tsb_stores::store::Reason;

const DIALECT: Dialect = Dialect::Kairosdb;

/// Refuses a series that the lines cannot carry.
pub(super) fn check(key: &SeriesKey, prefix: &str) -> Result<()> {
    // Its number is not known yet; the longest there is takes no more room.
    let name = wire_name(DIALECT, &tagged(prefix, u32::MAX, key)).map(drop);
    name.map_err(|why| spec_error(format!("series {key} cannot be sent in lines: {why}")))
}

/// The samples of a batch that the lines can carry, and the others by index.
fn divided(batch: &Batch<'_>) -> (BatchBuf, Vec<(u32, Reason)>) {
    let unwritable = unwritable(batch, TIMES, MS_NS);
    let mut unwritable = unwritable.iter().map(|(index, _)| *index as usize).peekable();
    let (mut carried, mut refused) = (BatchBuf::new(), Vec::new());
    for (index, (id, at, value)) in batch.iter().enumerate() {
        if unwritable.next_if_eq(&index).is_some() || !DIALECT.carries(at) {
            refused.push((index as u32, Reason::Unrepresentable));
        } else {
            carried.push(id, at, value);
        }
    }
    (carried, refused)
}

impl KairosDbClient {
    /// Sends a batch whose ids are numbers. Returns the refused samples, by index.
    pub(super) async fn put(&self, sender: &UnansweredSender, batch: &Batch<'_>) -> Result<Vec<(u32, Reason)>> {
        let (carried, refused) = divided(batch);
        let catalog = |count| {
            let known = read(&self.known);
            catalog_beyond(count, known.of_lines.as_deref().unwrap_or_default().iter().cloned())
        };
        sender.send(&carried.as_batch(), catalog).await?;
        Ok(refused)
    }
}
