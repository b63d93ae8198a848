//! Repeats reads that a server does not answer: right after a run it may still be busy with what it
//! was sent, and an audit that gives up then leaves a whole run unverified.

use tsb_core::time::SECOND_NS;
use tsb_stores::Result;

use super::Scope;

/// Number of times that a read is sent before the audit fails.
const ATTEMPTS: u64 = 4;
/// Nanoseconds between two attempts; each may also take as long as the client's own timeout.
const PAUSE_NS: u64 = SECOND_NS;

impl Scope<'_> {
    /// The answer of `read`, which is called again as long as the server is silent; `repeated`
    /// counts that. `read` discards what an earlier call of it has read.
    ///
    /// # Errors
    /// The last error of `read`: one that is not silence, or silence after [`ATTEMPTS`].
    pub(super) fn answered<T>(&self, repeated: &mut u64, mut read: impl FnMut() -> Result<T>) -> Result<T> {
        for _ in 1..ATTEMPTS {
            match read() {
                Err(error) if error.is_silence() => *repeated += 1,
                answer => return answer,
            }
            self.clock.wait_until(self.clock.now() + PAUSE_NS);
        }
        read()
    }
}
