//! What a run takes from its surroundings.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use tsb_core::report::Run;

use super::patience::Patience;
use crate::interrupt::Signals;
use crate::journal::Journal;
use crate::live::{Board, Phase};

/// Starts something that stands between emitter and listener: gets the listener's address,
/// returns the one to connect to.
pub(super) type Between = Arc<dyn Fn(SocketAddr) -> SocketAddr + Send + Sync>;

/// Keeps a run that is not read back yet.
pub(super) type Provisional = Arc<dyn Fn(&Run) + Send + Sync>;

/// What a run takes from its surroundings.
#[derive(Clone)]
pub struct Hooks {
    /// Ends the run early, with its report.
    pub stop: Arc<AtomicBool>,
    /// Ends it at once, with the report of what there is.
    pub at_once: Arc<AtomicBool>,
    /// How long a call into the store may take to return after a stop, and at the end.
    pub patience: Patience,
    /// No progress lines.
    pub quiet: bool,
    /// Where the run shows what it does, for those who watch it.
    pub board: Option<Arc<Board>>,
    /// The board has a view of its own: nothing is said on stderr.
    pub has_view: bool,
    /// A relay on the wire: an emulator of bad networks, or a receiver under test.
    pub between: Option<Between>,
    /// What each run is called, in the order of the plan's stores.
    pub labels: Vec<String>,
    /// Called before the process ends without an orderly end.
    pub before_end: Arc<OnceLock<fn()>>,
    /// Gets the run as it stands before it is read back: whatever ends the process then
    /// leaves what was measured.
    pub provisional: Option<Provisional>,
    /// What is left of a run that is killed.
    pub journal: Option<Arc<Journal>>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks")
            .field("stop", &self.stop)
            .field("quiet", &self.quiet)
            .finish_non_exhaustive()
    }
}

impl Hooks {
    /// Stops when `stop` is set.
    pub fn new(stop: Arc<AtomicBool>, quiet: bool) -> Self {
        Self {
            stop,
            at_once: Arc::default(),
            patience: Patience::default(),
            quiet,
            board: None,
            has_view: false,
            between: None,
            labels: Vec::new(),
            before_end: Arc::default(),
            provisional: None,
            journal: None,
        }
    }

    /// Ends when signals ask for it.
    #[must_use]
    pub fn with_signals(mut self, signals: &Signals) -> Self {
        self.stop = Arc::clone(&signals.stop);
        self.at_once = Arc::clone(&signals.at_once);
        self.before_end = Arc::clone(&signals.before_end);
        self
    }

    /// What may end the run.
    pub(crate) fn signals(&self) -> Signals {
        Signals {
            stop: Arc::clone(&self.stop),
            at_once: Arc::clone(&self.at_once),
            before_end: Arc::clone(&self.before_end),
        }
    }

    /// Says something: on the view where there is one, else on stderr; unless told to be
    /// quiet.
    pub fn say(&self, text: impl FnOnce() -> String) {
        match &self.board {
            Some(board) if self.has_view => board.say(&text()),
            _ => self.say_line(text),
        }
    }

    /// Says what a view shows better: only where there is none.
    pub fn say_line(&self, text: impl FnOnce() -> String) {
        if !self.quiet && !self.has_view {
            crate::say::line(text());
        }
    }

    /// Prints a warning, also under `--quiet`.
    pub fn warn(&self, text: &str) {
        match &self.board {
            Some(board) if self.has_view => board.say(text),
            _ => crate::say::line(format_args!("tsb: {text}")),
        }
    }

    /// The run does something else now.
    pub fn enter(&self, phase: Phase) {
        if let Some(board) = &self.board {
            board.enter(phase);
        }
    }
}
