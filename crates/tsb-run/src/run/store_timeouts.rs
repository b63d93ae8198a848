//! Waits, with a time limit, for a thread that calls a store.
//!
//! The thread is never joined. After a stop was requested, or when the work is over, a call into
//! the store that exceeds the limit is abandoned with its thread, and what is known without it
//! is reported.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::Thread;
use std::time::Duration;

use tsb_core::time::{Clock, MonotonicClock};

use super::calls::{CallId, Calls};
use crate::controls::StopFlags;
use crate::error::Error;

/// Interval between two checks of the flags.
const LOOK: Duration = Duration::from_millis(50);
/// Time that a thread has to end after an immediate stop.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Time limits for one call into a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTimeouts {
    /// After a stop was requested; 30 s by default.
    pub stopped: Duration,
    /// At the end of a run; 10 minutes by default.
    pub ended: Duration,
}

impl Default for StoreTimeouts {
    fn default() -> Self {
        Self {
            stopped: Duration::from_secs(30),
            ended: Duration::from_mins(10),
        }
    }
}

impl StoreTimeouts {
    /// The same limit after a stop and at the end.
    ///
    /// # Errors
    /// If the limit is 0.
    pub fn of(both: Duration) -> Result<Self, Error> {
        if both.is_zero() {
            return Err(Error::plan("cannot wait 0 s for a store").because_of("every call takes some time"));
        }
        Ok(Self {
            stopped: both,
            ended: both,
        })
    }
}

/// The time at which a thread's work is over, after which only the store can delay it. Has its
/// own clock.
#[derive(Debug)]
pub struct WorkEnd {
    clock: MonotonicClock,
    at_ns: AtomicU64,
}

impl Default for WorkEnd {
    fn default() -> Self {
        Self {
            clock: MonotonicClock::new(),
            at_ns: AtomicU64::new(u64::MAX),
        }
    }
}

impl WorkEnd {
    /// The work is over after `ns` nanoseconds at the latest. Several calls keep the earliest
    /// time.
    pub fn within(&self, ns: u64) {
        let at_ns = self.clock.now().saturating_add(ns);
        self.at_ns.fetch_min(at_ns, Ordering::AcqRel);
    }

    /// Nanoseconds since then; 0 before.
    pub fn ago_ns(&self) -> u64 {
        self.clock.now().saturating_sub(self.at_ns.load(Ordering::Acquire))
    }

    fn is_reached(&self, now: u64) -> bool {
        now >= self.at_ns.load(Ordering::Acquire)
    }
}

/// The outcome of waiting.
#[derive(Debug)]
pub enum WaitOutcome<T> {
    /// The thread's result.
    Returned(T),
    /// The thread was abandoned; the reason as text for the report.
    Abandoned(String),
}

/// The inputs of waiting.
#[derive(Debug)]
pub struct Waiting<'a> {
    /// The user's stop flags.
    pub stops: &'a StopFlags,
    /// The time limits.
    pub store_timeouts: StoreTimeouts,
    /// Calls into the store that have not returned.
    pub calls: &'a Calls,
    /// When the work is over.
    pub over: &'a WorkEnd,
    /// Set to stop the thread when a stop is requested, or when it is abandoned.
    pub stop: &'a AtomicBool,
    /// The thread to unpark on a stop, if it may be parked.
    pub thread: Option<&'a Thread>,
}

impl Waiting<'_> {
    /// Requests the thread to stop. Returns whether this was the first request.
    fn stop(&self) -> bool {
        let is_first = !self.stop.swap(true, Ordering::SeqCst);
        self.thread.inspect(|thread| thread.unpark());
        is_first
    }

    /// Waits until the thread sends its result or is abandoned.
    pub fn wait<T>(&self, told: &Receiver<T>) -> WaitOutcome<T> {
        let mut since: Option<u64> = None;
        let mut seen = HashMap::new();
        loop {
            match told.recv_timeout(LOOK) {
                Ok(result) => return WaitOutcome::Returned(result),
                Err(RecvTimeoutError::Disconnected) => {
                    return WaitOutcome::Abandoned("its thread ended without a result".to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.stops.at_once.load(Ordering::SeqCst) {
                return self.at_once(told);
            }
            let now = self.over.clock.now();
            let is_stopped = self.stops.stop.load(Ordering::SeqCst);
            if is_stopped && self.stop() {
                // A stop has its own time limit, which starts now.
                since = None;
                self.over.within(0);
            }
            if !is_stopped && !self.over.is_reached(now) {
                continue;
            }
            let limit = if is_stopped {
                self.store_timeouts.stopped
            } else {
                self.store_timeouts.ended
            };
            let began = *since.get_or_insert(now);
            if let Some(what) = self.stuck(&mut seen, now, began, limit) {
                self.stop();
                return WaitOutcome::Abandoned(format!(
                    "the store did not return from {what} within {} s",
                    limit.as_secs_f64()
                ));
            }
        }
    }

    /// The name of a call that has been open for longer than `limit`, counted from `began` at
    /// the earliest.
    fn stuck(&self, seen: &mut HashMap<CallId, u64>, now: u64, began: u64, limit: Duration) -> Option<&'static str> {
        let open = self.calls.open();
        seen.retain(|id, _| open.iter().any(|(open, _)| open == id));
        let aged = open
            .into_iter()
            .map(|(id, what)| (*seen.entry(id).or_insert(now), what));
        // Only the oldest call counts: the others may just be waiting for it.
        let (first_ns, what) = aged.min_by_key(|&(first_ns, _)| first_ns)?;
        let waited_ns = now.saturating_sub(first_ns.max(began));
        (u128::from(waited_ns) >= limit.as_nanos()).then_some(what)
    }

    fn at_once<T>(&self, told: &Receiver<T>) -> WaitOutcome<T> {
        self.stop();
        self.over.within(0);
        if let Ok(result) = told.recv_timeout(AT_ONCE) {
            return WaitOutcome::Returned(result);
        }
        let within = self.calls.open().first().map(|(_, what)| *what);
        WaitOutcome::Abandoned(match within {
            Some(what) => format!("the store had not returned from {what} when an immediate end was asked for"),
            None => "an immediate end was asked for".to_owned(),
        })
    }
}

/// Runs `answer` in a thread and returns its result if it comes within 200 ms.
pub fn at_once<T: Send + 'static>(answer: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = sync_channel(1);
    let thread = std::thread::Builder::new().name("tsb-ask".to_owned());
    let started = thread.spawn(move || {
        // The receiver is gone if the time limit has passed.
        let _ = tell.send(answer());
    });
    started.ok().and_then(|_| told.recv_timeout(AT_ONCE).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: StoreTimeouts = StoreTimeouts {
        stopped: Duration::from_millis(60),
        ended: Duration::from_millis(60),
    };

    fn wait(calls: &Calls, stops: &StopFlags, over: &WorkEnd, told: &Receiver<u8>) -> (WaitOutcome<u8>, bool) {
        let stop = AtomicBool::new(false);
        let waiting = Waiting {
            stops,
            store_timeouts: SHORT,
            calls,
            over,
            stop: &stop,
            thread: None,
        };
        let came = waiting.wait(told);
        (came, stop.load(Ordering::SeqCst))
    }

    #[test]
    fn calls_that_return_are_waited_for_however_many_they_are() {
        let (tell, told) = sync_channel(1);
        let (calls, over) = (Calls::default(), WorkEnd::default());
        over.within(0);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let clock = MonotonicClock::new();
                for call in 1..=10 {
                    let _call = calls.begin("query");
                    clock.wait_until(call * 25_000_000);
                }
                tell.send(7).unwrap();
            });
            let (came, is_stopped) = wait(&calls, &StopFlags::default(), &over, &told);
            assert!(matches!(came, WaitOutcome::Returned(7)), "{came:?}");
            assert!(!is_stopped);
        });
    }

    #[test]
    fn a_call_that_does_not_return_is_left_behind_after_a_stop_or_the_end() {
        let (_tell, told) = sync_channel(1);
        for is_stopped in [false, true] {
            let (calls, over, stops) = (Calls::default(), WorkEnd::default(), StopFlags::default());
            let _flush = calls.begin("flush");
            if is_stopped {
                stops.stop.store(true, Ordering::SeqCst);
            } else {
                over.within(0);
            }
            let (came, has_told) = wait(&calls, &stops, &over, &told);
            let WaitOutcome::Abandoned(why) = came else {
                panic!("{came:?}")
            };
            assert_eq!(why, "the store did not return from flush within 0.06 s");
            assert!(has_told, "a thread that returns after all does not go on");
        }
    }

    #[test]
    fn a_second_request_waits_for_no_call() {
        let (_tell, told) = sync_channel(1);
        let (calls, over, stops) = (Calls::default(), WorkEnd::default(), StopFlags::default());
        let _close = calls.begin("close");
        stops.stop.store(true, Ordering::SeqCst);
        stops.at_once.store(true, Ordering::SeqCst);
        let (came, _) = wait(&calls, &stops, &over, &told);
        assert!(
            matches!(&came, WaitOutcome::Abandoned(why) if why.contains("from close")),
            "{came:?}"
        );
    }

    #[test]
    fn a_time_is_above_0() {
        let both = StoreTimeouts::of(Duration::from_secs(2)).unwrap();
        assert_eq!(
            (both.stopped, both.ended),
            (Duration::from_secs(2), Duration::from_secs(2))
        );
        assert!(StoreTimeouts::of(Duration::ZERO).is_err());
    }
}
