//! Writes a batch as requests one after the other, and finds out which samples were refused.

use tsb_core::Batch;

use super::InfluxClient;
use crate::influx::lines::{lines, writable};
use crate::influx::reply::Fate;
use crate::partly_sent::of_write;
use tsb_stores::error::Result;
use tsb_stores::parts::read;
use tsb_stores::store::Reason;

const WRITING: &str = "write samples";

impl InfluxClient {
    /// Writes a batch whose ids are numbers. Returns the refused samples, by index.
    ///
    /// A request of which a part was refused is divided in halves, each sent again: the server
    /// says how many lines it dropped, but not which. A line that was taken and comes again
    /// replaces its sample by the same value.
    pub(super) async fn write_batch(&self, batch: &Batch<'_>) -> Result<Vec<(u32, Reason)>> {
        let (which, mut refused) = writable(batch);
        // What is to be sent, the next part last.
        let mut parts: Vec<&[u32]> = vec![&which];
        let mut is_sent = false;
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let mut body = Vec::new();
            let count = lines(&read(&self.series), batch, part, self.options.lines, &mut body);
            let (sent, rest) = part.split_at(count);
            parts.push(rest);
            let fate = self.connection.write(WRITING, body, count).await;
            match fate.map_err(|error| of_write(is_sent, error))? {
                Fate::Refused(reason) => refused.extend(sent.iter().map(|index| (*index, reason))),
                Fate::Partly(_) => {
                    let (first, second) = sent.split_at(count / 2);
                    parts.extend([second, first]);
                }
                Fate::Taken | Fate::Open => {}
            }
            is_sent = true;
        }
        refused.sort_unstable_by_key(|(index, _)| *index);
        Ok(refused)
    }
}
