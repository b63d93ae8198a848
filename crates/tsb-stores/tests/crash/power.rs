//! The power goes: what was not synced is lost, in part or whole, in any order.

use std::path::Path;

use rusqlite::Connection;
use tsb_core::Durability;
use tsb_stores::{Error, Scope, Store};

use crate::medium::{Fault, Medium};
use crate::script;

/// Writes of a run. Enough for several generations.
const WRITES: u64 = 400;

/// Cuts the power so many times, each at a moment of its own, in runs that cover all of a
/// file's life. Nothing that was `Synced` is lost.
pub(crate) fn cuts(commit: &str, synchronous: &str, rounds: u32) -> Result<(), String> {
    let fail = |error: Error| format!("commit={commit} synchronous={synchronous}: {error:?}");
    let (mut widest, mut seen) = (0, 0);
    // Without a cut first: how many operations there are.
    let rehearsal = Medium::register(&format!("rehearsal-{commit}-{synchronous}"), 0);
    run_once(rehearsal, commit, synchronous).map_err(fail)?;
    for run in 0..rounds.div_ceil(20) {
        let medium = Medium::register(&format!("power-{commit}-{synchronous}-{run}"), u64::from(run));
        let cuts = rounds.min(20);
        medium.cut_about(cuts, rehearsal.operations());
        run_once(medium, commit, synchronous).map_err(fail)?;
        let mut images = medium.images();
        if (images.len() as u32) < cuts / 2 {
            return Err(format!(
                "only {} of {cuts} cuts happened in {} operations",
                images.len(),
                medium.operations()
            ));
        }
        // And once more after the last sync.
        images.push(medium.cut_now(u64::from(run)));
        seen += images.len();
        for image in images {
            let place = tempfile::tempdir().unwrap();
            image.put_into(place.path());
            let what = |what: String| {
                format!(
                    "commit={commit} synchronous={synchronous}, power cut at operation {}: {what}",
                    image.operation
                )
            };
            let store = script::open(&place.path().join("x.db"), script::options(commit, synchronous))
                .map_err(|error| what(format!("{error:?}")))?;
            let contents = script::read(&store).map_err(|error| what(format!("{error:?}")))?;
            store.close().map_err(fail)?;
            let whole = script::whole_writes(&contents, image.synced, image.begun).map_err(what)?;
            widest = widest.max(image.begun - whole);
        }
    }
    let samples = widest * u64::from(script::SERIES / 4);
    println!(
        "commit={commit} synchronous={synchronous}: {seen} power cuts, widest loss window {widest} writes ({samples} samples)"
    );
    Ok(())
}

/// All writes of a run, on a medium.
fn run_once(medium: Medium, commit: &str, synchronous: &str) -> Result<(), Error> {
    let folder = tempfile::tempdir().unwrap();
    let options = tsb_stores::sqlite::SqliteOptions {
        vfs: Some(medium.name().to_owned()),
        ..script::options(commit, synchronous)
    };
    let store = script::open(&folder.path().join("x.db"), options)?;
    for number in 0..WRITES {
        medium.note_begun(number + 1);
        script::perform(&store, number)?;
        if synchronous == "normal" && number % 10 == 9 {
            store.flush(Scope::All, Durability::Synced)?;
        }
        medium.note_synced(script::durable_writes(&store, 0, number + 1, Durability::Synced));
    }
    store.close()
}

fn integrity(path: &Path) -> String {
    let connection = Connection::open(path).unwrap();
    connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap()
}

/// Breaks a store at some write: it says so, stays poisoned, and the file is sound.
fn broken_at(fault: Option<Fault>, options: tsb_stores::sqlite::SqliteOptions, name: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let medium = Medium::register(name, 1);
    let vfs = fault.map(|_| medium.name().to_owned());
    let store = script::open(&path, tsb_stores::sqlite::SqliteOptions { vfs, ..options.clone() })
        .map_err(|error| format!("{error:?}"))?;
    let mut broken = None;
    for number in 0..20_000 {
        if number == 100 {
            medium.set_fault(fault);
        }
        if let Err(error) = script::perform(&store, number) {
            broken = Some((number, error));
            break;
        }
    }
    let (number, error) = broken.ok_or("nothing broke")?;
    medium.set_fault(None);
    let synced = script::durable_writes(&store, 0, number, Durability::Synced);
    if synced > number {
        return Err(format!(
            "{synced} writes are said to be synced, and write {number} failed"
        ));
    }
    let again = script::perform(&store, number);
    if !matches!(again, Err(Error::Poisoned { .. })) {
        return Err(format!("after {error:?} the next write gave {again:?}"));
    }
    if store.close().is_ok() {
        return Err("closing a poisoned store said that all is well".to_owned());
    }
    drop(store);
    if integrity(&path) != "ok" {
        return Err(format!("integrity check: {}", integrity(&path)));
    }
    let unbounded = tsb_stores::sqlite::SqliteOptions {
        max_bytes: None,
        ..options
    };
    let store = script::open(&path, unbounded).map_err(|error| format!("{error:?}"))?;
    let contents = script::read(&store).map_err(|error| format!("{error:?}"))?;
    let whole = script::whole_writes(&contents, synced, number + 1)?;
    script::perform(&store, whole).map_err(|error| format!("{error:?}"))?;
    println!("{name}: write {number} failed with {error}, {whole} writes kept");
    Ok(())
}

pub(crate) fn failing_sync() -> Result<(), String> {
    broken_at(Some(Fault::Sync), script::options("each", "full"), "failing-sync")
}

pub(crate) fn full_disk() -> Result<(), String> {
    broken_at(Some(Fault::Full), script::options("each", "full"), "full-disk")
}

pub(crate) fn bounded_file() -> Result<(), String> {
    let options = tsb_stores::sqlite::SqliteOptions {
        max_bytes: Some(64 << 10),
        ..script::options("each", "full")
    };
    broken_at(None, options, "bounded-file")
}
