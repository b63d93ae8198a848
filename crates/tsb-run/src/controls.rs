//! The inputs of a run besides its plan: stop flags, time limits, the observer, and where files
//! go.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
#[cfg(feature = "hosts")]
use std::sync::atomic::Ordering;

use tsb_core::Timestamp;
use tsb_core::report::Run;
use tsb_core::time::Clock;

use crate::error::Error;
use crate::journal::Journal;
use crate::observer::{Message, NullObserver, Observer, Phase};
use crate::run::StoreTimeouts;

/// Starts a relay between emitter and listener: receives the listener's address and returns the
/// address to connect to.
pub type RelayStarter = Arc<dyn Fn(SocketAddr) -> SocketAddr + Send + Sync>;

/// Decides when a run begins that other processes have a part in.
pub trait StartBarrier: Send + Sync {
    /// Waits until all parts may begin, and returns when: on `clock`, and the first timestamp, which is that of
    /// the moment, or where the history ends.
    ///
    /// # Errors
    /// If there will be no start.
    fn wait(&self, clock: &dyn Clock) -> Result<(u64, Timestamp), Error>;

    /// The timestamp at which the history of all parts ends and the run begins, if the plan asks for history.
    fn history_end(&self) -> Option<Timestamp> {
        None
    }
}

/// Saves the report of a run that has not been read back yet.
pub type Provisional = Arc<dyn Fn(&Run) + Send + Sync>;

/// Flags that end a run early. Signal handlers, keys and embedding programs set them.
#[derive(Clone, Debug, Default)]
pub struct StopFlags {
    /// Ends sending; what was sent is read back and reported.
    pub stop: Arc<AtomicBool>,
    /// Ends the run within 0.2 s, with a report of what is known. No call into the store is waited for
    /// longer.
    pub at_once: Arc<AtomicBool>,
}

impl StopFlags {
    /// Refuses to go on with a run that has not begun once either is set.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    #[cfg(feature = "hosts")]
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::SeqCst) || self.at_once.load(Ordering::SeqCst) {
            return Err(Error::interrupted("the run ended before it began"));
        }
        Ok(())
    }
}

/// The inputs of a run besides its plan. Cloning shares the flags, the observer and the journal.
#[derive(Clone)]
pub struct Controls {
    /// Ends the run early.
    pub stops: StopFlags,
    /// Time limits for calls into the store, after a stop and at the end.
    pub store_timeouts: StoreTimeouts,
    /// Receives the run's phases, intervals and messages.
    pub observer: Arc<dyn Observer>,
    /// A relay on the wire: a network emulator, or a receiver under test.
    pub start_relay: Option<RelayStarter>,
    /// The label of each run, in the order of the plan's stores.
    pub labels: Vec<String>,
    /// How often a run of [`run_each`](crate::run_each) that is NOISY is repeated, in an empty place.
    /// A plan that appends is not repeated.
    pub retry_noisy: u32,
    /// Receives the report as it stands before the read-back, so that a process that dies during
    /// the read-back leaves what was measured.
    pub provisional: Option<Provisional>,
    /// The journal that remains if the process is killed; absent if none is written.
    pub journal: Option<Arc<Journal>>,
    /// The folder for Unix sockets of runs over `unix` and `unixgram`.
    pub sockets: PathBuf,
    /// When to begin, for a part of a fleet whose other parts are sent by other processes; absent:
    /// at the next whole second.
    pub start: Option<Arc<dyn StartBarrier>>,
    /// Whether the store is asked for the newest sample of every series while it is written. Its
    /// answers cost CPU time, of which a run that measures only writing wants none.
    pub measures_staleness: bool,
}

impl Default for Controls {
    /// No stop flag is set, no observer listens, and sockets are created in `/tmp`.
    fn default() -> Self {
        Self {
            stops: StopFlags::default(),
            store_timeouts: StoreTimeouts::default(),
            observer: Arc::new(NullObserver),
            start_relay: None,
            labels: Vec::new(),
            retry_noisy: 0,
            provisional: None,
            journal: None,
            sockets: PathBuf::from("/tmp"),
            start: None,
            measures_staleness: true,
        }
    }
}

impl std::fmt::Debug for Controls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controls")
            .field("stops", &self.stops)
            .field("store_timeouts", &self.store_timeouts)
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}

impl Controls {
    /// Default controls whose run stops in order when `stop` is set.
    pub fn stopped_by(stop: Arc<AtomicBool>) -> Self {
        Self {
            stops: StopFlags {
                stop,
                ..StopFlags::default()
            },
            ..Self::default()
        }
    }

    /// Tells the observer that a new phase begins, or how far the current one has come.
    pub fn enter(&self, phase: Phase) {
        self.observer.phase(phase);
    }

    /// Sends a note that no phase or interval carries.
    pub fn note(&self, text: &str) {
        self.observer.message(Message::Note(text));
    }

    /// Sends a progress line; observers that draw phases and intervals can ignore it.
    pub fn progress(&self, text: &str) {
        self.observer.message(Message::Progress(text));
    }

    /// Sends a warning.
    pub fn warn(&self, text: &str) {
        self.observer.message(Message::Warning(text));
    }
}
