//! What was found of a log before SQLite recovered it, and what of it is damage.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::count::{self, Count, Said, Witness, boot};
use super::scan::{self, Log};
use crate::damage::{Damage, DamageKind};
use crate::error::Result;
use crate::sqlite::file::{PAGE_BYTES, beside};

/// Behind the place where SQLite stops, a power cut may leave one commit that was not synced.
const TORN_COMMITS: u64 = 1;
/// Damaged logs that are kept aside.
const KEPT_MAX: u32 = 100;

/// A log as it was when its file was opened.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Found {
    pub(in crate::sqlite) log: Log,
    /// What the last commit before had written, where that is known.
    pub(in crate::sqlite) witness: Witness,
    suspicion: Option<Suspicion>,
    is_count_damaged: bool,
    /// A copy of the log, made before SQLite writes over it.
    kept: Option<PathBuf>,
}

/// What may have been lost.
#[derive(Clone, Copy, Debug)]
enum Suspicion {
    /// The database itself is gone, and its log is not.
    Database,
    /// Pages that had been committed, by the count.
    Pages(u64, Count),
    /// Commits behind a damaged page.
    Behind(u64),
}

impl Found {
    /// Looks at the log of a database, and at what is said of it. One that has lost something
    /// is copied aside.
    pub(in crate::sqlite) fn look(database: &Path, lock: &File) -> io::Result<Self> {
        let wal = beside(database, "-wal");
        let log = scan::read(&wal)?;
        let said = count::read(lock)?;
        let was_open = log.pages > 0 || matches!(said, Said::Count(count) if count.commits > 0);
        let is_empty = fs::metadata(database).map_or(true, |database| database.len() == 0);
        let suspicion = match said {
            // SQLite makes a new one, and throws the log away.
            _ if was_open && is_empty => Some(Suspicion::Database),
            Said::Count(count) => {
                let missing = count.missing_in(&log, boot());
                (missing > 0).then_some(Suspicion::Pages(missing, count))
            }
            // A copy of the file and its log: a commit that was torn is none.
            _ if log.commits_behind > TORN_COMMITS => Some(Suspicion::Behind(log.commits_behind)),
            _ => None,
        };
        let kept = match suspicion {
            Some(_) if log.bytes > 0 => Some(keep(&wal)?),
            _ => None,
        };
        Ok(Self {
            log,
            witness: match said {
                Said::Count(count) => count.witness,
                _ => Witness::default(),
            },
            suspicion,
            is_count_damaged: said == Said::Damaged,
            kept,
        })
    }

    /// What of it is damage. `holds` looks in the database for what a commit has written: another
    /// program may have copied the log into it.
    pub(in crate::sqlite) fn damage(
        &self,
        database: &Path,
        holds: impl FnOnce(Witness) -> Result<bool>,
    ) -> Result<Vec<Damage>> {
        let wal = beside(database, "-wal");
        let mut damage = Vec::new();
        if self.is_count_damaged {
            let what = "the count of commits in it does not match its checksum, so a loss of the log would not be seen";
            let count = Damage::new(DamageKind::Unreadable, beside(database, "-lock"), what);
            damage.push(count.with_samples_at_most(0));
        }
        let (bytes, what) = match self.suspicion {
            None => return Ok(damage),
            Some(Suspicion::Database) => {
                let what = "it is gone, and was open as a store when its process ended";
                let mut gone = Damage::new(DamageKind::Missing, database, what);
                if let Some(kept) = &self.kept {
                    gone = gone.kept_as(kept);
                }
                damage.push(gone);
                return Ok(damage);
            }
            Some(Suspicion::Pages(_, count)) if count.witness != Witness::default() && holds(count.witness)? => {
                if let Some(kept) = &self.kept {
                    // Nothing is lost: it was a copy for nothing.
                    let _ = fs::remove_file(kept);
                }
                return Ok(damage);
            }
            Some(Suspicion::Pages(pages, count)) => {
                let state = if self.log.bytes == 0 {
                    "it is gone"
                } else {
                    "it is cut short or damaged"
                };
                let what = format!(
                    "{state}, and {pages} pages that had been committed are neither in it nor in the database \
                     ({} commits since the file was opened)",
                    count.commits
                );
                (pages * PAGE_BYTES, what)
            }
            Some(Suspicion::Behind(commits)) => (
                self.log.bytes.saturating_sub(self.log.pages * PAGE_BYTES),
                format!(
                    "a page in the middle does not match its checksum, and SQLite leaves out the {commits} commits from there on"
                ),
            ),
        };
        let mut lost = Damage::new(DamageKind::Missing, wal, what).with_bytes(bytes);
        if let Some(kept) = &self.kept {
            lost = lost.kept_as(kept);
        }
        damage.push(lost);
        Ok(damage)
    }
}

/// Copies a log aside, under a name that is free.
fn keep(wal: &Path) -> io::Result<PathBuf> {
    for number in 1..=KEPT_MAX {
        let kept = beside(wal, &format!(".damaged-{number}"));
        if kept.exists() {
            continue;
        }
        fs::copy(wal, &kept)?;
        File::open(&kept)?.sync_all()?;
        return Ok(kept);
    }
    Err(io::Error::other(format!(
        "{KEPT_MAX} damaged logs are kept beside it already; look at them, and remove them"
    )))
}
