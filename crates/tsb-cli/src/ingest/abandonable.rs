//! Serves on a thread that can be abandoned together with its store.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Signals;
use tsb_run::run::{Calls, StoreTimeouts, WaitOutcome, Waiting, WorkEnd};

/// Calls `serve` on a thread of its own, and waits for its end within the limits of `store_timeouts`.
pub(super) fn serve_abandonable<T: Send + 'static>(
    signals: &Signals,
    store_timeouts: StoreTimeouts,
    calls: &Arc<Calls>,
    serve: impl FnOnce(&AtomicBool, &WorkEnd) -> T + Send + 'static,
) -> Result<WaitOutcome<T>, Failure> {
    let shared = Arc::new((AtomicBool::new(false), WorkEnd::default()));
    let (tell, told) = sync_channel(1);
    let thread = std::thread::Builder::new().name("tsb-serve".to_owned());
    let serving = Arc::clone(&shared);
    let started = thread.spawn(move || {
        // Nobody listens any more if it was left behind.
        let _ = tell.send(serve(&serving.0, &serving.1));
    });
    let started = started.map_err(|error| Failure::new(Exit::Bug, "cannot start a thread").because(&error))?;
    let waiting = Waiting {
        stops: &signals.stops,
        store_timeouts,
        calls,
        over: &shared.1,
        stop: &shared.0,
        thread: Some(started.thread()),
    };
    Ok(waiting.wait(&told))
}

/// Why a store was abandoned.
pub(super) struct AbandonedStore {
    pub(super) why: String,
    /// Whether a stop was requested before.
    pub(super) is_stopped: bool,
}

impl AbandonedStore {
    /// Prints the reason, and returns the exit code.
    pub(super) fn exit(&self) -> Exit {
        crate::say::failure(format_args!("tsb: {}", self.why));
        if self.is_stopped { Exit::Interrupted } else { Exit::Done }
    }
}
