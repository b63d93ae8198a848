//! RRD files in the layout of the published rrdcached benchmark, and the methods to update them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tsb_rrd::{
    Archive, Cf, DataSource, DsKind, ExclusiveFile, Layout, OpenFile, ReadAhead, Residency, RrdFile, Session, Stage,
    update_time_s,
};

/// Step, in seconds.
pub const STEP_S: i64 = 300;
/// Start of the files, in seconds since the epoch; a multiple of the length of every row.
pub const START_S: i64 = 1_699_920_000;

/// Two gauges and eight archives: 204,256 bytes per file.
#[expect(clippy::expect_used, reason = "the layout is fixed and valid")]
pub fn original_layout() -> Arc<Layout> {
    let sources = ["num", "sub"].map(|name| DataSource::new(name, DsKind::Gauge, 600));
    let archives = [Cf::Average, Cf::Max].map(|cf| {
        [(1, 1440), (6, 1008), (24, 1344), (288, 2500)].map(|(steps, rows)| Archive::new(cf, 0.5, steps, rows))
    });
    let layout = Layout::new(STEP_S as u64, sources.to_vec(), archives.concat());
    Arc::new(layout.expect("a valid layout"))
}

/// A method of updating files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateMethod {
    /// Opened for each update: open, lock, read, write, close.
    Stateless,
    /// The same, with read-ahead for files that are not in the page cache.
    Ahead,
    /// The file stays open: lock, read, write, unlock.
    Kept,
    /// Mapped and locked exclusively all the time: no lock and no read per update.
    Exclusive,
    /// The system's librrd: `rrd_update_r`.
    Librrd,
}

impl UpdateMethod {
    /// The methods in this build.
    pub const ALL: &[Self] = if cfg!(feature = "librrd") {
        &[Self::Stateless, Self::Ahead, Self::Kept, Self::Exclusive, Self::Librrd]
    } else {
        &[Self::Stateless, Self::Ahead, Self::Kept, Self::Exclusive]
    };

    /// The method with a name, if it is in this build.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|way| way.name() == name)
    }

    /// For tables and benchmark names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stateless => "stateless",
            Self::Ahead => "ahead",
            Self::Kept => "kept",
            Self::Exclusive => "exclusive",
            Self::Librrd => "librrd",
        }
    }
}

enum UpdateState {
    Paths(Vec<PathBuf>),
    Ahead(Vec<(PathBuf, Option<RrdFile>)>, ReadAhead),
    Open(Vec<OpenFile>),
    Held(Vec<ExclusiveFile>),
    Librrd(Vec<PathBuf>),
}

/// Files that are updated with one method.
pub struct Files {
    layout: Arc<Layout>,
    state: UpdateState,
    session: Session,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files")
            .field("count", &self.len())
            .finish_non_exhaustive()
    }
}

/// The path of a file of a set, counted from 0; all are in one folder as in the original.
pub fn path_of(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("{}.rrd", index + 1))
}

/// Creates `count` files in `folder`.
#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
pub fn create(folder: &Path, count: usize) {
    let layout = original_layout();
    std::fs::create_dir_all(folder).expect("a folder");
    for index in 0..count {
        tsb_rrd::create(&path_of(folder, index), &layout, START_S, index as u64).expect("a new file");
    }
}

#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
impl Files {
    /// Opens the files that [`create`] made.
    pub fn open(folder: &Path, count: usize, way: UpdateMethod) -> Self {
        let layout = original_layout();
        let paths = (0..count).map(|index| path_of(folder, index));
        let state = match way {
            UpdateMethod::Stateless => UpdateState::Paths(paths.collect()),
            UpdateMethod::Ahead => UpdateState::Ahead(paths.map(|path| (path, None)).collect(), ReadAhead::default()),
            UpdateMethod::Kept => UpdateState::Open(
                paths
                    .map(|path| OpenFile::new(RrdFile::open_as(&path, &layout).expect("a file")))
                    .collect(),
            ),
            UpdateMethod::Exclusive => UpdateState::Held(
                paths
                    .map(|path| ExclusiveFile::open(&path, &layout).expect("a file"))
                    .collect(),
            ),
            UpdateMethod::Librrd => UpdateState::Librrd(paths.collect()),
        };
        Self {
            layout,
            state,
            session: Session::default(),
        }
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        match &self.state {
            UpdateState::Paths(paths) | UpdateState::Librrd(paths) => paths.len(),
            UpdateState::Ahead(files, _) => files.len(),
            UpdateState::Open(files) => files.len(),
            UpdateState::Held(files) => files.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Applies the same updates to every file, in turn; all must be accepted.
    pub fn update_all(&mut self, readings: &[String]) {
        let UpdateState::Ahead(files, ahead) = &mut self.state else {
            return (0..self.len()).for_each(|index| self.update(index, readings));
        };
        let until = readings
            .last()
            .and_then(|reading| update_time_s(reading))
            .expect("a time");
        let (layout, session) = (&self.layout, &mut self.session);
        let done = ahead.for_each(files.len(), |stage, index| {
            let (path, ready) = &mut files[index];
            Ok::<_, tsb_rrd::Error>(match stage {
                Stage::Header => ready.insert(RrdFile::open_as(path, layout)?).prefetch_header(),
                Stage::Rows => ready
                    .as_ref()
                    .map_or(Ok(Residency::NotProbed), |file| file.prefetch_rows(session, until))?,
                Stage::Update => {
                    let file = ready.take().map_or_else(|| RrdFile::open_as(path, layout), Ok)?;
                    let updated = file.update_and_close(session, readings)?;
                    assert!(updated.stopped.is_none(), "{updated:?}");
                    Residency::NotProbed
                }
            })
        });
        done.expect("updates");
    }

    /// Applies updates to one file; all must be accepted.
    pub fn update(&mut self, index: usize, readings: &[String]) {
        let session = &mut self.session;
        let updated = match &mut self.state {
            UpdateState::Paths(paths) => {
                let file = RrdFile::open_as(&paths[index], &self.layout).expect("a file");
                file.update_and_close(session, readings)
            }
            UpdateState::Ahead(files, _) => {
                let file = RrdFile::open_as(&files[index].0, &self.layout).expect("a file");
                file.update_and_close(session, readings)
            }
            UpdateState::Open(files) => files[index].update(session, readings),
            UpdateState::Held(files) => files[index].update(session, readings),
            UpdateState::Librrd(paths) => return librrd(&paths[index], readings),
        };
        let updated = updated.expect("an update");
        assert!(updated.stopped.is_none(), "{updated:?}");
    }
}

#[cfg(feature = "librrd")]
#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
fn librrd(path: &Path, readings: &[String]) {
    tsb_librrd::update(path, readings).expect("an update");
}

#[cfg(not(feature = "librrd"))]
fn librrd(_path: &Path, _readings: &[String]) {
    unreachable!("no such way in this build");
}

/// `count` updates of two values, `seconds` apart, the last at `last_s`.
pub fn readings(last_s: i64, count: i64, seconds: i64, texts: &mut Vec<String>) {
    texts.clear();
    texts.extend((0..count).map(|index| {
        let at = last_s - (count - 1 - index) * seconds;
        format!("{at}:{}:{}", at % 9_973, at % 7_919)
    }));
}
