//! Handles Ctrl-C and SIGTERM: the first signal requests an orderly end, the second an immediate
//! one with a report of what is known, the third ends the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::StopFlags;

use crate::exit::Exit;
use crate::say;

/// Time limit for the report after the second signal.
const LAST_NS: u64 = SECOND_NS;

/// The user's requests to end.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// The stop flags. Keys may set them as well as signals.
    pub stops: StopFlags,
    /// Called before the process ends without an orderly end, to restore the terminal.
    pub before_end: Arc<OnceLock<fn()>>,
}

/// The effect of one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Stop,
    AtOnce,
    End,
}

/// Installs the signal handler and returns the flags that it sets.
pub fn signals() -> Signals {
    let signals = Signals::default();
    let seen = signals.clone();
    // A process that already has a handler (an embedder) keeps it.
    let _ = ctrlc::set_handler(move || {
        if seen.press() {
            say::line("tsb: stopping; the part done so far will be reported (once more to end at once)");
        }
    });
    signals
}

/// Installs the signal handler and returns the flag that the first signal sets.
pub fn flag() -> Arc<AtomicBool> {
    signals().stops.stop
}

impl Signals {
    /// Handles a signal or a key. Returns whether it is the first one.
    pub fn press(&self) -> bool {
        match self.request() {
            Request::Stop => return true,
            Request::AtOnce => self.end_soon(),
            Request::End => self.end(),
        }
        false
    }

    fn request(&self) -> Request {
        if !self.stops.stop.swap(true, Ordering::SeqCst) {
            Request::Stop
        } else if !self.stops.at_once.swap(true, Ordering::SeqCst) {
            Request::AtOnce
        } else {
            Request::End
        }
    }

    /// Ends the process after one second, whatever it is doing then.
    fn end_soon(&self) {
        let signals = self.clone();
        let thread = std::thread::Builder::new().name("tsb-end".to_owned());
        let started = thread.spawn(move || {
            let clock = MonotonicClock::new();
            clock.wait_until(LAST_NS);
            signals.end();
        });
        if started.is_err() {
            self.end();
        }
    }

    /// Ends the process without waiting for anything.
    fn end(&self) -> ! {
        if let Some(before_end) = self.before_end.get() {
            before_end();
        }
        std::process::exit(Exit::Interrupted as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_asks_for_the_end_the_second_for_one_at_once_and_the_third_ends() {
        let signals = Signals::default();
        let requests = [(); 4].map(|()| signals.request());
        assert_eq!(requests, [Request::Stop, Request::AtOnce, Request::End, Request::End]);
        // Whatever set the flag, a signal is then the second request.
        let stopped = Signals::default();
        stopped.stops.stop.store(true, Ordering::SeqCst);
        assert_eq!(stopped.request(), Request::AtOnce);
    }
}
