//! Clients that send the next request when the last one is answered: first all writes, then all
//! reads.

use std::sync::Barrier;

use super::{Context, Done, by_clients};
use crate::mohawk::requests::Keeping;

/// Runs all clients.
pub(super) fn run(context: &Context<'_>) -> Done {
    let are_written = Barrier::new(context.options.clients() as usize);
    by_clients(context.options, |client| one(context, client, &are_written))
}

fn one(context: &Context<'_>, client: u32, are_written: &Barrier) -> Done {
    let mut done = Done::default();
    let per_write = context.options.gauges_per_write();
    let numbers = context.options.writes_per_client();
    let first = client * per_write + 1;
    let names: Vec<String> = (first..first + per_write)
        .map(|gauge| context.gauges.name(gauge))
        .collect();
    let mut connection = context.endpoint.client(Keeping::Kept);
    let mut is_there = vec![false; numbers as usize];
    for number in 0..numbers {
        if context.options.is_stopped() {
            break;
        }
        let samples: Vec<[(i64, f64); 1]> = (first..first + per_write)
            .map(|gauge| [(context.time(number), context.gauges.value(gauge, number))])
            .collect();
        let gauges: Vec<(&str, &[(i64, f64)])> = names
            .iter()
            .zip(&samples)
            .map(|(name, samples)| (name.as_str(), samples.as_slice()))
            .collect();
        let sent = context.clock.now();
        done.sent += 1;
        match connection.post(&gauges) {
            Ok(()) => {
                done.written_at = context.clock.now();
                done.write.record(done.written_at - sent);
                done.confirmed
                    .extend((first..first + per_write).map(|gauge| (gauge, number)));
                is_there[number as usize] = true;
            }
            Err(why) => done.failed(why),
        }
    }
    // The phase of writes has one end for all.
    are_written.wait();
    for number in 0..numbers {
        if context.options.is_stopped() {
            break;
        }
        let gauge = first + (number % u64::from(per_write)) as u32;
        let name = &names[(gauge - first) as usize];
        let sent = context.clock.now();
        done.sent += 1;
        match connection.get(name, context.window(number), None) {
            Ok(read) => {
                done.read.record(context.clock.now() - sent);
                let there = |near: u64| is_there.get(near as usize).copied().unwrap_or(false);
                done.wrong
                    .note(context.what_is_wrong(&read.rows, (gauge, number), there));
            }
            Err(why) => done.failed(why),
        }
    }
    done
}
