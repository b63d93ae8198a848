//! Decodes a body to samples.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::fast_path;
use crate::series::SeriesKey;
use crate::time::{Clock, Timestamp};
use crate::wire::cached_timestamp::CachedTimestamp;
use crate::wire::name_lookup::NameLookup;
use crate::wire::number::{WINDOW, window_or_copy};
use crate::wire::put::{DEFAULT_TAG, is_allowed};
use crate::wire::{Decoder, Fatal, Malformed, Room, Sequence, Sink};

/// Decodes bodies to batches: each call of [`Decoder::decode`] gets one.
///
/// Metrics before an invalid one are passed on, as in the server; the invalid one and all after it
/// are not.
#[derive(Debug)]
pub struct KairosdbJsonDecoder {
    lookup: NameLookup,
    /// The time of a point, from its bracket to its comma.
    stamp: CachedTimestamp,
    name: Vec<u8>,
}

/// One object of a body.
#[derive(Debug, Deserialize)]
struct Metric {
    name: Option<String>,
    #[serde(default)]
    datapoints: Vec<(Number, Number)>,
    timestamp: Option<Number>,
    value: Option<Number>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

impl KairosdbJsonDecoder {
    /// A decoder for one client.
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            lookup: NameLookup::new(&**clock),
            stamp: CachedTimestamp::new(),
            name: Vec::new(),
        }
    }

    /// Charges the memory of names to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.lookup.within(room, 0);
        self
    }

    fn metric(&mut self, metric: &Metric, sink: &mut dyn Sink) -> Result<(), &'static str> {
        metric.check()?;
        self.name.clear();
        self.name.extend_from_slice(metric.name().as_bytes());
        for (tag, value) in &metric.tags {
            for (separator, text) in [(b' ', tag), (b'=', value)] {
                self.name.push(separator);
                self.name.extend_from_slice(text.as_bytes());
            }
        }
        let single = metric.timestamp.iter().zip(&metric.value);
        let several = metric.datapoints.iter().map(|(at, value)| (at, value));
        let samples = several.chain(single).map(|(at, value)| sample(at, value));
        let samples = samples.collect::<Result<Vec<_>, _>>()?;
        if samples.is_empty() {
            return Err("a metric has no timestamp or no value");
        }
        let (_, id) = self.lookup.entry(&self.name, || metric.key(), sink)?;
        for (at, value) in samples {
            self.lookup.push(id, at, value, sink);
        }
        Ok(())
    }

    /// Decodes the metrics of the common form at the beginning of an array. Returns their number,
    /// and whether the body ends after them.
    fn common_metrics(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> (usize, bool) {
        let (mut at, mut taken) = (1, 0);
        if bytes.first() != Some(&b'[') {
            return (0, false);
        }
        let mut copy = [0; WINDOW];
        while let Some(window) = window_or_copy(bytes, at, &mut copy) {
            if self.lookup.is_blind() {
                self.look_ahead(bytes, at);
            }
            let Some(metric) = fast_path::read(window, &mut self.stamp) else {
                break;
            };
            set_name(
                &mut self.name,
                &window[metric.name.clone()],
                &window[metric.tags.clone()],
            );
            let known = self.lookup.find(&self.name);
            let Some(entry) = known.or_else(|| self.meet(&window[..metric.end], sink)) else {
                break;
            };
            self.lookup.push(self.lookup.id(entry), metric.at, metric.value, sink);
            taken += 1;
            match bytes.get(at + metric.end..) {
                Some([b',', ..]) => at += metric.end + 1,
                Some([b']', rest @ ..]) => return (taken, rest.trim_ascii_start().is_empty()),
                _ => break,
            }
        }
        (taken, false)
    }

    /// Announces the names of upcoming metrics.
    #[inline(never)]
    fn look_ahead(&mut self, bytes: &[u8], mut at: usize) {
        let mut copy = [0; WINDOW];
        while let Some(window) = window_or_copy(bytes, at, &mut copy)
            && let Some(metric) = fast_path::read(window, &mut self.stamp)
        {
            set_name(&mut self.name, &window[metric.name], &window[metric.tags]);
            if !self.lookup.announce(&self.name) {
                break;
            }
            at += metric.end + 1;
        }
        self.lookup.announced();
    }

    /// Asks the sink about a new name of a metric in the common form; `None` if the metric needs
    /// the exact path.
    #[inline(never)]
    fn meet(&mut self, object: &[u8], sink: &mut dyn Sink) -> Option<usize> {
        // With escapes, the text may end elsewhere than it seems.
        if memchr::memchr(b'\\', object).is_some() {
            return None;
        }
        let metric: Metric = serde_json::from_slice(object).ok()?;
        metric.check().ok()?;
        let (entry, _) = self.lookup.entry(&self.name, || metric.key(), sink).ok()?;
        entry
    }
}

/// Sets the lookup key of a metric in the common form: its text. The quote in it distinguishes it
/// from the keys of [`KairosdbJsonDecoder::metric`].
#[inline(always)]
fn set_name(name: &mut Vec<u8>, text: &[u8], tags: &[u8]) {
    name.clear();
    name.extend_from_slice(text);
    name.push(b'"');
    name.extend_from_slice(tags);
}

impl Metric {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Checks the name and the tags before they are looked up.
    fn check(&self) -> Result<(), &'static str> {
        if self.name().is_empty() {
            return Err("a metric has no name");
        }
        if self.tags.is_empty() {
            return Err("a metric has no tag");
        }
        if self.tags.iter().any(|(tag, value)| tag.is_empty() || value.is_empty()) {
            return Err("a tag or its value is empty");
        }
        Ok(())
    }

    fn key(&self) -> Result<SeriesKey, &'static str> {
        let mut texts = self.tags.iter().flat_map(|(tag, value)| [tag.as_str(), value]);
        let is_allowed = |text: &str| text.bytes().all(is_allowed);
        if !is_allowed(self.name()) || !texts.all(is_allowed) {
            return Err("a name has a character that is not allowed");
        }
        let (label, value) = DEFAULT_TAG;
        if self.tags.len() == 1 && self.tags.get(label).is_some_and(|found| found == value) {
            return Ok(SeriesKey::new(self.name()));
        }
        Ok(SeriesKey::with_labels(self.name(), self.tags.clone()))
    }
}

fn sample(at: &Number, value: &Number) -> Result<(Timestamp, f64), &'static str> {
    const RANGE: &str = "a timestamp is not a number of milliseconds";
    let nanos = at
        .as_i64()
        .and_then(|millis| millis.checked_mul(1_000_000))
        .ok_or(RANGE)?;
    let held = value.as_f64().ok_or("a value is not a number")?;
    let is_same = value
        .as_i64()
        .is_none_or(|integer| held as i64 == integer && integer != i64::MAX);
    if !is_same || (value.as_i64().is_none() && value.is_u64()) {
        return Err("an integer that no f64 holds is not supported here");
    }
    Ok((Timestamp(nanos), held))
}

/// Walks through a body and passes on metric by metric.
struct Body<'a> {
    decoder: &'a mut KairosdbJsonDecoder,
    sink: &'a mut dyn Sink,
    /// Number of metrics at its beginning that were passed on already.
    taken: usize,
    /// What is wrong with the metric that ended the walk.
    problem: &'a mut Option<&'static str>,
}

impl Body<'_> {
    fn take<E: Error>(&mut self, metric: &Metric) -> Result<(), E> {
        self.decoder.metric(metric, self.sink).map_err(|what| {
            *self.problem = Some(what);
            E::custom(what)
        })
    }
}

impl<'de> Visitor<'de> for Body<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a metric or an array of metrics")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut metrics: A) -> Result<(), A::Error> {
        for _ in 0..self.taken {
            metrics.next_element::<IgnoredAny>()?;
        }
        while let Some(metric) = metrics.next_element::<Metric>()? {
            self.take(&metric)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, fields: A) -> Result<(), A::Error> {
        let metric = Metric::deserialize(MapAccessDeserializer::new(fields))?;
        self.take(&metric)
    }
}

impl Decoder for KairosdbJsonDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        let (taken, is_whole) = self.common_metrics(bytes, sink);
        if is_whole {
            self.lookup.flush(sink);
            return Ok(bytes.len());
        }
        let mut problem = None;
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let body = Body {
            decoder: &mut *self,
            sink: &mut *sink,
            taken,
            problem: &mut problem,
        };
        let walked = json.deserialize_any(body).and_then(|()| json.end());
        self.lookup.flush(sink);
        if walked.is_err() {
            let what = problem.unwrap_or("a body is not JSON of the expected form");
            sink.malformed(&Malformed { what, bytes });
        }
        Ok(bytes.len())
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, _rest: &[u8], _sink: &mut dyn Sink) {}
}
