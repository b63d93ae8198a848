//! What the daemon does with a file while one of its threads writes to it.

use std::io::{ErrorKind, Read};

use crate::{Client, Daemon, START_S, journaled};

/// Values of one write that is to take a while; more, where it was over too soon.
const VALUES: i64 = 100_000;
const ARCHIVES: usize = 40;
/// How often a write is made twice as long before the test gives up.
const ATTEMPTS: u32 = 5;

/// A write of many values that a thread of the daemon has begun.
struct Write {
    /// Who asked for it, and has no answer before it is over.
    asker: Client,
    count: i64,
}

impl Write {
    /// Has so many values written, and returns when the file has some of them: what it says of
    /// itself follows each value.
    fn begin(daemon: &Daemon, client: &mut Client, file: &str, count: i64) -> Self {
        // So many archives that a value takes a while.
        let archives = " RRA:AVERAGE:0.5:1:100".repeat(ARCHIVES);
        let created = client.ask(&format!(
            "CREATE {file} -b {START_S} -s 1 DS:value:GAUGE:20:U:U{archives}"
        ));
        assert_eq!(created.as_deref(), Some("0 RRD created OK"));
        let seconds: Vec<i64> = (0..count).collect();
        for seconds in seconds.chunks(150) {
            let values = seconds.iter().map(|second| format!(" {}:1", 1_700_000_000 + second));
            let reply = client.ask(&format!("UPDATE {file}{}", values.collect::<String>()));
            assert!(reply.unwrap().starts_with("0 "));
        }
        let mut asker = Client::of(daemon);
        asker.send(&format!("FLUSH {file}"));
        while client.newest(file) == START_S {}
        Self { asker, count }
    }

    /// Whether it goes on. It is asked once: an answer that is there is taken.
    fn is_running(&mut self) -> bool {
        let stream = self.asker.replies.get_mut();
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Returns when it is over.
    fn end(mut self) {
        assert!(self.asker.read_reply().unwrap().starts_with("0 "));
    }
}

pub(crate) fn an_update_during_a_write_does_not_come_back() {
    for attempt in 0..ATTEMPTS {
        let (mut daemon, _folder, journal) = journaled();
        let mut client = Client::of(&daemon);
        client.create("b.rrd");
        let mut write = Write::begin(&daemon, &mut client, "a.rrd", VALUES << attempt);
        client.update("a.rrd", 1, write.count);
        if !write.is_running() {
            continue;
        }
        write.end();
        assert_eq!(client.pending("a.rrd"), 1);
        // Enough that the journal's buffer with all that is written.
        client.update("b.rrd", 500, 0);
        assert!(daemon.kill_and_restart(&["-j", &journal]));
        let mut client = Client::of(&daemon);
        assert!(client.pending("b.rrd") > 0);
        // It is neither in the file nor does it wait.
        assert_eq!(client.pending("a.rrd"), 0);
        assert_eq!(client.newest("a.rrd"), 1_700_000_000 + (VALUES << attempt) - 1);
        return;
    }
    panic!("every write was over before an update came");
}

pub(crate) fn a_flush_during_a_write_succeeds_before_the_write_ends() {
    for attempt in 0..ATTEMPTS {
        let daemon = Daemon::start(&[]).unwrap();
        let mut client = Client::of(&daemon);
        let write = Write::begin(&daemon, &mut client, "a.rrd", VALUES << attempt);
        let flushed = client.ask("FLUSH a.rrd").unwrap();
        assert!(flushed.starts_with("0 Successfully flushed"), "{flushed}");
        let newest = client.newest("a.rrd");
        write.end();
        let last = 1_700_000_000 + (VALUES << attempt) - 1;
        assert_eq!(client.newest("a.rrd"), last);
        if newest < last {
            return;
        }
    }
    panic!("every write was over before a flush came");
}

/// A value that waits for longer than two sweeps.
pub(crate) fn a_journal_forgets_queued_updates() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().display().to_string();
    let arguments = ["-j", &journal, "-f", "1"];
    let mut daemon = Daemon::start(&arguments).unwrap();
    let mut client = Client::of(&daemon);
    client.create("a.rrd");
    client.update("a.rrd", 1, 0);
    // First the journal has the value, and then no longer.
    let has = || {
        let files = std::fs::read_dir(folder.path()).unwrap().flatten();
        // One may go in between.
        files
            .filter_map(|file| std::fs::read_to_string(file.path()).ok())
            .any(|text| text.contains("a.rrd"))
    };
    crate::wait_until(has);
    crate::wait_until(|| !has());
    assert_eq!(client.pending("a.rrd"), 1);
    assert!(daemon.kill_and_restart(&arguments));
    let mut client = Client::of(&daemon);
    assert_eq!((client.pending("a.rrd"), client.newest("a.rrd")), (0, START_S));
}

/// A command of more bytes than the daemon reads at a time.
pub(crate) fn a_long_line_ends_the_connection() {
    let daemon = Daemon::start(&[]).unwrap();
    let mut client = Client::of(&daemon);
    client.create("a.rrd");
    let values = " 1700000000:1".repeat(700);
    assert_eq!(client.ask(&format!("UPDATE a.rrd{values}")), None);
}
