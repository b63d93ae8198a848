//! A thread that says that its process is alive, and hears what the others say.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tsb_core::report::Interval;
use tsb_core::time::SECOND_NS;
use tsb_stores::parts::lock;

use super::coordination::Coordination;
use super::documents::{self, ALIVE, ALIVE_NS, HostInterval, HostProgress, LEADER, LeaderState, STOP};
use crate::observer::IntervalLatencies;

/// How often the leader says that it is there, in nanoseconds.
pub(super) const RENEW_NS: u64 = ALIVE_NS / 5;

/// How often a host reads or writes one document, in nanoseconds: together they make at most 400
/// requests per second of a kind. A host makes three of them: it hears of the leader, says how far it
/// is, and publishes its journal.
pub(super) const fn poll_ns(hosts: usize) -> u64 {
    let each = hosts as u64 * SECOND_NS / 400;
    if each < SECOND_NS / 20 { SECOND_NS / 20 } else { each }
}

/// How long what a host or the leader said of itself counts, in nanoseconds: a few periods.
pub(super) fn lives_ns(hosts: usize) -> u64 {
    ALIVE_NS.max(4 * poll_ns(hosts))
}

/// What a host tells the others, and what it heard of them.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// How far it is, without its intervals.
    pub progress: Mutex<HostProgress>,
    /// The intervals that it says, each twice: the leader may miss one.
    pub intervals: Mutex<IntervalsToSay>,
    /// Set when the run ends everywhere.
    pub is_stopped: AtomicBool,
    /// Set when the run went on without this host, or its leader is gone.
    pub is_lost: AtomicBool,
    /// Set, besides, when the fleet was divided among other hosts.
    pub is_surplus: AtomicBool,
}

/// Intervals that a host has ended, and those that it has said once.
#[derive(Debug, Default)]
pub(super) struct IntervalsToSay {
    new: Vec<HostInterval>,
    said: Vec<HostInterval>,
}

impl IntervalsToSay {
    /// Most intervals of which a host says anything at a time.
    const MOST: usize = 64;

    /// An interval of about `length_ns` has ended. Its end says which one it is: a host that stood still has a
    /// longer one, and not those that would have followed.
    pub(super) fn add(&mut self, interval: &Interval, timed: &IntervalLatencies, length_ns: u64) {
        let number = (interval.end_ns.saturating_add(length_ns / 2) / length_ns.max(1)).saturating_sub(1);
        if self.new.len() < Self::MOST {
            self.new.push(HostInterval {
                number,
                interval: interval.clone(),
                timed: timed.clone(),
            });
        }
    }

    /// Those that were said once, and the new ones.
    fn take(&mut self) -> Vec<HostInterval> {
        let new = std::mem::take(&mut self.new);
        let mut all = std::mem::replace(&mut self.said, new.clone());
        all.extend(new);
        all
    }
}

/// Waits until the sender of `over` is dropped, at most this long. Returns whether it was.
pub(super) fn ends_within(over: &Receiver<()>, ns: u64) -> bool {
    over.recv_timeout(Duration::from_nanos(ns)) == Err(RecvTimeoutError::Disconnected)
}

impl Exchange {
    /// Says that the host is alive and how far it is, does `side_work`, and hears whether the run
    /// ends, until the sender of `over` is dropped. A failed request is made again the next time.
    pub(super) fn keep_up(
        &self,
        (coordination, host): (&Coordination, &str),
        hosts: usize,
        mut side_work: impl FnMut(),
        (stop, over): (&AtomicBool, &Receiver<()>),
    ) {
        // What a host says of itself may be old by half a second or more.
        let period_ns = poll_ns(hosts).max(SECOND_NS / 2);
        loop {
            self.hear(coordination, host, stop);
            if self.is_lost.load(Ordering::Acquire) {
                // What it wrote now would be in the way of the next run.
                return;
            }
            let mut progress = lock(&self.progress).clone();
            progress.intervals = lock(&self.intervals).take();
            let _ = coordination.put_expiring(&documents::of(ALIVE, host), &progress, lives_ns(hosts));
            side_work();
            if ends_within(over, period_ns) {
                return;
            }
        }
    }

    /// Hears whether the run ends or goes on without this host.
    pub(super) fn hear(&self, coordination: &Coordination, host: &str, stop: &AtomicBool) {
        // A leader that does not answer may still be there.
        let Ok(leader) = coordination.get::<LeaderState>(LEADER) else {
            return;
        };
        let run = coordination.run();
        match leader {
            Some(leader) if leader.run == run && !leader.lost.contains(host) && !leader.is_without(host) => {
                if stop.load(Ordering::SeqCst) {
                    self.pass_on_stop(coordination, host);
                } else if leader.stopped_by.is_some() {
                    self.is_stopped.store(true, Ordering::Release);
                    stop.store(true, Ordering::SeqCst);
                }
            }
            other => {
                let is_surplus = other.is_some_and(|leader| leader.run == run && leader.is_without(host));
                self.is_surplus.store(is_surplus, Ordering::Release);
                self.is_lost.store(true, Ordering::Release);
                stop.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Ends the run everywhere, since it was stopped here: by Ctrl-C, say. Does nothing if the
    /// others have ended it.
    pub(super) fn pass_on_stop(&self, coordination: &Coordination, host: &str) {
        if !self.is_stopped.swap(true, Ordering::AcqRel) && !self.is_lost.load(Ordering::Acquire) {
            let _ = coordination.put(STOP, &host);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc::sync_channel;

    use tsb_core::time::{Clock, MonotonicClock};
    use tsb_stores::keyed::{
        Key, KeyedCapabilities, KeyedMemory, KeyedMemoryOptions, KeyedStore, KeyedVisitor, Put, PutAck,
    };
    use tsb_stores::{Refusals, Result};

    use super::*;

    /// Counts requests as etcd does: a time to live is a lease, which is a request of its own.
    #[derive(Debug)]
    struct Counted {
        keys: KeyedMemory,
        requests: AtomicU64,
    }

    impl Counted {
        fn count(&self, requests: u64) {
            self.requests.fetch_add(requests, Ordering::Relaxed);
        }
    }

    impl std::fmt::Display for Counted {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("counted")
        }
    }

    impl KeyedStore for Counted {
        fn capabilities(&self) -> KeyedCapabilities {
            self.keys.capabilities()
        }
        fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
            self.count(1 + u64::from(puts.iter().any(|put| put.ttl_ns.is_some())));
            self.keys.put(puts, refused)
        }
        fn delete(&self, keys: &[Key]) -> Result<usize> {
            self.count(1);
            self.keys.delete(keys)
        }
        fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
            self.count(1);
            self.keys.delete_below(prefix)
        }
        fn get(&self, key: &Key) -> Result<Option<String>> {
            self.count(1);
            self.keys.get(key)
        }
        fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
            self.count(1);
            self.keys.list(prefix, visit)
        }
        fn close(&self) -> Result<()> {
            self.keys.close()
        }
    }

    /// Runs a host, one of `hosts`, for four periods; returns its requests per second.
    fn requests_per_second(hosts: usize, coordination: &Coordination, counted: &Counted, exchange: &Exchange) -> f64 {
        let clock = MonotonicClock::new();
        let (stop, (running, over)) = (AtomicBool::new(false), sync_channel(0));
        std::thread::scope(|threads| {
            let publish = || coordination.put_long("journal/h", "what was acknowledged").unwrap();
            let stop = &stop;
            threads.spawn(move || exchange.keep_up((coordination, "h"), hosts, publish, (stop, &over)));
            clock.wait_until(4 * poll_ns(hosts));
            drop(running);
        });
        counted.requests.load(Ordering::Relaxed) as f64 * SECOND_NS as f64 / clock.now() as f64
    }

    fn coordination() -> (Coordination, Arc<Counted>) {
        let keys = KeyedMemory::new(KeyedMemoryOptions::default(), Arc::new(MonotonicClock::new()));
        let counted = Arc::new(Counted {
            keys,
            requests: AtomicU64::new(0),
        });
        let keys: Arc<dyn KeyedStore> = Arc::clone(&counted) as _;
        (Coordination::new(keys, "counted"), counted)
    }

    #[test]
    fn a_thousand_hosts_make_fewer_than_2000_requests_per_second() {
        let (coordination, counted) = coordination();
        coordination.put(LEADER, &LeaderState::default()).unwrap();
        let each = requests_per_second(1_000, &coordination, &counted, &Exchange::default());
        // One more period begins than ends.
        assert!(each > 0.5 && each * 1_000.0 < 2_000.0 * 5.0 / 4.0, "{each}");
    }

    #[test]
    fn a_host_ends_when_its_leader_is_gone_or_goes_on_without_it() {
        for lost in [None, Some("h".to_owned())] {
            let (coordination, counted) = coordination();
            let is_led = lost.is_some();
            if is_led {
                let state = LeaderState {
                    lost: lost.into_iter().collect(),
                    ..LeaderState::default()
                };
                coordination.put(LEADER, &state).unwrap();
            }
            let exchange = Exchange::default();
            requests_per_second(1, &coordination, &counted, &exchange);
            assert!(exchange.is_lost.load(Ordering::Acquire));
            let said: Option<HostProgress> = coordination.get(&documents::of(ALIVE, "h")).unwrap();
            assert!(said.is_none(), "it is in nobody's way");
        }
    }

    #[test]
    fn a_host_that_joins_too_late_ends_and_the_chosen_go_on() {
        let (coordination, _) = coordination();
        let state = LeaderState {
            chosen: ["a".to_owned(), "b".to_owned()].into(),
            ..LeaderState::default()
        };
        coordination.put(LEADER, &state).unwrap();
        for (host, is_surplus) in [("a", false), ("c", true)] {
            let (exchange, stop) = (Exchange::default(), AtomicBool::new(false));
            exchange.hear(&coordination, host, &stop);
            assert_eq!(exchange.is_surplus.load(Ordering::Acquire), is_surplus, "{host}");
            assert_eq!(exchange.is_lost.load(Ordering::Acquire), is_surplus, "{host}");
            assert_eq!(stop.load(Ordering::SeqCst), is_surplus, "{host}");
        }
    }

    #[test]
    fn a_stop_at_one_host_is_passed_on_and_one_elsewhere_is_heard_of() {
        let (coordination, _) = coordination();
        coordination.put(LEADER, &LeaderState::default()).unwrap();
        let (exchange, stop) = (Exchange::default(), AtomicBool::new(true));
        exchange.hear(&coordination, "h", &stop);
        assert_eq!(coordination.get::<String>(STOP).unwrap().as_deref(), Some("h"));
        let state = LeaderState {
            stopped_by: Some("h".to_owned()),
            ..LeaderState::default()
        };
        coordination.put(LEADER, &state).unwrap();
        let (exchange, stop) = (Exchange::default(), AtomicBool::new(false));
        exchange.hear(&coordination, "other", &stop);
        assert!(stop.load(Ordering::SeqCst));
    }
}
