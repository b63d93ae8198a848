//! The rows of a query, as a program sends them.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::error::Result;
use tsb_stores::parts::Resampler;
use tsb_stores::store::{Query, Resample, TimeRange};

use super::connection::{Connection, Effect};
use super::message::{Body, REQUEST_MAX, Request};
use crate::{Chunk, QueryCursor};

const ACTION: &str = "read samples";

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct ExecCursor {
    connection: Arc<Connection>,
    range: TimeRange,
    resample: Option<Resample>,
    /// The series of each request that follows.
    parts: VecDeque<Vec<SeriesId>>,
    asked: Option<Asked>,
    /// A chunk that was read while looking for the end of the series before.
    ahead: Option<Chunk>,
}

/// A request whose answers are being read.
#[derive(Debug)]
struct Asked {
    answers: mpsc::Receiver<Body>,
    series: Vec<SeriesId>,
    /// The place in `series` of the last chunk, and its last timestamp.
    last: Option<(usize, Timestamp)>,
}

impl ExecCursor {
    pub(super) fn new(connection: &Arc<Connection>, query: &Query<'_>) -> Self {
        Self {
            connection: Arc::clone(connection),
            range: query.range,
            resample: query.resample,
            parts: if query.range.start < query.range.end {
                parts(query.series)
            } else {
                VecDeque::new()
            },
            asked: None,
            ahead: None,
        }
    }

    /// The next chunk as the program sends it, never empty.
    async fn chunk(&mut self) -> Result<Option<Chunk>> {
        loop {
            let mut asked = match self.asked.take() {
                Some(asked) => asked,
                None => match self.ask().await? {
                    Some(asked) => asked,
                    None => return Ok(None),
                },
            };
            let chunk = match self.connection.next(ACTION, Effect::Reads, &mut asked.answers).await? {
                Body::Ok => continue,
                Body::Rows(chunk) => chunk,
                other => {
                    let what = format!("it answered a query with {}", other.verb());
                    return Err(self.connection.reject(ACTION, Effect::Reads, &what));
                }
            };
            let checked = asked.check(&chunk, self.range);
            checked.map_err(|what| self.connection.reject(ACTION, Effect::Reads, &what))?;
            self.asked = Some(asked);
            if !chunk.times.is_empty() {
                return Ok(Some(chunk));
            }
        }
    }

    async fn ask(&mut self) -> Result<Option<Asked>> {
        let Some(series) = self.parts.pop_front() else {
            return Ok(None);
        };
        let request = Request::Query {
            series: &series,
            range: self.range,
        };
        let answers = self.connection.send(ACTION, &request).await?;
        Ok(Some(Asked {
            answers,
            series,
            last: None,
        }))
    }

    /// The rows of the next series, resampled.
    async fn resampled(&mut self, resample: Resample) -> Result<Option<Chunk>> {
        let mut next = match self.ahead.take() {
            None => self.chunk().await?,
            ahead => ahead,
        };
        let Some(series) = next.as_ref().map(|chunk| chunk.series) else {
            return Ok(None);
        };
        let requests_left = self.parts.len();
        let mut resampler = Resampler::new(resample);
        while let Some(chunk) = next {
            for (at, value) in chunk.times.iter().zip(&chunk.values) {
                resampler.push(*at, *value);
            }
            next = self.chunk().await?;
            // Another request may ask for the same series once more.
            let is_over = |chunk: &Chunk| chunk.series != series || self.parts.len() != requests_left;
            if next.as_ref().is_some_and(is_over) {
                self.ahead = next.take();
            }
        }
        let (times, values) = resampler.finish();
        Ok(Some(Chunk { series, times, values }))
    }
}

impl Asked {
    /// Checks that a chunk continues what came before.
    fn check(&mut self, chunk: &Chunk, range: TimeRange) -> std::result::Result<(), String> {
        let Chunk { series, times, .. } = chunk;
        let from = self.last.map_or(0, |(place, _)| place);
        let place = self.series[from..].iter().position(|asked| asked == series);
        let Some(place) = place.map(|ahead| from + ahead) else {
            return Err(format!(
                "it sent rows of series {}, which was not asked for, or is over",
                series.0
            ));
        };
        let before = self.last.filter(|(last, _)| *last == place).map(|(_, at)| at);
        let continues = before.is_none_or(|before| times.first().is_none_or(|first| *first >= before));
        if !times.is_sorted() || !continues {
            return Err(format!("the times of series {} do not ascend", series.0));
        }
        let (first, last) = (times.first(), times.last());
        if let Some(at) = first.into_iter().chain(last).find(|at| !range.contains(**at)) {
            let (start, end) = (range.start.0, range.end.0);
            return Err(format!(
                "the time {} of series {} is not in [{start}, {end})",
                at.0, series.0
            ));
        }
        if let Some(at) = last {
            self.last = Some((place, *at));
        }
        Ok(())
    }
}

/// Divides the series of a query into requests, none of which names a series twice.
fn parts(series: &[SeriesId]) -> VecDeque<Vec<SeriesId>> {
    let mut parts: VecDeque<Vec<SeriesId>> = VecDeque::new();
    let mut named = HashSet::new();
    for id in series {
        let is_full = parts.back().is_none_or(|part| part.len() >= REQUEST_MAX);
        if is_full || !named.insert(*id) {
            named = HashSet::from([*id]);
            parts.push_back(Vec::new());
        }
        if let Some(part) = parts.back_mut() {
            part.push(*id);
        }
    }
    parts
}

impl QueryCursor for ExecCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        match self.resample {
            Some(resample) => self.resampled(resample).await,
            None => self.chunk().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_names_a_series_twice() {
        let ids = |ids: &[u32]| ids.iter().copied().map(SeriesId).collect::<Vec<_>>();
        assert_eq!(parts(&ids(&[3, 1, 3, 3, 2])), [ids(&[3, 1]), ids(&[3]), ids(&[3, 2])]);
        assert!(parts(&[]).is_empty());
    }
}
