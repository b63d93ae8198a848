//! To a listener that somebody else runs: it may never read and never answer, and a stop still
//! ends the pass.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::net::{Address, Closing, Interrupter};
use tsb_core::time::SECOND_NS;

use super::path::{Driven, Pass, lock};
use crate::error::Error;

/// How often is looked for a stop.
const LOOK_NS: u64 = SECOND_NS / 10;

/// How long after a stop what is on its way may still arrive.
const GRACE_NS: u64 = SECOND_NS / 2;

impl Pass<'_> {
    /// To somebody else's listener, which may never read and never answer: a stop ends every wait
    /// for it.
    pub fn remote(&self, address: &Address) -> Result<Driven, Error> {
        let (interrupters, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let sent = std::thread::scope(|scope| {
            scope.spawn(|| self.interrupt(&interrupters, &is_over));
            let sent = self.send(address, None, Some(&interrupters));
            is_over.store(true, Ordering::Release);
            sent
        });
        let (mut driven, wire) = sent?;
        let timeout = self.stage.plan.wire.emit_options(1).close_timeout;
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

    /// Ends all waits of targets a while after the user has asked for the end.
    fn interrupt(&self, interrupters: &Mutex<Vec<Interrupter>>, is_over: &AtomicBool) {
        let clock = &self.stage.clock;
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

/// A [`Closing`] as reports name it.
pub(super) const fn word(closing: Closing) -> &'static str {
    match closing {
        Closing::Open => "open",
        Closing::Confirmed => "confirmed",
        Closing::Unconfirmed => "unconfirmed",
        Closing::TimedOut => "timed_out",
        Closing::Interrupted => "interrupted",
        Closing::Lost => "lost",
    }
}
