//! `tsb ingest` in a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// Starts `command`, which listens, and waits for the address that it listens on.
pub(crate) fn listening(command: &mut Command) -> (Child, String) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let address = line.split("://").nth(1).and_then(|rest| rest.split(' ').next());
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    // The rest is drained, so that the child never waits for us.
    std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
    (child, address)
}
