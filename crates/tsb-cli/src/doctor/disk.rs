//! Examines the disk that a store would use: file system, free space, and the time of a sync.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use tsb_core::proc::file_system;
use tsb_core::time::{Clock, MonotonicClock};

use super::{Level, MachineFinding, bytes};
use tsb_run::units::nanos;

/// Number of timed syncs.
const SYNCS: usize = 20;

/// Bytes written before each sync.
const BLOCK_BYTES: usize = 4_096;

/// A slower sync allows fewer than 50 commits per second.
const SYNC_NS_MAX: u64 = 20_000_000;

/// A disk with less free space may fill up during a run.
const FREE_BYTES_MIN: u64 = 5 << 30;

pub(super) fn examine(dir: &Path) -> Vec<MachineFinding> {
    let real = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let kind = file_system(&real);
    vec![
        judge_file_system(kind.as_deref()),
        judge_room(
            rustix::fs::statvfs(dir)
                .ok()
                .map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize)),
        ),
        judge_sync(sync_times(dir)),
    ]
}

fn judge_file_system(kind: Option<&str>) -> MachineFinding {
    let Some(kind) = kind else {
        return MachineFinding::unknown("file system", "/proc/self/mountinfo");
    };
    let meaning = "the file system decides what a sync means and what it costs";
    let in_memory = ["tmpfs", "ramfs"].contains(&kind);
    let remote = kind.starts_with("nfs") || ["cifs", "9p", "virtiofs"].contains(&kind) || kind.starts_with("fuse");
    let finding = MachineFinding::ok("file system", kind, meaning);
    if in_memory {
        return finding.advise(
            Level::Warn,
            "this is memory: nothing here is synced, whatever a store claims; use --dir on a disk",
        );
    }
    finding.advise_if(
        remote,
        Level::Warn,
        "this file system is remote or shared: its sync times are those of the other side",
    )
}

fn judge_room(free: Option<u64>) -> MachineFinding {
    let Some(free) = free else {
        return MachineFinding::unknown("disk room", "the directory cannot be examined");
    };
    let meaning = "a store on disk grows for as long as the run lasts";
    MachineFinding::ok("disk room", bytes(free), meaning).advise_if(
        free < FREE_BYTES_MIN,
        Level::Warn,
        "make room or use --dir on another disk",
    )
}

/// Times of writing a block at the same offset and syncing it, in nanoseconds, sorted.
fn sync_times(dir: &Path) -> std::io::Result<Vec<u64>> {
    let path = dir.join(format!(".tsb-doctor-{}", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let times = time_syncs(file);
    std::fs::remove_file(&path)?;
    times
}

fn time_syncs(mut file: File) -> std::io::Result<Vec<u64>> {
    let clock = MonotonicClock::new();
    let mut block = [0_u8; BLOCK_BYTES];
    file.write_all(&block)?;
    // The first sync also brings the new file's size to disk: it is not timed.
    file.sync_all()?;
    let mut times = Vec::with_capacity(SYNCS);
    for round in 0..SYNCS {
        block.fill(round as u8);
        file.seek(SeekFrom::Start(0))?;
        let start = clock.now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(clock.now() - start);
    }
    times.sort_unstable();
    Ok(times)
}

fn judge_sync(times: std::io::Result<Vec<u64>>) -> MachineFinding {
    let times = match times {
        Ok(times) => times,
        Err(error) => {
            let finding = MachineFinding::unknown("disk sync", error);
            return finding.advise(Level::Warn, "name a directory that can be written to: --dir");
        }
    };
    let (Some(&median), Some(&max)) = (times.get(times.len() / 2), times.last()) else {
        return MachineFinding::unknown("disk sync", "nothing was timed");
    };
    let value = format!(
        "p50 {}, max {} of {} syncs of 4 KiB",
        nanos(median),
        nanos(max),
        times.len()
    );
    let meaning = "the least that a commit at durability synced takes on this disk";
    MachineFinding::ok("disk sync", value, meaning).advise_if(
        median > SYNC_NS_MAX,
        Level::Warn,
        "commit in groups, or use a faster disk: such a disk allows fewer than 50 commits a second",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_no_disk() {
        assert_eq!(judge_file_system(Some("tmpfs")).level, Level::Warn);
        assert_eq!(judge_file_system(Some("nfs4")).level, Level::Warn);
        assert_eq!(judge_file_system(Some("ext4")).level, Level::Ok);
        assert_eq!(judge_room(Some(1 << 20)).level, Level::Warn);
        assert_eq!(judge_room(Some(1 << 40)).level, Level::Ok);
    }

    #[test]
    fn syncs_are_timed_on_a_real_file_and_the_file_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let times = sync_times(dir.path()).unwrap();
        assert_eq!(times.len(), SYNCS);
        assert!(times.is_sorted());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_slow_or_missing_disk_is_warned_about() {
        assert_eq!(judge_sync(Ok(vec![84_000; 3])).level, Level::Ok);
        assert_eq!(judge_sync(Ok(vec![50_000_000; 3])).level, Level::Warn);
        assert_eq!(judge_sync(sync_times(Path::new("/no/such/folder"))).level, Level::Warn);
    }
}
