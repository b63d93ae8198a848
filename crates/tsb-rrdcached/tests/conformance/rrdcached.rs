//! The real rrdcached: one daemon for all checks, each of which has a prefix of its own.
//!
//! Its client claims no more than the daemon keeps: that an ack is in memory, whether there is
//! a journal or not (clause 5), and nothing that outlives a power cut (clause 10). Two clauses
//! it breaks all the same, because no answer of the daemon tells: they have a trial each, which
//! shows what happens instead, and fails where a daemon does better, which is news. The
//! hazards themselves are shown in `rrdcached_hazards.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use libtest_mimic::{Completion, Failed, Trial};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_rrdcached::RrdcachedStore;
use tsb_stores::conformance::{Fixture, Place};
use tsb_stores::rrd::RrdOptions;
use tsb_stores::{ArchiveRule, Consolidation, Result, Scope, Store, StoreExt, TimeRange};

use crate::daemon::Daemon;
use crate::lock::Holder;

/// What is said where there is no daemon.
const MISSING: &str = "no rrdcached answers; it needs the package rrdcached";

/// The daemon; `None` where none answers.
pub(crate) struct Rrdcached {
    daemon: Option<Arc<Daemon>>,
    places: AtomicU32,
}

struct Prefix {
    daemon: Arc<Daemon>,
    prefix: String,
}

impl Place for Prefix {
    fn open(&self) -> Result<Box<dyn Store>> {
        let options = RrdOptions {
            step_s: 2,
            heartbeat_s: 10,
            archives: vec![
                ArchiveRule::new(Consolidation::Average, 1, 100),
                ArchiveRule::new(Consolidation::Max, 5, 50),
            ],
            max_series: 1_000,
            ..RrdOptions::default()
        };
        let socket = self.daemon.socket();
        Ok(Box::new(RrdcachedStore::open(&socket, &self.prefix, options)?))
    }
}

impl Fixture for Rrdcached {
    fn name(&self) -> String {
        "rrdcached".to_owned()
    }

    fn unavailable(&self) -> Option<String> {
        let is_missing = self.daemon.is_none();
        is_missing.then(|| MISSING.to_owned())
    }

    fn place(&self) -> Result<Box<dyn Place>> {
        let Some(daemon) = &self.daemon else {
            return Err(tsb_stores::Error::Closed);
        };
        Ok(Box::new(Prefix {
            daemon: Arc::clone(daemon),
            prefix: format!("p{}-", self.places.fetch_add(1, Ordering::Relaxed)),
        }))
    }
}

impl Rrdcached {
    pub(crate) fn start() -> Self {
        Self {
            daemon: Daemon::start(&[]).map(Arc::new),
            places: AtomicU32::new(0),
        }
    }

    /// A trial for each clause that the daemon breaks.
    pub(crate) fn breaks(&self) -> Vec<Trial> {
        let breaks: [(&str, Check); 2] = [
            (
                "rrdcached::breaks_c7_what_was_accepted_for_a_suspended_file_is_in_no_answer",
                updates_of_a_suspended_file_are_in_no_answer,
            ),
            (
                "rrdcached::breaks_c8_a_flush_of_a_locked_file_loses_everything_and_says_yes",
                a_flush_of_a_locked_file_loses_everything_and_succeeds,
            ),
        ];
        let trial = |(name, run): (&str, Check)| {
            let daemon = self.daemon.clone();
            Trial::ignorable_test(name, move || {
                let Some(daemon) = &daemon else {
                    return Ok(Completion::ignored_with(MISSING));
                };
                run(daemon);
                Ok::<_, Failed>(Completion::Completed)
            })
        };
        breaks.into_iter().map(trial).collect()
    }
}

/// What a daemon breaks.
type Check = fn(&Arc<Daemon>);

/// A series that is one file, and some accepted samples.
struct Accepted {
    store: Box<dyn Store>,
    file: String,
}

impl Accepted {
    fn new(daemon: &Arc<Daemon>, prefix: &str) -> Self {
        let place = Prefix {
            daemon: Arc::clone(daemon),
            prefix: prefix.to_owned(),
        };
        let store = place.open().unwrap();
        store.define(&[(SeriesId(0), SeriesKey::new("s"))]).unwrap();
        for tick in 0..5 {
            let at = Timestamp::from_secs(1_700_000_000 + tick * 2);
            let ack = store.write_all(&Batch::tick(SeriesId(0), at, &[1.0])).unwrap();
            assert_eq!((ack.accepted, ack.rejected), (1, 0));
        }
        Self {
            store,
            file: format!("{prefix}s.rrd"),
        }
    }

    fn flush(&self) -> Result<()> {
        self.store.flush(Scope::All, Durability::Buffered)
    }

    fn rows(&self) -> usize {
        self.store.samples(SeriesId(0), TimeRange::ALL).unwrap().len()
    }
}

/// Clause 7: what is accepted before a query starts is in its answer.
fn updates_of_a_suspended_file_are_in_no_answer(daemon: &Arc<Daemon>) {
    let accepted = Accepted::new(daemon, "c7-");
    let mut other = BufReader::new(UnixStream::connect(daemon.socket()).unwrap());
    let mut ask = |word: &str| {
        writeln!(other.get_mut(), "{word} {}", accepted.file).unwrap();
        let mut reply = String::new();
        other.read_line(&mut reply).unwrap();
        assert!(reply.starts_with("0 "), "{reply}");
    };
    ask("SUSPEND");
    assert_eq!(accepted.rows(), 0, "this daemon keeps clause 7");
    ask("RESUME");
    assert!(accepted.rows() > 0);
}

/// Clause 8: when a flush returns, all that was accepted has its level, or it is an error.
fn a_flush_of_a_locked_file_loses_everything_and_succeeds(daemon: &Arc<Daemon>) {
    let accepted = Accepted::new(daemon, "c8-");
    let holder = Holder::of(&daemon.socket().with_file_name("base").join(&accepted.file));
    let flushed = accepted.flush();
    holder.release();
    assert!(flushed.is_ok(), "this daemon keeps clause 8: {flushed:?}");
    accepted.flush().unwrap();
    assert_eq!(accepted.rows(), 0, "this daemon keeps clause 8");
}
