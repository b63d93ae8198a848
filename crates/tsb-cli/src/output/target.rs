//! A result file: checked to be writable before the run, and replaced only when the new result
//! is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Longest file name, in bytes; leaves room for the temporary file's prefix and suffix.
const NAME_MAX: usize = 100;

/// A file for a result.
#[derive(Clone, Debug)]
pub struct Target {
    path: PathBuf,
    method: WriteMethod,
}

#[derive(Clone, Debug)]
enum WriteMethod {
    /// Write a temporary file next to this one, then rename it.
    Replace(PathBuf),
    /// Overwrite in place: a device, a pipe, or a file in a folder where no file can be created.
    InPlace,
}

impl Target {
    /// Checks that `path` can be written, without changing its contents.
    ///
    /// # Errors
    /// If it cannot; names the path and the cause.
    pub fn prepare(path: &Path) -> Result<Self, Failure> {
        let method = method_for(path).map_err(|error| {
            Failure::usage(format!("cannot write {}", path.display()))
                .because(&error)
                .hint("nothing was run; give a path that can be written")
        })?;
        Ok(Self {
            path: path.to_owned(),
            method,
        })
    }

    /// The path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a file that is replaced as a whole, not a device or a pipe.
    pub const fn is_replaced(&self) -> bool {
        matches!(self.method, WriteMethod::Replace(_))
    }

    /// Writes the result. If that fails, the previous contents are kept, except for devices,
    /// pipes and files in folders where no file can be created.
    ///
    /// # Errors
    /// [`crate::exit::Exit::Unwritten`], with the path and the cause.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match &self.method {
            WriteMethod::Replace(real) => replace(real, bytes),
            WriteMethod::InPlace => in_place(&self.path, bytes),
        };
        written.map_err(|error| Failure::unwritten(self.path.display(), &error))
    }
}

fn method_for(path: &Path) -> io::Result<WriteMethod> {
    // A redirected stdout is a file there, which the text goes into as well.
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return fs::metadata(path).map(|_| WriteMethod::InPlace);
    }
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(io::Error::from(ErrorKind::IsADirectory)),
        Ok(there) if there.is_file() => {
            OpenOptions::new().write(true).open(path)?;
            let real = fs::canonicalize(path)?;
            let is_open = try_beside(&real).is_ok();
            Ok(if is_open {
                WriteMethod::Replace(real)
            } else {
                WriteMethod::InPlace
            })
        }
        Ok(_) => Ok(WriteMethod::InPlace),
        // A link to a file that is not there yet.
        Err(_) if fs::symlink_metadata(path).is_ok() => {
            OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            Ok(WriteMethod::Replace(fs::canonicalize(path)?))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            try_beside(path)?;
            Ok(WriteMethod::Replace(path.to_owned()))
        }
        Err(error) => Err(error),
    }
}

/// The temporary file next to `path`.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
    let name = name.to_string_lossy();
    let name = &name[..name.floor_char_boundary(NAME_MAX)];
    Ok(path.with_file_name(format!(".{name}.{}.part", std::process::id())))
}

/// Creates and removes the temporary file, as a check.
fn try_beside(path: &Path) -> io::Result<()> {
    let part = beside(path)?;
    File::create(&part)?;
    fs::remove_file(&part)
}

fn replace(real: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = beside(real)?;
    let written = write_part(real, &part, bytes);
    if written.is_err() {
        // The first error is the one that is reported.
        let _ = fs::remove_file(&part);
    }
    written
}

fn write_part(real: &Path, part: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(part)?;
    file.write_all(bytes)?;
    if let Ok(before) = fs::metadata(real) {
        file.set_permissions(before.permissions())?;
    }
    file.sync_all()?;
    fs::rename(part, real)
}

fn in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    match file.write_all(bytes) {
        // Who reads a pipe may have read enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
        written => written?,
    }
    match file.sync_all() {
        // A device or a pipe has nothing to sync.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_stays_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        let target = Target::prepare(&path).unwrap();
        assert!(
            names(folder.path()).is_empty(),
            "nothing is made before there is a result"
        );
        target.write(b"first").unwrap();
        let again = Target::prepare(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        again.write(b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(folder.path()), ["r.json"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::os::unix::fs::symlink(&real, &link).unwrap();
        Target::prepare(&link).unwrap().write(b"x").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"x");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn an_unwritable_output_is_reported_before_a_run() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            folder.path().to_owned(),
            folder.path().join("no/such"),
            PathBuf::from("/dev/no-such"),
        ] {
            let failure = Target::prepare(&path).unwrap_err();
            assert_eq!(failure.exit, crate::exit::Exit::Usage, "{failure}");
            assert!(failure.to_string().contains("nothing was run"), "{failure}");
        }
    }

    #[test]
    fn a_device_is_written_in_place() {
        Target::prepare(Path::new("/dev/null")).unwrap().write(b"x").unwrap();
        let failure = Target::prepare(Path::new("/dev/full"))
            .unwrap()
            .write(b"x")
            .unwrap_err();
        assert_eq!(failure.exit, crate::exit::Exit::Unwritten, "{failure}");
    }
}
