//! Which metrics there are, their tags, and patterns that tags match.

use std::collections::{BTreeMap, BTreeSet};

use regex_lite::{Regex, RegexBuilder};

use super::behaviour::{Backend, HawkularOptions, Problem};
use super::body::Tags;
use super::data;
use super::data::{Item, SLOT_MS};
use super::route::is_allowed;
use crate::series::SeriesKey;
use crate::time::Timestamp;
use crate::wire::Budget;
use crate::wire::SampleReader;

/// The label of a series that holds its tenant.
const TENANT: &str = "tenant";

/// The tenant of requests that name none; its series have no label.
pub(super) const DEFAULT_TENANT: &str = "_ops";

/// Memory that a compiled pattern may take, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// Bytes that a tag takes beside its text, about.
const BESIDE_TEXT: usize = 96;

/// The series of a metric.
pub(super) fn key(tenant: &str, id: &str) -> SeriesKey {
    if tenant == DEFAULT_TENANT {
        return SeriesKey::new(id);
    }
    SeriesKey::with_labels(id, [(TENANT, tenant)])
}

/// The tenant of a series; `None` if it has labels that are not of this interface.
fn tenant(key: &SeriesKey) -> Option<&str> {
    match key.labels() {
        [] => Some(DEFAULT_TENANT),
        [(label, tenant)] if label == TENANT => Some(tenant),
        _ => None,
    }
}

/// The tags of all metrics, within a budget.
#[derive(Debug)]
pub(super) struct TagTable {
    tags: BTreeMap<SeriesKey, Tags>,
    budget: Budget,
}

impl TagTable {
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            tags: BTreeMap::new(),
            budget: budget.clone(),
        }
    }

    /// Sets tags; a metric without any is known from now on, too.
    pub(super) fn put(&mut self, key: SeriesKey, new: Tags) -> Result<(), Problem> {
        let mut bytes = 0;
        if !self.tags.contains_key(&key) {
            bytes += key.heap_bytes() + BESIDE_TEXT;
        }
        for (name, value) in &new {
            // A value that is replaced stays paid for.
            bytes += name.len() + value.len() + BESIDE_TEXT;
        }
        if !self.budget.take(bytes) {
            return Err(Problem::Store("the memory for names is used up".to_owned()));
        }
        self.tags.entry(key).or_default().extend(new);
        Ok(())
    }

    pub(super) fn remove(&mut self, key: &SeriesKey, names: &str) {
        if let Some(tags) = self.tags.get_mut(key) {
            tags.retain(|name, value| {
                let stays = !names.split(',').any(|removed| removed == name);
                if !stays {
                    self.budget.give_back(name.len() + value.len() + BESIDE_TEXT);
                }
                stays
            });
        }
    }
}

/// One metric of a list.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) id: String,
    pub(super) tags: Tags,
    /// Its newest sample, where a list shows it.
    pub(super) last: Option<Item>,
}

/// Patterns that the tags of a metric must all match.
#[derive(Debug, Default)]
pub(super) struct Filter(Vec<(String, Regex)>);

impl Filter {
    /// Parses `name:pattern,name:pattern`; Mohawk ignores what has another form.
    pub(super) fn read(text: Option<&str>, options: HawkularOptions) -> Result<Self, Problem> {
        let mut patterns = Vec::new();
        for tag in text.into_iter().flat_map(|text| text.split(',')) {
            let mut parts = tag.split(':');
            let (Some(name), Some(pattern), None) = (parts.next(), parts.next(), parts.next()) else {
                if options.is_corrected() {
                    return Err(Problem::unreadable("a tag is not NAME:PATTERN", tag));
                }
                continue;
            };
            if !is_allowed(name, options) || !is_allowed(pattern, options) {
                return Err(Problem::BadId { is_post: false });
            }
            let compiled = RegexBuilder::new(&format!("^{pattern}$"))
                .size_limit(PATTERN_BYTES)
                .build();
            let compiled =
                compiled.map_err(|_| Problem::unreadable("a tag's value is no regular expression", pattern))?;
            patterns.push((name.to_owned(), compiled));
        }
        Ok(Self(patterns))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where a tag is missing, memory and SQLite match the empty text, but memory only if the
    /// metric has another tag.
    fn matches(&self, tags: &Tags, options: HawkularOptions) -> bool {
        let is_strict = options.is_corrected()
            || options.backend == Backend::Mongo
            || (options.backend == Backend::Memory && tags.is_empty());
        let missing = if is_strict { None } else { Some("") };
        self.0.iter().all(|(name, pattern)| {
            let value = tags.get(name).map(String::as_str).or(missing);
            value.is_some_and(|value| pattern.is_match(value))
        })
    }
}

/// The metrics of a tenant that match, by their ids.
pub(super) fn metrics(
    reader: &mut dyn SampleReader,
    table: &TagTable,
    tenant: &str,
    filter: &Filter,
    options: HawkularOptions,
) -> Result<Vec<Metric>, Problem> {
    let none = Tags::new();
    let mut metrics = Vec::new();
    for (key, newest) in known(reader, table, options)? {
        let tags = table.tags.get(&key).unwrap_or(&none);
        if self::tenant(&key) != Some(tenant) || !filter.matches(tags, options) {
            continue;
        }
        metrics.push(Metric {
            last: last(reader, &key, newest, options)?,
            id: key.name().to_owned(),
            tags: tags.clone(),
        });
    }
    Ok(metrics)
}

/// All tenants that have metrics.
pub(super) fn tenants(
    reader: &mut dyn SampleReader,
    table: &TagTable,
    options: HawkularOptions,
) -> Result<BTreeSet<String>, Problem> {
    let known = known(reader, table, options)?;
    Ok(known.keys().filter_map(tenant).map(str::to_owned).collect())
}

/// All series in the order of their keys, with the time of their newest sample. In the memory
/// backend a read makes a metric; elsewhere it takes a sample or a tag.
fn known(
    reader: &mut dyn SampleReader,
    table: &TagTable,
    options: HawkularOptions,
) -> Result<BTreeMap<SeriesKey, Option<Timestamp>>, Problem> {
    let keys = reader.keys();
    let newest = data::newest(reader, &keys)?;
    let all = !options.is_corrected() && options.backend == Backend::Memory;
    let mut known: BTreeMap<SeriesKey, Option<Timestamp>> = keys
        .into_iter()
        .zip(newest)
        .filter(|(_, newest)| all || newest.is_some())
        .collect();
    for key in table.tags.keys() {
        known.entry(key.clone()).or_default();
    }
    Ok(known)
}

/// The last value that a list shows: none in SQLite and MongoDB, and one at time 0 where memory
/// has none.
fn last(
    reader: &mut dyn SampleReader,
    key: &SeriesKey,
    newest: Option<Timestamp>,
    options: HawkularOptions,
) -> Result<Option<Item>, Problem> {
    if !options.is_corrected() && options.backend != Backend::Memory {
        return Ok(None);
    }
    let Some(newest) = newest else {
        return Ok((!options.is_corrected()).then_some((0, 0.0)));
    };
    // From the beginning of its slot: another sample of the slot may have replaced it meanwhile.
    let at = newest.as_nanos().div_euclid(1_000_000);
    data::last(reader, key, at.div_euclid(SLOT_MS) * SLOT_MS)
}
