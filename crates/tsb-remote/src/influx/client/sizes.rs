//! How many bytes the server says that the database takes.

use super::InfluxClient;
use crate::influx::reply::Rows;
use tsb_stores::error::Result;
use tsb_stores::store::Footprint;

impl InfluxClient {
    /// Files of sealed blocks and the write-ahead log, as the server counts them; the index of
    /// series is not among them.
    pub(super) async fn footprint(&self, samples: u64) -> Result<Footprint> {
        const STATEMENTS: &str = "SHOW STATS FOR 'tsm1_filestore'; SHOW STATS FOR 'tsm1_wal'";
        let results = self.connection.ask::<Vec<f64>>("ask for sizes", STATEMENTS).await?;
        let sum = |statement: usize, columns: &[&str]| -> u64 {
            let shards = results.iter().filter(|result| result.statement_id == statement);
            let own = shards.flat_map(|result| &result.series).filter(|shard| {
                shard
                    .tags
                    .get("database")
                    .is_some_and(|name| name == self.connection.database())
            });
            own.map(|shard| of_shard(shard, columns)).sum()
        };
        let journal_bytes = sum(1, &["currentSegmentDiskBytes", "oldSegmentsDiskBytes"]);
        // Samples in the log are not sealed; how many they are is not said.
        let sealed_bytes = sum(0, &["diskBytes"]);
        let sealed_samples = if journal_bytes == 0 { samples } else { 0 };
        let mut footprint = Footprint::of_sealed(sealed_bytes, sealed_samples);
        footprint.journal_bytes = journal_bytes;
        Ok(footprint)
    }
}

fn of_shard(shard: &Rows<Vec<f64>>, columns: &[&str]) -> u64 {
    let places = shard
        .columns
        .iter()
        .enumerate()
        .filter(|(_, name)| columns.contains(&name.as_str()));
    let values = places.filter_map(|(place, _)| shard.values.first()?.get(place));
    values.map(|bytes| *bytes as u64).sum()
}
