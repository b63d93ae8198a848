//! The power goes: the journal keeps what was synced and some of the rest, the files are
//! back at their last sync.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use tsb_core::time::MonotonicClock;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::rrd::RrdStore;
use tsb_stores::write_cache::WriteCache;
use tsb_stores::{Ack, Capabilities, Damage, Position, Query, Refusals, Result, Scope, Stats, Store, Visitor};

use crate::lossy::LossyMedium;
use crate::{random_of, script};

/// Writes of a run; the power goes somewhere among them.
const WRITES: u64 = 400;

/// Files, and a copy of them as they were when they were last synced.
#[derive(Debug)]
struct PowerCutStore {
    inner: RrdStore,
    folder: PathBuf,
    synced_files: Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>,
    /// No file is copied halfway through an update: what a power cut makes of that, no
    /// journal can mend.
    gate: RwLock<()>,
}

impl std::fmt::Display for PowerCutStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl Store for PowerCutStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.inner.define(series)
    }
    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let _gate = self.gate.read().unwrap();
        self.inner.write(batch, refused)
    }
    fn durable(&self, level: Durability) -> Position {
        self.inner.durable(level)
    }
    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        if level == Durability::Synced {
            // Before the sync: what is written meanwhile may or may not be in it.
            let gate = self.gate.write().unwrap();
            let copy = copy_of(&self.folder);
            drop(gate);
            self.inner.flush(scope, level)?;
            *self.synced_files.lock().unwrap() = copy;
            return Ok(());
        }
        self.inner.flush(scope, level)
    }
    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.inner.query(query, visit)
    }
    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.inner.newest(series, into)
    }
    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.inner.newest_accepted(series, into)
    }
    fn stats(&self) -> Stats {
        self.inner.stats()
    }
    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

fn copy_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "rrd"));
    files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Cuts the power so many times, each at a moment of its own.
pub(crate) fn cuts(policy: &str, rounds: u32) -> std::result::Result<(), String> {
    let mut widest = 0;
    for round in 0..rounds {
        let mut random = random_of(round);
        let lost = cut(policy, &mut random).map_err(|what| format!("policy {policy}, power cut {round}: {what}"))?;
        widest = widest.max(lost);
    }
    println!("policy {policy}: {rounds} power cuts, widest loss window {widest} writes");
    Ok(())
}

fn cut(policy: &str, random: &mut impl FnMut(usize) -> usize) -> std::result::Result<u64, String> {
    let words = |error: tsb_stores::Error| format!("{error:?}");
    let folder = tempfile::tempdir().unwrap();
    let files_at = folder.path().join("files");
    let (medium, synced_files) = (LossyMedium::default(), Arc::default());
    let open = |medium: LossyMedium, synced_files: &Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>| {
        let inner = PowerCutStore {
            inner: script::files(&files_at)?,
            folder: files_at.clone(),
            synced_files: Arc::clone(synced_files),
            gate: RwLock::default(),
        };
        let options = script::options(Path::new("unused"), policy);
        let cache = WriteCache::on_medium(inner, &options, Arc::new(MonotonicClock::new()), Box::new(medium))?;
        script::define(&cache)?;
        Ok::<_, tsb_stores::Error>(cache)
    };
    let cache = open(medium.clone(), &synced_files).map_err(words)?;
    let end = random(WRITES as usize) as u64 + 1;
    for number in 0..end {
        script::perform(&cache, number).map_err(words)?;
        // A reader now and then has a series written before it is due.
        if random(20) == 0 {
            let one = [SeriesId(random(script::SERIES as usize) as u32)];
            cache.flush(Scope::Series(&one), Durability::Buffered).map_err(words)?;
        }
    }
    let covered = cache.durable(Durability::Synced).0;
    let promised = covered / u64::from(script::SERIES);
    // The journal first: what it no longer holds then is in the files as they are later.
    let left = medium.after_power_cut(random);
    let files = synced_files.lock().unwrap().clone();
    drop(cache);
    std::fs::remove_dir_all(&files_at).unwrap();
    std::fs::create_dir_all(&files_at).unwrap();
    for (path, bytes) in files {
        std::fs::write(path, bytes).unwrap();
    }
    let cache = open(left, &synced_files).map_err(words)?;
    let mut damage = cache.stats().damage.into_iter();
    if let Some(alarm) = damage.find(Damage::may_lose_samples) {
        return Err(format!("what a power cut may take is said to be lost: {alarm}"));
    }
    let whole = script::check(&cache, &files_at, promised, end)?;
    Ok(end - whole)
}
