//! What a run takes from its surroundings.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tsb_core::report::Run;

use crate::journal::Journal;
use crate::observer::{Message, Nobody, Observer, Phase};
use crate::run::Patience;

/// Starts something that stands between emitter and listener: gets the listener's address,
/// returns the one to connect to.
pub type Between = Arc<dyn Fn(SocketAddr) -> SocketAddr + Send + Sync>;

/// Keeps a run that is not read back yet.
pub type Provisional = Arc<dyn Fn(&Run) + Send + Sync>;

/// Flags that end a run early. Signal handlers, keys and embedders set them.
#[derive(Clone, Debug, Default)]
pub struct Stops {
    /// An orderly end, with read-back and report.
    pub stop: Arc<AtomicBool>,
    /// An end at once, with the report of what there is: nothing is waited for any more.
    pub at_once: Arc<AtomicBool>,
}

/// What a run takes from its surroundings.
#[derive(Clone)]
pub struct Controls {
    /// Ends the run early.
    pub stops: Stops,
    /// How long a call into the store may take to return after a stop, and at the end.
    pub patience: Patience,
    /// Hears what the run does.
    pub observer: Arc<dyn Observer>,
    /// A relay on the wire: an emulator of bad networks, or a receiver under test.
    pub between: Option<Between>,
    /// What each run is called, in the order of the plan's stores.
    pub labels: Vec<String>,
    /// Gets the run as it stands before it is read back: whatever ends the process then
    /// leaves what was measured.
    pub provisional: Option<Provisional>,
    /// What is left of a run that is killed.
    pub journal: Option<Arc<Journal>>,
    /// The folder for Unix sockets of runs over `unix` and `unixgram`.
    pub sockets: PathBuf,
}

impl Default for Controls {
    /// Nothing ends the run, nobody observes it, and sockets are made in `/tmp`.
    fn default() -> Self {
        Self {
            stops: Stops::default(),
            patience: Patience::default(),
            observer: Arc::new(Nobody),
            between: None,
            labels: Vec::new(),
            provisional: None,
            journal: None,
            sockets: PathBuf::from("/tmp"),
        }
    }
}

impl std::fmt::Debug for Controls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controls")
            .field("stops", &self.stops)
            .field("patience", &self.patience)
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}

impl Controls {
    /// Stops in order when `stop` is set.
    pub fn stopped_by(stop: Arc<AtomicBool>) -> Self {
        Self {
            stops: Stops {
                stop,
                ..Stops::default()
            },
            ..Self::default()
        }
    }

    /// The run does something else now.
    pub fn enter(&self, phase: Phase) {
        self.observer.phase(phase);
    }

    /// Says what nothing else says.
    pub fn note(&self, text: &str) {
        self.observer.message(Message::Note(text));
    }

    /// Says what phase or interval say to those who draw them.
    pub fn progress(&self, text: &str) {
        self.observer.message(Message::Progress(text));
    }

    /// Says what must be read.
    pub fn warn(&self, text: &str) {
        self.observer.message(Message::Warning(text));
    }
}
