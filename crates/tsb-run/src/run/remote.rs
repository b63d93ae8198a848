//! Sends to a listener of another program. It may never read or answer, and a stop still ends
//! the pass.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::net::{Address, Closing, Interrupter};
use tsb_core::time::SECOND_NS;

use super::path::{Pass, PassResult, lock};
use crate::beside::{beside, resumed};
use crate::error::Error;

/// Interval between two checks of the stop flag.
const LOOK_NS: u64 = SECOND_NS / 10;

/// Time after a stop during which data in flight may still arrive.
const GRACE_NS: u64 = SECOND_NS / 2;

impl Pass<'_> {
    /// Sends to a listener of another program; a stop ends every wait for it, 0.5 s later.
    pub fn remote(&self, address: &Address) -> Result<PassResult, Error> {
        let interrupters = Mutex::new(Vec::new());
        let (sent, interrupted) = beside(
            |is_over| self.interrupt(&interrupters, is_over),
            || self.send(&self.route(), address, Some(&interrupters)),
        );
        resumed(interrupted);
        let (mut driven, wire) = resumed(sent)?;
        let timeout = self.context.plan.wire.emit_options(1).close_timeout;
        if let Some(count) = wire.closings.get(word(Closing::TimedOut)) {
            driven.failures.push(format!(
                "{count} of {} connections: the server at {address} did not read to their end within {} s, so that what \
                 was sent last may not have been read",
                wire.closings.values().sum::<u64>(),
                timeout.as_secs_f64(),
            ));
        }
        driven.wire = Some(wire);
        Ok(driven)
    }

    /// Interrupts all waits of targets 0.5 s after the stop flag was set.
    fn interrupt(&self, interrupters: &Mutex<Vec<Interrupter>>, is_over: &AtomicBool) {
        let clock = &self.context.clock;
        let mut until = None;
        while !is_over.load(Ordering::Acquire) {
            let now = clock.now();
            if self.stop.load(Ordering::Relaxed) && now >= *until.get_or_insert(now + GRACE_NS) {
                lock(interrupters).iter().for_each(Interrupter::interrupt);
            }
            clock.wait_until(now + LOOK_NS);
        }
    }
}

/// The name of a [`Closing`] in reports.
pub(super) const fn word(closing: Closing) -> &'static str {
    match closing {
        Closing::Open => "open",
        Closing::Confirmed => "confirmed",
        Closing::Unconfirmed => "unconfirmed",
        Closing::TimedOut => "timed_out",
        Closing::Interrupted => "interrupted",
        Closing::Lost => "lost",
        _ => "other",
    }
}
