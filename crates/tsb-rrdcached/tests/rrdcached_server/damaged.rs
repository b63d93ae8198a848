//! Files that are damaged while values wait for them, or before any came.

use super::{OurServer, Path, SyncPolicy, journaled, options};

const CUT: u64 = 300;

fn cut(path: &Path) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_len(CUT).unwrap();
}

/// Before, what waited was tried again each second for ever, and more was accepted, until the
/// cache was full for every file.
pub(crate) fn a_damaged_file_refuses_updates_and_others_accept_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = OurServer::small(folder.path());
    ours.create("a.rrd");
    ours.create("b.rrd");
    ours.first("UPDATE a.rrd 1700000100:1 1700000101:2");
    let path = ours.cache.folder().join("a.rrd");
    let sound = std::fs::read(&path).unwrap();
    cut(&path);
    // Somebody may be just putting a whole one there, so it is tried twice.
    let reply = ours.first("FLUSH a.rrd");
    assert!(reply.contains("0 value(s) lost, 2 still wait: "), "{reply}");
    for second in 0..2_000 {
        let reply = ours.first(&format!("UPDATE a.rrd {}:1", 1_700_000_200 + second));
        assert!(
            reply.starts_with("-1 ") && reply.contains("damaged at byte 300"),
            "{reply}"
        );
    }
    let reply = ours.first("FLUSH a.rrd");
    assert!(reply.contains("2 value(s) lost, 0 still wait: "), "{reply}");
    assert_eq!(
        ours.first("UPDATE b.rrd 1700000100:1"),
        "0 errors, enqueued 1 value(s)."
    );
    assert!(ours.first("FLUSH b.rrd").starts_with("0 Successfully flushed"));
    let stats = ours.cache.stats();
    assert_eq!(
        (stats.values_rejected, stats.account.failed, stats.account.written),
        (2_000, 2, 1)
    );
    let damage = ours.cache.damage();
    assert!(damage.iter().all(|found| found.path == path), "{damage:?}");
    let said: Vec<String> = damage.iter().map(ToString::to_string).collect();
    assert!(
        said.iter()
            .any(|one| one.contains("2 value(s) that waited for it are lost")),
        "{said:?}"
    );
    assert_eq!(std::fs::metadata(&path).unwrap().len(), CUT, "it is left as it is");
    // A whole file in its place takes values again.
    std::fs::write(&path, sound).unwrap();
    assert_eq!(
        ours.first("UPDATE a.rrd 1700000300:3"),
        "0 errors, enqueued 1 value(s)."
    );
    assert!(ours.first("FLUSH a.rrd").starts_with("0 Successfully flushed"));
    assert_eq!(ours.newest("a.rrd"), 1_700_000_300);
}

/// A file that is gone is not found again by its name, as before anything waited for it.
pub(crate) fn a_file_that_is_gone_is_missing_to_the_next_update() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = OurServer::open(folder.path(), &options());
    ours.create("a.rrd");
    ours.first("UPDATE a.rrd 1700000100:1");
    std::fs::remove_file(ours.cache.folder().join("a.rrd")).unwrap();
    assert!(ours.first("FLUSH a.rrd").contains("1 value(s) lost"));
    let reply = ours.first("UPDATE a.rrd 1700000200:1 1700000201:1");
    assert!(reply.starts_with("-1 No such file: "), "{reply}");
    assert_eq!(ours.cache.stats().values_rejected, 2);
    ours.create("a.rrd");
    assert!(ours.first("UPDATE a.rrd 1700000200:1").starts_with("0 "));
}

/// What a journal holds for a damaged file cannot be put back: it is counted and named.
pub(crate) fn a_replay_into_a_damaged_file_is_counted_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let options = journaled(folder.path(), SyncPolicy::Group);
    let mut ours = OurServer::open(folder.path(), &options);
    ours.create("a.rrd");
    ours.create("b.rrd");
    ours.first("UPDATE a.rrd 1700000100:1 1700000101:2");
    ours.first("UPDATE b.rrd 1700000100:1");
    let path = ours.cache.folder().join("a.rrd");
    ours.kill();
    cut(&path);
    let mut ours = OurServer::open(folder.path(), &options);
    let account = ours.cache.stats().account;
    assert_eq!((account.replayed, account.failed), (3, 2));
    let said: Vec<String> = ours.cache.damage().iter().map(ToString::to_string).collect();
    assert!(
        said.iter()
            .any(|one| one.contains("2 value(s) that waited for it are lost")),
        "{said:?}"
    );
    assert!(ours.first("FLUSH b.rrd").starts_with("0 "));
    assert_eq!(ours.newest("b.rrd"), 1_700_000_100);
}
