//! The files under test: RRD files in GrowthForecast's layout, and the values that they must
//! hold.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustix::fs::{Advice, fadvise, syncfs};
use tsb_core::report::experiment::rrdcached::Resident;
use tsb_rrd::{Archive, Cf, DataSource, DsKind, Layout, RrdFile, Session};

use super::{Result, failed};

/// Step, in seconds.
pub(super) const STEP_S: i64 = 300;
/// Start of the files, in seconds since the epoch; a multiple of the length of every row.
const START_S: i64 = 1_699_920_000;
/// Number of files per call of `fincore`.
const AT_ONCE: usize = 500;

/// The files under test, and what they must hold.
#[derive(Debug)]
pub(super) struct Testbed {
    folder: PathBuf,
    layout: Arc<Layout>,
    made: usize,
    count: usize,
    /// Time of the last update of every file, in seconds since the epoch.
    pub(super) at_s: i64,
    /// Number of the current pass; the values are a function of it.
    pub(super) pass: u64,
}

impl Testbed {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        let files = folder.join("files");
        std::fs::create_dir(&files).map_err(|error| failed("make", &files, &error))?;
        let sources = ["num", "sub"].map(|name| DataSource::new(name, DsKind::Gauge, 600));
        let archives = [Cf::Average, Cf::Max].map(|cf| {
            [(1, 1440), (6, 1008), (24, 1344), (288, 2500)].map(|(steps, rows)| Archive::new(cf, 0.5, steps, rows))
        });
        let layout = Layout::new(STEP_S as u64, sources.to_vec(), archives.concat());
        Ok(Self {
            layout: Arc::new(layout.map_err(|error| failed("lay out", &files, &error))?),
            folder: files,
            made: 0,
            count: 0,
            at_s: START_S,
            pass: 0,
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn path(&self, index: usize) -> PathBuf {
        self.folder.join(format!("{}.rrd", index + 1))
    }

    /// Creates files until there are `count`, and uses the first `count` from now on.
    pub(super) fn grow(&mut self, count: usize, mut progress: impl FnMut(usize)) -> Result<()> {
        for index in self.made..count {
            let path = self.path(index);
            let made = tsb_rrd::create(&path, &self.layout, START_S, index as u64);
            made.map_err(|error| failed("create", &path, &error))?;
            if (index + 1) % 5_000 == 0 {
                progress(index + 1);
            }
        }
        self.made = self.made.max(count);
        self.count = count;
        Ok(())
    }

    /// Uses only the first `count` files from now on.
    pub(super) fn shrink(&mut self, count: usize) {
        self.count = self.count.min(count);
    }

    /// The update of a file in this pass.
    pub(super) fn update_text(&self, index: usize) -> String {
        let (num, sub) = self.values(index);
        format!("{}:{num}:{sub}", self.at_s)
    }

    fn values(&self, index: usize) -> (u64, u64) {
        let bits = ((self.pass << 32) | index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let count = self.count.max(1) as u64;
        ((bits >> 40) % count, ((bits >> 20) & 0xf_ffff) % count)
    }

    /// Begins the next pass, `later_s` seconds later.
    pub(super) fn begin_pass(&mut self, later_s: i64) {
        self.at_s += later_s;
        self.pass += 1;
    }

    /// Updates all files to a time early in a two-hour period, so that the next few steps end
    /// rows of the two finest archives only.
    pub(super) fn align(&mut self) -> Result<()> {
        let hour_s = 24 * STEP_S;
        let next_s = (self.at_s.div_euclid(hour_s) + 1) * hour_s + STEP_S + 10;
        self.begin_pass(next_s - self.at_s);
        let mut session = Session::default();
        for index in 0..self.count {
            self.update(index, &mut session)?;
        }
        Ok(())
    }

    /// One direct update: open, lock, read, write and close, as librrd does.
    pub(super) fn update(&self, index: usize, session: &mut Session) -> Result<()> {
        let path = self.path(index);
        let updated = RrdFile::open_as(&path, &self.layout)
            .and_then(|file| file.update_and_close(session, &[self.update_text(index)]))
            .and_then(|updated| updated.stopped.map_or(Ok(()), Err));
        updated.map_err(|error| failed("update", &path, &error))
    }

    /// One direct update by the system's librrd, as the publication's program made it.
    #[cfg(feature = "librrd")]
    pub(super) fn update_with_librrd(&self, index: usize) -> Result<()> {
        let path = self.path(index);
        let updated = tsb_librrd::update(&path, &[self.update_text(index)]);
        updated.map_err(|error| failed("update with librrd", &path, &error))
    }

    /// Syncs the file system.
    pub(super) fn sync(&self) -> Result<()> {
        let synced = File::open(&self.folder).and_then(|folder| Ok(syncfs(&folder)?));
        synced.map_err(|error| failed("sync the file system of", &self.folder, &error))
    }

    /// Syncs, then drops the files from the page cache; names and inodes stay cached.
    pub(super) fn drop_from_page_cache(&self) -> Result<()> {
        self.sync()?;
        for index in 0..self.count {
            let path = self.path(index);
            let dropped = File::open(&path).and_then(|file| Ok(fadvise(&file, 0, None, Advice::DontNeed)?));
            dropped.map_err(|error| failed("drop from memory", &path, &error))?;
        }
        Ok(())
    }

    /// Bytes of the files in the page cache, as `fincore` reports them; `None` if it is not
    /// installed.
    pub(super) fn resident(&self) -> Option<Resident> {
        let mut sum = Resident {
            bytes: 0,
            of_bytes: self.count as u64 * self.layout.file_len(),
        };
        let paths: Vec<PathBuf> = (0..self.count).map(|index| self.path(index)).collect();
        for some in paths.chunks(AT_ONCE) {
            let mut fincore = Command::new("fincore");
            let output = fincore.args(["-b", "-n", "-o", "RES"]).args(some).output().ok()?;
            let text = String::from_utf8(output.stdout)
                .ok()
                .filter(|_| output.status.success())?;
            sum.bytes += text
                .lines()
                .filter_map(|line| line.trim().parse::<u64>().ok())
                .sum::<u64>();
        }
        Some(sum)
    }

    /// Number of files that do not hold their last update.
    pub(super) fn count_wrong(&self) -> Result<u64> {
        let mut session = Session::default();
        let mut wrong = 0;
        for index in 0..self.count {
            let path = self.path(index);
            let facts = RrdFile::open(&path).and_then(|file| tsb_rrd::info(&file, &mut session));
            let facts = facts.map_err(|error| failed("read", &path, &error))?;
            let says =
                |name: &str, fact: &tsb_rrd::InfoValue| facts.iter().any(|(key, said)| key == name && said == fact);
            let (num, sub) = self.values(index);
            let is_right = says("last_update", &tsb_rrd::InfoValue::Count(self.at_s as u64))
                && says("ds[num].last_ds", &tsb_rrd::InfoValue::Text(num.to_string()))
                && says("ds[sub].last_ds", &tsb_rrd::InfoValue::Text(sub.to_string()));
            wrong += u64::from(!is_right);
        }
        Ok(wrong)
    }
}
