//! Files updated with cached pages, beside twins updated without; both must have the same bytes.

use std::path::PathBuf;

use super::*;
use crate::layout::{Archive, Cf, DataSource, DsKind};
use crate::{Residency, RrdFile};

const START_S: i64 = 1_700_000_000;

struct Twins {
    folder: tempfile::TempDir,
    layout: Arc<Layout>,
    cache: Option<CachedPages>,
    session: Session,
    now_s: i64,
}

impl Twins {
    /// Two archives share a page with the header, and two others a page with each other.
    fn new() -> Self {
        let rows = [100, 100, 3_000, 40, 40, 2_000];
        let archives = rows.map(|rows| Archive::new(Cf::Average, 0.5, 1 + rows % 7 / 2, rows));
        let sources = ["a", "b"].map(|name| DataSource::new(name, DsKind::Gauge, 600));
        let layout = Layout::new(10, sources.to_vec(), archives.to_vec()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for name in ["ours", "twin"] {
            crate::create(&folder.path().join(name), &layout, START_S, 5).unwrap();
        }
        Self {
            folder,
            layout: Arc::new(layout),
            cache: None,
            session: Session::default(),
            now_s: START_S,
        }
    }

    fn found(&self, name: &str) -> Metadata {
        std::fs::symlink_metadata(self.path(name)).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self, name: &str) -> RrdFile {
        RrdFile::open_as(&self.path(name), &self.layout).unwrap()
    }

    fn next_update(&mut self, later_s: i64) -> [String; 1] {
        self.now_s += later_s;
        [format!("{}:{}:{}.5", self.now_s, self.now_s % 97, self.now_s % 89)]
    }

    /// Both are updated, ours with its cached pages.
    fn update(&mut self, later_s: i64) {
        let updates = self.next_update(later_s);
        let twin = self.open("twin");
        twin.update_and_close(&mut self.session, &updates).unwrap();
        let ours = self.open("ours");
        let updated = ours
            .update_cached(&mut self.session, &mut self.cache, &updates)
            .unwrap();
        assert!(updated.stopped.is_none());
        self.compare();
    }

    fn compare(&self) {
        let read = |name: &str| std::fs::read(self.path(name)).unwrap();
        assert!(read("ours") == read("twin"), "at {}", self.now_s);
    }
}

#[test]
fn files_with_cached_pages_get_the_bytes_of_those_that_are_read() {
    let mut twins = Twins::new();
    for turn in 0..700 {
        let later_s = [
            10,
            10,
            3,
            10,
            70,
            10,
            10,
            9,
            25,
            if turn % 50 == 0 { 20_000 } else { 10 },
        ][turn % 10];
        twins.update(later_s);
    }
    let bytes = twins.cache.unwrap().bytes();
    assert!(bytes < 8 * 4_200, "{bytes} bytes for a header and six archives");
}

#[test]
fn writes_by_other_programs_are_noticed() {
    let mut twins = Twins::new();
    for turn in 0..60 {
        twins.update(10);
        if twins.cache.is_none() {
            // This file system keeps no times of ours.
            return;
        }
        if turn % 3 == 0 {
            let updates = twins.next_update(10);
            for name in ["ours", "twin"] {
                let file = twins.open(name);
                file.update_and_close(&mut twins.session, &updates).unwrap();
            }
            assert!(!twins.cache.as_ref().unwrap().is_current(&twins.found("ours")));
        }
        if turn % 7 == 0 {
            // Another file under this name, with other rows.
            std::fs::copy(twins.path("twin"), twins.path("copy")).unwrap();
            std::fs::rename(twins.path("copy"), twins.path("ours")).unwrap();
        }
    }
    twins.update(10);
}

#[test]
fn cached_pages_come_back_from_bytes_and_damage_is_found_or_harmless() {
    let mut twins = Twins::new();
    twins.update(10);
    twins.update(10);
    let Some(cache) = twins.cache.clone() else { return };
    let mut bytes = Vec::new();
    cache.to_bytes(&mut bytes);
    assert_eq!(CachedPages::from_bytes(&bytes), Some(cache.clone()));
    let (layout, newest) = cache.header().unwrap();
    assert_eq!((&layout, newest.seconds), (&*twins.layout, twins.now_s));
    let session = &mut Session::default();
    assert_eq!(cache.newest_for(&layout, session), Some(newest));
    let other = Layout::new(7, layout.sources().to_vec(), layout.archives().to_vec()).unwrap();
    assert_eq!(cache.newest_for(&other, session), None);
    for end in 0..bytes.len() {
        // Some ends lie between two pages: the rest is then as good as it was.
        if let Some(cache) = CachedPages::from_bytes(&bytes[..end]) {
            assert_eq!((end - HEAD) % (PAGE as usize + 8), 0);
            let header = cache.header().ok().map(|(_, newest)| newest);
            assert_eq!(cache.newest_for(&layout, session), header);
        }
    }
    // Cut off between two pages it is only less.
    twins.cache = CachedPages::from_bytes(&bytes[..HEAD + PAGE as usize + 8]);
    assert!(twins.cache.is_some());
    twins.update(10);
}

#[test]
fn nothing_is_read_of_a_file_with_cached_pages() {
    let mut twins = Twins::new();
    for _ in 0..12 {
        twins.update(10);
    }
    let Some(cache) = twins.cache.clone() else { return };
    let updates = twins.next_update(10);
    let evict = |file: &RrdFile| {
        file.file().sync_all().unwrap();
        rustix::fs::fadvise(file.file(), 0, None, rustix::fs::Advice::DontNeed).unwrap();
    };
    let (ours, twin) = (twins.open("ours"), twins.open("twin"));
    evict(&ours);
    if twins.open("ours").prefetch_header() != Residency::Cold {
        // A file system in memory.
        return;
    }
    ours.file().sync_all().unwrap();
    evict(&ours);
    assert!(cache.is_current(&twins.found("ours")));
    let before = read_bytes();
    twins.cache = Some(cache);
    ours.update_cached(&mut twins.session, &mut twins.cache, &updates)
        .unwrap();
    assert_eq!(read_bytes(), before);
    twin.update_and_close(&mut twins.session, &updates).unwrap();
    twins.compare();
}

/// Bytes that this thread had the medium read, as `/proc` prints them.
fn read_bytes() -> Option<String> {
    let text = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    text.lines()
        .find(|line| line.starts_with("read_bytes"))
        .map(str::to_owned)
}
