//! rrdcached's protocol as served here: what the real daemon answers, and none of its broken
//! promises (those are shown on the daemon in `rrdcached_hazards`).

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

#[path = "support/daemon.rs"]
#[expect(dead_code, reason = "killing it is another test's")]
mod daemon;
#[path = "rrdcached_server/damaged.rs"]
mod damaged;
#[path = "rrdcached_server/during.rs"]
mod during;
#[path = "rrdcached_server/librrd.rs"]
mod librrd;
#[path = "../../tsb-stores/tests/support/lock.rs"]
mod lock;
#[path = "rrdcached_server/plain.rs"]
mod plain;
#[path = "rrdcached_server/script.rs"]
mod script;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use daemon::Daemon;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use lock::Holder;
use script::{BATCH, SCRIPT};
use tsb_core::time::{Clock, ManualClock, MonotonicClock};
use tsb_core::wire::rrdcached::{NoSeries, StatusLine, last_update};
use tsb_core::wire::{Decoder, Next, Peer};
use tsb_rrdcached::{Conversation, FileBounds, FileCache};
use tsb_stores::write_cache::{JournalOptions, SyncPolicy, WriteCacheOptions};

/// When every file starts.
const START_S: i64 = 1_699_999_999;

/// Our server, without a socket.
struct OurServer {
    cache: Arc<FileCache>,
    conversation: Conversation,
    is_over: bool,
}

fn options() -> WriteCacheOptions {
    WriteCacheOptions {
        timeout_ns: 1_800_000_000_000,
        threads: 2,
        ..WriteCacheOptions::default()
    }
}

fn journaled(folder: &Path, sync: SyncPolicy) -> WriteCacheOptions {
    WriteCacheOptions {
        journal: Some(JournalOptions::new(folder.join("journal"), sync)),
        ..options()
    }
}

impl OurServer {
    fn open(folder: &Path, options: &WriteCacheOptions) -> Self {
        Self::with_clock(folder, options, Arc::new(MonotonicClock::new()))
    }

    fn with_clock(folder: &Path, options: &WriteCacheOptions, clock: Arc<dyn Clock>) -> Self {
        let cache =
            Arc::new(FileCache::open(&folder.join("base"), FileBounds::of_files(1_000), options, clock).unwrap());
        Self {
            conversation: Conversation::new(Arc::clone(&cache)),
            cache,
            is_over: false,
        }
    }

    /// One that holds a few values, and writes nothing by itself.
    fn small(folder: &Path) -> Self {
        let options = WriteCacheOptions {
            max_bytes: 4_096,
            ..options()
        };
        Self::with_clock(folder, &options, Arc::new(ManualClock::new()))
    }

    /// The lines of the reply to some lines.
    fn ask(&mut self, lines: &str) -> Vec<String> {
        let bytes = format!("{lines}\n").into_bytes();
        let (mut at, mut out) = (0, Vec::new());
        loop {
            at += self.conversation.decode(&bytes[at..], &mut NoSeries).unwrap();
            let peer = Peer {
                rejected: 0,
                is_listening: true,
            };
            match self.conversation.answer(peer, &mut out) {
                Next::More | Next::Later => break,
                Next::Again => {}
                Next::Over => {
                    self.is_over = true;
                    break;
                }
            }
        }
        assert!(self.cache.stats().account.balances());
        let text = String::from_utf8_lossy(&out).into_owned();
        text.lines().map(str::to_owned).collect()
    }

    fn first(&mut self, line: &str) -> String {
        self.ask(line).swap_remove(0)
    }

    fn create(&mut self, file: &str) {
        let line = format!("CREATE {file} -b {START_S} -s 10 DS:value:GAUGE:20:U:U RRA:AVERAGE:0.5:1:100");
        assert_eq!(self.first(&line), "0 RRD created OK");
    }

    fn newest(&mut self, file: &str) -> i64 {
        let lines = self.ask(&format!("INFO {file}"));
        lines.iter().find_map(|line| last_update(line)).unwrap()
    }

    /// The cache ends as a killed process does: nothing is written any more.
    fn kill(self) {
        assert!(self.cache.stats().account.balances());
        drop(self);
    }
}

/// Waits for the threads of a cache.
fn wait_until(is: impl Fn() -> bool) -> bool {
    let clock = MonotonicClock::new();
    while !is() && clock.now() < 20_000_000_000 {
        clock.wait_until(clock.now() + 1_000_000);
    }
    is()
}

/// A client of the real daemon.
struct DaemonClient(BufReader<UnixStream>);

impl DaemonClient {
    fn of(daemon: &Daemon) -> Self {
        let stream = UnixStream::connect(daemon.socket()).unwrap();
        let patience = std::time::Duration::from_secs(20);
        stream.set_read_timeout(Some(patience)).unwrap();
        Self(BufReader::new(stream))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, lines: &str) -> Vec<String> {
        writeln!(self.0.get_mut(), "{lines}").unwrap();
        let mut all = Vec::new();
        // A batch has a reply at its start and one at its end.
        let replies = if lines.starts_with("BATCH") { 2 } else { 1 };
        for _ in 0..replies {
            let first = self.line();
            let count = StatusLine::parse(&first).unwrap().lines().unwrap();
            all.push(first);
            for _ in 0..count {
                let line = self.line();
                all.push(line);
            }
        }
        all
    }
}

fn replies_equal_the_daemons() {
    let daemon = Daemon::start(&["-R"]).unwrap();
    let mut theirs = DaemonClient::of(&daemon);
    let folder = tempfile::tempdir().unwrap();
    let mut ours = OurServer::open(folder.path(), &options());
    let theirs_at = daemon.socket().parent().unwrap().join("base").display().to_string();
    let ours_at = ours.cache.folder().display().to_string();
    for line in SCRIPT.lines().chain([BATCH]) {
        let expected: Vec<String> = theirs
            .ask(line)
            .iter()
            .map(|text| text.replace(&theirs_at, "BASE"))
            .collect();
        let found: Vec<String> = ours
            .ask(line)
            .iter()
            .map(|text| text.replace(&ours_at, "BASE"))
            .collect();
        assert_eq!(found, expected, "{line}");
    }
    // Each command that the daemon lists is listed, with the same words behind it.
    let listed = ours.ask("HELP");
    for usage in theirs.ask("HELP").iter().skip(1) {
        assert!(listed.contains(usage), "{usage}: {listed:?}");
    }
    // The header says the same of a file, but for the first row, which is random.
    let info = |lines: Vec<String>, at: &str| -> Vec<String> {
        let lines = lines.iter().map(|line| line.replace(at, "BASE"));
        lines.filter(|line| !line.contains("cur_row")).collect()
    };
    ours.first("FLUSH a.rrd");
    theirs.ask("FLUSH a.rrd");
    let ours = info(ours.ask("INFO a.rrd"), &ours_at);
    assert_eq!(ours, info(theirs.ask("INFO a.rrd"), &theirs_at));
}

/// Windows of all kinds over one file with archives of several steps.
fn fetch_chooses_archives_as_the_daemon_does() {
    let daemon = Daemon::start(&[]).unwrap();
    let mut theirs = DaemonClient::of(&daemon);
    let folder = tempfile::tempdir().unwrap();
    let mut ours = OurServer::open(folder.path(), &options());
    let create = "CREATE f.rrd -b 1699999999 -s 10 DS:a:GAUGE:60:U:U DS:b:DERIVE:60:U:U \
        RRA:AVERAGE:0.5:1:50 RRA:AVERAGE:0.5:6:40 RRA:MAX:0.5:6:40 RRA:AVERAGE:0.5:30:30 RRA:MIN:0.5:1:20";
    let updates: Vec<String> = (0..900)
        .map(|index| format!("{}:{}:{}", 1_700_000_007 + index * 10, index % 17, index * index))
        .collect();
    let mut lines = vec![create.to_owned()];
    lines.extend(
        updates
            .chunks(50)
            .map(|some| format!("UPDATE f.rrd {}", some.join(" "))),
    );
    for line in &lines {
        assert_eq!(ours.ask(line), theirs.ask(line));
    }
    let mut seed = 7_u64;
    let mut next = move |limit: i64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as i64 % limit
    };
    for round in 0..400 {
        let cf = ["AVERAGE", "MAX", "MIN", "LAST"][next(4) as usize];
        let start = 1_699_999_000 + next(11_000);
        let line = format!("FETCH f.rrd {cf} {start} {}", start + next(3_000));
        assert_eq!(ours.ask(&line), theirs.ask(&line), "round {round}: {line}");
    }
}

fn a_wrong_column_count_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = OurServer::open(folder.path(), &options());
    ours.create("a.rrd");
    for update in ["1700000100:1:2:3", "1700000100:x", "1700000100:"] {
        let reply = ours.first(&format!("UPDATE a.rrd {update}"));
        assert!(reply.starts_with("-1 "), "{reply}");
    }
    let stats = ours.cache.stats();
    assert_eq!((stats.account.accepted, stats.values_rejected), (0, 3));
}

fn a_flush_of_a_suspended_file_fails() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = OurServer::open(folder.path(), &options());
    ours.create("a.rrd");
    ours.first("UPDATE a.rrd 1700000100:1 1700000101:2");
    ours.first("SUSPEND a.rrd");
    assert!(ours.first("FLUSH a.rrd").ends_with("is suspended, 2 value(s) wait"));
    assert_eq!(ours.newest("a.rrd"), START_S);
    ours.first("RESUME a.rrd");
    assert!(ours.first("FLUSH a.rrd").starts_with("0 Successfully flushed"));
    assert_eq!(ours.newest("a.rrd"), 1_700_000_101);
}

fn suspending_an_unknown_file_keeps_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = OurServer::open(folder.path(), &options());
    let reply = ours.first("SUSPEND nobody.rrd");
    assert!(reply.ends_with("/nobody.rrd - No such file or directory"), "{reply}");
    assert_eq!((ours.first("PING"), ours.is_over), ("0 PONG".to_owned(), false));
    ours.ask("QUIT");
    assert!(ours.is_over);
}

/// A process holds librrd's lock at the moment of the write.
fn a_locked_file_is_reported_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new());
    let mut ours = OurServer::with_clock(folder.path(), &options(), clock);
    ours.create("a.rrd");
    ours.first("UPDATE a.rrd 1700000100:1 1700000101:2");
    let path = ours.cache.folder().join("a.rrd");
    let holder = Holder::of(&path);
    let reply = ours.first("FLUSH a.rrd");
    assert!(
        reply.contains("0 value(s) lost, 2 still wait: locked by another process"),
        "{reply}"
    );
    assert_eq!(ours.cache.stats().account.pending, 2);
    holder.release();
    assert!(ours.first("FLUSH a.rrd").starts_with("0 Successfully flushed"));
    assert_eq!(
        (ours.newest("a.rrd"), ours.cache.stats().account.written),
        (1_700_000_101, 2)
    );
}

/// Somebody else writes a later update: what the file will not take any more is counted and
/// said, once.
fn a_flush_says_what_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = OurServer::open(folder.path(), &options());
    ours.create("a.rrd");
    ours.first("UPDATE a.rrd 1700000100:1 1700000101:2 1700000103:3");
    let file = tsb_rrd::RrdFile::open(&ours.cache.folder().join("a.rrd")).unwrap();
    file.update(&mut tsb_rrd::Session::default(), &["1700000102:9"])
        .unwrap();
    let reply = ours.first("FLUSH a.rrd");
    assert!(reply.contains("2 value(s) lost, 0 still wait"), "{reply}");
    assert!(ours.first("FLUSH a.rrd").starts_with("0 Successfully flushed"));
    let account = ours.cache.stats().account;
    assert_eq!(
        (account.written, account.failed, ours.newest("a.rrd")),
        (1, 2, 1_700_000_103)
    );
    // A file that is gone takes nothing.
    ours.first("UPDATE a.rrd 1700000200:1");
    std::fs::remove_file(ours.cache.folder().join("a.rrd")).unwrap();
    assert!(ours.first("FLUSH a.rrd").starts_with("-1 "));
    assert_eq!(ours.cache.stats().account.failed, 3);
}

fn acknowledged_updates_outlive_the_cache() {
    for sync in [
        SyncPolicy::None,
        SyncPolicy::Group,
        SyncPolicy::Each,
        SyncPolicy::Interval(1_000_000_000),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut ours = OurServer::open(folder.path(), &journaled(folder.path(), sync));
        ours.create("a.rrd");
        ours.create("b.rrd");
        // Longer than the line that the daemon's journal cuts.
        let values: Vec<String> = (0..300)
            .map(|second| format!("{}:1.25", 1_700_000_000 + second))
            .collect();
        let reply = ours.first(&format!("UPDATE a.rrd {}", values.join(" ")));
        assert_eq!(reply, "0 errors, enqueued 300 value(s).");
        ours.first("UPDATE b.rrd 1700000000:1");
        ours.first("FLUSH b.rrd");
        ours.first("UPDATE b.rrd 1700000001:1 1700000002:2");
        ours.create("c.rrd");
        ours.first("UPDATE c.rrd 1700000001:1");
        ours.first("FORGET c.rrd");
        ours.kill();
        let mut ours = OurServer::open(folder.path(), &journaled(folder.path(), sync));
        let account = ours.cache.stats().account;
        // The journal has no mark for what was flushed, because nothing was synced: the file has
        // it.
        assert_eq!((account.replayed, account.failed), (303, 0), "{sync:?}");
        for file in ["a.rrd", "b.rrd", "c.rrd"] {
            assert!(ours.first(&format!("FLUSH {file}")).starts_with("0 "));
        }
        assert_eq!(ours.newest("a.rrd"), 1_700_000_299);
        assert_eq!(ours.newest("b.rrd"), 1_700_000_002);
        assert_eq!(ours.newest("c.rrd"), START_S);
        assert!(ours.cache.close().is_ok());
        let ours = OurServer::open(folder.path(), &journaled(folder.path(), sync));
        assert_eq!(ours.cache.stats().account.replayed, 0);
    }
}

fn memory_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = OurServer::small(folder.path());
    ours.create("a.rrd");
    ours.first("UPDATE a.rrd 1700000000:1");
    ours.first("SUSPEND a.rrd");
    let mut refused = 0;
    for second in 1..1_000 {
        let reply = ours.first(&format!("UPDATE a.rrd {}:1", 1_700_000_000 + second));
        refused += u64::from(reply.contains("the cache is full"));
    }
    let stats = ours.cache.stats();
    assert!(refused > 500, "{refused}");
    assert_eq!(
        (stats.account.accepted + refused, stats.values_rejected),
        (1_000, refused)
    );
    ours.first("RESUME a.rrd");
    assert!(ours.first("FLUSH a.rrd").starts_with("0 "));
    assert!(ours.first("UPDATE a.rrd 1700002000:1").starts_with("0 "));
}

fn due_files_are_written_by_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new());
    let shared: Arc<dyn Clock> = clock.clone();
    let mut ours = OurServer::with_clock(folder.path(), &options(), shared);
    ours.create("a.rrd");
    ours.first("UPDATE a.rrd 1700000000:1");
    assert_eq!(ours.cache.stats().account.pending, 1);
    clock.advance(1_800_000_000_001);
    ours.first("UPDATE a.rrd 1700000001:1");
    wait_until(|| ours.cache.stats().account.written == 2);
    let stats = ours.cache.stats();
    assert_eq!((stats.account.written, stats.updates_written), (2, 1));
}

/// Any bytes at all, cut anywhere: replies are the same, and nothing panics.
fn replies_do_not_depend_on_where_the_input_is_cut() {
    let text = format!("{SCRIPT}\n{BATCH}\n\u{0}\n\n  \nUPDATE a.rrd \\\nQUIT\nPING\n");
    let mut bytes = text.into_bytes();
    bytes.extend(b"\xff\xfe UPDATE\n");
    let mut all = Vec::new();
    for piece in [1, 7, 100, bytes.len()] {
        let folder = tempfile::tempdir().unwrap();
        let ours = OurServer::open(folder.path(), &options());
        let mut conversation = Conversation::new(Arc::clone(&ours.cache));
        let (mut held, mut out) = (Vec::new(), Vec::new());
        for part in bytes.chunks(piece) {
            held.extend_from_slice(part);
            let taken = conversation.decode(&held, &mut NoSeries).unwrap();
            held.drain(..taken);
            let peer = Peer {
                rejected: 0,
                is_listening: true,
            };
            conversation.answer(peer, &mut out);
        }
        let at = ours.cache.folder().display().to_string();
        all.push(String::from_utf8_lossy(&out).replace(&at, "BASE"));
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:#?}");
    assert!(all[0].starts_with("0 PONG\n"));
}

/// Commands with bytes changed, dropped and doubled: each is answered or ends the connection,
/// and the account balances.
fn any_bytes_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let ours = OurServer::open(folder.path(), &journaled(folder.path(), SyncPolicy::None));
    let text = format!("{SCRIPT}\n{BATCH}\nINFO a.rrd\nSTATS\nFETCHBIN a.rrd MAX 1699999900 1700000060\n");
    let mut seed = 11_u64;
    let mut next = move |limit: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    for round in 0..300 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=next(12) {
            let at = next(bytes.len());
            match next(4) {
                0 => bytes[at] = next(256) as u8,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b" \n\\:-9"[next(6)]),
                _ => bytes.extend_from_within(at..bytes.len().min(at + 40)),
            }
        }
        let mut conversation = Conversation::new(Arc::clone(&ours.cache));
        let (mut at, mut out) = (0, Vec::new());
        let peer = Peer {
            rejected: 0,
            is_listening: true,
        };
        loop {
            at += conversation.decode(&bytes[at..], &mut NoSeries).unwrap();
            if conversation.answer(peer, &mut out) != Next::Again {
                break;
            }
        }
        conversation.finish(&bytes[at..], &mut NoSeries);
        assert!(
            out.starts_with(b"0 ") || out.starts_with(b"-1 ") || out.is_empty(),
            "round {round}"
        );
        assert!(ours.cache.stats().account.balances(), "round {round}");
    }
    let outside: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(outside.len(), 2, "base and journal: {outside:?}");
}

/// What is compared with the real daemon.
const WITH_DAEMON: [(&str, fn()); 2] = [
    ("replies_equal_the_daemons", replies_equal_the_daemons),
    (
        "fetch_chooses_archives_as_the_daemon_does",
        fetch_chooses_archives_as_the_daemon_does,
    ),
];

/// What is asked of ours alone.
const WITHOUT_DAEMON: [(&str, fn()); 23] = [
    ("a_wrong_column_count_is_refused", a_wrong_column_count_is_refused),
    ("a_flush_of_a_suspended_file_fails", a_flush_of_a_suspended_file_fails),
    (
        "suspending_an_unknown_file_keeps_the_connection",
        suspending_an_unknown_file_keeps_the_connection,
    ),
    (
        "a_locked_file_is_reported_and_tried_again",
        a_locked_file_is_reported_and_tried_again,
    ),
    ("a_flush_says_what_was_lost", a_flush_says_what_was_lost),
    (
        "acknowledged_updates_outlive_the_cache",
        acknowledged_updates_outlive_the_cache,
    ),
    ("memory_is_bounded", memory_is_bounded),
    (
        "due_files_are_written_by_the_threads",
        due_files_are_written_by_the_threads,
    ),
    (
        "an_update_that_arrives_during_a_write_survives_replay",
        during::an_update_that_arrives_during_a_write_survives_replay,
    ),
    (
        "a_flush_during_a_write_waits_for_it",
        during::a_flush_during_a_write_waits_for_it,
    ),
    ("a_journal_keeps_queued_updates", during::a_journal_keeps_queued_updates),
    (
        "a_locked_file_is_written_later_by_itself",
        during::a_locked_file_is_written_later_by_itself,
    ),
    ("a_long_line_is_understood", during::a_long_line_is_understood),
    (
        "a_plain_update_is_accepted_like_any_other",
        plain::a_plain_update_is_accepted_like_any_other,
    ),
    (
        "a_file_of_too_many_bytes_is_refused",
        librrd::a_file_of_too_many_bytes_is_refused,
    ),
    (
        "features_of_librrd_are_left_to_it_or_refused_by_name",
        librrd::features_of_librrd_are_left_to_it_or_refused_by_name,
    ),
    (
        "a_file_is_created_from_others_or_that_is_refused",
        librrd::a_file_is_created_from_others_or_that_is_refused,
    ),
    ("a_file_is_tuned_and_dumped", librrd::a_file_is_tuned_and_dumped),
    (
        "a_damaged_file_refuses_updates_and_others_accept_them",
        damaged::a_damaged_file_refuses_updates_and_others_accept_them,
    ),
    (
        "a_file_that_is_gone_is_missing_to_the_next_update",
        damaged::a_file_that_is_gone_is_missing_to_the_next_update,
    ),
    (
        "a_replay_into_a_damaged_file_is_counted_and_reported",
        damaged::a_replay_into_a_damaged_file_is_counted_and_reported,
    ),
    (
        "replies_do_not_depend_on_where_the_input_is_cut",
        replies_do_not_depend_on_where_the_input_is_cut,
    ),
    ("any_bytes_are_answered", any_bytes_are_answered),
];

fn main() -> ExitCode {
    if lock::was_holder() {
        return ExitCode::SUCCESS;
    }
    let is_there = Daemon::start(&[]).is_some();
    let with_daemon = WITH_DAEMON.into_iter().map(|(name, run)| {
        Trial::ignorable_test(name, move || {
            if !is_there {
                return Ok(Completion::ignored_with(
                    "no rrdcached answers; it needs the package rrdcached",
                ));
            }
            run();
            Ok::<_, Failed>(Completion::Completed)
        })
    });
    let without_daemon = WITHOUT_DAEMON.into_iter().map(|(name, run)| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), with_daemon.chain(without_daemon).collect()).exit_code()
}
