//! Stores the mapping of series to numbers at the server.

use super::super::key_space::{series_of, series_to_value};
use super::super::message::{Compare, Put, Txn};
use super::{EtcdClient, OPERATIONS, single_key};
use crate::series_registry::NumberedSeries;
use tsb_stores::error::Result;

impl EtcdClient {
    /// Stores the numbers that the server does not know yet.
    pub(super) async fn save_series(&self) -> Result<()> {
        if let Some(unsaved) = self.registry.unsaved().await {
            for series in unsaved.series().chunks(OPERATIONS) {
                self.insert_series(series).await?;
            }
            unsaved.saved();
        }
        Ok(())
    }

    /// Inserts all of them, or none if one is there already: from an earlier attempt without an
    /// answer, or from another client.
    async fn insert_series(&self, series: &[NumberedSeries]) -> Result<()> {
        const ACTION: &str = "store the names of series";
        let key = |(number, _): &NumberedSeries| self.key_space.name(*number);
        let put = |pair: &NumberedSeries| Put {
            key: key(pair),
            value: series_to_value(&pair.1),
            lease: 0,
        };
        let insert = |series: &[&NumberedSeries]| Txn {
            compare: series.iter().map(|pair| Compare::absent(key(pair))).collect(),
            success: series.iter().map(|pair| put(pair).into()).collect(),
            failure: series.iter().map(|pair| single_key(key(pair)).into()).collect(),
        };
        let mut missing: Vec<&NumberedSeries> = series.iter().collect();
        while !missing.is_empty() {
            let reply = self.connection.ask(ACTION, insert(&missing)).await?;
            if reply.succeeded {
                break;
            }
            let before = missing.len();
            let found = reply.replies.iter().filter_map(|reply| reply.range.as_ref());
            let values: Vec<_> = found.map(|range| range.pairs.first().map(|pair| &pair.value)).collect();
            for (pair, value) in missing.iter().zip(&values) {
                if value.is_some_and(|value| series_of(value).as_ref() != Some(&pair.1)) {
                    let why = format!("series {} has another name there: another program writes there", pair.0);
                    return Err(self.connection.failed(ACTION, why));
                }
            }
            let mut values = values.iter();
            missing.retain(|_| values.next().is_some_and(Option::is_none));
            if missing.len() == before {
                return Err(self
                    .connection
                    .failed(ACTION, "it says that they are there, and shows none"));
            }
        }
        Ok(())
    }
}
