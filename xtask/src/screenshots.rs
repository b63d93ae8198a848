//! The pictures of docs/screenshots, made again from real runs.
//!
//! Pictures are for looking at and not compared by any check: a run never looks twice the
//! same. What a check can say about the page is in `ci/page.rs`.

mod ansi;
mod live;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::browser::{Browser, Screen, missing};
use crate::shell::{capture_any, cargo, root, run, target_folder};
use crate::terminal;

/// A store with something to see: it stops for 700 ms every 9 s.
const STALLING: &str = "throttle+memory:?throttle.stall_every=9s&throttle.stall_for=700ms";

/// Makes all of them.
pub(crate) fn make() -> Result<()> {
    if let Some(why) = missing().or_else(terminal::missing) {
        bail!("{why}");
    }
    let (docs, work) = (root().join("docs/screenshots"), target_folder()?.join("screenshots"));
    for folder in [&docs, &work] {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    run(&mut cargo(&["build", "--release", "--package", "tsb-cli"]))?;
    let program = target_folder()?.join("release/tsb");
    let mut browser = Browser::start()?;
    pages(&program, &work, &docs, &mut browser)?;
    drop(browser);
    live::captures(&program, &docs)
}

fn pages(program: &Path, work: &Path, docs: &Path, browser: &mut Browser) -> Result<()> {
    let text = |name: &str| work.join(name).display().to_string();
    for (name, store) in [("stalling", STALLING), ("steady", "memory:")] {
        let mut command = Command::new(program);
        command.args([
            "run",
            "--quiet",
            "--store",
            store,
            "--workload",
            "mix",
            "--duration",
            "40s",
        ]);
        command.args([
            "--html",
            &text(&format!("{name}.html")),
            "--out",
            &text(&format!("{name}.json")),
        ]);
        let (code, _) = capture_any(&mut command)?;
        if !matches!(code, Some(0 | 3)) {
            bail!("the run into {store} ended with exit code {code:?}");
        }
    }
    let mut command = Command::new(program);
    command.args([
        "report",
        &text("steady.json"),
        &text("stalling.json"),
        "--html",
        &text("both.html"),
    ]);
    capture_any(&mut command)?;
    let page = work.join("stalling.html");
    for (width, is_dark) in [(1400, false), (1400, true), (400, false), (400, true)] {
        let scheme = if is_dark { "dark" } else { "light" };
        shoot(
            browser,
            &page,
            screen(width, is_dark),
            &docs.join(format!("report-{width}-{scheme}.webp")),
        )?;
    }
    shoot(
        browser,
        &work.join("both.html"),
        screen(1400, false),
        &docs.join("report-two-runs.webp"),
    )?;
    browser.open(&page, screen(1400, false))?;
    write(&docs.join("report.png"), &browser.picture("png", false)?)?;
    write(&docs.join("report.pdf"), &browser.print()?)
}

const fn screen(width: u32, is_dark: bool) -> Screen {
    Screen {
        width,
        height: 1000,
        is_dark,
    }
}

fn shoot(browser: &mut Browser, page: &Path, screen: Screen, picture: &Path) -> Result<()> {
    browser.open(page, screen)?;
    write(picture, &browser.picture("webp", true)?)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    println!("{} ({} KB)", path.display(), bytes.len() / 1000);
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
