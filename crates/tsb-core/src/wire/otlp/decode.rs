//! Decodes a body to samples.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{MAX_NAME, NO_VALUE, SCOPE_LABEL};
use crate::series::SeriesKey;
use crate::time::{Clock, Timestamp};
use crate::wire::name_lookup::NameLookup;
use crate::wire::protobuf::{Field, Fields, NotProtobuf, push_bytes};
use crate::wire::{Decoder, Fatal, Malformed, Room, Sequence, Sink};

/// The numbers of the attributes in the name by which a series is remembered.
const RESOURCE: u8 = 1;
const SCOPE: u8 = 2;
const METRIC: u8 = 3;
const POINT: u8 = 7;

/// Decodes bodies to batches: each call of [`Decoder::decode`] gets one.
///
/// An invalid data point is left out, and reported; the others of its body are passed on. Where a
/// body stops being protobuf, it ends.
#[derive(Debug)]
pub struct OtlpDecoder {
    lookup: NameLookup,
    /// What names the current series: resource, scope, metric, attributes of the point, each as a
    /// field.
    name: Vec<u8>,
    is_broken: bool,
}

impl OtlpDecoder {
    /// A decoder for one client.
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            lookup: NameLookup::new(&**clock),
            name: Vec::new(),
            is_broken: false,
        }
    }

    /// Charges the memory of names to the budget that all connections of a listener share.
    #[must_use]
    pub fn within(mut self, room: &Room) -> Self {
        self.lookup.within(room, 0);
        self
    }

    /// Whether the last body was not protobuf.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn request(&mut self, message: &[u8], sink: &mut dyn Sink) -> Result<(), NotProtobuf> {
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            if let (1, Field::Bytes(resource_metrics)) = field {
                self.resource_metrics(resource_metrics, sink)?;
            }
        }
        Ok(())
    }

    /// The resource may stand behind its metrics, so it is looked for first.
    fn resource_metrics(&mut self, message: &[u8], sink: &mut dyn Sink) -> Result<(), NotProtobuf> {
        self.name.clear();
        if let Some(resource) = find(message, 1)? {
            let mut attributes = Fields::new(resource);
            while let Some(field) = attributes.next()? {
                if let (1, Field::Bytes(pair)) = field {
                    push_bytes(RESOURCE, pair, &mut self.name);
                }
            }
        }
        let start = self.name.len();
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            if let (2, Field::Bytes(scope_metrics)) = field {
                self.name.truncate(start);
                self.scope_metrics(scope_metrics, sink)?;
            }
        }
        Ok(())
    }

    fn scope_metrics(&mut self, message: &[u8], sink: &mut dyn Sink) -> Result<(), NotProtobuf> {
        let name = find(message, 1)?.map_or(Ok(None), |scope| find(scope, 1))?;
        push_bytes(SCOPE, name.unwrap_or_default(), &mut self.name);
        let start = self.name.len();
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            if let (2, Field::Bytes(metric)) = field {
                self.name.truncate(start);
                push_bytes(METRIC, find(metric, 1)?.unwrap_or_default(), &mut self.name);
                self.metric(metric, sink)?;
            }
        }
        Ok(())
    }

    fn metric(&mut self, message: &[u8], sink: &mut dyn Sink) -> Result<(), NotProtobuf> {
        let start = self.name.len();
        let mut fields = Fields::new(message);
        while let Some((number, field)) = fields.next()? {
            // A gauge, a sum, a histogram, an exponential one, a summary; their points are field 1.
            let (5 | 7 | 9..=11, Field::Bytes(kind)) = (number, field) else {
                continue;
            };
            let mut points = Fields::new(kind);
            while let Some(field) = points.next()? {
                let (1, Field::Bytes(point)) = field else { continue };
                let taken = match number {
                    5 | 7 => self.point(point, start, sink)?,
                    11 => Err("a summary is not supported here"),
                    _ => Err("a histogram is not supported here"),
                };
                if let Err(what) = taken {
                    sink.malformed(&Malformed { what, bytes: point });
                }
            }
        }
        Ok(())
    }

    /// A `NumberDataPoint` of the metric whose name ends at `start`.
    #[inline(always)]
    fn point(
        &mut self,
        message: &[u8],
        start: usize,
        sink: &mut dyn Sink,
    ) -> Result<Result<(), &'static str>, NotProtobuf> {
        self.name.truncate(start);
        let (mut nanos, mut value) = (0, Err("a data point has no value"));
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            match field {
                (7, Field::Bytes(pair)) => push_bytes(POINT, pair, &mut self.name),
                (3, Field::Fixed64(time)) => nanos = time,
                (4, Field::Fixed64(bits)) => value = Ok(f64::from_bits(bits)),
                (6, Field::Fixed64(bits)) => value = whole(bits as i64),
                (8, Field::Varint(flags)) if flags & 1 == 1 => value = Ok(f64::from_bits(NO_VALUE)),
                _ => {}
            }
        }
        Ok(self.sample(nanos, value, sink))
    }

    #[inline(always)]
    fn sample(
        &mut self,
        nanos: u64,
        value: Result<f64, &'static str>,
        sink: &mut dyn Sink,
    ) -> Result<(), &'static str> {
        let value = value?;
        let at = match i64::try_from(nanos) {
            Ok(0) => return Err("a data point has no time"),
            Ok(nanos) => Timestamp(nanos),
            Err(_) => return Err("a time is behind the year 2262"),
        };
        let (_, id) = self.lookup.entry(&self.name, || key(&self.name), sink)?;
        self.lookup.push(id, at, value, sink);
        Ok(())
    }
}

/// The last field of bytes with this number.
fn find(message: &[u8], wanted: u32) -> Result<Option<&[u8]>, NotProtobuf> {
    let (mut fields, mut found) = (Fields::new(message), None);
    while let Some(field) = fields.next()? {
        if let (number, Field::Bytes(bytes)) = field
            && number == wanted
        {
            found = Some(bytes);
        }
    }
    Ok(found)
}

fn whole(integer: i64) -> Result<f64, &'static str> {
    let value = integer as f64;
    if value as i64 == integer && integer != i64::MAX {
        return Ok(value);
    }
    Err("an integer that no f64 holds is not supported here")
}

/// The series of its parts. An attribute of the point hides one of the resource.
///
/// # Errors
/// What is wrong with them.
fn key(name: &[u8]) -> Result<SeriesKey, &'static str> {
    if name.len() > MAX_NAME {
        return Err("a name with its attributes is longer than 32 KiB");
    }
    let form = |NotProtobuf| "an attribute is not valid protobuf";
    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| "a name is not UTF-8");
    let (mut metric, mut labels) = ("", BTreeMap::new());
    let mut parts = Fields::new(name);
    while let Some(part) = parts.next().map_err(form)? {
        let (part, Field::Bytes(bytes)) = part else { continue };
        if part == u32::from(METRIC) {
            metric = text(bytes)?;
        } else if part != u32::from(SCOPE) {
            let label = text(find(bytes, 1).map_err(form)?.unwrap_or_default())?;
            let value = find(bytes, 2).map_err(form)?.unwrap_or_default();
            if label.is_empty() {
                return Err("an attribute has no name");
            }
            labels.insert(label, attribute(value).map_err(form)??);
        } else if !bytes.is_empty() {
            labels.insert(SCOPE_LABEL, text(bytes)?.to_owned());
        }
    }
    if metric.is_empty() {
        return Err("a metric has no name");
    }
    Ok(SeriesKey::with_labels(metric, labels))
}

/// An `AnyValue` as text.
fn attribute(message: &[u8]) -> Result<Result<String, &'static str>, NotProtobuf> {
    let (mut fields, mut found) = (Fields::new(message), Ok(String::new()));
    while let Some(field) = fields.next()? {
        found = match field {
            (1, Field::Bytes(text)) => match std::str::from_utf8(text) {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => Err("a name is not UTF-8"),
            },
            (2, Field::Varint(truth)) => Ok((truth != 0).to_string()),
            (3, Field::Varint(integer)) => Ok((integer as i64).to_string()),
            (4, Field::Fixed64(bits)) => Ok(f64::from_bits(bits).to_string()),
            _ => Err("an attribute that is a list or bytes is not supported here"),
        };
    }
    Ok(found)
}

impl Decoder for OtlpDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        self.is_broken = self.request(bytes, sink).is_err();
        self.lookup.flush(sink);
        if self.is_broken {
            let what = "a body is not an export of metrics in protobuf";
            sink.malformed(&Malformed { what, bytes });
        }
        Ok(bytes.len())
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, _rest: &[u8], _sink: &mut dyn Sink) {}
}
