//! Writes and reads in turn, due at absolute times. Clients share the schedule: whichever is free
//! takes the next request, so one slow answer delays others only when no client is free, and then
//! their response times say so.

use std::sync::atomic::{AtomicU64, Ordering};

use tsb_core::time::{SECOND_NS, sharpen_timers};

use super::{Context, Done, LoadOptions, by_clients};
use crate::mohawk::connection::{ClientConnection, Outcome};
use crate::mohawk::requests::Keeping;

/// Samples of each gauge that are there before the run, and are read.
const PREPARED: u64 = 60;
/// What is due and not sent this long after the end of the schedule is not sent any more.
const DRAIN_NS: u64 = 5 * SECOND_NS;

/// Number of gauges.
fn gauges(context: &Context<'_>) -> u64 {
    u64::from(context.options.connections)
}

/// Samples of each gauge, at the most.
pub(super) fn samples_per_gauge(options: &LoadOptions<'_>) -> u64 {
    PREPARED + (options.rate * options.seconds / 2).div_ceil(u64::from(options.connections))
}

/// Writes what is going to be read.
pub(super) fn prepare(context: &Context<'_>) -> Outcome<()> {
    let mut connection = context.endpoint.client(Keeping::Kept);
    for gauge in 1..=context.options.connections {
        let samples: Vec<(i64, f64)> = (0..PREPARED)
            .map(|number| (context.time(number), context.gauges.value(gauge, number)))
            .collect();
        connection.post(&[(&context.gauges.name(gauge), &samples)])?;
    }
    Ok(())
}

/// A request of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Write { gauge: u32, number: u64 },
    Read { gauge: u32, number: u64 },
}

/// The request of this index: a write, then a read of the same gauge.
fn due(index: u64, gauges: u64) -> Due {
    let pair = index / 2;
    let gauge = (pair % gauges) as u32 + 1;
    if index.is_multiple_of(2) {
        Due::Write {
            gauge,
            number: PREPARED + pair / gauges,
        }
    } else {
        // The last that was prepared has a neighbour that may be written meanwhile.
        Due::Read {
            gauge,
            number: pair % (PREPARED - 1),
        }
    }
}

/// Runs all clients.
pub(super) fn run(context: &Context<'_>) -> Done {
    let next = AtomicU64::new(0);
    let start = context.clock.now();
    let mut all = by_clients(context.options, |_| one(context, start, &next));
    let prepared = (1..=context.options.connections).flat_map(|gauge| (0..PREPARED).map(move |number| (gauge, number)));
    all.prepared = PREPARED * gauges(context);
    all.confirmed.extend(prepared);
    all
}

fn one(context: &Context<'_>, start: u64, next: &AtomicU64) -> Done {
    sharpen_timers();
    let mut done = Done::default();
    let mut connection = context.endpoint.client(Keeping::Kept);
    let (rate, total) = (context.options.rate, context.options.rate * context.options.seconds);
    let end = start + context.options.seconds * SECOND_NS + DRAIN_NS;
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= total || context.options.is_stopped() {
            return done;
        }
        let request = due(index, gauges(context));
        let at = start + (u128::from(index) * u128::from(SECOND_NS) / u128::from(rate)) as u64;
        let now = context.clock.now();
        if now > end {
            // It waited at least this long.
            done.times(request).record(now - at);
            continue;
        }
        context.clock.wait_until(at);
        let sent = context.clock.now();
        done.sent += 1;
        match ask(context, &mut connection, request, &mut done) {
            Ok(()) => {
                let answered = context.clock.now();
                done.times(request).record(answered - at);
                done.service.record(answered - sent);
                if let Due::Write { gauge, number } = request {
                    done.confirmed.push((gauge, number));
                    done.written_at = answered;
                }
            }
            Err(why) => done.failed(why),
        }
    }
}

impl Done {
    const fn times(&mut self, request: Due) -> &mut tsb_core::latency::Histogram {
        match request {
            Due::Write { .. } => &mut self.write,
            Due::Read { .. } => &mut self.read,
        }
    }
}

fn ask(context: &Context<'_>, connection: &mut ClientConnection, request: Due, done: &mut Done) -> Outcome<()> {
    match request {
        Due::Write { gauge, number } => {
            let sample = [(context.time(number), context.gauges.value(gauge, number))];
            connection.post(&[(&context.gauges.name(gauge), &sample)])
        }
        Due::Read { gauge, number } => {
            let read = connection.get(&context.gauges.name(gauge), context.window(number), None)?;
            done.wrong
                .note(context.what_is_wrong(&read.rows, (gauge, number), |near| near < PREPARED));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_write_is_another_sample_and_reads_are_of_what_is_there() {
        let all: Vec<Due> = (0..4_000).map(|index| due(index, 8)).collect();
        let mut writes = HashSet::new();
        for request in &all {
            match *request {
                Due::Write { gauge, number } => {
                    assert!((1..=8).contains(&gauge) && number >= PREPARED);
                    assert!(writes.insert((gauge, number)), "{request:?} twice");
                }
                Due::Read { gauge, number } => assert!((1..=8).contains(&gauge) && number + 1 < PREPARED),
            }
        }
        assert_eq!(writes.len(), 2_000);
    }
}
