//! rrdtool's own tests, from its source package, through the real rrdcached and through
//! `tsb ingest`: each that passes through the daemon must pass through ours.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Daemon;
use crate::ingest::patiently;
use crate::installed;
use crate::server::Server;

/// Tests that need what only librrd does: archives of Holt-Winters forecasting, and creation
/// from other files.
const NEED_LIBRRD: &str = "create-from-template-1 create-with-source tune2";

/// Where the tests are, if the source package could be had.
pub(crate) fn source() -> Option<PathBuf> {
    std::env::var_os("TSB_CLIENTS")?;
    Some(installed("rrdtool/tests")).filter(|folder| folder.is_dir())
}

/// Copies the tests into a folder, which becomes the folder of a daemon.
fn copy(into: &Path) {
    fs::create_dir_all(into).unwrap();
    let source = source().unwrap();
    for entry in fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), into.join(entry.file_name())).unwrap();
    }
}

/// Runs every test against a daemon: whether it passed, and the end of what it said.
fn run(folder: &Path, address: &str) -> BTreeMap<String, (bool, String)> {
    let mut results = BTreeMap::new();
    for entry in fs::read_dir(source().unwrap()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = fs::read(folder.join(&name)).unwrap();
        if !text.starts_with(b"#!/bin/bash") {
            continue;
        }
        let mut command = Command::new("timeout");
        command.args(["60", "bash", &format!("./{name}")]).current_dir(folder);
        command.env("RRDTOOL", "rrdtool").env("RRDCACHED_ADDRESS", address);
        for variable in ["BASEDIR", "BUILDDIR", "TOP_BUILDDIR"] {
            command.env(variable, folder);
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let end: Vec<&str> = said.lines().rev().take(5).collect();
        let end: Vec<&str> = end.into_iter().rev().collect();
        results.insert(name, (output.status.success(), end.join("\n")));
    }
    results
}

pub(crate) fn rrdtools_own_tests_pass_as_through_rrdcached() {
    let theirs = {
        let folder = tempfile::tempdir().unwrap();
        let (base, socket) = (folder.path().join("base"), folder.path().join("socket"));
        copy(&base);
        let address = format!("unix:{}", socket.display());
        let mut command = Command::new("rrdcached");
        command.args(["-g", "-F", "-l", &address, "-b"]).arg(&base);
        let daemon = Daemon::start(command.arg("-p").arg(folder.path().join("pid")));
        patiently(|| std::os::unix::net::UnixStream::connect(&socket));
        let results = run(&base, &address);
        daemon.stop();
        results
    };
    let folder = tempfile::tempdir().unwrap();
    copy(&folder.path().join("base"));
    let server = Server::start(folder, "");
    let ours = run(&server.file(""), &server.address());
    server.stop();
    let is_left_out = |name: &str| {
        let mut needing = NEED_LIBRRD.split(' ');
        !cfg!(feature = "librrd") && needing.any(|start| name.starts_with(start))
    };
    let passed = theirs.values().filter(|(passed, _)| *passed).count();
    assert!(theirs.len() >= 20 && passed >= 20, "{theirs:#?}");
    let (mut table, mut failed) = (std::io::stdout(), Vec::new());
    for (name, (passed, said)) in &ours {
        let through_theirs = theirs[name].0;
        writeln!(table, "{name}: rrdcached {through_theirs}, tsb {passed}").unwrap();
        if through_theirs && !passed && !is_left_out(name) {
            writeln!(failed, "{name}:\n{said}").unwrap();
        }
    }
    let failed = String::from_utf8(failed).unwrap();
    assert!(
        failed.is_empty(),
        "pass through rrdcached and not through tsb:\n{failed}"
    );
}
