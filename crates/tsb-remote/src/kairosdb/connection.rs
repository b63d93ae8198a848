//! Requests to one server, for one prefix.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tsb_core::bytes::percent::encoded;

use super::DEFAULT_PORT;
use super::body::MS_NS;
use super::names::{MARK_TAG, VERSION, is_of};
use super::options::KairosDbOptions;
use crate::Address;
use crate::http::{Access, HttpServer, Request};
use tsb_stores::error::{Error, Result};
use tsb_stores::store::TimeRange;

const JSON: &str = "application/json";
/// The last millisecond that a timestamp in nanoseconds can name.
const LAST_MS: i64 = i64::MAX / MS_NS;

/// One prefix of a server.
#[derive(Debug)]
pub(super) struct KairosDbConnection {
    server: HttpServer,
    prefix: String,
    timeout: Duration,
}

/// The answer to a query: one entry for each metric that was asked about.
#[derive(Debug, Deserialize)]
struct QueryAnswer<V> {
    queries: Vec<QueryEntry<V>>,
}

#[derive(Debug, Deserialize)]
struct QueryEntry<V> {
    results: Vec<QueryResult<V>>,
}

/// Samples of one metric; without any there are neither tags nor values.
#[derive(Debug, Deserialize)]
struct QueryResult<V> {
    #[serde(default)]
    tags: BTreeMap<String, Vec<String>>,
    values: Vec<(i64, V)>,
}

#[derive(Debug, Deserialize)]
struct Names {
    results: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Version {
    version: String,
}

/// Which of the samples in a range a query wants.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// The first ones.
    First(usize),
    /// The last one.
    Last,
}

/// A metric, and the tag that its samples have.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) metric: String,
    pub(super) tag: &'static str,
    pub(super) value: String,
}

impl KairosDbConnection {
    /// Sends nothing yet.
    pub(super) fn new(address: &Address, options: &KairosDbOptions) -> Result<Self> {
        if address.hosts().contains(',') {
            return Err(spec_error("one host is written to, and several are named"));
        }
        let access = Access::of(address, options.tls.clone(), options.timeout)?;
        Ok(Self {
            server: HttpServer::new("KairosDB", address.hosts(), DEFAULT_PORT, access)?,
            prefix: address.place().to_owned(),
            timeout: options.timeout,
        })
    }

    pub(super) const fn server(&self) -> &HttpServer {
        &self.server
    }

    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Checks that a KairosDB answers.
    pub(super) async fn check_version(&self) -> Result<()> {
        const ACTION: &str = "ask for the version";
        let answer = self.server.ask(ACTION, &Request::get("/api/v1/version")).await?;
        if matches!(answer.status().as_u16(), 401 | 403) {
            return Err(self.server.refused(ACTION, &answer));
        }
        match serde_json::from_slice::<Version>(answer.body()) {
            Ok(Version { version }) if version.starts_with("KairosDB") => Ok(()),
            _ => Err(spec_error(format!(
                "{} does not say that it is a KairosDB ({})",
                self.server.name(),
                answer.described()
            ))),
        }
    }

    /// Sends samples. A refusal says nothing of those that stand before the bad one.
    pub(super) async fn write(&self, action: &str, body: Vec<u8>) -> Result<()> {
        let request = Request::post("/api/v1/datapoints", body).with_header("content-type", JSON);
        let answer = self.server.ask(action, &request).await?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(self.server.unknown(action, answer.described()))
    }

    /// The samples of series in a range, for each that is asked for.
    pub(super) async fn query<V>(
        &self,
        action: &str,
        asked: &[Asked],
        range: TimeRange,
        wanted: Wanted,
    ) -> Result<Vec<Vec<(i64, V)>>>
    where
        V: for<'a> Deserialize<'a>,
    {
        let Some((start, end)) = bounds(range) else {
            return Ok(asked.iter().map(|_| Vec::new()).collect());
        };
        let (limit, order) = match wanted {
            Wanted::First(limit) => (limit, "asc"),
            Wanted::Last => (1, "desc"),
        };
        let metrics = asked.iter().map(
            |asked| json!({"name": asked.metric, "tags": {asked.tag: [asked.value]}, "limit": limit, "order": order}),
        );
        let entries = self.asked::<V>(action, &metrics.collect(), (start, end)).await?;
        let garbled = |why: &str| self.garbled(action, &why);
        if entries.len() != asked.len() {
            return Err(garbled(&format!(
                "{} results of {} metrics",
                entries.len(),
                asked.len()
            )));
        }
        let mut found = Vec::with_capacity(asked.len());
        for (entry, asked) in entries.into_iter().zip(asked) {
            let mut samples = Vec::new();
            for result in entry.results {
                let tag = result.tags.get(asked.tag);
                let is_right = tag.is_some_and(|values| *values == [asked.value.as_str()]);
                if !result.values.is_empty() && !is_right {
                    return Err(garbled("samples of a series that was not asked for"));
                }
                samples.extend(result.values);
            }
            found.push(samples);
        }
        Ok(found)
    }

    /// What the server answers about metrics between two times in milliseconds, both included.
    async fn asked<V>(&self, action: &str, metrics: &Value, (start, end): (i64, i64)) -> Result<Vec<QueryEntry<V>>>
    where
        V: for<'a> Deserialize<'a>,
    {
        let question = json!({"start_absolute": start, "end_absolute": end, "metrics": metrics});
        let request = Request::post("/api/v1/datapoints/query", question.to_string().into_bytes());
        let request = request.with_header("content-type", JSON).reading();
        let answer = self.server.ask(action, &request).await?;
        if !answer.status().is_success() {
            return Err(self.server.refused(action, &answer));
        }
        let answer: QueryAnswer<V> =
            serde_json::from_slice(answer.body()).map_err(|error| self.garbled(action, &error))?;
        Ok(answer.queries)
    }

    fn garbled(&self, action: &str, why: &dyn std::fmt::Display) -> Error {
        let why = format!("the answer cannot be read: {why}");
        self.server.unanswered(action, why)
    }

    /// Whether a metric has a sample, whatever its tags.
    pub(super) async fn has_samples(&self, action: &str, metric: &str) -> Result<bool> {
        let metrics = json!([{"name": metric, "limit": 1}]);
        let entries = self.asked::<Value>(action, &metrics, (0, LAST_MS)).await?;
        let mut results = entries.into_iter().flat_map(|entry| entry.results);
        Ok(results.any(|result| !result.values.is_empty()))
    }

    /// The metrics of the prefix.
    pub(super) async fn metrics(&self) -> Result<Vec<String>> {
        const ACTION: &str = "list the metrics";
        let path = format!("/api/v1/metricnames?prefix={}", encoded(&self.prefix));
        let answer = self.server.ask(ACTION, &Request::get(path)).await?;
        if !answer.status().is_success() {
            return Err(self.server.refused(ACTION, &answer));
        }
        let names = serde_json::from_slice::<Names>(answer.body());
        let names = names.map_err(|error| self.garbled(ACTION, &error))?;
        Ok(names
            .results
            .into_iter()
            .filter(|name| is_of(&self.prefix, name))
            .collect())
    }

    /// The part of a query about the list of series.
    pub(super) fn list(&self) -> Asked {
        Asked {
            metric: self.prefix.clone(),
            tag: MARK_TAG,
            value: VERSION.to_owned(),
        }
    }

    /// Deletes a metric with all its samples.
    pub(super) async fn delete(&self, metric: &str) -> Result<()> {
        const ACTION: &str = "remove a metric";
        let request = Request::delete(format!("/api/v1/metric/{}", encoded(metric)));
        let answer = self.server.ask(ACTION, &request).await?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(self.server.refused(ACTION, &answer))
    }
}

/// A range in milliseconds, both included; `None` if it is empty. Nothing is before 1970.
fn bounds(range: TimeRange) -> Option<(i64, i64)> {
    let (start, end) = range.whole_units(MS_NS)?;
    (end >= 0).then_some((start.max(0), end))
}

/// An error about the options, or what they name.
pub(super) fn spec_error(what: impl Into<String>) -> Error {
    Error::Spec {
        spec: "kairosdb:".to_owned(),
        what: what.into(),
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::Timestamp;

    use super::*;

    #[test]
    fn a_range_has_the_milliseconds_within_it() {
        let of = |start, end| {
            bounds(TimeRange {
                start: Timestamp(start),
                end: Timestamp(end),
            })
        };
        assert_eq!(of(1, 2_000_000), Some((1, 1)));
        assert_eq!(of(0, 1), Some((0, 0)));
        assert_eq!(of(1, 1_000_000), None);
        assert_eq!(of(i64::MIN, 0), None);
        assert_eq!(of(i64::MIN, i64::MAX), Some((0, LAST_MS)));
    }
}
