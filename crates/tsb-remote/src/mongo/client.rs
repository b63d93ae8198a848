//! The client: maps series to numbers, writes batches, and tracks durability levels.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mongodb::bson::{Document, doc};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::bson::Writer;
use super::command::{CommandBuilder, DUPLICATE_KEY, WriteReply, reason_of};
use super::connection::MongoConnection;
use super::cursor::MongoCursor;
use super::layout::{Layout, mohawk};
use super::options::{LayoutKind, MongoOptions};
use crate::Client;
use crate::acks::Acks;
use crate::partly_sent::of_write;
use crate::series_registry::SeriesRegistry;
use tsb_stores::error::Result;
use tsb_stores::parts::labels_to_json;
use tsb_stores::store::{Ack, Capabilities, Footprint, OnConflict, Position, Query, Reason, Refusals, Scope, Stats};

mod newest;
mod opening;

pub(super) use opening::{remove_runs, series};

/// The collection with the marker, `{_id: "layout"}`, and a document for flushes,
/// `{_id: "flush"}`.
const MARKER: &str = "tsb";
/// The collection of series: one document `{_id: number, name, labels}` per series.
const SERIES: &str = "series";
/// Number of attempts for an operation that conflicts with another one.
const ATTEMPTS: usize = 10;

/// A client that stores samples in a database of MongoDB.
pub struct MongoClient {
    connection: Arc<MongoConnection>,
    layout: Arc<Layout>,
    options: MongoOptions,
    copies: u32,
    registry: SeriesRegistry,
    /// Number of samples that were there when the client was opened.
    initial_samples: u64,
    /// Number of samples there at opening or tried since: it orders samples of one timestamp.
    attempted: AtomicU64,
    synced: AtomicU64,
    acks: Acks,
}

impl MongoClient {
    fn concern(&self) -> impl Fn(&mut Writer) {
        let (write_concern, timeout) = (self.options.write_concern, self.connection.timeout());
        move |writer| write_concern.write(writer, timeout)
    }

    /// Stores the numbers that the database does not know yet.
    async fn save_series(&self) -> Result<()> {
        if let Some(unsaved) = self.registry.unsaved().await {
            self.insert_series(unsaved.series()).await?;
            unsaved.saved();
        }
        Ok(())
    }

    async fn insert_series(&self, series: &[(u32, SeriesKey)]) -> Result<()> {
        const ACTION: &str = "store the names of series";
        let journaled = self.options.write_concern.journaled();
        let commands = {
            let head = |writer: &mut Writer| {
                writer.text("insert", SERIES).flag("ordered", false);
                journaled.write(writer, self.connection.timeout());
                writer.array("documents");
            };
            let mut commands = CommandBuilder::new(&head);
            for (place, (number, key)) in series.iter().enumerate() {
                commands.push([place as u32], |writer| {
                    writer.int("_id", *number as i32).text("name", key.name());
                    writer.text("labels", &labels_to_json(key));
                })?;
            }
            commands.finish()?
        };
        for mut command in commands {
            let body = std::mem::take(&mut command.body);
            let reply = WriteReply::of(&self.connection.write(ACTION, body).await?);
            for (operation, code) in reply.errors {
                let place = command.samples_of(operation).first();
                match place.and_then(|place| series.get(*place as usize)) {
                    // It may be there from an earlier attempt without an answer.
                    Some((number, key)) if code == DUPLICATE_KEY => self.check_series(*number, key).await?,
                    _ => return Err(self.connection.failed(ACTION, format!("it answers with code {code}"))),
                }
            }
            if let Some(why) = reply.concern {
                return Err(self.connection.unknown(ACTION, why));
            }
        }
        if self.layout.kind() == LayoutKind::Mohawk {
            self.register(series).await?;
        }
        Ok(())
    }

    /// Checks that a number means the same series in the database as here.
    async fn check_series(&self, number: u32, key: &SeriesKey) -> Result<()> {
        let action = "compare the names of series";
        let find = doc! { "find": SERIES, "filter": { "_id": number as i32, "name": key.name(), "labels": labels_to_json(key) } };
        if self.connection.find_one(action, find).await?.is_some() {
            return Ok(());
        }
        Err(self.connection.failed(
            action,
            format!("series {number} has another name there: another program writes into this database"),
        ))
    }

    /// Adds series to Mohawk's own list of metrics.
    async fn register(&self, series: &[(u32, SeriesKey)]) -> Result<()> {
        for (number, _) in series {
            let name = self.layout.name(*number);
            let mut writer = Writer::new();
            writer.text("update", mohawk::IDS);
            self.concern()(&mut writer);
            writer
                .array("updates")
                .document(0)
                .document("q")
                .text("_id", &name)
                .end();
            mohawk::registration(writer.document("u"), &name);
            writer.end().flag("upsert", true);
            self.connection.write("register a metric", writer.finish()?).await?;
        }
        Ok(())
    }

    /// Writes a batch whose ids are numbers. Returns the refused samples, by index. Each command
    /// starts after the previous one was answered; `is_partly_sent` is set once one was.
    async fn write_batch(&self, batch: &Batch<'_>, is_partly_sent: &mut bool) -> Result<Vec<(u32, Reason)>> {
        const ACTION: &str = "write samples";
        let mut refused = Vec::new();
        let first = self.attempted.fetch_add(batch.len() as u64, Ordering::Relaxed);
        let mut which: Vec<u32> = (0..batch.len() as u32).collect();
        for _ in 0..ATTEMPTS {
            let commands = {
                let mut unwritable = Refusals::new();
                let commands = self
                    .layout
                    .commands(batch, &which, &self.concern(), first, &mut unwritable)?;
                refused.extend(
                    unwritable
                        .as_slice()
                        .iter()
                        .map(|refusal| (refusal.index, refusal.reason)),
                );
                commands
            };
            which.clear();
            for mut command in commands {
                let body = std::mem::take(&mut command.body);
                let reply = WriteReply::of(&self.connection.write(ACTION, body).await?);
                *is_partly_sent = true;
                if let Some(why) = reply.concern {
                    return Err(self.connection.unknown(ACTION, why));
                }
                for (operation, code) in reply.errors {
                    let samples = command.samples_of(operation).iter().copied();
                    // Two writes tried to create the same document: it exists now, so try again.
                    if code == DUPLICATE_KEY && self.layout.kind() == LayoutKind::Bucket {
                        which.extend(samples);
                    } else {
                        refused.extend(samples.map(|index| (index, reason_of(code))));
                    }
                }
            }
            if which.is_empty() {
                return Ok(refused);
            }
        }
        Err(self.connection.failed(
            ACTION,
            "documents of the same series and span were made by others again and again",
        ))
    }

    /// As Mohawk does it: for each sample a lookup of the metric, and an insert. Sets `is_partly_sent` once
    /// an insert was answered.
    async fn write_each_sample(&self, batch: &Batch<'_>, is_partly_sent: &mut bool) -> Result<Vec<(u32, Reason)>> {
        let mut refused = Vec::new();
        for index in 0..batch.len() {
            let name = self.layout.name(batch.id(index).0);
            let find = doc! { "find": mohawk::IDS, "filter": { "_id": &name }, "limit": 1, "singleBatch": true };
            self.connection.ask("look up a metric", find).await?;
            let insert = mohawk::sample(&name, batch.time(index), batch.values()[index], &self.concern());
            let insert = match insert {
                Ok(insert) => insert.finish()?,
                Err(reason) => {
                    refused.push((index as u32, reason));
                    continue;
                }
            };
            let reply = WriteReply::of(&self.connection.write("write a sample", insert).await?);
            *is_partly_sent = true;
            if let Some(why) = reply.concern {
                return Err(self.connection.unknown("write a sample", why));
            }
            refused.extend(reply.errors.iter().map(|(_, code)| (index as u32, reason_of(*code))));
        }
        Ok(refused)
    }

    /// Writes a document and waits for the journals, which then also hold everything written
    /// before.
    async fn barrier(&self) -> Result<()> {
        let concern = self
            .options
            .write_concern
            .journaled()
            .document(self.connection.timeout());
        let update = doc! { "q": { "_id": "flush" }, "u": { "$inc": { "n": 1_i64 } }, "upsert": true };
        let reply = self
            .connection
            .change(
                "flush",
                doc! { "update": MARKER, "updates": [update], "writeConcern": concern },
            )
            .await?;
        match WriteReply::of(&reply).concern {
            Some(why) => Err(self.connection.failed("flush", why)),
            None => Ok(()),
        }
    }

    async fn footprint(&self, samples: u64) -> Result<Footprint> {
        let stats = self
            .connection
            .ask("ask for sizes", doc! { "dbStats": 1, "freeStorage": 1 })
            .await?;
        let bytes = |name: &str| number(&stats, name);
        let free_bytes = bytes("freeStorageSize") + bytes("indexFreeStorageSize");
        let sealed_bytes = (bytes("storageSize") + bytes("indexSize")).saturating_sub(free_bytes);
        let mut footprint = Footprint::of_sealed(sealed_bytes, samples);
        footprint.free_bytes = free_bytes;
        Ok(footprint)
    }
}

/// A number in an answer, of any numeric type.
fn number(document: &Document, name: &str) -> u64 {
    use mongodb::bson::Bson;
    match document.get(name) {
        Some(Bson::Double(value)) => *value as u64,
        Some(Bson::Int32(value)) => *value as u64,
        Some(Bson::Int64(value)) => *value as u64,
        _ => 0,
    }
}

impl fmt::Debug for MongoClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MongoClient")
            .field("connection", &self.connection)
            .field("layout", &self.layout.kind())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for MongoClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mongo({})", self.layout.kind().name())
    }
}

impl Client for MongoClient {
    type Cursor = MongoCursor;

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(self.options.write_concern.durability(), Durability::Synced);
        capabilities.duplicate = OnConflict::KeptBoth;
        capabilities.resolution_ns = self.layout.resolution_ns();
        capabilities.resample = true;
        capabilities.copies = self.copies;
        capabilities.persistent = true;
        capabilities
    }

    async fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.acks.check_open()?;
        self.registry.define(series, |new| self.layout.add_series(new))?;
        self.save_series().await
    }

    async fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.acks.check_open()?;
        let mut numbers = Vec::new();
        let numbered = self.registry.keys().numbered(batch, &mut numbers)?;
        self.save_series().await?;
        let mut is_partly_sent = false;
        let rejected = match self.layout.kind() {
            LayoutKind::Mohawk => self.write_each_sample(&numbered, &mut is_partly_sent).await,
            _ => self.write_batch(&numbered, &mut is_partly_sent).await,
        };
        let rejected = rejected.map_err(|error| of_write(is_partly_sent, error))?;
        Ok(self
            .acks
            .ack(batch.len(), &rejected, refused, self.options.write_concern.durability()))
    }

    fn durable(&self, level: Durability) -> Position {
        self.acks.durable(
            level,
            self.options.write_concern.durability(),
            self.synced.load(Ordering::Acquire),
        )
    }

    async fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.acks.check_open()?;
        self.registry.keys().check_scope(scope)?;
        if level > self.options.write_concern.durability() {
            let written = self.acks.accepted();
            self.barrier().await?;
            self.synced.fetch_max(written, Ordering::AcqRel);
        }
        if level == Durability::Synced && matches!(scope, Scope::All) {
            // Take a checkpoint as well: otherwise the reported sizes may be a minute old.
            self.connection
                .ask_server("take a checkpoint", doc! { "fsync": 1 })
                .await?;
        }
        Ok(())
    }

    async fn query(&self, query: &Query<'_>) -> Result<MongoCursor> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(query.series)?;
        Ok(MongoCursor::new(&self.connection, &self.layout, query, numbers))
    }

    async fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        let numbers = self.registry.keys().numbers(series)?;
        self.newest_of(&numbers, into).await
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.acks.check_open()?;
        self.registry.check(series)?;
        into.fill(None);
        Ok(())
    }

    async fn stats(&self) -> Stats {
        let accepted = self.acks.accepted();
        let samples = self.initial_samples + accepted;
        let series = self.registry.keys().defined() as u64;
        let mut stats = Stats::new(series, samples, accepted);
        stats.footprint = self.footprint(samples).await.unwrap_or_default();
        stats
    }

    async fn close(&self) -> Result<()> {
        if self.acks.close() {
            self.barrier().await
        } else {
            Ok(())
        }
    }
}
