//! A terminal for programs that want one: a tmux server of its own for each.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Result, bail};

use crate::shell::{capture, has};

static STARTED: AtomicUsize = AtomicUsize::new(0);

/// Why terminals cannot be looked at here; `None` when they can.
pub(crate) fn missing() -> Option<String> {
    (!has("tmux", "-V")).then(|| "there is no tmux; cargo xtask ci --only packages installs it".to_owned())
}

/// One session of a tmux server; both end with this value.
pub(crate) struct Session {
    server: String,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

impl Session {
    /// Runs a command of the shell on a terminal of this size.
    pub(crate) fn start(columns: usize, lines: usize, command: &str) -> Result<Self> {
        let session = Self {
            // A name of its own: a server of the same name may still be going away.
            server: format!("tsb-{}-{}", std::process::id(), STARTED.fetch_add(1, Relaxed)),
        };
        let (width, height) = (columns.to_string(), lines.to_string());
        // CI would make the program print lines.
        let command = format!("env -u CI -u NO_COLOR TERM=screen-256color {command}");
        session.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
            &command,
        ])?;
        Ok(session)
    }

    /// Says something to the server.
    pub(crate) fn tmux(&self, arguments: &[&str]) -> Result<String> {
        capture(Command::new("tmux").args(["-L", &self.server]).args(arguments))
    }

    /// What the terminal shows.
    pub(crate) fn screen(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Waits until the terminal shows `words`.
    pub(crate) fn wait_for(&self, words: &str) -> Result<()> {
        for _ in 0..200 {
            if self.screen()?.contains(words) {
                return Ok(());
            }
            pause("0.2")?;
        }
        bail!("the terminal never shows {words:?}:\n{}", self.screen()?)
    }
}

/// Waits.
pub(crate) fn pause(seconds: &str) -> Result<()> {
    capture(Command::new("sleep").arg(seconds)).map(drop)
}
