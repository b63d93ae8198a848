//! What is in the journal is there before it is in a file.

use std::path::Path;
use std::sync::Arc;

use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::{Durability, SeriesId, Timestamp};
use tsb_stores::write_cache::WriteCache;
use tsb_stores::{Scope, Store};

use crate::lossy::LossyMedium;
use crate::script;

/// Many times as long as a queue waits. Were the machine so busy that nobody came to take the
/// queue meanwhile, this would pass without having seen anything.
const LONG_NS: u64 = 200_000_000;

/// A write is in no file as long as its record is not written: a kill would leave some of its
/// series there, and lose the others.
pub(crate) fn a_record_is_written_before_any_file() {
    let folder = tempfile::tempdir().unwrap();
    let medium = LossyMedium::default();
    let options = script::options(Path::new("unused"), "none");
    let files = script::files(folder.path()).unwrap();
    let clock = Arc::new(MonotonicClock::new());
    let cache = WriteCache::on_medium(files, &options, clock.clone(), Box::new(medium.clone())).unwrap();
    script::define(&cache).unwrap();
    script::perform(&cache, 0).unwrap();
    cache.flush(Scope::All, Durability::Buffered).unwrap();
    let before = in_files(&cache);
    std::thread::scope(|scope| {
        let writer = medium.while_stopped(|| {
            let writer = scope.spawn(|| script::perform(&cache, 1).unwrap());
            while cache.account().pending == 0 {
                std::thread::yield_now();
            }
            clock.wait_until(clock.now() + LONG_NS);
            assert_eq!(in_files(&cache), before);
            writer
        });
        writer.join().unwrap();
    });
    cache.flush(Scope::All, Durability::Buffered).unwrap();
    assert!(in_files(&cache).iter().zip(&before).all(|(now, then)| now > then));
    cache.close().unwrap();
}

fn in_files(cache: &WriteCache<impl Store>) -> [Option<Timestamp>; script::SERIES as usize] {
    let mut newest = [None; script::SERIES as usize];
    let ids: Vec<SeriesId> = (0..script::SERIES).map(SeriesId).collect();
    cache.inner().newest_accepted(&ids, &mut newest).unwrap();
    newest
}
