//! The requests of one connection, and their answers.

use std::fmt::Write;
use std::sync::Arc;

use super::super::decode::{Service, Task};
use super::super::head::Head;
use super::super::outcome::{RequestOutcome, Response};
use super::super::query::Parameters;
use super::behaviour::{Backend, Behaviour, HawkularOptions, Problem};
use super::body::{self, DataQuery, Item, TaggedItem, Tags};
use super::json::Json;
use super::metrics::{self, DEFAULT_TENANT, Filter};
use super::route::{Route, is_allowed};
use super::window::{Texts, Window};
use super::{Shared, buckets, data};
use crate::series::SeriesKey;
use crate::time::{Clock, Timestamp};
use crate::wire::name_lookup::NameLookup;
use crate::wire::{Decoder, Fatal, Malformed, NotAdmitted, SampleReader, Sequence, Sink};

/// The interface of one connection.
#[derive(Debug)]
pub(super) struct HawkularService {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    reader: Box<dyn SampleReader>,
    bodies: Bodies,
}

/// Decodes the bodies of requests. What is to be done with a body that is no samples is kept for
/// the answer.
#[derive(Debug)]
struct Bodies {
    shared: Arc<Shared>,
    lookup: NameLookup,
    name: Vec<u8>,
    route: Route,
    tenant: String,
    /// What the body asks, or why it cannot be done.
    content: Result<Content, Problem>,
}

/// What a body said.
#[derive(Debug)]
enum Content {
    /// Samples of this number of metrics, which are passed on.
    Samples(usize),
    Query(DataQuery),
    Tags(Vec<(String, Tags)>),
}

impl HawkularService {
    pub(super) fn new(shared: Arc<Shared>, clock: &Arc<dyn Clock>, reader: Box<dyn SampleReader>) -> Self {
        let mut lookup = NameLookup::new(&**clock);
        lookup.within(&shared.room, 0);
        Self {
            bodies: Bodies {
                shared: Arc::clone(&shared),
                lookup,
                name: Vec::new(),
                route: Route::Status,
                tenant: String::new(),
                content: Ok(Content::Samples(0)),
            },
            shared,
            clock: Arc::clone(clock),
            reader,
        }
    }

    fn options(&self) -> HawkularOptions {
        self.shared.options
    }

    fn now_ms(&self) -> i64 {
        self.clock.wall().as_nanos().div_euclid(1_000_000)
    }

    /// The answer to a request without a body.
    fn simple(&mut self, parameters: &Parameters) -> Result<Response, Problem> {
        let options = self.options();
        let tenant = self.bodies.tenant.clone();
        match self.bodies.route.clone() {
            Route::Status => Ok(options.status()),
            Route::Tenants => self.tenants(),
            Route::Metrics => self.metrics(&tenant, parameters),
            Route::Exports => self.exports(&tenant, parameters),
            Route::Read { id, is_stats } => {
                let window = Texts::of_target(parameters).window(self.now_ms(), options)?;
                if is_stats && window.bucket_ms == 0 && options.is_corrected() {
                    return Err(Problem::unreadable("statistics need a bucketDuration", ""));
                }
                let mut json = Json::default();
                let is_empty = self.data(&metrics::key(&tenant, &id), &window, &mut json)?;
                if is_empty && options.is_corrected() {
                    return Ok(Response::new(204, ""));
                }
                Ok(options.json(json.finish()))
            }
            Route::Delete { id } => self.delete(&tenant, &id, parameters),
            Route::DeleteTags { id, tags } => Ok(self.delete_tags(&tenant, &id, &tags)),
            Route::Options => {
                let mut response = options.json("");
                response.fields.push_str("Allow: GET,PUT,POST,DELETE,OPTIONS\r\n");
                Ok(response)
            }
            Route::Write | Route::Query { .. } | Route::PutTags { .. } | Route::PutAllTags => Err(Problem::NoPage),
        }
    }

    /// Writes the data of one metric; returns whether there is none.
    fn data(&mut self, key: &SeriesKey, window: &Window, json: &mut Json) -> Result<bool, Problem> {
        let options = self.options();
        let newest = if options.is(Behaviour::Mohawk0154, Backend::Memory) {
            let of_metric = data::newest(&mut *self.reader, std::slice::from_ref(key))?;
            let of_metric = of_metric.into_iter().flatten().next();
            let of_metric = of_metric.map(|at| at.as_nanos().div_euclid(1_000_000));
            of_metric.max(self.shared.newest())
        } else {
            None
        };
        if window.bucket_ms == 0 {
            let items = data::raw(&mut *self.reader, key, window, newest, options)?;
            json.items(&items)?;
            return Ok(items.is_empty());
        }
        let buckets = buckets::buckets(&mut *self.reader, key, window, newest, options)?;
        json.buckets(&buckets)?;
        Ok(buckets.iter().all(|bucket| bucket.is_empty))
    }

    fn tenants(&mut self) -> Result<Response, Problem> {
        let options = self.options();
        let tenants = metrics::tenants(&mut *self.reader, &self.shared.tags(), options)?;
        let mut json = Json::default();
        json.raw("[");
        json.list(&tenants, |json, tenant| {
            json.raw("{\"id\":");
            json.string(tenant);
            json.raw("}");
            Ok(())
        })?;
        json.raw("]\n");
        Ok(options.json(json.finish()))
    }

    /// The metrics that a request selects; `None` if it asks for another type.
    fn selected(&mut self, tenant: &str, parameters: &Parameters) -> Result<Option<Vec<metrics::Metric>>, Problem> {
        let options = self.options();
        if parameters.get("type").is_some_and(|kind| kind != "gauge") {
            return Ok(None);
        }
        let filter = Filter::read(parameters.get("tags"), options)?;
        self.matching(tenant, &filter).map(Some)
    }

    fn matching(&mut self, tenant: &str, filter: &Filter) -> Result<Vec<metrics::Metric>, Problem> {
        let options = self.options();
        let found = metrics::metrics(&mut *self.reader, &self.shared.tags(), tenant, filter, options)?;
        let is_unknown = found.is_empty() && filter.is_empty();
        if is_unknown && options.is(Behaviour::Head, Backend::Memory) {
            return Err(Problem::Store("memory: Can't set tenant".to_owned()));
        }
        Ok(found)
    }

    fn metrics(&mut self, tenant: &str, parameters: &Parameters) -> Result<Response, Problem> {
        let options = self.options();
        let mut json = Json::default();
        match self.selected(tenant, parameters)? {
            None => json.raw(if options.is_head() { "null" } else { "[]" }),
            Some(found) if found.is_empty() && options.is_corrected() => return Ok(Response::new(204, "")),
            Some(found) => json.metrics(&found)?,
        }
        json.raw("\n");
        Ok(options.json(json.finish()))
    }

    /// Last values not older than the start, as Prometheus' text.
    fn exports(&mut self, tenant: &str, parameters: &Parameters) -> Result<Response, Problem> {
        let options = self.options();
        let window = Texts::of_target(parameters).window(self.now_ms(), options)?;
        let mut text = String::new();
        for metric in self.selected(tenant, parameters)?.unwrap_or_default() {
            let Some((_, value)) = metric.last.filter(|last| last.0 >= window.start) else {
                continue;
            };
            let name = metric.tags.get("__name__").unwrap_or(&metric.id);
            let tags = metric.tags.iter().filter(|(name, _)| *name != "__name__");
            let tags: Vec<String> = tags.map(|(name, value)| format!("{name}=\"{value}\"")).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}{{{}}} {value:.6}", tags.join(","));
        }
        let response = Response {
            content_type: "text/plain",
            ..Response::new(200, text)
        };
        Ok(options.finish(response))
    }

    /// No store of ours deletes samples. Memory and MongoDB only said that they did.
    fn delete(&mut self, tenant: &str, id: &str, parameters: &Parameters) -> Result<Response, Problem> {
        let options = self.options();
        let window = Texts::of_target(parameters).window(self.now_ms(), options)?;
        let Window { start, end, .. } = window;
        if start >= end {
            return Err(Problem::NoRange);
        }
        if options.is_corrected() || options.backend == Backend::Sqlite3 {
            return Err(Problem::Unsupported("no store of tsb deletes samples"));
        }
        Ok(options.json(match options.behaviour {
            Behaviour::Head => format!("{{\"message\":\"Deleted {id}@{tenant} [{end}-{start}]\"}}"),
            _ => "{}".to_owned(),
        }))
    }

    /// Memory and MongoDB only said that they did.
    fn delete_tags(&mut self, tenant: &str, id: &str, tags: &str) -> Response {
        let options = self.options();
        if options.is_corrected() || options.backend == Backend::Sqlite3 {
            self.shared.tags().remove(&metrics::key(tenant, id), tags);
        }
        options.json(match options.behaviour {
            Behaviour::Head => format!("{{\"message\":\"Deleted tags for {id}@{tenant}\"}}"),
            _ => "{}\n".to_owned(),
        })
    }

    /// The answer to a body that asks for something, or to samples that are applied.
    fn content(&mut self, content: Content, outcome: &RequestOutcome) -> Result<Response, Problem> {
        match content {
            Content::Samples(metrics) => self.written(metrics, outcome),
            Content::Query(query) => self.query(query),
            Content::Tags(items) => self.put_tags(items),
        }
    }

    fn written(&self, metrics: usize, outcome: &RequestOutcome) -> Result<Response, Problem> {
        let options = self.options();
        if options.behaviour == Behaviour::Mohawk0154 {
            return Ok(options.json("{}\n"));
        }
        if outcome.dropped() > 0 {
            let why = outcome
                .not_admitted
                .map_or("rejected by the store", NotAdmitted::reason);
            let dropped = outcome.dropped();
            return Err(Problem::Store(format!(
                "{dropped} of {} samples were not taken: {why}; the others are stored",
                outcome.samples + outcome.refused
            )));
        }
        Ok(options.json(match options.behaviour {
            Behaviour::Head => format!("{{\"message\":\"Received {metrics} data items\"}}"),
            _ => "{}".to_owned(),
        }))
    }

    fn query(&mut self, query: DataQuery) -> Result<Response, Problem> {
        let options = self.options();
        let is_keyed = self.bodies.route == Route::Query { is_keyed: true };
        let tenant = self.bodies.tenant.clone();
        let window = Texts::of_body(&query).window(self.now_ms(), options)?;
        let mut ids = query.ids.unwrap_or_default();
        if let Some(tags) = query
            .tags
            .filter(|tags| !tags.is_empty() && options.behaviour != Behaviour::Mohawk0154)
        {
            let filter = Filter::read(Some(&tags), options)?;
            ids.extend(self.matching(&tenant, &filter)?.into_iter().map(|metric| metric.id));
        }
        let mut json = Json::default();
        json.raw(if is_keyed { "{\"gauge\":{" } else { "[" });
        json.list(&ids, |json, id| {
            if is_keyed {
                json.string(id);
                json.raw(":");
            } else {
                json.raw("{\"id\": ");
                json.string(id);
                // A blank that 0.15.4 wrote and the last version does not.
                json.raw(if options.is_head() {
                    ", \"data\":"
                } else {
                    ", \"data\": "
                });
            }
            self.data(&metrics::key(&tenant, id), &window, json)?;
            json.raw(if is_keyed { "" } else { "}" });
            Ok(())
        })?;
        json.raw(if is_keyed { "}}" } else { "]" });
        Ok(options.json(json.finish()))
    }

    fn put_tags(&mut self, items: Vec<(String, Tags)>) -> Result<Response, Problem> {
        let options = self.options();
        let tenant = self.bodies.tenant.clone();
        let count = items.len();
        let mut table = self.shared.tags();
        for (id, tags) in items {
            table.put(metrics::key(&tenant, &id), tags)?;
        }
        Ok(options.json(match (&self.bodies.route, options.behaviour) {
            (Route::PutTags { id }, Behaviour::Head) => {
                format!("{{\"message\":\"Updated tags for {id}@{tenant}\"}}")
            }
            (_, Behaviour::Head) => format!("{{\"message\":\"Updated tags for {count} items\"}}"),
            _ => "{}\n".to_owned(),
        }))
    }
}

impl Service for HawkularService {
    fn begin(&mut self, head: &Head) -> Result<Task, Response> {
        let options = self.options();
        let route = Route::find(&head.method, &head.path, options);
        let route = route.map_err(|problem| options.error(&problem))?;
        let needs_tenant = !matches!(route, Route::Status | Route::Tenants | Route::Options);
        if head.tenant.is_empty() && needs_tenant && options.is_corrected() {
            let what = "Tenant is not specified. Use 'Hawkular-Tenant' header.";
            return Err(options.error(&Problem::unreadable(what, "")));
        }
        let task = match route {
            Route::Write | Route::Query { .. } | Route::PutTags { .. } | Route::PutAllTags => Task::Whole,
            // Its body means nothing: the client of the benchmark sends `null`.
            _ => Task::Ask,
        };
        self.bodies.route = route;
        self.bodies.tenant.clear();
        let tenant = if head.tenant.is_empty() {
            DEFAULT_TENANT
        } else {
            &head.tenant
        };
        self.bodies.tenant.push_str(tenant);
        Ok(task)
    }

    fn decoder(&mut self) -> &mut dyn Decoder {
        &mut self.bodies
    }

    fn asked(&mut self, parameters: &Parameters) -> Response {
        let options = self.options();
        self.simple(parameters)
            .unwrap_or_else(|problem| options.error(&problem))
    }

    fn end(&mut self, outcome: &RequestOutcome) -> Response {
        let options = self.options();
        let content = std::mem::replace(&mut self.bodies.content, Ok(Content::Samples(0)));
        let answered = content.and_then(|content| self.content(content, outcome));
        answered.unwrap_or_else(|problem| options.error(&problem))
    }

    fn bad(&self, status: u16, what: &str) -> Response {
        let options = self.options();
        let message = serde_json::Value::from(what);
        options.finish(match options.behaviour {
            Behaviour::Mohawk0154 => Response::text(status, format!("{status} {what}\n")),
            Behaviour::Head => Response::new(status, format!(r#"{{"code":{status},"message":{message}}}"#)),
            Behaviour::Corrected => Response::new(status, format!(r#"{{"errorMsg":{message}}}"#)),
        })
    }
}

impl Bodies {
    fn read(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<Content, Problem> {
        let options = self.shared.options;
        match &self.route {
            Route::Query { .. } => {
                let query: DataQuery = body::small(bytes, options)?;
                self.check_ids(query.ids.iter().flatten())?;
                Ok(Content::Query(query))
            }
            Route::PutTags { id } => {
                let id = id.clone();
                let tags: Option<Tags> = body::small(bytes, options)?;
                let tags = tags.unwrap_or_default();
                self.check_tags(&tags)?;
                Ok(Content::Tags(vec![(id, tags)]))
            }
            Route::PutAllTags => {
                let items: Option<Vec<TaggedItem>> = body::small(bytes, options)?;
                let items = items.unwrap_or_default();
                self.check_ids(items.iter().map(|item| &item.id))?;
                let items = items.into_iter().map(|item| (item.id, item.tags));
                // The last version leaves out those with bad tags, and says nothing.
                let kept = items.map(|(id, tags)| match self.check_tags(&tags) {
                    Err(problem) if options.is_corrected() => Err(problem),
                    Err(_) => Ok(None),
                    Ok(()) => Ok(Some((id, tags))),
                });
                let kept: Result<Vec<_>, Problem> = kept.collect();
                Ok(Content::Tags(kept?.into_iter().flatten().collect()))
            }
            _ => self.samples(bytes, sink),
        }
    }

    fn check_ids<'a>(&self, mut ids: impl Iterator<Item = &'a String>) -> Result<(), Problem> {
        let is_good = ids.all(|id| is_allowed(id, self.shared.options));
        is_good.then_some(()).ok_or(Problem::BadId { is_post: true })
    }

    fn check_tags(&self, tags: &Tags) -> Result<(), Problem> {
        let mut texts = tags.iter().flat_map(|(name, value)| [name, value]);
        let is_good = texts.all(|text| is_allowed(text, self.shared.options));
        is_good.then_some(()).ok_or(Problem::BadId { is_post: false })
    }

    /// Passes on the samples of a body, of which no id is bad.
    fn samples(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<Content, Problem> {
        let options = self.shared.options;
        let items = body::samples(bytes, options)?;
        for item in &items {
            self.check_ids(item.id.iter())?;
            if options.is_corrected() {
                check(item)?;
            } else if options.is_head() {
                check_kinds(item)?;
            }
        }
        if items.is_empty() && options.is_corrected() {
            return Err(Problem::unreadable("a body has no samples", ""));
        }
        let mut newest = i64::MIN;
        for item in &items {
            newest = newest.max(self.item(item, sink));
        }
        self.lookup.flush(sink);
        self.shared.wrote(newest);
        Ok(Content::Samples(items.len()))
    }

    /// Passes on the samples of one metric; returns the newest time in milliseconds. What is no
    /// number becomes 0 as in Mohawk, and is counted.
    fn item(&mut self, item: &Item, sink: &mut dyn Sink) -> i64 {
        let id = item.id.as_deref().unwrap_or_default();
        let mut newest = i64::MIN;
        for point in item.data.iter().flatten() {
            let (millis, value) = (point.timestamp.millis(), point.value.value());
            if millis.is_none() || value.is_none() {
                let what = "a time or a value is no number, and is taken as 0";
                let bytes = id.as_bytes();
                sink.malformed(&Malformed { what, bytes });
            }
            let millis = millis.unwrap_or(0);
            let Some(nanos) = millis.checked_mul(1_000_000) else {
                let what = "a timestamp is beyond the year 2262";
                let bytes = id.as_bytes();
                sink.malformed(&Malformed { what, bytes });
                continue;
            };
            newest = newest.max(millis);
            self.push(id, Timestamp(nanos), value.unwrap_or(0.0), sink);
        }
        newest
    }

    fn push(&mut self, id: &str, at: Timestamp, value: f64, sink: &mut dyn Sink) {
        self.name.clear();
        self.name.extend_from_slice(self.tenant.as_bytes());
        // No tenant has one: it is a value of a header.
        self.name.push(b'\n');
        self.name.extend_from_slice(id.as_bytes());
        let tenant = &self.tenant;
        let entry = self.lookup.entry(&self.name, || Ok(metrics::key(tenant, id)), sink);
        if let Ok((_, series)) = entry {
            self.lookup.push(series, at, value, sink);
        }
    }
}

/// Refuses what Go's decoder refuses, and times that no timestamp can have.
fn check_kinds(item: &Item) -> Result<(), Problem> {
    for point in item.data.iter().flatten() {
        if [point.timestamp, point.value].contains(&body::Scalar::Other) {
            return Err(Problem::unreadable("a number is neither a number nor a string", ""));
        }
        let millis = point.timestamp.millis().unwrap_or(0);
        if millis.checked_mul(1_000_000).is_none() {
            return Err(Problem::unreadable("a timestamp is beyond the year 2262", ""));
        }
    }
    Ok(())
}

/// Refuses an item with anything that Mohawk takes as 0, or that no `f64` holds.
fn check(item: &Item) -> Result<(), Problem> {
    let id = item.id.as_deref().unwrap_or_default();
    if id.is_empty() {
        return Err(Problem::unreadable("a metric has no id", ""));
    }
    for point in item.data.iter().flatten() {
        if point
            .timestamp
            .millis()
            .and_then(|millis| millis.checked_mul(1_000_000))
            .is_none()
        {
            return Err(Problem::unreadable("a timestamp is not a number of milliseconds", id));
        }
        let is_held = match point.value {
            body::Scalar::Integer(integer) => integer as f64 as i64 == integer && integer != i64::MAX,
            body::Scalar::Float(_) => true,
            _ => false,
        };
        if !is_held {
            return Err(Problem::unreadable("a value is no number that an f64 holds", id));
        }
    }
    Ok(())
}

impl Decoder for Bodies {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        self.content = self.read(bytes, sink);
        if let Err(problem) = &self.content {
            if let Some(what) = problem.counted() {
                sink.malformed(&Malformed { what, bytes });
            }
            // This one never looked at the errors of its decoder.
            let is_json = matches!(problem, Problem::Unreadable(..));
            if is_json && self.shared.options.behaviour == Behaviour::Mohawk0154 {
                self.content = Ok(match &self.route {
                    Route::Query { .. } => Content::Query(DataQuery::default()),
                    Route::PutTags { id } => Content::Tags(vec![(id.clone(), Tags::new())]),
                    _ => Content::Samples(0),
                });
            }
        }
        Ok(bytes.len())
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, _rest: &[u8], _sink: &mut dyn Sink) {}
}
