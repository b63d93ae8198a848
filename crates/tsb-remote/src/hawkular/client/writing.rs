//! Writes a batch: which samples are sent, and in which requests.

use tsb_core::Batch;

use super::super::body::{body, rows};
use super::super::rules::TIMES;
use super::HawkularClient;
use crate::json_samples::unwritable;
use crate::partly_sent::of_write;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::{lock, read};
use tsb_stores::store::Reason;

impl HawkularClient {
    /// Writes a batch whose ids are numbers. Returns the refused samples, by index.
    pub(super) async fn write_batch(&self, batch: &Batch<'_>) -> Result<Vec<(u32, Reason)>> {
        let refused = unwritable(batch, TIMES, self.connection.rules().resolution_ns);
        let Some(admission) = &self.admission else {
            self.send(batch, &refused).await?;
            return Ok(refused);
        };
        let admitted = lock(admission).admit(batch, refused);
        let sent = self.send(batch, &admitted.refused).await;
        let mut admission = lock(admission);
        match &sent {
            Ok(()) => admission.stored(&admitted),
            // They may be there.
            Err(Error::Unknown { .. }) => {}
            Err(_) => admission.not_stored(&admitted),
        }
        sent.map(|()| admitted.refused)
    }

    /// Sends a batch without what is refused, as few requests one after the other.
    async fn send(&self, batch: &Batch<'_>, refused: &[(u32, Reason)]) -> Result<()> {
        let rows = rows(batch, refused, self.connection.rules().keeps_copies());
        for (sent, part) in rows.chunks(self.samples_max).enumerate() {
            let body = body(part, &read(&self.ids));
            let written = self.connection.write(body).await;
            written.map_err(|error| of_write(sent > 0, error))?;
        }
        Ok(())
    }
}
