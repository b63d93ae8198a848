//! Inspects a log before SQLite recovers it, and reports damage.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tsb_core::proc::boot;

use super::count::{self, LogCount, LogLoss, StoredCount, Witness};
use super::scan::{self, Log};
use crate::damage::{Damage, DamageKind};
use crate::error::Result;
use crate::sqlite::file::{PAGE_BYTES, with_suffix};

/// Number of commits that a power cut may leave, unsynced, after the place where SQLite stops.
const TORN_COMMITS: u64 = 1;
/// Maximum number of damaged logs that are kept.
const KEPT_MAX: u32 = 100;

/// The state of a log when its database was opened.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct FoundLog {
    /// The log that SQLite will find.
    pub(super) log: Log,
    /// Its count.
    pub(super) count: Option<LogCount>,
    suspected: Option<SuspectedLoss>,
    is_count_damaged: bool,
    /// The log as it was found: a copy, or the renamed file itself if SQLite must not read it.
    kept: Option<PathBuf>,
}

/// What may have been lost.
#[derive(Clone, Copy, Debug)]
enum SuspectedLoss {
    /// The database is missing, but its log is there.
    Database,
    /// Pages that were committed according to the count, of a log of this many bytes.
    Pages(LogLoss, LogCount, u64),
    /// Number of commits after a damaged page, and their bytes.
    AfterDamage(u64, u64),
    /// A log of this many bytes without a valid header.
    Foreign(u64),
}

impl FoundLog {
    /// Inspects the log of a database, and its count. A log that has lost something is copied,
    /// and one that is older than the database is renamed.
    pub(in crate::sqlite) fn inspect(database: &Path, lock: &File) -> io::Result<Self> {
        let wal = with_suffix(database, "-wal");
        let mut log = scan::read(&wal)?;
        let stored = count::read(lock)?;
        let was_open = log.pages > 0 || matches!(stored, StoredCount::Count(count) if count.commits > 0);
        let is_empty = fs::metadata(database).map_or(true, |database| database.len() == 0);
        let suspected = match stored {
            // SQLite would create a new database, and discard the log.
            _ if was_open && is_empty => Some(SuspectedLoss::Database),
            StoredCount::Count(count) => {
                let loss = count.loss_of(&log, boot());
                (loss.pages > 0 || loss.is_stale).then_some(SuspectedLoss::Pages(loss, count, log.bytes))
            }
            _ if log.is_foreign => Some(SuspectedLoss::Foreign(log.bytes)),
            // A copied database with its log, without a count: one torn commit is no damage.
            _ if log.commits_behind > TORN_COMMITS => {
                let bytes = log.bytes.saturating_sub(log.pages * PAGE_BYTES);
                Some(SuspectedLoss::AfterDamage(log.commits_behind, bytes))
            }
            _ => None,
        };
        let kept = match suspected {
            Some(SuspectedLoss::Pages(LogLoss { is_stale: true, .. }, ..)) => {
                log = Log::default();
                Some(rename_aside(&wal)?)
            }
            Some(_) if log.bytes > 0 => Some(copy_aside(&wal)?),
            _ => None,
        };
        Ok(Self {
            log,
            count: match stored {
                StoredCount::Count(count) => Some(count),
                StoredCount::Nothing | StoredCount::Damaged => None,
            },
            suspected,
            is_count_damaged: stored == StoredCount::Damaged,
            kept,
        })
    }

    /// The damage of the log. `holds` must say whether the database holds what a given commit
    /// wrote: another program may have copied the log into it.
    pub(in crate::sqlite) fn damage(
        &self,
        database: &Path,
        holds: impl FnOnce(Witness) -> Result<bool>,
    ) -> Result<Vec<Damage>> {
        let wal = with_suffix(database, "-wal");
        let mut damage = Vec::new();
        if self.is_count_damaged {
            let what = "the count of commits in it does not match its checksum, so a loss of the log would not be seen";
            let count = Damage::new(DamageKind::Unreadable, with_suffix(database, "-lock"), what);
            damage.push(count.with_samples_at_most(0));
        }
        let lost = match self.suspected {
            None => return Ok(damage),
            Some(SuspectedLoss::Database) => {
                let what = "it is gone, and was open as a store when its process ended";
                Damage::new(DamageKind::Missing, database, what)
            }
            Some(SuspectedLoss::Pages(loss, count, _))
                if !loss.is_sure && count.witness != Witness::default() && holds(count.witness)? =>
            {
                if let Some(kept) = &self.kept {
                    // Nothing is lost, so the copy is not needed.
                    let _ = fs::remove_file(kept);
                }
                return Ok(damage);
            }
            Some(SuspectedLoss::Pages(loss, count, bytes)) => describe_loss(wal, loss, &count, bytes),
            Some(SuspectedLoss::AfterDamage(commits, bytes)) => {
                let what = format!(
                    "a page in the middle does not match its checksum, and SQLite leaves out the {commits} commits from there on"
                );
                Damage::new(DamageKind::Missing, wal, what).with_bytes(bytes)
            }
            Some(SuspectedLoss::Foreign(bytes)) => {
                let what = "it does not begin as a log does, so SQLite uses nothing of it";
                Damage::new(DamageKind::Missing, wal, what).with_bytes(bytes)
            }
        };
        damage.push(match &self.kept {
            Some(kept) => lost.kept_as(kept),
            None => lost,
        });
        Ok(damage)
    }
}

/// Describes a log of `bytes` bytes that lacks what its count states.
fn describe_loss(wal: PathBuf, loss: LogLoss, count: &LogCount, bytes: u64) -> Damage {
    let mut what = if bytes == 0 {
        "it is gone".to_owned()
    } else {
        "it is cut short or damaged".to_owned()
    };
    if loss.is_stale {
        what.push_str(", and what is left of it is older than the database, so it is not used");
    }
    if loss.pages == 0 {
        what.push_str("; the database has all that had been committed");
        return Damage::new(DamageKind::Unreadable, wal, what).with_samples_at_most(0);
    }
    // Writing to a string cannot fail.
    let _ = write!(
        what,
        ", and {} pages that had been committed are neither in it nor in the database \
         ({} commits since the file was opened)",
        loss.pages, count.commits
    );
    if count.is_copying {
        what.push_str("; a checkpoint was being made, so the database may have some of them");
    }
    Damage::new(DamageKind::Missing, wal, what).with_bytes(loss.pages * PAGE_BYTES)
}

/// Renames a log, so that SQLite does not read it.
fn rename_aside(wal: &Path) -> io::Result<PathBuf> {
    let kept = free_name(wal)?;
    fs::rename(wal, &kept)?;
    if let Some(folder) = wal.parent() {
        // IMPORTANT: sync the folder. A power cut must not bring the log back under its name,
        // when the count no longer describes it.
        File::open(folder)?.sync_all()?;
    }
    Ok(kept)
}

/// Copies a log.
fn copy_aside(wal: &Path) -> io::Result<PathBuf> {
    let kept = free_name(wal)?;
    fs::copy(wal, &kept)?;
    File::open(&kept)?.sync_all()?;
    Ok(kept)
}

/// An unused name beside a log.
fn free_name(wal: &Path) -> io::Result<PathBuf> {
    let mut names = (1..=KEPT_MAX).map(|number| with_suffix(wal, &format!(".damaged-{number}")));
    names.find(|name| !name.exists()).ok_or_else(|| {
        io::Error::other(format!(
            "{KEPT_MAX} damaged logs are kept beside it already; look at them, and remove them"
        ))
    })
}
