//! Processes that end with their test, and conditions that are waited for.

use std::process::{Child, Command, Stdio};

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

/// How long a condition may take on a busy machine.
const PATIENCE_NS: u64 = 120 * SECOND_NS;

/// Waits for something, and fails where it never comes.
pub(crate) fn until(what: &str, mut is: impl FnMut() -> bool) {
    let clock = MonotonicClock::new();
    while !is() {
        assert!(clock.now() < PATIENCE_NS, "{what} never came");
        clock.wait_until(clock.now() + 10_000_000);
    }
}

/// A process that ends with its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts a program whose output nobody reads.
    pub(crate) fn silent(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// SIGKILL, by its number.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Sends a signal, named as `kill` takes it.
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Its exit code, once it has ended.
    pub(crate) fn code(&mut self) -> Option<i32> {
        let mut status = None;
        until("its end", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
