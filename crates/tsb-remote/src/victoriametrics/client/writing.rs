//! Writes a batch as requests one after the other.

use tsb_core::Batch;

use super::VictoriaClient;
use crate::http::Request;
use crate::partly_sent::of_write;
use crate::victoriametrics::exposition::{lines, writable};
use tsb_stores::error::Result;
use tsb_stores::parts::read;
use tsb_stores::store::Reason;

const WRITING: &str = "write samples";

impl VictoriaClient {
    /// Writes a batch whose ids are numbers. Returns the refused samples, by index.
    pub(super) async fn write_batch(&self, batch: &Batch<'_>) -> Result<Vec<(u32, Reason)>> {
        let (which, mut refused) = writable(batch, self.kept());
        for (number, part) in which.chunks(self.options.lines).enumerate() {
            let body = lines(&read(&self.known).starts, batch, part);
            let request = Request::post("/api/v1/import/prometheus", body);
            let outcome = self.connection.server().ask(WRITING, &request).await;
            let answer = outcome.map_err(|error| of_write(number > 0, error))?;
            match answer.status().as_u16() {
                200 | 204 => {}
                401 | 403 | 404 => {
                    return Err(of_write(number > 0, self.connection.server().refused(WRITING, &answer)));
                }
                // Not understood, too long, or no room at the moment: nothing was taken.
                400 | 413 | 429 | 503 => refused.extend(part.iter().map(|index| (*index, Reason::Refused))),
                _ => return Err(self.connection.server().unknown(WRITING, answer.described())),
            }
        }
        refused.sort_unstable_by_key(|(index, _)| *index);
        Ok(refused)
    }
}
