//! The rows of a query: many series per request while they fit into memory, otherwise one.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde::Deserialize;
use tsb_core::{SeriesId, SeriesKey, Timestamp};

use super::connection::VictoriaConnection;
use super::names::{key_of, selector};
use super::times::MS_NS;
use crate::http::LineReader;
use crate::{Chunk, QueryCursor};
use tsb_stores::error::Result;

const ACTION: &str = "read samples";
/// Maximum number of series per request.
const SERIES_MAX: usize = 64;
/// Maximum number of rows of several series in memory: beyond them, series are asked one by one.
const ROWS_MAX: usize = 1 << 20;

/// A line of an export: rows of one series.
#[derive(Debug, Deserialize)]
struct Line {
    metric: BTreeMap<String, String>,
    values: Vec<f64>,
    timestamps: Vec<i64>,
}

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct VictoriaCursor {
    connection: Arc<VictoriaConnection>,
    /// Absent if no sample can be in the range.
    range: Option<(String, String)>,
    remaining: VecDeque<(SeriesId, SeriesKey)>,
    per_request: usize,
    /// The answer about a single series that is being read.
    single: Option<(SeriesId, SeriesKey, LineReader)>,
    ready: VecDeque<Chunk>,
}

impl VictoriaCursor {
    pub(super) fn new(
        connection: &Arc<VictoriaConnection>,
        range: Option<(String, String)>,
        series: VecDeque<(SeriesId, SeriesKey)>,
    ) -> Self {
        Self {
            connection: Arc::clone(connection),
            range,
            remaining: series,
            per_request: SERIES_MAX,
            single: None,
            ready: VecDeque::new(),
        }
    }

    fn selectors(&self, series: &[(SeriesId, SeriesKey)]) -> Vec<String> {
        let place = self.connection.place();
        series.iter().map(|(_, key)| selector(key, place)).collect()
    }

    /// Asks for the next series; whether there are any.
    async fn ask(&mut self) -> Result<bool> {
        let Some(range) = self.range.clone() else {
            return Ok(false);
        };
        // A series that is asked for twice has two requests.
        let mut seen = HashSet::new();
        let others = self.remaining.iter().take(self.per_request);
        let count = others.take_while(|(_, key)| seen.insert(key)).count();
        let series: Vec<_> = self.remaining.drain(..count).collect();
        if series.is_empty() {
            return Ok(false);
        }
        let answer = self.connection.export(ACTION, &self.selectors(&series), &range).await?;
        let mut lines = LineReader::new(answer);
        if self.per_request == 1 {
            self.single = series.into_iter().next().map(|(id, key)| (id, key, lines));
            return Ok(true);
        }
        let places: HashMap<&SeriesKey, usize> = series.iter().map(|(_, key)| key).zip(0..).collect();
        let mut found: Vec<Vec<Chunk>> = vec![Vec::new(); series.len()];
        let mut rows = 0;
        while let Some(line) = lines.next().await? {
            let (key, times, values) = self.parsed(&line)?;
            let Some(place) = places.get(&key) else { continue };
            rows += times.len();
            if rows > ROWS_MAX {
                self.per_request = 1;
                series
                    .into_iter()
                    .rev()
                    .for_each(|pair| self.remaining.push_front(pair));
                return Ok(true);
            }
            let series = series[*place].0;
            found[*place].push(Chunk { series, times, values });
        }
        self.ready.extend(found.into_iter().flatten());
        Ok(true)
    }

    /// Reads on about a single series; whether its answer goes on.
    async fn read(&mut self) -> Result<bool> {
        let Some((id, key, mut lines)) = self.single.take() else {
            return Ok(false);
        };
        while let Some(line) = lines.next().await? {
            let (found, times, values) = self.parsed(&line)?;
            if found == key {
                let series = id;
                self.ready.push_back(Chunk { series, times, values });
                self.single = Some((id, key, lines));
                break;
            }
        }
        Ok(true)
    }

    fn parsed(&self, line: &[u8]) -> Result<(SeriesKey, Vec<Timestamp>, Vec<f64>)> {
        let line: Line = serde_json::from_slice(line).map_err(|error| {
            self.connection
                .server()
                .unanswered(ACTION, format!("a line cannot be read: {error}"))
        })?;
        if line.values.len() != line.timestamps.len() || line.values.is_empty() {
            let why = format!("{} values of {} timestamps", line.values.len(), line.timestamps.len());
            return Err(self.connection.server().unanswered(ACTION, why));
        }
        let times = line.timestamps.iter().map(|ms| Timestamp(ms.saturating_mul(MS_NS)));
        Ok((key_of(line.metric), times.collect(), line.values))
    }
}

impl QueryCursor for VictoriaCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            if !self.read().await? && !self.ask().await? {
                return Ok(None);
            }
        }
    }
}
