//! Requests to one server, for one tenant.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tsb_core::bytes::percent::encoded;

use super::options::{HawkularApi, HawkularOptions};
use super::page::{Sample, page};
use super::rules::{LAST_MS, LEAST_MS, Rules, Window};
use super::status::{NoServer, server_of};
use super::{DEFAULT_PORT, spec_error};
use crate::Address;
use crate::http::{Access, Answer, HttpServer, Request};
use crate::paged_series::Page;
use tsb_stores::error::{Error, Result};

const PREFIX: &str = "/hawkular/metrics";
const TENANT: &str = "hawkular-tenant";
const JSON: &str = "application/json";
/// Requests in flight, where one of them is about one gauge.
const IN_FLIGHT: usize = 16;
/// Gauges in one question for their newest samples.
const NEWEST_MAX: usize = 100;
/// What the last versions of Mohawk say of a tenant that their memory does not know.
const UNKNOWN_TENANT: &[u8] = b"Can't set tenant";

/// The id of a gauge.
pub(super) type Id = Arc<str>;

/// One tenant of a server.
#[derive(Debug)]
pub(super) struct HawkularConnection {
    server: HttpServer,
    tenant: String,
    api: HawkularApi,
    rules: Rules,
}

/// A gauge of a list, with its newest sample where the server shows it.
#[derive(Debug, Deserialize)]
pub(super) struct Listed {
    pub(super) id: String,
    #[serde(default)]
    data: Option<Vec<Sample>>,
}

impl Listed {
    /// The time of its newest sample; Mohawk shows 0 where there is none.
    fn newest_ms(&self) -> Option<i64> {
        let times = self.data.iter().flatten().map(|sample| sample.timestamp);
        times.max().filter(|ms| *ms >= LEAST_MS)
    }
}

/// Samples of one gauge among several.
#[derive(Debug, Deserialize)]
struct Entry {
    id: String,
    data: Option<Vec<Sample>>,
}

impl HawkularConnection {
    /// Asks which server it is.
    pub(super) async fn open(address: &Address, options: &HawkularOptions) -> Result<Self> {
        if address.hosts().contains(',') {
            return Err(spec_error("one host is written to, and several are named"));
        }
        let access = Access::of(address, options.tls.clone(), options.timeout)?;
        let server = HttpServer::new("Hawkular", address.hosts(), DEFAULT_PORT, access)?;
        let rules = rules(&server, options).await?;
        Ok(Self {
            server,
            tenant: address.place().to_owned(),
            api: options.api,
            rules,
        })
    }

    pub(super) const fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(super) const fn server(&self) -> &HttpServer {
        &self.server
    }

    pub(super) fn tenant(&self) -> &str {
        &self.tenant
    }

    async fn ask(&self, action: &str, request: Request) -> Result<Answer> {
        let request = request.with_header(TENANT, self.tenant.clone());
        self.server.ask(action, &request).await
    }

    /// Sends samples. An error of the server leaves open which of them are stored.
    pub(super) async fn write(&self, body: Vec<u8>) -> Result<()> {
        const ACTION: &str = "write samples";
        let path = format!("{PREFIX}/gauges/{}", self.api.word());
        let request = Request::post(path, body).with_header("content-type", JSON);
        let answer = self.ask(ACTION, request).await?;
        if answer.status().is_success() {
            Ok(())
        } else if answer.status().is_server_error() {
            Err(self.server.unknown(ACTION, answer.described()))
        } else {
            Err(self.server.refused(ACTION, &answer))
        }
    }

    /// The gauges of the tenant.
    pub(super) async fn gauges(&self) -> Result<Vec<Listed>> {
        const ACTION: &str = "list the gauges";
        let answer = self
            .ask(ACTION, Request::get(format!("{PREFIX}/metrics?type=gauge")))
            .await?;
        let body = answer.body();
        if answer.status() == 500 && body.windows(UNKNOWN_TENANT.len()).any(|part| part == UNKNOWN_TENANT) {
            return Ok(Vec::new());
        }
        self.list(ACTION, &answer)
    }

    /// The time of the newest sample of each gauge, in milliseconds.
    pub(super) async fn newest(&self, ids: &[Id]) -> Result<Vec<Option<i64>>> {
        const ACTION: &str = "ask for the newest samples";
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        if self.rules.lists_newest {
            return self.newest_of_list(ids).await;
        }
        let window = self.rules.newest();
        let parts = match self.api {
            HawkularApi::Raw => ids.chunks(NEWEST_MAX),
            HawkularApi::Data => ids.chunks(ids.len()),
        };
        // Collected, as a stream over borrowed chunks is not general enough for the compiler.
        let questions: Vec<_> = parts.map(|ids| self.samples(ACTION, ids, window)).collect();
        let found: Vec<Vec<Vec<Sample>>> = futures_util::stream::iter(questions)
            .buffered(IN_FLIGHT)
            .try_collect()
            .await?;
        let times = |samples: Vec<Sample>| samples.iter().map(|sample| sample.timestamp).max();
        Ok(found.into_iter().flatten().map(times).collect())
    }

    async fn newest_of_list(&self, ids: &[Id]) -> Result<Vec<Option<i64>>> {
        let listed = self.gauges().await?;
        let newest: HashMap<&str, i64> = listed
            .iter()
            .filter_map(|gauge| Some((gauge.id.as_str(), gauge.newest_ms()?)))
            .collect();
        let from_ms = newest
            .values()
            .max()
            .map(|newest_ms| self.rules.visible_from(*newest_ms));
        let is_visible = |ms: &i64| from_ms.is_some_and(|from_ms| *ms >= from_ms);
        Ok(ids
            .iter()
            .map(|id| newest.get(&**id).copied().filter(is_visible))
            .collect())
    }

    /// The first samples of each gauge between two milliseconds, both included.
    pub(super) async fn pages(&self, ids: &[Id], range: (i64, i64)) -> Result<Vec<Page>> {
        const ACTION: &str = "read samples";
        let window = self.rules.first(range);
        let found = self.samples(ACTION, ids, window).await?;
        let paged = |samples| page(samples, window.limit, range, self.rules.keeps_copies());
        let pages = found.into_iter().map(paged);
        pages
            .map(|page| page.map_err(|why| self.garbled(ACTION, &why)))
            .collect()
    }

    /// The samples of each gauge in a window, as they are answered.
    async fn samples(&self, action: &str, ids: &[Id], window: Window) -> Result<Vec<Vec<Sample>>> {
        match self.api {
            HawkularApi::Raw => self.samples_of_all(action, ids, window).await,
            HawkularApi::Data => {
                let questions: Vec<_> = ids.iter().map(|id| self.samples_of_one(action, id, window)).collect();
                futures_util::stream::iter(questions)
                    .buffered(IN_FLIGHT)
                    .try_collect()
                    .await
            }
        }
    }

    async fn samples_of_one(&self, action: &str, id: &str, window: Window) -> Result<Vec<Sample>> {
        let Window {
            start,
            end,
            limit,
            order,
        } = window;
        let path = format!(
            "{PREFIX}/gauges/{}/data?start={start}&end={end}&limit={limit}&order={order}",
            encoded(id)
        );
        let answer = self.ask(action, Request::get(path)).await?;
        self.list(action, &answer)
    }

    async fn samples_of_all(&self, action: &str, ids: &[Id], window: Window) -> Result<Vec<Vec<Sample>>> {
        // A gauge may be asked for twice.
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, id) in ids.iter().enumerate() {
            places.entry(&**id).or_default().push(place);
        }
        let question = json!({
            "ids": places.keys().collect::<Vec<_>>(),
            "start": window.start,
            "end": window.end,
            "limit": window.limit,
            "order": window.order,
        });
        let request = Request::post(format!("{PREFIX}/gauges/raw/query"), question.to_string());
        let request = request.with_header("content-type", JSON).reading();
        let answer = self.ask(action, request).await?;
        let mut found = vec![Vec::new(); ids.len()];
        for Entry { id, data } in self.list::<Entry>(action, &answer)? {
            // Once: a second answer about a gauge is one too many.
            let places = places.remove(id.as_str());
            let places = places.ok_or_else(|| self.garbled(action, &"it has a gauge that was not asked for"))?;
            let data = data.unwrap_or_default();
            for place in places {
                found[place].clone_from(&data);
            }
        }
        Ok(found)
    }

    /// Deletes the samples of a gauge, or what the server does in place of that.
    pub(super) async fn delete(&self, id: &str) -> Result<()> {
        const ACTION: &str = "remove a gauge";
        let gauge = format!("{PREFIX}/gauges/{}", encoded(id));
        let path = if self.rules.is_mohawk {
            format!("{gauge}/raw?start={LEAST_MS}&end={LAST_MS}")
        } else {
            gauge
        };
        let answer = self.ask(ACTION, Request::delete(path)).await?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(self.server.refused(ACTION, &answer))
    }

    /// The elements of an answer; none where it has no content.
    fn list<T: DeserializeOwned>(&self, action: &str, answer: &Answer) -> Result<Vec<T>> {
        if !answer.status().is_success() {
            return Err(self.server.refused(action, answer));
        }
        if answer.status() == 204 {
            return Ok(Vec::new());
        }
        let list: serde_json::Result<Option<Vec<T>>> = serde_json::from_slice(answer.body());
        // Go writes an empty list as null.
        list.map(Option::unwrap_or_default)
            .map_err(|error| self.garbled(action, &error))
    }

    fn garbled(&self, action: &str, why: &dyn std::fmt::Display) -> Error {
        self.server
            .unanswered(action, format!("the answer cannot be read: {why}"))
    }
}

/// The rules of the server that answers.
async fn rules(server: &HttpServer, options: &HawkularOptions) -> Result<Rules> {
    const ACTION: &str = "ask for the status";
    let answer = server.ask(ACTION, &Request::get(format!("{PREFIX}/status"))).await?;
    if matches!(answer.status().as_u16(), 401 | 403) {
        return Err(server.refused(ACTION, &answer));
    }
    match server_of(answer.body()) {
        Ok(kind) => Rules::of(kind, options),
        Err(NoServer::NotStarted(state)) => Err(server.failed(ACTION, format!("its service is {state:?}"))),
        Err(NoServer::Another) => Err(spec_error(format!(
            "{} does not say that it is a Hawkular or a Mohawk ({})",
            server.name(),
            answer.described()
        ))),
    }
}
