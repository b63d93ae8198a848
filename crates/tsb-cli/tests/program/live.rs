//! The live view on a terminal: the real program behind a pseudo-terminal, whose keys and
//! size a test sets, and whose screen it reads.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::program::tsb;
use crate::screen::Screen;

const fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// A program on a terminal of its own.
struct Session {
    child: Child,
    terminal: File,
    screen: Screen,
}

impl Session {
    /// Starts `tsb` with these arguments on a terminal of 80 by 24.
    fn start(arguments: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let terminal = openpt(flags).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let inside = ioctl_tiocgptpeer(&terminal, flags).unwrap();
        tcsetwinsize(&terminal, size(80, 24)).unwrap();
        let end = || Stdio::from(inside.try_clone().unwrap());
        let mut command = tsb(arguments);
        command.env("TERM", "xterm-256color");
        for name in ["CI", "NO_COLOR", "COLUMNS"] {
            command.env_remove(name);
        }
        Self {
            child: command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap(),
            terminal: File::from(terminal),
            screen: Screen::default(),
        }
    }

    /// Another size, told as a terminal tells it.
    fn resize(&mut self, columns: u16, rows: u16) {
        tcsetwinsize(&self.terminal, size(columns, rows)).unwrap();
        // The terminal is not the one that controls the test, so the kernel signals nobody.
        kill_process(Pid::from_child(&self.child), Signal::WINCH).unwrap();
    }

    /// Makes the terminal this wide, and waits until the view is: the signal has been taken.
    fn widen(&mut self, columns: u16) {
        self.resize(columns, 30);
        let is_wide = |line: &str| line.chars().count() == usize::from(columns);
        self.until("the view fills the new width", |screen| screen.lines().any(is_wide));
    }

    fn press(&mut self, keys: &[u8]) {
        self.terminal.write_all(keys).unwrap();
    }

    /// Reads what is drawn until the screen is as wanted.
    fn until(&mut self, what: &str, is_there: impl Fn(&str) -> bool) {
        while !is_there(&self.screen.text()) {
            assert!(self.read(), "the program ended before {what}:\n{}", self.screen.text());
        }
    }

    /// Reads until these words stand on the screen.
    fn until_words(&mut self, words: &str) {
        self.until(words, |screen| screen.contains(words));
    }

    /// Reads once; whether anything came before the end.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // Linux answers EIO once nobody has the other end open.
        let length = self.terminal.read(&mut bytes).unwrap_or(0);
        self.screen.draw(&bytes[..length]);
        length > 0
    }

    /// CPU time of the thread that draws, in nanoseconds.
    fn view_cpu_ns(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of = |task: std::path::PathBuf| {
            let name = std::fs::read_to_string(task.join("comm")).ok()?;
            let times = std::fs::read_to_string(task.join("schedstat")).ok()?;
            (name.trim_end() == "tsb-view").then(|| times.split(' ').next().unwrap().parse::<u64>().unwrap())
        };
        tasks.filter_map(|task| of(task.unwrap().path())).sum()
    }

    /// Reads to the end of the program: its exit code, and what stands on the screen then.
    fn finish(mut self) -> (Option<i32>, String) {
        while self.read() {}
        (self.child.wait().unwrap().code(), self.screen.text())
    }
}

impl Drop for Session {
    /// A test that failed leaves no program behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Seconds since sending began, as the screen says: `3 s of 600 s`.
fn elapsed_s(screen: &str) -> Option<u64> {
    screen.split_once(" s of ")?.0.rsplit(' ').next()?.parse().ok()
}

/// A run that takes far longer than a test may.
fn long_run(more: &[&str]) -> Session {
    let mut arguments = vec!["run", "--no-calibrate", "--workload", "mix", "--series", "540"];
    arguments.extend([
        "--transport",
        "inproc",
        "--duration",
        "10m",
        "--report-interval",
        "100ms",
    ]);
    arguments.extend(more);
    let mut session = Session::start(&arguments);
    session.until("the run has begun", |screen| elapsed_s(screen).is_some());
    session
}

/// A terminal that is resized while a key waits: both are seen, and neither makes the view
/// ask again and again.
#[test]
fn keys_are_heard_after_a_resize_and_the_view_does_not_spin() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report.json");
    let mut session = long_run(&["--out", path.to_str().unwrap()]);
    session.press(b"s");
    session.until_words("each column");
    let began_s = elapsed_s(&session.screen.text()).unwrap();
    let before_ns = session.view_cpu_ns();
    session.widen(100);
    session.press(b"x");
    session.until("five seconds", |screen| {
        elapsed_s(screen).is_some_and(|now_s| now_s >= began_s + 5)
    });
    let used_ns = session.view_cpu_ns() - before_ns;
    assert!(before_ns > 0, "no thread draws");
    assert!(
        used_ns < 1_000_000_000,
        "the view took {used_ns} ns of CPU in five seconds"
    );
    session.press(b"s");
    session.until_words("the whole map");
    session.widen(120);
    session.press(b"q");
    let (code, screen) = session.finish();
    assert_eq!(code, Some(130), "q ends the run with its report:\n{screen}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(report["interrupted"], true);
    assert_eq!(report["ledger"]["lost"], 0);
}

/// Keys that arrive in one read are all taken, and arrows are none.
#[test]
fn keys_of_one_read_are_all_taken() {
    let mut session = long_run(&[]);
    session.press(b"\x1b[A\x1b[Bp");
    session.until_words("PAUSED");
    session.press(b"pq");
    let (code, screen) = session.finish();
    assert_eq!(code, Some(130), "{screen}");
}

#[test]
fn a_question_mark_shows_the_keys() {
    let mut session = long_run(&[]);
    session.press(b"?");
    session.until_words("? or Esc closes");
    for words in ["q, Ctrl-C", "Figures", "stalest"] {
        assert!(
            session.screen.text().contains(words),
            "{words}:\n{}",
            session.screen.text()
        );
    }
    session.press(b"\x1b");
    session.until("the help is closed", |screen| !screen.contains("Esc closes"));
    session.press(b"q");
    let (code, screen) = session.finish();
    assert_eq!(code, Some(130), "{screen}");
}

/// What is printed on a terminal is laid out for its width; what another program reads is not.
#[test]
fn results_fit_the_terminal_and_are_whole_in_a_file() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reports");
    let report = fixtures.join("schema-1.json");
    let report = report.to_str().unwrap();
    for arguments in [&["report", report][..], &["report", report, report], &["stores"]] {
        let (code, shown) = Session::start(arguments).finish();
        assert_eq!(code, Some(0), "{shown}");
        for line in shown.lines() {
            assert!(line.chars().count() <= 80, "{arguments:?}: {line:?}");
        }
        let whole = tsb(arguments).output().unwrap();
        let whole = String::from_utf8(whole.stdout).unwrap();
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&shown), words(&whole));
        assert!(whole.lines().count() < shown.lines().count(), "{whole}");
    }
}
