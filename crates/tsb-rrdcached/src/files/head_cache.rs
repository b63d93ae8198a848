//! The heads of RRD files, kept in memory and in a checkpoint, so that files need not be read:
//! not when an update arrives, not in a replay, not in a write.
//!
//! A kept head is used only after a check: each file carries a stamp ([`tsb_rrd::CachedPages`]). If the
//! stamp differs, or the checkpoint is cut short or has a wrong checksum, the file is read as
//! usual. Byte format: docs/formats/checkpoint.md.

use std::collections::HashMap;
use std::fs::{File, Metadata, symlink_metadata};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::FixedState;
use tsb_core::bytes::{cut, cut_slice, u32_at};
use tsb_rrd::CachedPages;

use super::base::BaseFolder;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::lock;
use tsb_stores::write_cache::CheckpointOptions;
use tsb_stores::{Damage, DamageKind, DamageLog};

/// The first bytes of a checkpoint.
const MAGIC: &[u8; 8] = b"tsbchkp1";
/// Upper bound of a record's length in bytes; a longer one is damage.
const RECORD_MAX: u32 = 1 << 26;

/// The kept heads, within a memory bound.
#[derive(Debug)]
pub(super) struct HeadCache {
    path: PathBuf,
    max_bytes: u64,
    bytes: AtomicU64,
    /// The heads of files that have no entry in a shard.
    asleep: Mutex<HashMap<Box<str>, CachedPages, FixedState>>,
    /// Held while a checkpoint is written.
    saving: Mutex<()>,
    damage: DamageLog,
}

impl HeadCache {
    /// Reads the checkpoint, if there is one. Of a damaged one, reads the part before the damage,
    /// and notes the damage.
    ///
    /// # Errors
    /// [`Error::Backend`] if it cannot be read, [`Error::LaterFormat`], and [`Error::Corrupt`] if
    /// the file is something else.
    pub(super) fn open(options: &CheckpointOptions) -> Result<Self> {
        let head_cache = Self {
            path: options.path.clone(),
            max_bytes: options.max_bytes,
            bytes: AtomicU64::new(0),
            asleep: Mutex::default(),
            saving: Mutex::default(),
            damage: DamageLog::new(),
        };
        match File::open(&head_cache.path) {
            Ok(file) => head_cache.load(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(head_cache.failed("open", error)),
        }
        Ok(head_cache)
    }

    fn failed(&self, action: &str, source: io::Error) -> Error {
        Error::Backend {
            action: format!("{action} the checkpoint {}", self.path.display()),
            source: source.into(),
        }
    }

    fn load(&self, file: File) -> Result<()> {
        // Read the whole file ahead: otherwise the disk is idle while records are decoded.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::WillNeed);
        let mut input = BufReader::with_capacity(1 << 20, file);
        let mut magic = Vec::with_capacity(MAGIC.len());
        let read = input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic);
        read.map_err(|error| self.failed("read", error))?;
        self.check_magic(&magic)?;
        let (mut body, mut at) = (Vec::new(), magic.len() as u64);
        loop {
            match next(&mut input, &mut body) {
                Ok(Some((name, known, bytes))) => {
                    self.put_away(name.into(), Some(known));
                    at += bytes;
                }
                Ok(None) if magic.len() == MAGIC.len() => break,
                Ok(None) => {
                    self.note("it ends within its first bytes", at);
                    break;
                }
                Err(what) => {
                    self.note(what, at);
                    break;
                }
            }
        }
        Ok(())
    }

    fn check_magic(&self, magic: &[u8]) -> Result<()> {
        let (kind, version) = MAGIC.split_at(MAGIC.len() - 1);
        match magic.strip_prefix(kind) {
            Some([found]) if found.is_ascii_digit() && version != [*found] => Err(Error::LaterFormat {
                path: self.path.clone(),
                found: char::from(*found).to_string(),
                reads: String::from_utf8_lossy(version).into_owned(),
            }),
            _ if MAGIC.starts_with(magic) => Ok(()),
            // IMPORTANT: refuse the file. It is not ours, and the next checkpoint would replace
            // it.
            _ => Err(Error::Corrupt {
                path: self.path.clone(),
                offset: 0,
                what: "it is not a checkpoint".to_owned(),
            }),
        }
    }

    /// Notes damage. No sample is lost: heads that the checkpoint lacks are read from the files.
    fn note(&self, what: &str, at: u64) {
        let what = format!("{what} at byte {at}, so the files of which it knew more are read instead");
        let damage = Damage::new(DamageKind::Unreadable, &self.path, what).with_samples_at_most(0);
        let length = std::fs::metadata(&self.path).map(|file| file.len().saturating_sub(at));
        self.damage.note(match length {
            Ok(bytes) => damage.with_bytes(bytes),
            Err(_) => damage,
        });
    }

    /// The damage found in the checkpoint.
    pub(super) fn damage(&self) -> Vec<Damage> {
        self.damage.list()
    }

    /// The kept head of a file that gets an entry, if it still matches the file.
    pub(super) fn wake(&self, name: &str, file: &Metadata) -> Option<CachedPages> {
        let known = lock(&self.asleep).remove(name)?;
        let known = self.take(Some(known))?;
        known.is_current(file).then_some(known)
    }

    /// Counts a head's memory. Drops it if the bound is reached.
    pub(super) fn hold(&self, known: Option<CachedPages>) -> Option<CachedPages> {
        let known = known?;
        let bytes = known.bytes() as u64;
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes <= self.max_bytes {
            return Some(known);
        }
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        None
    }

    /// Stops counting a head's memory.
    pub(super) fn take(&self, known: Option<CachedPages>) -> Option<CachedPages> {
        let bytes = known.as_ref().map_or(0, CachedPages::bytes);
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        known
    }

    /// Keeps the head of a file that loses its entry.
    pub(super) fn put_away(&self, name: Box<str>, known: Option<CachedPages>) {
        let Some(known) = self.hold(known) else { return };
        let old = lock(&self.asleep).insert(name, known);
        self.take(old);
    }

    /// Writes a checkpoint of all heads; `awake` writes those of files with an entry.
    ///
    /// # Errors
    /// [`Error::Backend`]. The old checkpoint then stays, and is still valid.
    pub(super) fn save(
        &self,
        base: &BaseFolder,
        awake: impl FnOnce(&mut CheckpointWriter<'_>) -> io::Result<()>,
    ) -> Result<()> {
        let _one = lock(&self.saving);
        let beside = self.beside();
        let write = || {
            let mut output = BufWriter::with_capacity(1 << 20, File::create(&beside)?);
            output.write_all(MAGIC)?;
            let mut records = CheckpointWriter {
                output: &mut output,
                body: Vec::new(),
            };
            awake(&mut records)?;
            self.write_asleep(base, &mut records)?;
            output.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
        };
        write().map_err(|error| self.failed("write", error))?;
        // IMPORTANT: sync the files before the new checkpoint takes effect. Otherwise a power cut
        // could leave a checkpoint that contains updates which no file has.
        base.sync()?;
        let publish = || {
            std::fs::rename(&beside, &self.path)?;
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        publish().map_err(|error| self.failed("name", error))
    }

    fn write_asleep(&self, base: &BaseFolder, records: &mut CheckpointWriter<'_>) -> io::Result<()> {
        let mut asleep = lock(&self.asleep);
        // Drop the heads of files that were changed or removed.
        let is_there = |name: &str, known: &CachedPages| {
            let found = symlink_metadata(base.path(name));
            found.is_ok_and(|file| known.is_current(&file))
        };
        let gone = asleep.extract_if(|name, known| !is_there(name, known));
        gone.for_each(|(_, known)| drop(self.take(Some(known))));
        asleep.iter().try_for_each(|(name, known)| records.write(name, known))
    }

    fn beside(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        name.into()
    }
}

/// A checkpoint that is being written.
pub(super) struct CheckpointWriter<'a> {
    output: &'a mut BufWriter<File>,
    body: Vec<u8>,
}

impl CheckpointWriter<'_> {
    /// Appends the head of a file.
    pub(super) fn write(&mut self, name: &str, known: &CachedPages) -> io::Result<()> {
        self.body.clear();
        self.body.extend_from_slice(&(name.len() as u32).to_le_bytes());
        self.body.extend_from_slice(name.as_bytes());
        known.to_bytes(&mut self.body);
        let length = self.body.len() as u32;
        self.output.write_all(&length.to_le_bytes())?;
        self.output.write_all(&crc32fast::hash(&self.body).to_le_bytes())?;
        self.output.write_all(&self.body)
    }
}

/// Reads the next record, with its length; `None` at the end of the checkpoint.
///
/// # Errors
/// What is wrong with the record.
fn next<'a>(
    input: &mut impl Read,
    body: &'a mut Vec<u8>,
) -> std::result::Result<Option<(&'a str, CachedPages, u64)>, &'static str> {
    const CUT: &str = "a record is cut short";
    const WRONG: &str = "a record does not hold what it should";
    let mut prefix = Vec::with_capacity(8);
    let read = input.by_ref().take(8).read_to_end(&mut prefix);
    read.map_err(|_| "a record cannot be read")?;
    if prefix.is_empty() {
        return Ok(None);
    }
    let (Some(length), Some(sum)) = (u32_at(&prefix, 0), u32_at(&prefix, 4)) else {
        return Err(CUT);
    };
    if length > RECORD_MAX {
        return Err("a record is longer than any");
    }
    body.clear();
    let read = input.take(u64::from(length)).read_to_end(body);
    let read = read.map_err(|_| "a record cannot be read")?;
    if read != length as usize {
        return Err(CUT);
    }
    if crc32fast::hash(body) != sum {
        return Err("a checksum does not match");
    }
    let mut known = &body[..];
    let name_length = u32::from_le_bytes(cut(&mut known).ok_or(WRONG)?);
    let name = cut_slice(&mut known, name_length as usize).ok_or(WRONG)?;
    let name = std::str::from_utf8(name).map_err(|_| WRONG)?;
    let known = CachedPages::from_bytes(known).ok_or(WRONG)?;
    Ok(Some((name, known, 8 + u64::from(length))))
}
