//! Writes a batch as OpenTSDB's lines, which the server does not answer.

use tsb_core::wire::put::{Dialect, wire_name};
use tsb_core::{Batch, BatchBuf, SeriesKey, Timestamp};

use super::VictoriaClient;
use crate::unanswered::{UnansweredSender, catalog_beyond};
use crate::victoriametrics::connection::spec_error;
use crate::victoriametrics::exposition::writable;
use crate::victoriametrics::names::PLACE_LABEL;
use tsb_stores::error::Result;
use tsb_stores::parts::read;
use tsb_stores::store::Reason;

const DIALECT: Dialect = Dialect::Opentsdb;
/// What the server keeps of a time: it takes each for seconds, also one of thirteen digits.
pub(super) const RESOLUTION_NS: i64 = 1_000_000_000;

/// A series as the lines say it: with the place.
fn put_key(key: &SeriesKey, place: &str) -> SeriesKey {
    let labels = key.labels().iter().cloned();
    SeriesKey::with_labels(key.name(), labels.chain([(PLACE_LABEL.to_owned(), place.to_owned())]))
}

/// Refuses a series that the lines cannot carry.
pub(super) fn check(key: &SeriesKey, place: &str) -> Result<()> {
    let name = wire_name(DIALECT, &put_key(key, place)).map(drop);
    name.map_err(|why| spec_error(format!("series {key} cannot be sent in lines of OpenTSDB: {why}")))
}

impl VictoriaClient {
    /// Sends a batch whose ids are numbers. Returns the refused samples, by index.
    pub(super) async fn put(&self, sender: &UnansweredSender, batch: &Batch<'_>) -> Result<Vec<(u32, Reason)>> {
        let (which, mut refused) = writable(batch, self.kept());
        let mut carried = BatchBuf::new();
        for index in which {
            let place = index as usize;
            let at = Timestamp::from_secs(batch.time(place).as_secs());
            if DIALECT.carries(at) {
                carried.push(batch.id(place), at, batch.values()[place]);
            } else {
                refused.push((index, Reason::Unrepresentable));
            }
        }
        refused.sort_unstable_by_key(|(index, _)| *index);
        let place = self.connection.place();
        let catalog = |known| catalog_beyond(known, read(&self.known).keys.iter().map(|key| put_key(key, place)));
        sender.send(&carried.as_batch(), catalog).await?;
        Ok(refused)
    }
}
