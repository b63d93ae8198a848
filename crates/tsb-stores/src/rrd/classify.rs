//! Classifies an error of `tsb-rrd`: either one file is damaged, or the store cannot continue.
//!
//! One damaged file must not stop a store of thousands, and a full disk must not count as
//! thousands of damaged files.

use std::io::ErrorKind;
use std::path::Path;

use rustix::io::Errno;
use tsb_rrd::{Error as RrdError, RrdFile};

use super::engine::{EngineError, FinalError, failed, failure};
use crate::damage::{Damage, DamageKind};

/// Translates an error about an existing file.
pub(super) fn classify(action: &str, path: &Path, error: RrdError) -> EngineError {
    match error {
        RrdError::File { source, .. } => classify(action, path, *source),
        RrdError::Locked => EngineError::Locked,
        RrdError::Damaged { offset, what } => unreadable(path, format!("{what}, at byte {offset}")),
        RrdError::Changed => changed(path),
        RrdError::Unsupported(what) => {
            let damage = Damage::new(
                DamageKind::Unreadable,
                path,
                format!("this engine does not handle {what}"),
            );
            let error = failure(action, path, RrdError::Unsupported(what));
            EngineError::Final(FinalError::Foreign(Box::new(damage), error))
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
pub(super) fn foreign(path: &Path) -> EngineError {
    let what = "its layout is another than the one asked for";
    let damage = Damage::new(DamageKind::Unreadable, path, what);
    EngineError::Final(FinalError::Foreign(Box::new(damage), failure("read", path, what)))
}

/// Why a file is no longer the one that was opened.
fn changed(path: &Path) -> EngineError {
    match RrdFile::open(path) {
        Ok(_) => foreign(path),
        Err(error) => classify("read", path, error),
    }
}

fn unreadable(path: &Path, what: impl Into<String>) -> EngineError {
    damaged(DamageKind::Unreadable, path, what)
}

fn damaged(kind: DamageKind, path: &Path, what: impl Into<String>) -> EngineError {
    EngineError::Final(FinalError::Damaged(Box::new(Damage::new(kind, path, what))))
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

    fn of(doing: &'static str, errno: Errno) -> EngineError {
        let source = std::io::Error::from(errno);
        classify("update", Path::new("/x/a.rrd"), RrdError::Io { action: doing, source })
    }

    #[test]
    fn errors_of_one_file_are_told_from_errors_of_the_store() {
        for (doing, errno) in [
            ("open the file", Errno::NOENT),
            ("open the file", Errno::ACCESS),
            ("open the file", Errno::ISDIR),
            ("read the header", Errno::IO),
        ] {
            let error = of(doing, errno);
            assert!(
                matches!(error, EngineError::Final(FinalError::Damaged(_))),
                "{doing} {errno}"
            );
        }
        for (doing, errno) in [
            ("open the file", Errno::MFILE),
            ("open the file", Errno::NOMEM),
            ("write rows", Errno::NOSPC),
            ("write rows", Errno::IO),
        ] {
            let error = of(doing, errno);
            assert!(
                matches!(error, EngineError::Final(FinalError::Failed(_))),
                "{doing} {errno}"
            );
        }
    }
}
