//! Sets up how a run in progress is shown: the live view, metrics for other tools, or lines on
//! stderr.

use std::sync::Arc;

use tsb_core::report::Interval;
use tsb_run::{Controls, IntervalLatencies, Message, Observer, Phase, Progress, RunInfo, StopFlags};

use super::{Board, Exposed, Terminal, wants_view};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::interrupt::Signals;
use crate::say;

/// The displays of a run; dropping it restores the terminal and stops the metrics.
#[derive(Debug)]
pub struct Shown {
    observer: Arc<Watcher>,
    stops: StopFlags,
    // Both read the board of the observer.
    _exposed: Option<Exposed>,
    _terminal: Option<Terminal>,
}

impl Shown {
    /// Shows a run as `args` say: on the live view if there is a terminal, else as lines; and as
    /// metrics.
    ///
    /// # Errors
    /// If a view was requested and cannot be drawn, or the metrics' address cannot be used.
    pub fn open(args: &RunArgs, signals: &Signals) -> Result<Self, Failure> {
        Self::with_view(args, signals, wants_view(args))
    }

    /// The same without the live view.
    ///
    /// # Errors
    /// If the metrics' address cannot be used.
    pub fn lines(args: &RunArgs, signals: &Signals) -> Result<Self, Failure> {
        Self::with_view(args, signals, false)
    }

    fn with_view(args: &RunArgs, signals: &Signals, has_view: bool) -> Result<Self, Failure> {
        let is_read = has_view || args.expose.is_some();
        let board = is_read.then(|| Arc::new(Board::new()));
        let drawn = board.as_ref().filter(|_| has_view);
        let terminal = drawn.map(|board| Terminal::open(Arc::clone(board), signals.clone()));
        let terminal = terminal.transpose()?;
        let exposed = board.as_ref().zip(args.expose);
        let exposed = exposed.map(|(board, address)| Exposed::start(address, args.expose_remote, Arc::clone(board)));
        let exposed = exposed.transpose()?;
        let observer = Arc::new(Watcher {
            board,
            has_view,
            quiet: args.output.quiet,
        });
        if let Some(exposed) = &exposed {
            observer.message(Message::Note(&format!(
                "metrics on http://{}/metrics",
                exposed.address()
            )));
        }
        Ok(Self {
            observer,
            stops: signals.stops.clone(),
            _exposed: exposed,
            _terminal: terminal,
        })
    }

    /// The controls of a run that is shown here and ended by signals or keys.
    pub fn controls(&self) -> Controls {
        Controls {
            stops: self.stops.clone(),
            observer: Arc::clone(&self.observer) as Arc<dyn Observer>,
            sockets: std::env::temp_dir(),
            ..Controls::default()
        }
    }
}

/// Forwards the events of a run to the board or to stderr.
#[derive(Debug)]
struct Watcher {
    board: Option<Arc<Board>>,
    has_view: bool,
    quiet: bool,
}

impl Observer for Watcher {
    fn begin(&self, subject: &RunInfo) {
        if let Some(board) = &self.board {
            board.begin(subject.clone());
        }
    }

    fn phase(&self, phase: Phase) {
        if let Some(board) = &self.board {
            board.enter(phase);
        }
    }

    fn progress(&self, progress: &Progress) {
        if let Some(board) = &self.board {
            board.update(progress);
        }
    }

    fn interval(&self, interval: &Interval, timed: &IntervalLatencies) {
        if let Some(board) = &self.board {
            board.add(interval.clone(), timed);
        }
    }

    fn message(&self, message: Message<'_>) {
        let view = self.board.as_ref().filter(|_| self.has_view);
        match (message, view) {
            (Message::Note(text) | Message::Warning(text), Some(board)) => board.say(text),
            (Message::Warning(text), None) => say::warning(text),
            (Message::Note(text) | Message::Progress(text), None) if !self.quiet => say::line(text),
            // The view draws it, or nobody wants to read it.
            _ => {}
        }
    }
}
