//! Another process that holds librrd's lock of a file: the program of the test, run again.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{FlockOperation, fcntl_lock};

/// The argument that makes the program a holder.
const HOLDER: &str = "lock-holder";

/// First of all in `main`: whether this process was started as a holder. Then it has held the
/// lock until its input ended, and has nothing else to do.
pub(crate) fn was_holder() -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, word, path] = arguments.as_slice() else {
        return false;
    };
    let is_holder = word == HOLDER;
    if is_holder {
        hold(path);
    }
    is_holder
}

/// Holds the lock of a file until the input ends.
fn hold(path: &str) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    std::io::stdout().write_all(b"locked\n").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// A process that holds a lock.
#[derive(Debug)]
pub(crate) struct Holder(Child);

impl Holder {
    /// Returns when the lock is held.
    pub(crate) fn of(path: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let command = command
            .arg(HOLDER)
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut said).unwrap();
        assert_eq!(said.trim_end(), "locked");
        Self(child)
    }

    /// Returns when the lock is free again.
    pub(crate) fn release(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}
