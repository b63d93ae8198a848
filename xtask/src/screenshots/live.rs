//! The live view, driven in tmux: pictures at three sizes, and a film.

use std::path::Path;

use anyhow::{Context, Result};

use super::ansi;
use crate::terminal::{Session, pause};

/// Columns and lines of the pictures.
const SIZES: [(usize, usize); 3] = [(80, 24), (120, 36), (200, 50)];

/// Columns, lines and seconds of the film.
const FILM: (usize, usize, usize) = (90, 28, 16);

/// A run that has something to see, without its result at the end.
fn command(program: &Path, seconds: usize) -> String {
    format!(
        "{} run --store 'throttle+memory:?throttle.stall_every=5s&throttle.stall_for=600ms' --workload mix --report-interval 250ms --no-calibrate --duration {seconds}s",
        program.display()
    )
}

/// Takes the pictures and the film.
pub(super) fn captures(program: &Path, docs: &Path) -> Result<()> {
    for (columns, lines) in SIZES {
        let session = Session::start(columns, lines, &command(program, 60))?;
        session.wait_for("12 s of 60 s")?;
        keep(
            docs,
            &format!("live-{columns}.svg"),
            &[session.screen()?],
            columns,
            lines,
        )?;
        session.tmux(&["send-keys", "q"])?;
        session.tmux(&["send-keys", "q"])?;
    }
    let (columns, lines, seconds) = FILM;
    let session = Session::start(columns, lines, &command(program, seconds))?;
    session.wait_for("1 s of")?;
    let mut screens = Vec::new();
    for _ in 1..seconds {
        screens.push(session.screen()?);
        pause("0.97")?;
    }
    keep(docs, "live.svg", &screens, columns, lines)
}

fn keep(docs: &Path, name: &str, screens: &[String], columns: usize, lines: usize) -> Result<()> {
    let screens: Vec<_> = screens.iter().map(|screen| ansi::parse(screen)).collect();
    let picture = ansi::svg(&screens, columns, lines);
    println!("{name} ({} KB)", picture.len() / 1000);
    std::fs::write(docs.join(name), picture).with_context(|| format!("cannot write {name}"))
}
