//! The power goes under a cache of files, as serves rrdcached's protocol: what it acknowledged
//! as synced is in the files of its next life, byte for byte.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tsb_core::time::MonotonicClock;
use tsb_rrd::{Archive, Cf, DataSource, DsKind, Layout, RrdFile, Session};
use tsb_rrdcached::{FileBounds, FileCache, FileSystem};

use crate::lossy::LossyMedium;
use crate::{random_of, script};

const FILES: usize = 3;
/// When the files start, in seconds since the epoch.
const START_S: i64 = 1_700_000_000;
/// Updates of each file; the power goes somewhere among them.
const WRITES: usize = 1_500;

/// Files, as they were when they were last synced.
#[derive(Clone, Debug, Default)]
struct SyncedFiles(Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>);

impl FileSystem for SyncedFiles {
    fn sync(&self, folder: &Path) -> io::Result<()> {
        let mut copies = BTreeMap::new();
        for index in 0..FILES {
            let path = folder.join(name_of(index));
            copies.insert(path.clone(), read_stable(&path)?);
        }
        *self.0.lock().unwrap() = copies;
        Ok(())
    }
}

/// A file as it is between two writes: what a power cut makes of half a write, no journal
/// can mend.
fn read_stable(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = std::fs::read(path)?;
    loop {
        let again = std::fs::read(path)?;
        if again == bytes {
            return Ok(bytes);
        }
        bytes = again;
    }
}

fn name_of(index: usize) -> String {
    format!("{index}.rrd")
}

fn create(folder: &Path) -> tsb_rrd::Result<()> {
    let archives = vec![
        Archive::new(Cf::Average, 0.5, 1, 700),
        Archive::new(Cf::Max, 0.5, 6, 100),
    ];
    let layout = Arc::new(Layout::new(
        10,
        vec![DataSource::new("a", DsKind::Gauge, 20)],
        archives,
    )?);
    (0..FILES).try_for_each(|index| tsb_rrd::create(&folder.join(name_of(index)), &layout, START_S, index as u64))
}

fn update_text(index: usize, number: usize) -> String {
    format!(
        "{}:{}.25",
        START_S + 3 * (number as i64 + 1),
        (number * 7 + index * 1_000) % 977
    )
}

/// Cuts the power so many times, each at a moment of its own.
pub(crate) fn cuts(policy: &str, rounds: u32) -> Result<(), String> {
    for round in 0..rounds {
        let result = cut(policy, &mut random_of(round)).map_err(|error| error.to_string());
        result.map_err(|what| format!("policy {policy}, power cut {round}: {what}"))?;
    }
    Ok(())
}

fn cut(policy: &str, random: &mut impl FnMut(usize) -> usize) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    create(folder.path())?;
    let (medium, synced) = (LossyMedium::default(), SyncedFiles::default());
    synced.sync(folder.path())?;
    let open = |medium: LossyMedium| {
        let clock = Arc::new(MonotonicClock::new());
        let options = script::options(Path::new("unused"), policy);
        FileCache::on_medium(
            folder.path(),
            FileBounds::of_files(FILES),
            &options,
            clock,
            Box::new(medium),
            Box::new(synced.clone()),
        )
    };
    let cache = open(medium.clone())?;
    let promised = random(WRITES) + 1;
    let mut session = Session::default();
    let mut update = |index: usize, number: usize| {
        let words = std::iter::once(update_text(index, number).into());
        cache
            .update(&name_of(index), words, &mut session)
            .map(|taken| taken.record)
    };
    for number in 0..promised {
        let records = (0..FILES).map(|index| update(index, number));
        let newest = records.collect::<Result<Vec<_>, _>>()?.into_iter().max().flatten();
        cache.confirm(newest.ok_or("nothing is on record")?)?;
        // A reader now and then has a file written before it is due.
        if random(20) == 0 {
            cache.flush(&name_of(random(FILES)), &mut Session::default())?;
        }
    }
    // Nobody was told of these.
    let begun = promised + random(3);
    for number in promised..begun {
        (0..FILES).try_for_each(|index| update(index, number).map(drop))?;
    }
    // The journal first: what it no longer holds then is in the files as they are later.
    let left = medium.after_power_cut(random);
    let files = synced.0.lock().unwrap().clone();
    drop(cache);
    for (path, bytes) in files {
        std::fs::write(path, bytes)?;
    }
    open(left)?.close()?;
    (0..FILES).try_for_each(|index| compare(folder.path(), index, promised, begun))
}

/// A file has to be what some of the updates make of a new one: all that were promised.
fn compare(folder: &Path, index: usize, promised: usize, begun: usize) -> Result<(), Box<dyn std::error::Error>> {
    let (direct, session) = (tempfile::tempdir()?, &mut Session::default());
    create(direct.path())?;
    let (found, other) = (folder.join(name_of(index)), direct.path().join(name_of(index)));
    let newest_s = RrdFile::open(&found)?.newest(session)?.seconds;
    let held = ((newest_s - START_S) / 3) as usize;
    if !(promised..=begun).contains(&held) {
        return Err(format!("file {index} holds {held} updates, {promised} were promised and {begun} begun").into());
    }
    let updates: Vec<String> = (0..held).map(|number| update_text(index, number)).collect();
    RrdFile::open(&other)?.update(session, &updates)?;
    if std::fs::read(&found)? != std::fs::read(&other)? {
        return Err(format!("file {index} differs from {held} direct updates").into());
    }
    Ok(())
}
