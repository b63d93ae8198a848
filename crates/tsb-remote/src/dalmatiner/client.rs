//! The client as a store.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, RwLock};

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::wire::Encoder;
use tsb_core::wire::dalmatiner::{BUCKET_LABEL, DEFAULT_BUCKET, DalmatinerEncoder, Form, elements};
use tsb_core::{Batch, BatchBuf, Catalog, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::{Keys, lock, read, write};
use tsb_stores::store::{
    Ack, Capabilities, Exactness, Position, Query, Reason, Refusals, Scope, Stats, Store, TimeRange, Visitor,
};

use super::connection::Connection;
use super::metric::{key_of, name_of};
use super::points::{PointReader, error_of, get, metrics, of_bucket};
use super::{DalmatinerOptions, PORT};
use crate::acks::Acks;
use crate::{Address, host_with_port};

/// Points of one request. Where there is any point, an answer has those before it too, unset; where
/// there is none, it is 30 bytes.
const POINTS_MAX: u64 = 1 << 17;
/// Requests that are sent before their answers are read.
const REQUESTS: usize = 64;
/// A read without an end looks this many seconds beyond the moment at which the client was opened.
const AHEAD_S: i64 = 60;

/// A client of one bucket.
pub struct DalmatinerClient {
    bucket: String,
    options: DalmatinerOptions,
    keys: RwLock<Keys>,
    /// The key of each number, with its bucket.
    catalog: RwLock<Catalog>,
    writer: Mutex<Writer>,
    reader: Mutex<Connection>,
    /// The seconds that a read without bounds covers.
    span: Mutex<Range<i64>>,
    /// The second of the newest point of each number, when it was last asked for: older ones are
    /// not read again for it.
    newest: Mutex<Vec<Option<i64>>>,
    acks: Acks,
}

/// The connection that is written to.
struct Writer {
    connection: Connection,
    encoder: OpenEncoder,
    bytes: Vec<u8>,
}

/// An encoder of one connection.
struct OpenEncoder {
    encoder: DalmatinerEncoder,
    /// Series that it knows.
    series: usize,
}

impl OpenEncoder {
    fn new(catalog: &Catalog) -> Result<Self> {
        let encoder = DalmatinerEncoder::new(Form::Stream, catalog);
        Ok(Self {
            encoder: encoder.map_err(|error| spec_error(error.to_string()))?.rounding(),
            series: catalog.len(),
        })
    }
}

impl DalmatinerClient {
    /// Connects, and asks for the resolution of the bucket.
    ///
    /// # Errors
    /// As [`open`](super::open).
    pub fn connect(address: &Address, options: &DalmatinerOptions) -> Result<Self> {
        let host = host_with_port(address.hosts(), PORT);
        let connection = || Connection::new(host.clone(), options.timeout);
        let now_s = MonotonicClock::new().wall().as_secs();
        let client = Self {
            bucket: address.place().to_owned(),
            options: options.clone(),
            keys: RwLock::new(Keys::new(Vec::new(), options.max_series)),
            catalog: RwLock::default(),
            writer: Mutex::new(Writer {
                connection: connection(),
                encoder: OpenEncoder::new(&Catalog::default())?,
                bytes: Vec::new(),
            }),
            reader: Mutex::new(connection()),
            span: Mutex::new(now_s.saturating_sub_unsigned(options.back.as_secs())..now_s + AHEAD_S),
            newest: Mutex::default(),
            acks: Acks::default(),
        };
        client.check_bucket()?;
        Ok(client)
    }

    /// Refuses a bucket whose points are not seconds.
    fn check_bucket(&self) -> Result<()> {
        let mut resolution = None;
        let request = of_bucket(7, self.bucket.as_bytes());
        lock(&self.reader).ask(&[request], &mut |_, frame| {
            let head = frame.split_first_chunk::<8>().filter(|_| frame.len() >= 24);
            let (head, _) = head.ok_or_else(|| {
                error_of(frame).unwrap_or_else(|| "what it says of the bucket is not understood".to_owned())
            })?;
            resolution = Some(u64::from_be_bytes(*head));
            Ok(false)
        })?;
        match resolution {
            Some(1_000) => Ok(()),
            other => Err(spec_error(format!(
                "the bucket {} has a point each {} ms, and this client writes one per second",
                self.bucket,
                other.unwrap_or_default()
            ))),
        }
    }

    /// The series of the bucket.
    ///
    /// # Errors
    /// As [`open`](super::open).
    pub fn series(&self) -> Result<Vec<SeriesKey>> {
        let mut found = Vec::new();
        let request = of_bucket(1, self.bucket.as_bytes());
        lock(&self.reader).ask(&[request], &mut |_, frame| {
            found.extend(metrics(frame)?.into_iter().filter_map(key_of));
            Ok(false)
        })?;
        Ok(found)
    }

    /// The key on the wire, where its bucket is a label.
    fn wire_key(&self, key: &SeriesKey) -> Result<SeriesKey> {
        let name = SeriesKey::new(name_of(key));
        elements(&name).map_err(|why| spec_error(format!("{key} cannot be named: {why}")))?;
        Ok(if self.bucket == DEFAULT_BUCKET {
            name
        } else {
            SeriesKey::with_labels(name.name(), [(BUCKET_LABEL, self.bucket.as_str())])
        })
    }

    fn unsupported(&self, what: &'static str) -> Error {
        Error::Unsupported {
            store: self.to_string(),
            what,
        }
    }

    /// Encodes and sends a batch whose ids are numbers.
    fn send(&self, batch: &Batch<'_>) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut writer = lock(&self.writer);
        let Writer {
            connection,
            encoder,
            bytes,
        } = &mut *writer;
        let catalog = read(&self.catalog);
        if !connection.is_open() || encoder.series < catalog.len() {
            // A connection begins in command mode, and so does an encoder; one in stream mode knows
            // no more names than it began with.
            connection.finish();
            *encoder = OpenEncoder::new(&catalog)?;
        }
        drop(catalog);
        bytes.clear();
        encoder.encoder.encode(batch, bytes);
        connection.write(bytes)
    }

    /// Widens what a read without bounds covers.
    fn widen(&self, batch: &Batch<'_>) {
        let mut span = lock(&self.span);
        for index in 0..batch.len() {
            let second = batch.time(index).as_secs();
            span.start = span.start.min(second);
            span.end = span.end.max(second + 1);
        }
    }

    /// Reads the points of numbers within whole seconds of each. `take` gets the place of the number
    /// with each point; those of one come in ascending order, and before those of the next.
    fn points(&self, asked: &[(u32, Range<i64>)], take: &mut dyn FnMut(usize, Timestamp, f64)) -> Result<()> {
        let mut parts = Vec::new();
        for (place, (number, seconds)) in asked.iter().enumerate() {
            let metric = self.metric(*number)?;
            let mut from = seconds.start.max(0);
            while from < seconds.end {
                let count = (seconds.end - from).cast_unsigned().min(POINTS_MAX) as u32;
                let request = get(self.bucket.as_bytes(), &metric, from.cast_unsigned(), count);
                parts.push((place, from, count, request));
                from += i64::from(count);
            }
        }
        let mut connection = lock(&self.reader);
        for parts in parts.chunks(REQUESTS) {
            let requests: Vec<Vec<u8>> = parts.iter().map(|(.., request)| request.clone()).collect();
            let mut readers: Vec<PointReader> = parts.iter().map(|(_, _, count, _)| PointReader::new(*count)).collect();
            connection.ask(&requests, &mut |part, frame| {
                let (place, from, ..) = parts[part];
                readers[part].frame(frame, &mut |point, value| {
                    take(place, Timestamp::from_secs(from + point as i64), value);
                })
            })?;
        }
        Ok(())
    }

    fn metric(&self, number: u32) -> Result<Vec<u8>> {
        let catalog = read(&self.catalog);
        let id = SeriesId(number);
        let key = catalog.key(id).ok_or(Error::UnknownSeries { id })?;
        elements(key).map_err(|why| spec_error(why.to_owned()))
    }

    /// The whole seconds of a range that are read.
    fn seconds(&self, range: TimeRange) -> Range<i64> {
        let span = lock(&self.span).clone();
        let second = SECOND_NS as i64;
        let up = |at: Timestamp| at.0.div_euclid(second) + i64::from(at.0.rem_euclid(second) > 0);
        // A bound that was given is kept; one that is open is that of the span.
        let start = if range.start == Timestamp::MIN {
            span.start
        } else {
            up(range.start)
        };
        let end = if range.end == Timestamp::MAX {
            span.end
        } else {
            up(range.end)
        };
        start.max(0)..end.min(i64::from(u32::MAX))
    }
}

/// Whether the server can keep a sample.
fn is_kept(at: Timestamp, value: f64) -> bool {
    (0..i64::from(u32::MAX)).contains(&at.as_secs()) && value.is_finite()
}

fn spec_error(what: String) -> Error {
    Error::Spec {
        spec: "dalmatiner:".to_owned(),
        what,
    }
}

impl fmt::Debug for DalmatinerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DalmatinerClient")
            .field("bucket", &self.bucket)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for DalmatinerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dalmatiner")
    }
}

impl Store for DalmatinerClient {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(Durability::Unconfirmed, Durability::Unconfirmed);
        capabilities.exactness = Exactness::LastBit;
        capabilities.resolution_ns = SECOND_NS as i64;
        capabilities.special_values = false;
        capabilities.persistent = true;
        // What the operating system has taken may still be on its way.
        capabilities.visibility_delay_ms = self.options.visibility_delay.as_millis() as u64;
        capabilities.counts_samples = false;
        capabilities
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        for (_, key) in series {
            self.wire_key(key)?;
        }
        let mut keys = write(&self.keys);
        let new = keys.define(series)?;
        let mut catalog = write(&self.catalog);
        for key in &new {
            catalog.intern(self.wire_key(key)?);
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.acks.check_open()?;
        let mut numbers = Vec::new();
        let numbered = read(&self.keys).numbered(batch, &mut numbers)?;
        let mut rejected = Vec::new();
        for (index, (_, at, value)) in numbered.iter().enumerate() {
            if !is_kept(at, value) {
                rejected.push((index as u32, Reason::Unrepresentable));
            }
        }
        let mut kept = BatchBuf::default();
        let sent = if rejected.is_empty() {
            numbered
        } else {
            for (number, at, value) in numbered.iter().filter(|(_, at, value)| is_kept(*at, *value)) {
                kept.push(number, at, value);
            }
            kept.as_batch()
        };
        self.send(&sent)?;
        self.widen(&sent);
        Ok(self.acks.ack(batch.len(), &rejected, refused, Durability::Unconfirmed))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks.durable(level, Durability::Unconfirmed, 0)
    }

    /// Ends the connection, and waits until the server does: by then it has taken all samples.
    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.acks.check_open()?;
        read(&self.keys).check_scope(scope)?;
        if level > Durability::Unconfirmed {
            return Err(self.unsupported("flush"));
        }
        lock(&self.writer).connection.finish();
        Ok(())
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.acks.check_open()?;
        if query.resample.is_some() {
            return Err(self.unsupported("resampling"));
        }
        let numbers = read(&self.keys).numbers(query.series)?;
        let seconds = self.seconds(query.range);
        let mut rows: Vec<(Vec<Timestamp>, Vec<f64>)> = vec![Default::default(); REQUESTS];
        for (ids, numbers) in query.series.chunks(REQUESTS).zip(numbers.chunks(REQUESTS)) {
            let asked: Vec<_> = numbers.iter().map(|number| (*number, seconds.clone())).collect();
            for (times, values) in &mut rows {
                times.clear();
                values.clear();
            }
            self.points(&asked, &mut |place, at, value| {
                if query.range.contains(at) {
                    rows[place].0.push(at);
                    rows[place].1.push(value);
                }
            })?;
            for (id, (times, values)) in ids.iter().zip(&rows) {
                if !times.is_empty() && visit(*id, times, values) == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = read(&self.keys).numbers(series)?;
        let span = lock(&self.span).clone();
        let mut known = lock(&self.newest);
        let asked: Vec<_> = numbers
            .iter()
            .map(|number| {
                let from = known.get(*number as usize).copied().flatten();
                (*number, from.unwrap_or(span.start)..span.end)
            })
            .collect();
        into.fill(None);
        self.points(&asked, &mut |place, at, _| into[place] = Some(at))?;
        for (number, newest) in numbers.into_iter().zip(into) {
            let place = number as usize;
            if known.len() <= place {
                known.resize(place + 1, None);
            }
            known[place] = newest.map(Timestamp::as_secs).or(known[place]);
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        read(&self.keys).numbers(series)?;
        into.fill(None);
        Ok(())
    }

    fn stats(&self) -> Stats {
        let accepted = self.acks.accepted();
        Stats::new(read(&self.keys).defined() as u64, accepted, accepted)
    }

    fn close(&self) -> Result<()> {
        if self.acks.close() {
            lock(&self.writer).connection.finish();
            lock(&self.reader).close();
        }
        Ok(())
    }
}
