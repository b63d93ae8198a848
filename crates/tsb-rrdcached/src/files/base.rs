//! The base folder of a cache of files, and the mapping from a client's words to files in it.
//!
//! A name is relative and consists of plain parts; files above the folder or behind a symbolic
//! link have no name.

use std::borrow::Cow;
use std::fmt::Debug;
use std::fs::{File, Metadata, symlink_metadata};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use super::error::{FileError, FileResult};
use tsb_stores::error::Error;

/// Syncs the files: the operating system, or in tests a simulation that loses what was not
/// synced.
pub trait FileSystem: Debug + Send + Sync {
    /// When this returns, everything written below `folder` outlives a power cut.
    ///
    /// # Errors
    /// The error of the operating system.
    fn sync(&self, folder: &Path) -> io::Result<()>;
}

/// The operating system. It syncs the whole file system of the folder.
#[derive(Debug)]
pub(super) struct OperatingSystem;

impl FileSystem for OperatingSystem {
    fn sync(&self, folder: &Path) -> io::Result<()> {
        let folder = File::open(folder)?;
        Ok(rustix::fs::syncfs(&folder)?)
    }
}

/// The base folder.
#[derive(Debug)]
pub(super) struct BaseFolder {
    /// The folder as given; clients' absolute names may start with it.
    given: PathBuf,
    /// The folder without symbolic links.
    root: PathBuf,
    /// The prefixes of absolute names, as text: `root` and `given`, if absolute.
    prefixes: Vec<String>,
    system: Box<dyn FileSystem>,
}

impl BaseFolder {
    pub(super) fn open(folder: &Path, system: Box<dyn FileSystem>) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let (given, root) = (folder.to_owned(), folder.canonicalize()?);
        let absolute = [&root, &given].into_iter().filter(|path| path.is_absolute());
        let prefixes = absolute.filter_map(|path| Some(format!("{}/", path.to_str()?.trim_end_matches('/'))));
        Ok(Self {
            prefixes: prefixes.collect(),
            given,
            root,
            system,
        })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Syncs the files. When it returns, everything written to them outlives a power cut.
    pub(super) fn sync(&self) -> Result<(), Error> {
        self.system.sync(&self.root).map_err(|source| Error::Backend {
            action: format!("sync the file system of {}", self.root.display()),
            source: source.into(),
        })
    }

    /// Syncs a file, and the folders above it, which hold its name.
    pub(super) fn sync_file(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()?;
        let folders = path
            .ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(&self.root));
        // The base folder may be new as well, so its parent is synced too.
        for folder in folders.chain(self.root.parent()) {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    /// The name of a file from a client's word, relative or absolute. Does not look at the file.
    pub(super) fn name<'a>(&self, word: &'a str) -> FileResult<Cow<'a, str>> {
        let below = self
            .prefixes
            .iter()
            .find_map(|prefix| word.strip_prefix(prefix.as_str()));
        let below = below.unwrap_or(word);
        if is_plain(below) {
            return Ok(Cow::Borrowed(below));
        }
        self.normalized(word).map(Cow::Owned)
    }

    /// The name of a file from a word that contains more than plain parts.
    fn normalized(&self, word: &str) -> FileResult<String> {
        let outside = || FileError::Outside(self.display_path(word));
        let path = Path::new(word);
        let below = if path.is_absolute() {
            let below = path
                .strip_prefix(&self.root)
                .or_else(|_| path.strip_prefix(&self.given));
            below.map_err(|_| outside())?
        } else {
            path
        };
        let mut name = String::with_capacity(word.len());
        for part in below.components() {
            match part {
                Component::CurDir => {}
                Component::Normal(part) => {
                    if !name.is_empty() {
                        name.push('/');
                    }
                    name.push_str(part.to_str().ok_or_else(outside)?);
                }
                _ => return Err(outside()),
            }
        }
        if name.contains(|c: char| c.is_control()) {
            return Err(outside());
        }
        Ok(name)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The name as shown in replies.
    pub(super) fn display_path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    /// Checks that this name is a regular file, with no symbolic link on the path.
    pub(super) fn check_file(&self, name: &str) -> FileResult<Metadata> {
        match self.walk(name)? {
            Some(found) if found.is_file() => Ok(found),
            Some(_) => Err(FileError::NotRegular(self.display_path(name))),
            None => Err(FileError::Missing(self.display_path(name))),
        }
    }

    /// The metadata of this name, if it exists.
    pub(super) fn walk(&self, name: &str) -> FileResult<Option<Metadata>> {
        let mut path = self.root.clone();
        let mut last = None;
        for part in name.split('/').filter(|part| !part.is_empty()) {
            path.push(part);
            let found = match symlink_metadata(&path) {
                Ok(found) => found,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    return Ok(None);
                }
                Err(source) => {
                    let file = self.display_path(name);
                    return Err(FileError::Io { file, source });
                }
            };
            if found.is_symlink() {
                return Err(FileError::Outside(self.display_path(name)));
            }
            last = Some(found);
        }
        Ok(last)
    }
}

/// Whether a word is a name already: printable ASCII, and no part is empty or begins with a dot.
fn is_plain(word: &str) -> bool {
    let mut is_first = true;
    let is_good = word.bytes().all(|byte| {
        let is_bad = !matches!(byte, b' '..=b'~') || (is_first && matches!(byte, b'.' | b'/'));
        is_first = byte == b'/';
        !is_bad
    });
    is_good && !is_first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_base() {
        let folder = tempfile::tempdir().unwrap();
        let base = BaseFolder::open(folder.path(), Box::new(OperatingSystem)).unwrap();
        let root = base.root().display().to_string();
        let check = |word: &str, name: &str| assert_eq!(&*base.name(word).unwrap(), name, "{word}");
        check("a.rrd", "a.rrd");
        check("./sub//a.rrd", "sub/a.rrd");
        check("sub/.a.rrd", "sub/.a.rrd");
        check("sub/a b\u{fc}.rrd/", "sub/a b\u{fc}.rrd");
        check(&format!("{root}//a.rrd"), "a.rrd");
        check(&format!("{root}/sub/a.rrd"), "sub/a.rrd");
        for bad in [
            "../a.rrd",
            "sub/../../a.rrd",
            "/etc/passwd",
            &format!("{root}/../a"),
            &format!("{root}x/a"),
            "a\u{1}b",
            "a\u{85}b",
        ] {
            assert!(matches!(base.name(bad), Err(FileError::Outside(_))), "{bad}");
        }
    }

    #[test]
    fn symbolic_links_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let base = BaseFolder::open(&folder.path().join("base"), Box::new(OperatingSystem)).unwrap();
        std::fs::write(folder.path().join("secret"), "x").unwrap();
        std::fs::create_dir(base.path("sub")).unwrap();
        std::fs::write(base.path("sub/a.rrd"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path(), base.path("up")).unwrap();
        std::os::unix::fs::symlink("sub/a.rrd", base.path("b.rrd")).unwrap();
        assert!(base.check_file("sub/a.rrd").is_ok());
        assert!(matches!(base.check_file("up/secret"), Err(FileError::Outside(_))));
        assert!(matches!(base.check_file("b.rrd"), Err(FileError::Outside(_))));
        assert!(matches!(base.check_file("sub"), Err(FileError::NotRegular(_))));
        assert!(matches!(base.check_file("no/a.rrd"), Err(FileError::Missing(_))));
        assert!(matches!(base.check_file("sub/a.rrd/x"), Err(FileError::Missing(_))));
    }
}
