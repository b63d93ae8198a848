//! The newest timestamps of many series: one request, from the oldest timestamp seen before.

use std::collections::{BTreeSet, HashMap};

use tsb_core::{SeriesKey, Timestamp};

use super::VictoriaClient;
use crate::http::LineReader;
use crate::victoriametrics::exposition::parsed;
use crate::victoriametrics::names::{place_selector, selector};
use tsb_stores::error::Result;
use tsb_stores::parts::{read, write};
use tsb_stores::store::TimeRange;

const ACTION: &str = "ask for the newest samples";
/// From this number of series on, all of the place are asked for.
const MANY: usize = 32;

impl VictoriaClient {
    pub(super) async fn newest_of(&self, numbers: &[u32], into: &mut [Option<Timestamp>]) -> Result<()> {
        into.fill(None);
        if numbers.is_empty() {
            return Ok(());
        }
        let start = {
            let seen = read(&self.seen);
            let of = |number: &u32| seen.get(*number as usize).copied().unwrap_or(Timestamp::MIN);
            numbers.iter().map(of).min().unwrap_or(Timestamp::MIN)
        };
        self.newest_from(numbers, start, into).await?;
        // The samples seen before may have expired, or were removed: search from the start.
        if start > Timestamp::MIN && into.iter().any(Option::is_none) {
            self.newest_from(numbers, Timestamp::MIN, into).await?;
        }
        let mut seen = write(&self.seen);
        for (number, newest) in numbers.iter().zip(into) {
            let place = *number as usize;
            if seen.len() <= place {
                seen.resize(place + 1, Timestamp::MIN);
            }
            seen[place] = newest.unwrap_or(Timestamp::MIN);
        }
        Ok(())
    }

    async fn newest_from(&self, numbers: &[u32], start: Timestamp, into: &mut [Option<Timestamp>]) -> Result<()> {
        let range = TimeRange {
            start,
            ..TimeRange::ALL
        };
        let keys = self.keys_of(numbers);
        let Some(range) = self.kept().parameters(range) else {
            return Ok(());
        };
        let place = self.connection.place();
        let selectors = if keys.len() < MANY {
            let distinct: BTreeSet<&SeriesKey> = keys.iter().collect();
            distinct.into_iter().map(|key| selector(key, place)).collect()
        } else {
            vec![place_selector(place)]
        };
        // A series may be asked for twice.
        let mut places: HashMap<&SeriesKey, Vec<usize>> = HashMap::new();
        for (place, key) in keys.iter().enumerate() {
            places.entry(key).or_default().push(place);
        }
        let mut lines = LineReader::new(self.connection.newest(ACTION, &selectors, &range).await?);
        while let Some(line) = lines.next().await? {
            let found = std::str::from_utf8(&line).ok().and_then(parsed);
            let Some((key, at)) = found else {
                return Err(self.connection.server().unanswered(ACTION, "a line cannot be read"));
            };
            for place in places.get(&key).into_iter().flatten() {
                into[*place] = Some(at);
            }
        }
        Ok(())
    }
}
