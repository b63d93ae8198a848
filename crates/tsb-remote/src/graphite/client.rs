//! The client: sends each series to its daemon, and reads slots back.

use std::fmt;
use std::sync::{Arc, RwLock};

use tsb_core::{Batch, BatchBuf, Catalog, Durability, SeriesId, SeriesKey, Timestamp};

use super::cursor::GraphiteCursor;
use super::files::{WhisperFiles, remove};
use super::options::GraphiteOptions;
use super::path::{key_of, path_of};
use super::render::{Render, Span, Window};
use super::spec_error;
use crate::acks::Acks;
use crate::http::{Access, HttpServer};
use crate::unanswered::{UnansweredSender, catalog_beyond};
use crate::{Address, Client};
use tsb_stores::DamageLog;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::{Keys, read, write};
use tsb_stores::store::{
    Ack, Capabilities, Exactness, Footprint, Position, Query, Reason, Refusals, Resample, Scope, SlotArchive, Stats,
};

mod newest;

/// The port at which graphite-web listens by default.
const RENDER_PORT: u16 = 8080;
/// Whisper's times are unsigned and of 32 bits.
const SECONDS: std::ops::Range<i64> = 1..1 << 32;

/// A client that sends samples to carbon.
pub struct GraphiteClient {
    prefix: String,
    senders: Vec<UnansweredSender>,
    render: Option<Arc<Render>>,
    archives: Arc<[SlotArchive]>,
    options: GraphiteOptions,
    /// Ids, and their numbers in the order in which they were defined.
    keys: RwLock<Keys>,
    /// The path of each series, by number.
    paths: RwLock<Vec<String>>,
    /// Files that the render API could not read.
    damage: Arc<DamageLog>,
    acks: Acks,
}

/// The render API of an address.
fn render(address: &Address, options: &GraphiteOptions) -> Result<Option<Render>> {
    let Some(host) = &options.render else { return Ok(None) };
    let access = Access::of(address, options.tls.clone(), options.timeout)?;
    let server = HttpServer::new("the render API", host, RENDER_PORT, access)?;
    Ok(Some(Render::new(server)))
}

/// The series below the prefix of an address.
pub(super) async fn series(address: &Address, options: &GraphiteOptions) -> Result<Vec<SeriesKey>> {
    let Some(render) = render(address, options)? else {
        return Err(Error::Unsupported {
            store: "graphite".to_owned(),
            what: "listing series without ?render=",
        });
    };
    let paths = render.list(address.place()).await?;
    Ok(paths.iter().filter_map(|path| key_of(address.place(), path)).collect())
}

impl GraphiteClient {
    /// Connects to every daemon, and asks the render API once.
    ///
    /// # Errors
    /// [`Error::Spec`] for options that fit no server, and [`Error::Unreachable`] or
    /// [`Error::Unanswered`] if one does not answer.
    pub async fn connect(address: &Address, options: &GraphiteOptions) -> Result<Self> {
        let archives: Arc<[SlotArchive]> = options.archives.archives().collect();
        if archives.is_empty() {
            return Err(spec_error("there is no archive".to_owned()));
        }
        if options.drop {
            remove(address, options)?;
        }
        let render = render(address, options)?;
        let hosts = address.hosts().split(',');
        let senders: Vec<UnansweredSender> = hosts
            .map(|host| {
                let (port, wire) = (options.protocol.port(), options.protocol.wire());
                UnansweredSender::new("carbon", host, port, wire, options.timeout)
            })
            .collect();
        for sender in &senders {
            sender.connect().await?;
        }
        let client = Self {
            prefix: address.place().to_owned(),
            senders,
            render: render.map(Arc::new),
            archives,
            options: options.clone(),
            keys: RwLock::new(Keys::new(Vec::new(), options.max_series)),
            paths: RwLock::default(),
            damage: Arc::default(),
            acks: Acks::default(),
        };
        if let Some(render) = &client.render {
            let window = client.window_from(render, i64::MAX);
            render.read(std::slice::from_ref(&client.prefix), window).await?;
        }
        Ok(client)
    }

    fn unsupported(&self, what: &'static str) -> Error {
        Error::Unsupported {
            store: self.to_string(),
            what,
        }
    }

    fn render(&self) -> Result<&Arc<Render>> {
        let render = self.render.as_ref();
        render.ok_or_else(|| self.unsupported("reading back without ?render="))
    }

    /// The window that covers the slots of the finest archive from `from_s` on, now.
    fn window_from(&self, render: &Render, from_s: i64) -> Window {
        let span = Span {
            level: 0,
            from_s,
            until_s: i64::MAX,
        };
        span.window(&self.archives, render.now_s())
    }

    /// The archive that answers a query.
    fn level_of(&self, resample: Option<Resample>) -> Result<usize> {
        let Some(resample) = resample else { return Ok(0) };
        let is_it = |archive: &SlotArchive| {
            resample.consolidation == self.options.archives.consolidation
                && i128::from(resample.step_ns) == i128::from(archive.slot_s) * 1_000_000_000
        };
        let level = self.archives.iter().position(is_it);
        level.ok_or_else(|| self.unsupported("this step and consolidation: there is no such archive"))
    }

    fn host_of(&self, number: u32) -> usize {
        let paths = read(&self.paths);
        let path = paths.get(number as usize).map_or("", String::as_str);
        let hash = path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash % self.senders.len().max(1) as u64) as usize
    }

    /// The paths as the catalog of an encoder that knows `known` of them; `None`: it knows all.
    fn catalog(&self, known: usize) -> Option<Catalog> {
        let paths = read(&self.paths);
        catalog_beyond(known, paths.iter().map(|path| SeriesKey::new(path.clone())))
    }

    /// Sends a batch whose ids are numbers. Returns the refused samples, by index.
    async fn send(&self, batch: &Batch<'_>) -> Result<Vec<(u32, Reason)>> {
        let is_carried = |at: Timestamp, value: f64| value.is_finite() && SECONDS.contains(&at.as_secs());
        let mut refused: Vec<(u32, Reason)> = Vec::new();
        for (index, (_, at, value)) in batch.iter().enumerate() {
            if !is_carried(at, value) {
                refused.push((index as u32, Reason::Unrepresentable));
            }
        }
        if self.senders.len() == 1 && refused.is_empty() {
            self.send_to(0, batch).await?;
            return Ok(refused);
        }
        let mut parts: Vec<(BatchBuf, Vec<u32>)> = self.senders.iter().map(|_| Default::default()).collect();
        for (index, (id, at, value)) in batch.iter().enumerate() {
            if is_carried(at, value) {
                let (part, indices) = &mut parts[self.host_of(id.0)];
                part.push(id, at, value);
                indices.push(index as u32);
            }
        }
        let (mut unsent, mut sent) = (None, false);
        for (host, (part, indices)) in parts.iter().enumerate().filter(|(_, part)| !part.1.is_empty()) {
            match self.send_to(host, &part.as_batch()).await {
                Ok(()) => sent = true,
                Err(error @ Error::Unreachable { .. }) => {
                    refused.extend(indices.iter().map(|index| (*index, Reason::Unreachable)));
                    unsent = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match unsent {
            Some(error) if !sent => Err(error),
            _ => {
                refused.sort_unstable_by_key(|(index, _)| *index);
                Ok(refused)
            }
        }
    }

    async fn send_to(&self, host: usize, batch: &Batch<'_>) -> Result<()> {
        self.senders[host].send(batch, |known| self.catalog(known)).await
    }

    fn footprint(&self) -> (Footprint, Option<u64>) {
        let Some(folder) = &self.options.folder else {
            return (Footprint::default(), None);
        };
        match WhisperFiles::below(&folder.join(&self.prefix)) {
            Ok(files) => (
                Footprint::of_sealed(files.bytes, self.acks.accepted()),
                Some(files.disk_bytes),
            ),
            Err(_) => (Footprint::default(), None),
        }
    }
}

impl fmt::Debug for GraphiteClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphiteClient")
            .field("senders", &self.senders)
            .field("render", &self.render)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for GraphiteClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "graphite({})", self.options.protocol.name())
    }
}

impl Client for GraphiteClient {
    type Cursor = GraphiteCursor;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(Durability::Unconfirmed, Durability::Unconfirmed);
        capabilities.query = self.render.is_some();
        capabilities.resample = capabilities.query;
        capabilities.exactness = if capabilities.query {
            Exactness::Slots(self.options.archives)
        } else {
            Exactness::Nothing
        };
        capabilities.resolution_ns = 1_000_000_000;
        capabilities.special_values = false;
        capabilities.persistent = true;
        capabilities.retention_ns =
            (self.archives.last()).map(|archive| archive.retention_s().saturating_mul(1_000_000_000));
        capabilities.visibility_delay_ms = self.options.visibility_delay.as_millis() as u64;
        capabilities.counts_samples = false;
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        for (_, key) in series {
            path_of(&self.prefix, key).map_err(spec_error)?;
        }
        let mut keys = write(&self.keys);
        let new = keys.define(series)?;
        // Their paths were checked above.
        let paths = new.iter().filter_map(|key| path_of(&self.prefix, key).ok());
        write(&self.paths).extend(paths);
        Ok(())
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.acks.check_open()?;
        let mut numbers = Vec::new();
        let numbered = read(&self.keys).numbered(batch, &mut numbers)?;
        let rejected = self.send(&numbered).await?;
        Ok(self.acks.ack(batch.len(), &rejected, refused, Durability::Unconfirmed))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks.durable(level, Durability::Unconfirmed, 0)
    }

    /// Nothing to do: the operating system has everything that was written.
    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.acks.check_open()?;
        read(&self.keys).check_scope(scope)?;
        if level > Durability::Unconfirmed {
            return Err(self.unsupported("flush"));
        }
        Ok(())
    }

    async fn query(&self, query: &Query<'_>) -> Result<GraphiteCursor> {
        self.acks.check_open()?;
        let numbers = read(&self.keys).numbers(query.series)?;
        let render = self.render()?;
        let level = self.level_of(query.resample)?;
        let span = Span {
            level,
            from_s: query.range.start.as_secs(),
            until_s: query.range.end.as_secs(),
        };
        let paths = read(&self.paths);
        let path_of = |number: u32| paths.get(number as usize).cloned().unwrap_or_default();
        let series = query.series.iter().copied();
        let series = series.zip(numbers.into_iter().map(path_of)).collect();
        let archives = Arc::clone(&self.archives);
        Ok(GraphiteCursor::new(
            render,
            &self.damage,
            (archives, span),
            query.range,
            series,
        ))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = read(&self.keys).numbers(series)?;
        let render = self.render()?;
        self.newest_of(render, &numbers, into).await
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        read(&self.keys).numbers(series)?;
        into.fill(None);
        Ok(())
    }

    async fn stats(&self) -> Stats {
        let accepted = self.acks.accepted();
        let series = read(&self.keys).defined() as u64;
        let mut stats = Stats::new(series, accepted, accepted);
        (stats.footprint, stats.disk_bytes) = self.footprint();
        stats.damage = self.damage.list();
        stats
    }

    async fn close(&self) -> Result<()> {
        if self.acks.close() {
            for sender in &self.senders {
                sender.close().await;
            }
        }
        Ok(())
    }
}
