//! Changes the head of a file, by librrd (`TUNE`).

use tsb_rrd::Session;

use super::error::FileResult;
use super::{FileCache, librrd};

impl FileCache {
    /// Changes a file as `rrdtool tune` does, after its queue was written.
    ///
    /// # Errors
    /// [`FileError`](super::FileError); without the feature `librrd`, for every file.
    pub(super) fn tune(&self, file: &str, options: &[String], session: &mut Session) -> FileResult<()> {
        let name = self.shared.base.name(file)?;
        self.shared.base.check_file(&name)?;
        let shard_mutex = self.shared.shard_of(&name);
        // Accepted updates were checked against the old layout, so they must be written first.
        let claim = loop {
            self.shared.flush(&name, session)?;
            let mut shard = shard_mutex.lock_idle(&name);
            let waiting = shard.entries.get(&name).map_or(0, super::entry::Entry::queued);
            if waiting == 0 {
                self.shared.remove(&mut shard, &name)?;
                break shard_mutex.claim(&mut shard, &name);
            }
        };
        let tuned = self.retry_while_locked(&name, &mut |path| librrd::tune(path, options));
        drop(claim);
        tuned
    }
}
