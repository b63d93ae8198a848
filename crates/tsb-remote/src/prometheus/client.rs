//! The client: maps series to labels, admits and writes batches, and answers queries.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};

use tsb_core::wire::Encoder;
use tsb_core::wire::http::Snappy;
use tsb_core::wire::remote_write::{RemoteWriteEncoder, labels_of};
use tsb_core::{Batch, BatchBuf, Durability, SeriesId, SeriesKey, Timestamp};

use super::cursor::PrometheusCursor;
use super::message::Matcher;
use super::server::{PrometheusServer, Written};
use super::{PLACE_LABEL, PrometheusOptions, files};
use crate::acks::Acks;
use crate::admission::{Admission, Admitted, MILLI_NS};
use crate::{Address, Client};
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::{Keys, lock, read, write};
use tsb_stores::store::{Ack, Capabilities, OnConflict, Position, Query, Reason, Refusals, Scope, Stats};

mod newest;

/// A client that writes samples with the label of a place.
pub struct PrometheusClient {
    server: Arc<PrometheusServer>,
    keys: RwLock<Keys>,
    series: RwLock<Series>,
    admission: Mutex<Admission>,
    /// How far before the newest sample of the server a sample may be.
    window_ns: Option<i64>,
    /// The folder of the server's files, if it is on this machine.
    folder: Option<PathBuf>,
    /// Number of samples that were there when the client was opened.
    initial_samples: u64,
    acks: Acks,
}

/// The series by their numbers.
#[derive(Debug)]
struct Series {
    encoder: RemoteWriteEncoder,
    keys: Vec<SeriesKey>,
    numbers: HashMap<SeriesKey, u32, foldhash::fast::FixedState>,
}

impl Series {
    /// Adds a series of the place `place`; its number is the count of those before.
    fn push(&mut self, key: &SeriesKey, place: &str) -> std::result::Result<(), &'static str> {
        self.encoder.push(&placed(key, place))?;
        self.numbers.insert(key.clone(), self.keys.len() as u32);
        self.keys.push(key.clone());
        Ok(())
    }
}

/// The key with the label of the place.
fn placed(key: &SeriesKey, place: &str) -> SeriesKey {
    let labels = key
        .labels()
        .iter()
        .map(|(label, value)| (label.as_str(), value.as_str()));
    SeriesKey::with_labels(key.name(), labels.chain([(PLACE_LABEL, place)]))
}

impl PrometheusClient {
    /// Connects, and opens the place: the series and samples that are there stay.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no server answers, and [`Error::Backend`] if it takes no remote
    /// write, or if an earlier run's samples are to be removed and cannot be.
    pub async fn connect(address: &Address, options: &PrometheusOptions) -> Result<Self> {
        let server = PrometheusServer::new(address, options)?;
        server.check_writing().await?;
        if options.drop {
            server.remove().await?;
        }
        let stored = server.series().await?;
        let mut series = Series {
            encoder: RemoteWriteEncoder::new(&std::iter::empty().collect()).map_err(|error| Error::Spec {
                spec: "prometheus:".to_owned(),
                what: error.to_string(),
            })?,
            keys: Vec::new(),
            numbers: HashMap::default(),
        };
        for key in &stored {
            series
                .push(key, server.place())
                .map_err(|why| refused_series(key, why))?;
        }
        let initial_samples = server.count(&stored).await?;
        let client = Self {
            window_ns: server.window_ns().await,
            folder: server.folder().await,
            server: Arc::new(server),
            keys: RwLock::new(Keys::new(stored, options.max_series)),
            series: RwLock::new(series),
            admission: Mutex::default(),
            initial_samples,
            acks: Acks::default(),
        };
        client.seed().await?;
        Ok(client)
    }

    /// The body of the admitted samples of a batch whose ids are numbers.
    fn body(&self, batch: &Batch<'_>, admitted: &Admitted) -> Vec<u8> {
        let mut body = Vec::new();
        let mut chosen = BatchBuf::new();
        let batch = if admitted.refused.is_empty() {
            *batch
        } else {
            for index in admitted.indices() {
                let index = index as usize;
                chosen.push(batch.id(index), batch.time(index), batch.values()[index]);
            }
            chosen.as_batch()
        };
        write(&self.series).encoder.encode(&batch, &mut body);
        Snappy::default().pack(&mut body, 0);
        body
    }

    /// Writes the admitted samples of a batch whose ids are numbers. Returns the refused ones.
    async fn write_admitted(&self, batch: &Batch<'_>) -> Result<Vec<(u32, Reason)>> {
        let admitted = lock(&self.admission).admit(batch, Vec::new());
        if admitted.is_empty() {
            return Ok(admitted.refused);
        }
        let outcome = self.server.write(self.body(batch, &admitted)).await;
        let mut admission = lock(&self.admission);
        match outcome {
            Ok(Written::All) => {
                admission.stored(&admitted);
                Ok(admitted.refused)
            }
            Ok(Written::Nothing(reason)) => {
                admission.not_stored(&admitted);
                Ok(admitted.all_refused(reason))
            }
            Err(error) => {
                if !matches!(error, Error::Unknown { .. }) {
                    admission.not_stored(&admitted);
                }
                Err(error)
            }
        }
    }

    /// The matchers of series: every label, so that only a series with more labels matches too.
    fn matchers(&self, numbers: &[u32]) -> Result<Vec<Vec<Matcher>>> {
        let series = read(&self.series);
        let of = |number: &u32| {
            let key = series.keys.get(*number as usize);
            let key = key.ok_or(Error::UnknownSeries { id: SeriesId(*number) })?;
            let labels = labels_of(&placed(key, self.server.place())).map_err(|why| refused_series(key, why))?;
            Ok(labels
                .into_iter()
                .map(|(name, value)| Matcher { name, value })
                .collect())
        };
        numbers.iter().map(of).collect()
    }
}

fn refused_series(key: &SeriesKey, why: &str) -> Error {
    Error::Spec {
        spec: "prometheus:".to_owned(),
        what: format!("it cannot hold the series {key}: {why}"),
    }
}

impl fmt::Debug for PrometheusClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrometheusClient")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for PrometheusClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("prometheus")
    }
}

impl Client for PrometheusClient {
    type Cursor = PrometheusCursor;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(Durability::Buffered, Durability::Buffered);
        capabilities.resample = true;
        capabilities.duplicate = OnConflict::Rejected;
        capabilities.late = OnConflict::Rejected;
        capabilities.resolution_ns = MILLI_NS;
        capabilities.persistent = true;
        capabilities.takes_back_ns = self.window_ns;
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        for (_, key) in series {
            if key.label(PLACE_LABEL).is_some() {
                return Err(refused_series(key, "the label tsb_place is that of the place"));
            }
            labels_of(key).map_err(|why| refused_series(key, why))?;
        }
        let mut keys = write(&self.keys);
        let mut table = write(&self.series);
        for key in keys.define(series)? {
            table
                .push(&key, self.server.place())
                .map_err(|why| refused_series(&key, why))?;
        }
        Ok(())
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.acks.check_open()?;
        let mut numbers = Vec::new();
        let numbered = read(&self.keys).numbered(batch, &mut numbers)?;
        let rejected = self.write_admitted(&numbered).await?;
        Ok(self.acks.ack(batch.len(), &rejected, refused, Durability::Buffered))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks.durable(level, Durability::Buffered, 0)
    }

    /// Nothing to do: every ack has the highest level already.
    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.acks.check_open()?;
        read(&self.keys).check_scope(scope)?;
        if level == Durability::Synced {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "a flush to synced",
            });
        }
        Ok(())
    }

    async fn query(&self, query: &Query<'_>) -> Result<PrometheusCursor> {
        self.acks.check_open()?;
        let numbers = read(&self.keys).numbers(query.series)?;
        let matchers = self.matchers(&numbers)?;
        Ok(PrometheusCursor::new(&self.server, query, matchers))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = read(&self.keys).numbers(series)?;
        self.newest_of(&numbers, into).await
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = read(&self.keys).numbers(series)?;
        let admission = lock(&self.admission);
        for (number, slot) in numbers.iter().zip(into) {
            *slot = admission.newest(*number).map(|at_ms| Timestamp(at_ms * MILLI_NS));
        }
        Ok(())
    }

    async fn stats(&self) -> Stats {
        let accepted = self.acks.accepted();
        let series = read(&self.keys).defined() as u64;
        let mut stats = Stats::new(series, self.initial_samples + accepted, accepted);
        if let Some((footprint, disk_bytes)) = self.folder.as_deref().and_then(files::sizes) {
            stats.footprint = footprint;
            stats.disk_bytes = Some(disk_bytes);
        }
        stats
    }

    async fn close(&self) -> Result<()> {
        self.acks.close();
        Ok(())
    }
}
