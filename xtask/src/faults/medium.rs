//! A model of a medium that loses what was not synced: computes the files of a trace as they
//! would be after a power cut at any moment.
//!
//! The contents that a file had when its sync began are certain once the sync has ended; the
//! creation or removal of a name is certain once a sync of its folder has ended. Everything else
//! may be present in part, in any order, with writes torn at sectors.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::rng::Rng;
use super::trace::{Argument, Call, Event, Trace};

/// What a medium writes whole or not at all.
const SECTOR: usize = 512;

/// Files and folders below one folder, as programs see them and as the medium has them.
#[derive(Clone, Debug)]
pub(super) struct Medium {
    root: PathBuf,
    /// What stands under a name, relative to the root.
    names: BTreeMap<PathBuf, Node>,
    certain_names: BTreeMap<PathBuf, Node>,
    /// Changes of names that the medium may not have, in order.
    pending: Vec<Rename>,
    files: Vec<Content>,
    open: HashMap<i64, usize>,
    /// What descriptors share: a file, where the next write goes, whether that is the end.
    descriptions: Vec<Description>,
    /// What a sync that has not ended will make certain, by its call.
    syncing: HashMap<usize, Vec<Promise>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File(usize),
}

/// Names that change together.
type Rename = Vec<(PathBuf, Option<Node>)>;

#[derive(Clone, Debug)]
struct Description {
    file: usize,
    at: usize,
    appends: bool,
}

#[derive(Clone, Debug, Default)]
struct Content {
    certain: Vec<u8>,
    now_len: usize,
    /// With how many changes were made before all of these.
    unsynced: Vec<Change>,
    settled: usize,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Resize(usize),
}

/// What a sync makes certain when it ends: changes of a file, or of names in a folder, as many
/// as there were when it began.
#[derive(Clone, Debug)]
enum Promise {
    File(usize, usize),
    Folder(PathBuf, usize),
}

/// What a cut leaves of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnsyncedKept {
    Nothing,
    Everything,
    /// All up to some change.
    Ordered,
    /// All up to some change, and the last one torn.
    Prefix,
    /// Any changes, in any order, some torn.
    Some,
    /// The lengths, but zeros for the bytes.
    Lengths,
}

impl UnsyncedKept {
    pub(super) const ALL: [Self; 6] = [
        Self::Ordered,
        Self::Nothing,
        Self::Everything,
        Self::Prefix,
        Self::Some,
        Self::Lengths,
    ];
}

impl Medium {
    /// An empty one below `root`.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            names: BTreeMap::new(),
            certain_names: BTreeMap::new(),
            pending: Vec::new(),
            files: Vec::new(),
            open: HashMap::new(),
            descriptions: Vec::new(),
            syncing: HashMap::new(),
        }
    }

    /// The process ended: its descriptors are gone, and the syncs that it waited for.
    pub(super) fn end_process(&mut self) {
        self.open.clear();
        self.syncing.clear();
    }

    /// What happens at an event of a trace.
    pub(super) fn apply(&mut self, trace: &Trace, event: Event) -> Result<()> {
        match event {
            Event::Begins(index) => self.begin(index, &trace.calls[index]),
            Event::Ends(index) => {
                for promise in self.syncing.remove(&index).unwrap_or_default() {
                    self.keep(&promise);
                }
                self.end(&trace.calls[index])
            }
        }
        .with_context(|| format!("event {event:?}"))
    }

    fn begin(&mut self, index: usize, call: &Call) -> Result<()> {
        match call.name.as_str() {
            "close" => self.close(call),
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => self.write(call)?,
            "lseek" => {
                if let Some(description) = self.description(call) {
                    self.descriptions[description].at = call.result as usize;
                }
            }
            "fsync" | "fdatasync" => self.sync(index, call),
            "syncfs" | "sync" => self.sync_all(index),
            "rename" | "renameat" | "renameat2" => self.rename(call)?,
            "unlink" | "unlinkat" | "rmdir" => self.set_names(call, 0, None),
            "mkdir" | "mkdirat" => self.set_names(call, 0, Some(Node::Folder)),
            "ftruncate" => self.truncate(call)?,
            "fallocate" => self.allocate(call)?,
            "truncate" | "link" | "linkat" | "symlink" | "symlinkat" | "copy_file_range" | "sendfile" | "splice"
                if call.arguments.iter().any(|argument| self.concerns(argument)) =>
            {
                bail!("the model has no {}", call.name)
            }
            _ => {}
        }
        Ok(())
    }

    /// Descriptors are given when a call ends, and taken when one begins: a number may be
    /// another thread's in between.
    fn end(&mut self, call: &Call) -> Result<()> {
        let is_copy = || matches!(call.arguments.get(1), Some(Argument::Words(words)) if words.starts_with("F_DUPFD"));
        match call.name.as_str() {
            "open" | "openat" | "creat" => self.open(call)?,
            "dup" | "dup2" | "dup3" => self.duplicate(call),
            "fcntl" if is_copy() => self.duplicate(call),
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, call: &Call) {
        if let Some(Argument::Descriptor(number, _)) = call.arguments.first() {
            self.open.remove(number);
        }
    }

    /// A path relative to the root; `None` where it lies elsewhere.
    fn below(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(&self.root).ok().map(Path::to_owned)
    }

    fn concerns(&self, argument: &Argument) -> bool {
        match argument {
            Argument::Descriptor(number, path) => *number >= 0 && self.below(path).is_some(),
            Argument::Bytes(bytes) => self.below(Path::new(&*String::from_utf8_lossy(bytes))).is_some(),
            _ => false,
        }
    }

    /// The nth path of a call, relative to the root.
    fn path(&self, call: &Call, nth: usize) -> Option<PathBuf> {
        let mut folder: Option<&Path> = None;
        let mut seen = 0;
        for argument in &call.arguments {
            match argument {
                Argument::Descriptor(_, path) => folder = Some(path),
                Argument::Bytes(bytes) => {
                    if seen == nth {
                        let text = String::from_utf8_lossy(bytes);
                        let path = folder.map_or_else(|| PathBuf::from(&*text), |folder| folder.join(&*text));
                        return self.below(&path);
                    }
                    seen += 1;
                }
                _ => {}
            }
        }
        None
    }

    fn open(&mut self, call: &Call) -> Result<()> {
        let Some(path) = self.path(call, 0) else { return Ok(()) };
        let words = call.arguments.iter().find_map(|argument| match argument {
            Argument::Words(words) if words.contains("O_") => Some(words.as_str()),
            _ => None,
        });
        let words = words.unwrap_or_default();
        if words.contains("O_DIRECTORY") || self.names.get(&path) == Some(&Node::Folder) || path.as_os_str().is_empty()
        {
            return Ok(());
        }
        let file = match self.names.get(&path) {
            Some(Node::File(file)) => *file,
            _ if words.contains("O_CREAT") => {
                self.files.push(Content::default());
                let file = self.files.len() - 1;
                self.change_names(vec![(path, Some(Node::File(file)))]);
                file
            }
            _ => bail!("{} was opened, and nobody made it", path.display()),
        };
        if words.contains("O_TRUNC") {
            self.files[file].change(Change::Resize(0));
        }
        self.descriptions.push(Description {
            file,
            at: 0,
            appends: words.contains("O_APPEND"),
        });
        self.open.insert(call.result as i64, self.descriptions.len() - 1);
        Ok(())
    }

    fn description(&self, call: &Call) -> Option<usize> {
        match call.arguments.first() {
            Some(Argument::Descriptor(number, path)) if self.below(path).is_some() => self.open.get(number).copied(),
            _ => None,
        }
    }

    fn duplicate(&mut self, call: &Call) {
        if let Some(description) = self.description(call) {
            self.open.insert(call.result as i64, description);
        }
    }

    fn write(&mut self, call: &Call) -> Result<()> {
        let Some(description) = self.description(call) else {
            let is_here = call.arguments.first().is_some_and(|to| self.concerns(to));
            anyhow::ensure!(
                !is_here,
                "a write to a descriptor that nobody opened: {:?}",
                call.arguments.first()
            );
            return Ok(());
        };
        let mut bytes = match call.arguments.get(1) {
            Some(Argument::Bytes(bytes)) => bytes.clone(),
            Some(Argument::Buffers(buffers)) => buffers.concat(),
            other => bail!("a write of {other:?}"),
        };
        bytes.truncate(call.result as usize);
        let Description { file, at, appends } = self.descriptions[description].clone();
        let at = match call.arguments.get(3) {
            Some(Argument::Number(at)) if call.name.starts_with('p') => *at as usize,
            _ => {
                let at = if appends { self.files[file].now_len } else { at };
                self.descriptions[description].at = at + bytes.len();
                at
            }
        };
        self.files[file].change(Change::Write(at, bytes));
        Ok(())
    }

    fn truncate(&mut self, call: &Call) -> Result<()> {
        let Some(description) = self.description(call) else {
            return Ok(());
        };
        let Some(Argument::Number(len)) = call.arguments.get(1) else {
            bail!("no length")
        };
        let file = self.descriptions[description].file;
        self.files[file].change(Change::Resize(*len as usize));
        Ok(())
    }

    fn allocate(&mut self, call: &Call) -> Result<()> {
        let Some(description) = self.description(call) else {
            return Ok(());
        };
        let [_, mode, Argument::Number(at), Argument::Number(len)] = &call.arguments[..] else {
            bail!("no range")
        };
        if *mode != Argument::Number(0) {
            return Ok(());
        }
        let (file, end) = (self.descriptions[description].file, (at + len) as usize);
        if end > self.files[file].now_len {
            self.files[file].change(Change::Resize(end));
        }
        Ok(())
    }

    fn rename(&mut self, call: &Call) -> Result<()> {
        let (Some(from), Some(to)) = (self.path(call, 0), self.path(call, 1)) else {
            return Ok(());
        };
        let node = *self
            .names
            .get(&from)
            .with_context(|| format!("{} was renamed, and nobody made it", from.display()))?;
        if node == Node::Folder {
            bail!("the model renames no folders");
        }
        self.change_names(vec![(to, Some(node)), (from, None)]);
        Ok(())
    }

    fn set_names(&mut self, call: &Call, nth: usize, node: Option<Node>) {
        if let Some(path) = self.path(call, nth) {
            self.change_names(vec![(path, node)]);
        }
    }

    fn change_names(&mut self, change: Rename) {
        rename(&change, &mut self.names);
        self.pending.push(change);
    }

    fn sync(&mut self, index: usize, call: &Call) {
        let promise = if let Some(description) = self.description(call) {
            let file = self.descriptions[description].file;
            Promise::File(file, self.files[file].made())
        } else if let Some(Argument::Descriptor(_, path)) = call.arguments.first()
            && let Some(path) = self.below(path)
        {
            Promise::Folder(path, self.pending.len())
        } else {
            return;
        };
        self.syncing.insert(index, vec![promise]);
    }

    fn sync_all(&mut self, index: usize) {
        let files = self
            .files
            .iter()
            .enumerate()
            .map(|(file, content)| Promise::File(file, content.made()));
        let mut promises: Vec<Promise> = files.collect();
        let folders = self
            .names
            .iter()
            .filter(|(_, node)| **node == Node::Folder)
            .map(|(path, _)| path.clone());
        let folders = folders.chain([PathBuf::new()]);
        promises.extend(folders.map(|path| Promise::Folder(path, self.pending.len())));
        self.syncing.insert(index, promises);
    }

    fn keep(&mut self, promise: &Promise) {
        match promise {
            Promise::File(file, made) => self.files[*file].settle(*made),
            Promise::Folder(folder, made) => {
                // What has become certain stays in its place as no change, so that the places
                // of the others, which syncs know them by, stay.
                for change in &mut self.pending[..*made] {
                    if change.iter().any(|(path, _)| path.parent() == Some(folder)) {
                        rename(&std::mem::take(change), &mut self.certain_names);
                    }
                }
            }
        }
    }

    /// Writes the files as a cut now leaves them into `folder`.
    ///
    /// Files whose names end with `ordered` have a prefix of their changes, and no torn one.
    pub(super) fn cut(&self, leaves: UnsyncedKept, ordered: Option<&str>, rng: &mut Rng, folder: &Path) -> Result<()> {
        let mut names = self.certain_names.clone();
        let kept = match leaves {
            UnsyncedKept::Nothing => 0,
            UnsyncedKept::Everything => self.pending.len(),
            // The file system keeps names in order: a prefix of the changes.
            _ => rng.below(self.pending.len() as u64 + 1) as usize,
        };
        self.pending[..kept]
            .iter()
            .for_each(|change| rename(change, &mut names));
        for (path, node) in &names {
            let target = folder.join(path);
            match node {
                Node::Folder => fs::create_dir_all(&target)?,
                // A file whose folder is not there is not there.
                Node::File(file) if target.parent().is_some_and(Path::is_dir) => {
                    fs::write(&target, self.files[*file].left(of_file(leaves, path, ordered), rng))?;
                }
                Node::File(_) => {}
            }
        }
        Ok(())
    }
}

/// What is left of a file whose format needs its writes in order.
fn of_file(leaves: UnsyncedKept, path: &Path, ordered: Option<&str>) -> UnsyncedKept {
    let is_ordered = ordered.is_some_and(|end| path.to_string_lossy().ends_with(end));
    match leaves {
        UnsyncedKept::Prefix | UnsyncedKept::Some | UnsyncedKept::Lengths if is_ordered => UnsyncedKept::Ordered,
        leaves => leaves,
    }
}

fn rename(change: &Rename, names: &mut BTreeMap<PathBuf, Node>) {
    for (path, node) in change {
        match node {
            Some(node) => names.insert(path.clone(), *node),
            None => names.remove(path),
        };
    }
}

impl Content {
    fn change(&mut self, change: Change) {
        self.now_len = match &change {
            Change::Write(at, bytes) => self.now_len.max(at + bytes.len()),
            Change::Resize(len) => *len,
        };
        self.unsynced.push(change);
    }

    /// How many changes were ever made.
    fn made(&self) -> usize {
        self.settled + self.unsynced.len()
    }

    /// Makes the first `made` changes certain.
    fn settle(&mut self, made: usize) {
        for change in self.unsynced.drain(..made.saturating_sub(self.settled)) {
            change.apply(&mut self.certain);
        }
        self.settled = self.settled.max(made);
    }

    fn left(&self, leaves: UnsyncedKept, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = self.certain.clone();
        let (all, share) = (self.unsynced.len(), rng.below(5));
        let end = match leaves {
            UnsyncedKept::Nothing => 0,
            UnsyncedKept::Ordered | UnsyncedKept::Prefix => rng.below(all as u64 + 1) as usize,
            _ => all,
        };
        for (index, change) in self.unsynced[..end].iter().enumerate() {
            let is_torn = match leaves {
                UnsyncedKept::Prefix => index + 1 == end,
                UnsyncedKept::Some if rng.below(4) >= share => continue,
                UnsyncedKept::Some => rng.one_in(4),
                _ => false,
            };
            match leaves {
                UnsyncedKept::Lengths => change.stretch(&mut bytes),
                _ if is_torn => change.torn(rng, &mut bytes),
                _ => change.apply(&mut bytes),
            }
        }
        bytes
    }
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write(at, bytes) => put(*at, bytes, to),
            Self::Resize(len) => to.resize(*len, 0),
        }
    }

    /// Some of its sectors.
    fn torn(&self, rng: &mut Rng, to: &mut Vec<u8>) {
        let Self::Write(at, bytes) = self else {
            return self.apply(to);
        };
        let mut from = 0;
        while from < bytes.len() {
            let end = ((at + from) / SECTOR * SECTOR + SECTOR - at).min(bytes.len());
            if rng.one_in(2) {
                put(at + from, &bytes[from..end], to);
            }
            from = end;
        }
    }

    /// Only its length.
    fn stretch(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write(at, bytes) => to.resize(to.len().max(at + bytes.len()), 0),
            Self::Resize(len) => to.resize(*len, 0),
        }
    }
}

fn put(at: usize, bytes: &[u8], to: &mut Vec<u8>) {
    if to.len() < at + bytes.len() {
        to.resize(at + bytes.len(), 0);
    }
    to[at..at + bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests;
