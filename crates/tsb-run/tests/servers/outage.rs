//! What every client has to do when its server is killed, or when what is between them
//! misbehaves.

use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_run::spec::open;
use tsb_stores::conformance::libtest_mimic::Failed;
use tsb_stores::{Error, Store, StoreExt, TimeRange};

use crate::certificates::Certificates;
use crate::daemon::free_ports;
use crate::relay::{Relay, RelayMode};

/// How long a request may take in these tests, and how much longer the call may.
pub(crate) const TIMEOUT_S: u64 = 2;
const SLACK_S: u64 = 3;
/// How long a request may take that includes a handshake and the derivation of a key from a
/// password: much CPU time, on a machine that runs many tests at once.
pub(crate) const HANDSHAKE_S: u64 = 30;
/// How long an outage may last: members look for a new leader, a server reads its journal.
const OUTAGE_S: u64 = 60;
const SERIES: u32 = 20;

/// What was acknowledged before a kill, and is there afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survivors {
    /// All of it.
    All,
    /// All but the end of it.
    ButTheEnd,
}

/// Opens a store with the deadline of these tests, and defines its series.
pub(crate) fn opened(spec: &str) -> Result<Box<dyn Store>, Failed> {
    opened_within(spec, TIMEOUT_S)
}

/// Opens a store whose requests may take `timeout_s` seconds, and defines its series.
pub(crate) fn opened_within(spec: &str, timeout_s: u64) -> Result<Box<dyn Store>, Failed> {
    let separator = if spec.contains('?') { '&' } else { '?' };
    let store = open(&format!("{spec}{separator}timeout={timeout_s}s"))?;
    let series: Vec<_> = (0..SERIES)
        .map(|id| (SeriesId(id), SeriesKey::new(format!("s{id}"))))
        .collect();
    store.define(&series)?;
    Ok(store)
}

/// A tick, and whether it was acknowledged; any other error than those of a network fails.
pub(crate) fn tick(store: &dyn Store, number: i64) -> Result<Outcome, Failed> {
    let values: Vec<f64> = (0..SERIES).map(|id| value_of(id, number)).collect();
    let clock = MonotonicClock::new();
    let written = store.write_all(&Batch::tick(
        SeriesId(0),
        Timestamp::from_secs(1_700_000_000 + number),
        &values,
    ));
    let took_s = clock.now() / SECOND_NS;
    if took_s > TIMEOUT_S + SLACK_S {
        return Err(format!("tick {number} took {took_s} s, the deadline is {TIMEOUT_S} s").into());
    }
    match written {
        Ok(_) => Ok(Outcome::Acknowledged),
        Err(Error::Unknown { .. }) => Ok(Outcome::Unknown),
        Err(Error::Unreachable { .. }) => Ok(Outcome::Unsent),
        Err(error) => Err(format!("tick {number}: {error:?}").into()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Acknowledged,
    Unknown,
    Unsent,
}

fn value_of(id: u32, tick: i64) -> f64 {
    f64::from(id) * 1e6 + tick as f64
}

/// The ticks that came back of a series, whose values must be right.
fn ticks_of(store: &dyn Store, id: u32) -> Result<Vec<i64>, Failed> {
    let samples = store.samples(SeriesId(id), TimeRange::ALL);
    let samples = samples.map_err(|error| format!("series {id} is not read: {error:?}"))?;
    let ticks = samples.iter().map(|(at, value)| {
        let tick = at.as_secs() - 1_700_000_000;
        if *value == value_of(id, tick) {
            Ok(tick)
        } else {
            Err(format!("{value} at tick {tick} of {id}").into())
        }
    });
    ticks.collect()
}

/// The ticks that came back of the first and the last series, which must agree.
pub(crate) fn found(store: &dyn Store) -> Result<Vec<i64>, Failed> {
    let (first, last) = (ticks_of(store, 0)?, ticks_of(store, SERIES - 1)?);
    if first != last {
        return Err("a tick is there in part".into());
    }
    Ok(first)
}

/// The ticks that came back of both the first and the last series, of a server that may take a part
/// of a tick.
pub(crate) fn found_whole(store: &dyn Store) -> Result<Vec<i64>, Failed> {
    let (mut first, last) = (ticks_of(store, 0)?, ticks_of(store, SERIES - 1)?);
    first.retain(|tick| last.binary_search(tick).is_ok());
    Ok(first)
}

/// Writes ticks, causes an outage in the middle, and goes on with the same client until it
/// writes again; then looks which ticks are there.
pub(crate) fn survives(
    store: &dyn Store,
    survivors: Survivors,
    outage: impl FnOnce(&MonotonicClock) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let outcomes = outcomes_around(store, outage)?;
    judge(&outcomes, &found(store)?, survivors)
}

/// The same at a server that may take a part of a tick.
pub(crate) fn survives_in_parts(
    store: &dyn Store,
    survivors: Survivors,
    outage: impl FnOnce(&MonotonicClock) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let outcomes = outcomes_around(store, outage)?;
    judge(&outcomes, &found_whole(store)?, survivors)
}

/// What became of each tick, and when.
fn outcomes_around(
    store: &dyn Store,
    outage: impl FnOnce(&MonotonicClock) -> Result<(), Failed>,
) -> Result<Vec<(Outcome, u64)>, Failed> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let writing = threads.spawn(|| {
            let mut outcomes = Vec::new();
            let clock = MonotonicClock::new();
            let mut after = 0;
            // A while longer than the outage, or until it has lasted for too long.
            while after < 50 {
                if clock.now() > OUTAGE_S * SECOND_NS {
                    return Err(format!("nothing is acknowledged {OUTAGE_S} s later").into());
                }
                let outcome = tick(store, outcomes.len() as i64)?;
                outcomes.push((outcome, clock.now()));
                let is_late = is_over.load(Ordering::Acquire) && hindered(&outcomes) > 0;
                after += usize::from(is_late && outcome == Outcome::Acknowledged);
            }
            Ok::<_, Failed>(outcomes)
        });
        let clock = MonotonicClock::new();
        clock.wait_until(SECOND_NS);
        let outage = outage(&clock);
        is_over.store(true, Ordering::Release);
        let outcomes = writing.join().map_err(|_| Failed::from("the writer panicked"))?;
        outage.and(outcomes)
    })
}

fn hindered(outcomes: &[(Outcome, u64)]) -> usize {
    let hindered = outcomes.iter().filter(|(outcome, _)| *outcome != Outcome::Acknowledged);
    hindered.count()
}

fn judge(outcomes: &[(Outcome, u64)], there: &[i64], survivors: Survivors) -> Result<(), Failed> {
    let of = |wanted: Outcome| outcomes.iter().filter(|(outcome, _)| *outcome == wanted).count();
    let is_there = |tick: usize| there.binary_search(&(tick as i64)).is_ok();
    let lost: Vec<usize> = (0..outcomes.len())
        .filter(|tick| outcomes[*tick].0 == Outcome::Acknowledged && !is_there(*tick))
        .collect();
    let settled = (0..outcomes.len())
        .filter(|tick| outcomes[*tick].0 == Outcome::Unknown && is_there(*tick))
        .count();
    println!(
        "{} ticks acknowledged, {} of them lost: {lost:?}; {} unknown, {settled} of them there; {} not sent; \
         without an ack for {} ms",
        of(Outcome::Acknowledged),
        lost.len(),
        of(Outcome::Unknown),
        of(Outcome::Unsent),
        longest_pause_ms(outcomes)
    );
    if hindered(outcomes) == 0 {
        return Err("nobody noticed that the server was killed".into());
    }
    if (0..outcomes.len()).any(|tick| outcomes[tick].0 == Outcome::Unsent && is_there(tick)) {
        return Err("a tick that was not sent is there".into());
    }
    if survivors == Survivors::All && !lost.is_empty() {
        return Err(format!("ticks {lost:?} were acknowledged as synced and are gone").into());
    }
    // Otherwise the end of what was acknowledged before the kill may be gone: one stretch
    // without holes.
    let first_hindered = outcomes
        .iter()
        .position(|(outcome, _)| *outcome != Outcome::Acknowledged);
    let (Some(first), Some(end)) = (lost.first(), first_hindered) else {
        return Ok(());
    };
    if lost.len() != end - first || lost.iter().zip(*first..).any(|(lost, expected)| *lost != expected) {
        return Err(format!("ticks {lost:?} are gone, and tick {end} was the first without an ack").into());
    }
    let span_ns = outcomes[end].1 - outcomes[*first].1;
    if span_ns > (TIMEOUT_S + 1) * SECOND_NS {
        return Err(format!("{span_ns} ns of acknowledged ticks are gone").into());
    }
    Ok(())
}

/// The longest time between two acks that follow each other.
fn longest_pause_ms(outcomes: &[(Outcome, u64)]) -> u64 {
    let acknowledged = outcomes.iter().filter(|(outcome, _)| *outcome == Outcome::Acknowledged);
    let moments: Vec<u64> = acknowledged.map(|(_, at)| *at).collect();
    let pauses = moments.windows(2).map(|pair| pair[1] - pair[0]);
    pauses.max().unwrap_or_default() / 1_000_000
}

/// A relay in front of a server goes through its manners: each write ends within its
/// deadline, and after each the same client works again. `spec` makes a spec of a port.
pub(crate) fn outlives_every_manner(server: u16, spec: impl Fn(u16) -> String) -> Result<(), Failed> {
    let relay = Relay::to(server)?;
    let store = opened(&spec(relay.port()))?;
    let mut number = 0;
    let mut next = || {
        number += 1;
        tick(&*store, number)
    };
    for mode in [
        RelayMode::Silent,
        RelayMode::HalfWay,
        RelayMode::Garbage,
        RelayMode::Gone,
    ] {
        if next()? != Outcome::Acknowledged {
            return Err(format!("the client has not recovered before {mode:?}").into());
        }
        relay.behave(mode);
        for _ in 0..2 {
            if next()? == Outcome::Acknowledged {
                return Err(format!("a write was acknowledged while the server was {mode:?}").into());
            }
        }
        relay.behave(RelayMode::Honest);
        let clock = MonotonicClock::new();
        while next()? != Outcome::Acknowledged {
            if clock.now() > 30 * SECOND_NS {
                return Err(format!("the client does not recover from {mode:?}").into());
            }
        }
    }
    let clock = MonotonicClock::new();
    loop {
        let said = match found(&*store) {
            Ok(there) if there.is_sorted_by(|left, right| left < right) && there.last() == Some(&number) => {
                return Ok(());
            }
            Ok(there) => format!("ticks {there:?} are there of {number}").into(),
            Err(failed) => failed,
        };
        // What was accepted last may not be visible yet.
        if clock.now() >= store.capabilities().visibility_delay_ms * 1_000_000 {
            return Err(said);
        }
        clock.wait_until(clock.now() + SECOND_NS / 10);
    }
}

/// Where nobody listens, opening says so within the deadline, and names no credentials.
pub(crate) fn nobody_answers(scheme: &str) -> Result<(), Failed> {
    let [port] = free_ports()?;
    let clock = MonotonicClock::new();
    // An address of its own: what looked for the free port listened at 127.0.0.1, and a process that
    // another thread was about to start may have a copy of that socket for a while.
    let error = open(&format!("{scheme}://me:hunter2@127.0.0.77:{port}/runs?timeout=1s")).err();
    let error = error.ok_or("a store was opened where nobody listens")?;
    let is_named = matches!(error, Error::Unreachable { .. });
    if !is_named || format!("{error:?}{error}").contains("hunter2") || clock.now() > 5 * SECOND_NS {
        return Err(format!("after {} ns: {error:?}", clock.now()).into());
    }
    Ok(())
}

/// A server that speaks TLS and asks who it is lets in who trusts it and knows the password,
/// and nobody else; nor is a password printed. `spec` makes a spec of options.
pub(crate) fn lets_in_only(
    certificates: &Certificates,
    user: &str,
    password: &str,
    spec: impl Fn(&str) -> String,
) -> Result<(), Failed> {
    let trust = format!("tls=1&tls_ca={}", certificates.authority().display());
    let right = certificates.credentials("right", &format!("{user}:{password}"))?;
    let wrong = certificates.credentials("wrong", &format!("{user}:{password}34"))?;
    let store = opened_within(&spec(&format!("{trust}&credentials={right}")), HANDSHAKE_S)?;
    if tick(&*store, 1)? != Outcome::Acknowledged || found(&*store)? != [1] {
        return Err("who may does not write and read".into());
    }
    let others = [
        trust.clone(),
        format!("{trust}&credentials={wrong}"),
        format!("credentials={right}"),
        format!("tls=1&credentials={right}"),
    ];
    for other in others.map(|options| spec(&options)) {
        let clock = MonotonicClock::new();
        let words = match opened(&other) {
            Ok(_) => return Err(format!("{other} is let in").into()),
            Err(error) => format!("{error:?}"),
        };
        if words.contains(password) {
            return Err(format!("{other} prints a secret: {words}").into());
        }
        if clock.now() > (TIMEOUT_S + SLACK_S) * SECOND_NS {
            return Err(format!("{other} took {} s to be refused", clock.now() / SECOND_NS).into());
        }
    }
    Ok(())
}
