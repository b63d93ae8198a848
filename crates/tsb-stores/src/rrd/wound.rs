//! Classifies an error of `tsb-rrd`: either one file is damaged, or the store cannot continue.
//!
//! One damaged file must not stop a store of thousands, and a full disk must not count as
//! thousands of damaged files.

use std::io::ErrorKind;
use std::path::Path;

use rustix::io::Errno;
use tsb_rrd::{Error as RrdError, RrdFile};

use super::engine::{Ended, Trouble, failed, failure};
use crate::damage::{Damage, DamageKind};

/// Translates an error about an existing file.
pub(super) fn trouble(action: &str, path: &Path, error: RrdError) -> Trouble {
    match error {
        RrdError::File { source, .. } => trouble(action, path, *source),
        RrdError::Locked => Trouble::Locked,
        RrdError::Damaged { offset, what } => unreadable(path, format!("{what}, at byte {offset}")),
        RrdError::Changed => changed(path),
        RrdError::Unsupported(what) => {
            let damage = Damage::new(
                DamageKind::Unreadable,
                path,
                format!("this engine does not handle {what}"),
            );
            let error = failure(action, path, RrdError::Unsupported(what));
            Trouble::Ended(Ended::Foreign(Box::new(damage), error))
        }
        RrdError::Io { action: doing, source } => match source.kind() {
            ErrorKind::NotFound => damaged(DamageKind::Missing, path, "the file is gone"),
            ErrorKind::UnexpectedEof => unreadable(path, "it was cut short while it was in use"),
            _ if is_of_the_file(doing, &source) => unreadable(path, format!("cannot {doing}: {source}")),
            _ => failed(action, path, RrdError::Io { action: doing, source }),
        },
        other => failed(action, path, other),
    }
}

/// The error for a file with a valid header that has another layout.
pub(super) fn foreign(path: &Path) -> Trouble {
    let what = "its layout is another than the one asked for";
    let damage = Damage::new(DamageKind::Unreadable, path, what);
    Trouble::Ended(Ended::Foreign(Box::new(damage), failure("read", path, what)))
}

/// Why a file is no longer the one that was opened.
fn changed(path: &Path) -> Trouble {
    match RrdFile::open(path) {
        Ok(_) => foreign(path),
        Err(error) => trouble("read", path, error),
    }
}

fn unreadable(path: &Path, what: impl Into<String>) -> Trouble {
    damaged(DamageKind::Unreadable, path, what)
}

fn damaged(kind: DamageKind, path: &Path, what: impl Into<String>) -> Trouble {
    Trouble::Ended(Ended::Damaged(Box::new(Damage::new(kind, path, what))))
}

/// Whether a system error concerns this file only. A read error of the disk concerns one file;
/// after a write error, no file is safe.
fn is_of_the_file(doing: &str, error: &std::io::Error) -> bool {
    match Errno::from_io_error(error) {
        Some(Errno::ACCESS | Errno::PERM | Errno::ISDIR | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => true,
        Some(Errno::IO) => doing.starts_with("read"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(doing: &'static str, errno: Errno) -> Trouble {
        let source = std::io::Error::from(errno);
        trouble("update", Path::new("/x/a.rrd"), RrdError::Io { action: doing, source })
    }

    #[test]
    fn what_concerns_one_file_is_told_from_what_concerns_all() {
        for (doing, errno) in [
            ("open the file", Errno::NOENT),
            ("open the file", Errno::ACCESS),
            ("open the file", Errno::ISDIR),
            ("read the header", Errno::IO),
        ] {
            let ended = of(doing, errno);
            assert!(matches!(ended, Trouble::Ended(Ended::Damaged(_))), "{doing} {errno}");
        }
        for (doing, errno) in [
            ("open the file", Errno::MFILE),
            ("open the file", Errno::NOMEM),
            ("write rows", Errno::NOSPC),
            ("write rows", Errno::IO),
        ] {
            let ended = of(doing, errno);
            assert!(matches!(ended, Trouble::Ended(Ended::Failed(_))), "{doing} {errno}");
        }
    }
}
