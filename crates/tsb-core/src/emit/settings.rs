//! What a run and its workers are given: clock, timetable, settings, sources and targets.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::live::Live;
use crate::schedule::Timetable;
use crate::time::{Clock, SECOND_NS};

/// What may be set; the defaults are those of `tsb run`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// When the run starts, on the run's clock; `None`: 5 ms after the call, so that
    /// every thread is there in time.
    pub start_ns: Option<u64>,
    /// Operations that were due before the end may still be sent this long after it.
    pub grace_ns: u64,
    /// Operations due before this are counted, but not timed.
    pub warmup_ns: u64,
    /// Length of the latency log's intervals. in [1, ..)
    pub interval_ns: u64,
    /// Maximum number of entries in each worker's list of operations that were shed or are unknown; the
    /// room is reserved before the start.
    pub exceptions_max: usize,
    /// Mean share of the declared samples that are sent. It estimates the samples of operations
    /// that are never prepared. in [0, ..)
    pub sent_share: f64,
    /// The name of the threads, which their number follows: `tsb-emit-0`.
    pub thread_name: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            start_ns: None,
            grace_ns: SECOND_NS / 10,
            warmup_ns: 0,
            interval_ns: SECOND_NS,
            exceptions_max: 1 << 16,
            sent_share: 1.0,
            thread_name: "tsb-emit",
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The run's clock.
    pub clock: &'a dyn Clock,
    /// What is due when.
    pub timetable: &'a Timetable,
    /// Set it to end the run: workers look between operations and every 50 ms of waiting.
    pub stop: &'a AtomicBool,
    /// Counters to watch: at least one for each worker.
    pub live: &'a Live,
    /// Everything else.
    pub settings: Settings,
}

/// What one worker works with.
#[derive(Debug)]
pub struct Worker<S, T> {
    /// Its groups: a range of its own of the roster, as [`crate::schedule::Roster::split`]
    /// gives them.
    pub groups: Range<u32>,
    /// Prepares its operations.
    pub source: S,
    /// Takes them.
    pub target: T,
}
