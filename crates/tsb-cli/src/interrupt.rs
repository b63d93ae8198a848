//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;
use crate::say;

/// A flag that the first signal sets. A second signal ends the process: whoever asks
/// twice does not want to wait for the audit.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&flag);
    // A process that already has a handler (an embedder) keeps it.
    let _ = ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::SeqCst) {
            end();
        }
        say::line("tsb: stopping; the part done so far will be reported (once more to end at once)");
    });
    flag
}

/// Ends the process without waiting for anything.
#[expect(clippy::exit, reason = "the user asked twice; nothing is left to be said")]
pub fn end() -> ! {
    std::process::exit(Exit::Interrupted as i32)
}
