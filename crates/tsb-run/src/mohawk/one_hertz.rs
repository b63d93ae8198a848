//! What a backend keeps of one sample per second: slots of 30 s keep one in thirty, and confirm
//! all of them.

use tsb_core::report::experiment::mohawk::FeedRun;
use tsb_core::time::Clock;

use super::connection::Outcome;
use super::endpoint::OpenEndpoint;
use super::gauges::Gauges;
use super::load::range_of;
use super::requests::Keeping;

/// Samples of a write.
const PER_WRITE: usize = 60;
/// Between two samples, in milliseconds.
const EVERY_MS: i64 = 1_000;

/// A feed of `count` samples, one per second.
///
/// # Errors
/// A request that failed, as a sentence.
pub(super) fn feed(
    (count, seed, round): (u64, u64, u32),
    endpoint: &OpenEndpoint,
    clock: &dyn Clock,
) -> Outcome<FeedRun> {
    let gauges = Gauges::new("example.feed", seed);
    let name = gauges.name(1);
    let mut connection = endpoint.client(Keeping::Kept);
    // A whole minute, which is the beginning of a slot.
    let minutes = clock.wall().as_secs().div_euclid(60) - count.cast_signed() / 60 - 1;
    let base_ms = minutes * 60_000;
    let samples: Vec<(i64, f64)> = (0..count)
        .map(|number| (base_ms + number.cast_signed() * EVERY_MS, gauges.value(1, number)))
        .collect();
    for some in samples.chunks(PER_WRITE) {
        connection.post(&[(&name, some)])?;
    }
    let range = (base_ms - 60_000, base_ms + count.cast_signed() * EVERY_MS);
    let found = range_of(&mut connection, &name, range, EVERY_MS)?;
    let mut run = FeedRun {
        backend: endpoint.tested.clone(),
        round,
        confirmed: count,
        kept: found.len() as u64,
        kept_expected: endpoint.rules.map(|rules| match rules.slot_seconds {
            0 => count,
            seconds => count.div_ceil(seconds),
        }),
        wrong: Vec::new(),
    };
    let is_right = |(at, value): (&i64, &f64)| {
        let since = at - base_ms;
        since.rem_euclid(EVERY_MS) == 0 && gauges.is_value(1, (since / EVERY_MS).cast_unsigned(), *value)
    };
    let count_wrong = found.iter().filter(|sample| !is_right(*sample)).count();
    if count_wrong > 0 {
        run.wrong
            .push(format!("{count_wrong} samples are not as they were written"));
    }
    if let Some(expected) = run.kept_expected.filter(|expected| *expected != run.kept) {
        run.wrong
            .push(format!("it kept {} samples instead of {expected}", run.kept));
    }
    Ok(run)
}
