//! Files that rrdtool 1.7.2 wrote, where no rrdtool is: each is given the updates that
//! rrdtool was given, and has its bytes then.
//!
//! `fixtures/rrd/NAME.txt` has what rrdtool was asked: the words of `create` in the first
//! line, and then the updates of one call of `update` a line. `NAME.created.rrd` and
//! `NAME.updated.rrd` are its files; `differential.rs` asks a living rrdtool far more. Run
//! with `TSB_BLESS=1` where there is an rrdtool to write those that are missing.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tsb_rrd::{RrdFile, Session};

/// Kinds of sources, consolidations, long gaps, unknown and refused updates, and numbers
/// that only librrd reads as it does.
const NAMES: [&str; 3] = ["counters", "gauges", "published"];

fn fixture(name: &str, ending: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rrd");
    folder.join(format!("{name}.{ending}"))
}

fn rrdtool(command: &str, file: &Path, words: &str) -> Result<bool, Box<dyn Error>> {
    let ended = Command::new("rrdtool")
        .arg(command)
        .arg(file)
        .args(words.split(' '))
        .output()?;
    Ok(ended.status.success())
}

fn bless(name: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let (created, updated) = (fixture(name, "created.rrd"), fixture(name, "updated.rrd"));
    if std::env::var_os("TSB_BLESS").is_none() || created.exists() {
        return Ok(());
    }
    let mut lines = text.lines();
    let made = rrdtool("create", &created, lines.next().ok_or("nothing to create")?)?;
    assert!(made, "{name}: rrdtool refuses the layout");
    fs::copy(&created, &updated)?;
    for line in lines {
        rrdtool("update", &updated, line)?;
    }
    Ok(())
}

#[test]
fn a_file_of_rrdtool_is_updated_as_rrdtool_does() -> Result<(), Box<dyn Error>> {
    for name in NAMES {
        let text = fs::read_to_string(fixture(name, "txt"))?;
        bless(name, &text)?;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("copy.rrd");
        fs::copy(fixture(name, "created.rrd"), &path)?;
        let file = RrdFile::open(&path)?;
        let mut session = Session::default();
        let mut refused = 0;
        for line in text.lines().skip(1) {
            let updates: Vec<&str> = line.split(' ').collect();
            refused += usize::from(file.update(&mut session, &updates)?.stopped.is_some());
        }
        drop(session);
        let (ours, theirs) = (fs::read(&path)?, fs::read(fixture(name, "updated.rrd"))?);
        let differs = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
        assert_eq!((ours.len(), differs), (theirs.len(), None), "{name}");
        assert!(refused > 0, "{name}: an update that is refused leaves its traces, too");
    }
    Ok(())
}
