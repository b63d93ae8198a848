//! What the real rrdcached promises and breaks, shown on the daemon itself.
//!
//! `write-cache+` keeps the same promises: `write_cache/tests.rs` and `cache_crash`. A test
//! here fails when a daemon behaves better than rrdcached 1.7.2 did, which is news. That ours
//! keeps each of them is shown by the tests of the same hazards in `rrdcached_server.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

#[path = "support/daemon.rs"]
mod daemon;
#[path = "rrdcached_hazards/during.rs"]
mod during;
#[path = "../../tsb-stores/tests/support/lock.rs"]
mod lock;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use daemon::Daemon;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use lock::Holder;
use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::wire::rrdcached::{StatusLine, last_update};

/// When every file starts.
const START_S: i64 = 1_699_999_999;

/// A client that sends lines and reads replies.
struct Client {
    replies: BufReader<UnixStream>,
    /// Those that followed the last reply.
    lines: Vec<String>,
}

impl Client {
    fn of(daemon: &Daemon) -> Self {
        let stream = UnixStream::connect(daemon.socket()).unwrap();
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(20)))
            .unwrap();
        Self {
            replies: BufReader::new(stream),
            lines: Vec::new(),
        }
    }

    /// A command's reply: its first line and how many follow; `None` where the connection
    /// was closed.
    fn ask(&mut self, command: &str) -> Option<String> {
        writeln!(self.replies.get_mut(), "{command}").ok()?;
        self.read_reply()
    }

    fn send(&mut self, command: &str) {
        writeln!(self.replies.get_mut(), "{command}").unwrap();
    }

    /// The next reply.
    fn read_reply(&mut self) -> Option<String> {
        let mut first = String::new();
        self.replies.read_line(&mut first).ok().filter(|&len| len > 0)?;
        self.lines.clear();
        for _ in 0..StatusLine::parse(first.trim_end()).unwrap().lines().unwrap() {
            let mut line = String::new();
            self.replies.read_line(&mut line).unwrap();
            self.lines.push(line);
        }
        Some(first.trim_end().to_owned())
    }

    /// The newest update in a file. `LAST` says what waits, too.
    fn newest(&mut self, file: &str) -> i64 {
        self.ask(&format!("INFO {file}")).unwrap();
        self.lines.iter().find_map(|line| last_update(line)).unwrap()
    }

    fn create(&mut self, file: &str) {
        let reply = self.ask(&format!(
            "CREATE {file} -b {START_S} -s 10 DS:value:GAUGE:20:U:U RRA:AVERAGE:0.5:1:100"
        ));
        assert_eq!(reply.as_deref(), Some("0 RRD created OK"));
    }

    /// How many values wait for a file.
    fn pending(&mut self, file: &str) -> i64 {
        let reply = self.ask(&format!("PENDING {file}")).unwrap();
        StatusLine::parse(&reply).unwrap().code.max(0)
    }

    fn update(&mut self, file: &str, count: i64, from: i64) {
        for second in from..from + count {
            let reply = self.ask(&format!("UPDATE {file} {}:1", 1_700_000_000 + second));
            assert_eq!(reply.as_deref(), Some("0 errors, enqueued 1 value(s)."));
        }
    }
}

/// Waits for what the daemon does by itself.
fn wait_until(is: impl Fn() -> bool) {
    let clock = MonotonicClock::new();
    while !is() {
        assert!(clock.now() < 20_000_000_000);
        clock.wait_until(clock.now() + 10_000_000);
    }
}

/// A daemon with a journal; the folder goes with the second value.
fn journaled() -> (Daemon, tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().display().to_string();
    let daemon = Daemon::start(&["-j", &journal]).unwrap();
    (daemon, folder, journal)
}

/// Kills a daemon with a journal after so many acknowledged updates: how many come back.
fn values_after_kill(acks: i64) -> i64 {
    let (mut daemon, _folder, journal) = journaled();
    let mut client = Client::of(&daemon);
    client.create("a.rrd");
    client.update("a.rrd", acks, 0);
    assert!(daemon.kill_and_restart(&["-j", &journal]));
    Client::of(&daemon).pending("a.rrd")
}

fn a_kill_loses_what_was_acknowledged() {
    assert_eq!((values_after_kill(10), values_after_kill(100)), (0, 0));
    let left = values_after_kill(1_000);
    assert!((1..1_000).contains(&left), "{left} of 1000");
}

fn three_hundred_values_do_not_come_back() {
    let (mut daemon, _folder, journal) = journaled();
    let mut client = Client::of(&daemon);
    client.create("a.rrd");
    client.create("b.rrd");
    let values: Vec<String> = (0..300)
        .map(|second| format!("{}:1.25", 1_700_000_000 + second))
        .collect();
    let reply = client.ask(&format!("UPDATE a.rrd {}", values.join(" ")));
    assert_eq!(reply.as_deref(), Some("0 errors, enqueued 300 value(s)."));
    // Enough that the journal's buffer with that line is written.
    client.update("b.rrd", 500, 0);
    assert!(daemon.kill_and_restart(&["-j", &journal]));
    let mut client = Client::of(&daemon);
    assert!(client.pending("b.rrd") > 0);
    assert_eq!(client.pending("a.rrd"), 0);
}

fn a_wrong_column_count_is_accepted_and_lost_and_flush_succeeds() {
    let daemon = Daemon::start(&[]).unwrap();
    let mut client = Client::of(&daemon);
    client.create("a.rrd");
    let reply = client.ask("UPDATE a.rrd 1700000100:1:2:3");
    assert_eq!(reply.as_deref(), Some("0 errors, enqueued 1 value(s)."));
    let flushed = client.ask("FLUSH a.rrd").unwrap();
    assert!(flushed.starts_with("0 Successfully flushed"), "{flushed}");
    // The file is as it was created, and nothing waits.
    assert_eq!(client.newest("a.rrd"), START_S);
    assert_eq!(client.pending("a.rrd"), 0);
}

fn a_flush_of_a_suspended_file_succeeds_and_writes_nothing() {
    let daemon = Daemon::start(&[]).unwrap();
    let mut client = Client::of(&daemon);
    client.create("a.rrd");
    client.update("a.rrd", 5, 100);
    assert!(client.ask("SUSPEND a.rrd").unwrap().starts_with('0'));
    let flushed = client.ask("FLUSH a.rrd").unwrap();
    assert!(flushed.starts_with("0 Successfully flushed"), "{flushed}");
    assert_eq!(client.newest("a.rrd"), START_S);
    assert_eq!(client.pending("a.rrd"), 5);
    // Once it is resumed, the same flush does what it says.
    assert!(client.ask("RESUME a.rrd").unwrap().starts_with('0'));
    client.ask("FLUSH a.rrd").unwrap();
    assert_eq!(client.newest("a.rrd"), 1_700_000_104);
}

fn a_locked_file_loses_its_queue_and_flush_succeeds() {
    let daemon = Daemon::start(&[]).unwrap();
    let mut client = Client::of(&daemon);
    client.create("a.rrd");
    client.update("a.rrd", 2, 100);
    let holder = Holder::of(&daemon.socket().with_file_name("base").join("a.rrd"));
    let flushed = client.ask("FLUSH a.rrd").unwrap();
    assert!(flushed.starts_with("0 Successfully flushed"), "{flushed}");
    holder.release();
    // Nothing waits any more, and nothing was written.
    assert_eq!(client.pending("a.rrd"), 0);
    client.ask("FLUSH a.rrd").unwrap();
    assert_eq!(client.newest("a.rrd"), START_S);
}

fn suspending_an_unknown_file_ends_the_connection() {
    let daemon = Daemon::start(&[]).unwrap();
    let mut client = Client::of(&daemon);
    let reply = client.ask("SUSPEND nobody.rrd").unwrap();
    assert!(reply.starts_with("-1"), "{reply}");
    assert_eq!(client.ask("PING"), None);
}

fn main() -> ExitCode {
    if lock::was_holder() {
        return ExitCode::SUCCESS;
    }
    let is_there = Daemon::start(&[]).is_some();
    let trial = |name: &str, run: fn()| {
        Trial::ignorable_test(name, move || {
            if !is_there {
                return Ok(Completion::ignored_with(
                    "no rrdcached answers; it needs the package rrdcached",
                ));
            }
            run();
            Ok::<_, Failed>(Completion::Completed)
        })
    };
    let trials = vec![
        trial("a_kill_loses_what_was_acknowledged", a_kill_loses_what_was_acknowledged),
        trial(
            "three_hundred_values_do_not_come_back",
            three_hundred_values_do_not_come_back,
        ),
        trial(
            "a_wrong_column_count_is_accepted_and_lost_and_flush_succeeds",
            a_wrong_column_count_is_accepted_and_lost_and_flush_succeeds,
        ),
        trial(
            "a_flush_of_a_suspended_file_succeeds_and_writes_nothing",
            a_flush_of_a_suspended_file_succeeds_and_writes_nothing,
        ),
        trial(
            "a_locked_file_loses_its_queue_and_flush_succeeds",
            a_locked_file_loses_its_queue_and_flush_succeeds,
        ),
        trial(
            "suspending_an_unknown_file_ends_the_connection",
            suspending_an_unknown_file_ends_the_connection,
        ),
        trial(
            "an_update_during_a_write_does_not_come_back",
            during::an_update_during_a_write_does_not_come_back,
        ),
        trial(
            "a_flush_during_a_write_succeeds_before_the_write_ends",
            during::a_flush_during_a_write_succeeds_before_the_write_ends,
        ),
        trial(
            "a_journal_forgets_queued_updates",
            during::a_journal_forgets_queued_updates,
        ),
        trial(
            "a_long_line_ends_the_connection",
            during::a_long_line_ends_the_connection,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
