//! The benchmark as it was: one client, one thread, one gauge, a connection for each request, and
//! time that runs backwards. Beside it, what nobody looked at: every row of every answer.

use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::latency::{Histogram, Quantiles};
use tsb_core::report::experiment::mohawk::ClassicRun;
use tsb_core::time::{Clock, SECOND_NS};

use super::connection::{AnswerRow, ClientConnection, Outcome};
use super::endpoint::OpenEndpoint;
use super::gauges::Gauges;
use super::processes::watched;
use super::requests::Keeping;
use super::windows::{SPACING_MS, empty_windows, rows_of_benchmark, rows_of_window, time_of, window_of};
use super::wrong_reads::WrongReads;

/// The name of the only gauge is this and its number.
const GAUGE: &str = "example.doc";

/// A run as it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassicOptions<'a> {
    /// Samples and windows: 999 in the original.
    pub(super) count: u64,
    /// Seed of the values.
    pub(super) seed: u64,
    /// The round, from 0.
    pub(super) round: u32,
    /// Ends the run early.
    pub(super) stop: &'a AtomicBool,
}

/// What the client has seen.
#[derive(Debug, Default)]
struct Seen {
    requests: u64,
    rows: u64,
    empty: u64,
    write_ns: u64,
    write: Histogram,
    read: Histogram,
    wrong: WrongReads,
}

/// Runs it. As in the original, a request that fails ends it.
///
/// # Errors
/// The request that failed, as a sentence; or that the user ended it.
pub(super) fn as_it_was(
    options: &ClassicOptions<'_>,
    endpoint: &OpenEndpoint,
    clock: &dyn Clock,
) -> Outcome<ClassicRun> {
    let mut client = endpoint.client(Keeping::Closed);
    let start = clock.now();
    let (seen, processes) = watched(&endpoint.participants, clock, || {
        let seen = talk(options, endpoint, &mut client, clock);
        (seen, clock.now())
    });
    let (seen, end) = seen;
    let seen = seen?;
    let rules = endpoint.rules;
    let mut run = ClassicRun {
        backend: endpoint.tested.clone(),
        round: options.round,
        requests: seen.requests,
        rows_expected: rules.map(|rules| rows_of_benchmark(rules.rows, options.count)),
        rows: seen.rows,
        empty_expected: rules.map(|rules| {
            let empty = empty_windows(rules.rows, options.count);
            if rules.has_no_content { empty } else { 0 }
        }),
        empty: seen.empty,
        accepted: None,
        seconds: (end - start) as f64 / SECOND_NS as f64,
        write_seconds: seen.write_ns as f64 / SECOND_NS as f64,
        write: Quantiles::new(&seen.write),
        read: Quantiles::new(&seen.read),
        processes,
        wrong: seen.wrong.sentences(),
    };
    judge(&mut run);
    Ok(run)
}

fn talk(
    options: &ClassicOptions<'_>,
    endpoint: &OpenEndpoint,
    client: &mut ClientConnection,
    clock: &dyn Clock,
) -> Outcome<Seen> {
    let gauges = Gauges::new(GAUGE, options.seed);
    let gauge = gauges.name(1);
    let mut seen = Seen::default();
    let now_ms = clock.wall().0.div_euclid(1_000_000);
    client.status()?;
    seen.requests += 1;
    let begun = clock.now();
    for number in 1..=options.count {
        go_on(options)?;
        let sent = clock.now();
        client.post(&[(&gauge, &[(time_of(now_ms, number), gauges.value(1, number))])])?;
        seen.write.record(clock.now() - sent);
        seen.requests += 1;
    }
    seen.write_ns = clock.now() - begun;
    for number in 1..=options.count {
        go_on(options)?;
        let window = window_of(now_ms, number);
        let sent = clock.now();
        let read = client.get(&gauge, window, None)?;
        seen.read.record(clock.now() - sent);
        seen.requests += 1;
        seen.rows += read.rows.len() as u64;
        seen.empty += u64::from(read.is_no_content);
        let expected = endpoint
            .rules
            .map(|rules| rows_of_window(rules.rows, number, options.count));
        let why = what_is_wrong(&read.rows, window, now_ms, &gauges, expected);
        seen.wrong.note(why.map(|why| format!("read {number}: {why}")));
    }
    Ok(seen)
}

fn go_on(options: &ClassicOptions<'_>) -> Outcome<()> {
    if options.stop.load(Ordering::Relaxed) {
        return Err("it was interrupted".to_owned());
    }
    Ok(())
}

/// Why an answer is wrong: a row outside of its window, with another time or value than any that
/// was written, or another number of rows.
fn what_is_wrong(
    rows: &[AnswerRow],
    (start, end): (i64, i64),
    now_ms: i64,
    gauges: &Gauges,
    expected: Option<u64>,
) -> Option<String> {
    for row in rows {
        let back = now_ms - row.timestamp;
        let number = back.div_euclid(SPACING_MS).unsigned_abs();
        if row.timestamp < start || row.timestamp > end || back.rem_euclid(SPACING_MS) != 0 {
            return Some(format!("the row of {} ms was not asked for", row.timestamp));
        }
        if !gauges.is_value(1, number, row.value) {
            let written = gauges.value(1, number);
            return Some(format!(
                "the value of {} ms is {}, and {written} was written",
                row.timestamp, row.value
            ));
        }
    }
    let expected = expected.filter(|expected| *expected != rows.len() as u64)?;
    Some(format!("it has {} rows instead of {expected}", rows.len()))
}

/// Holds the sums against what the backend has to return.
fn judge(run: &mut ClassicRun) {
    for (what, found, expected) in [
        ("rows", run.rows, run.rows_expected),
        ("answers of status 204", run.empty, run.empty_expected),
    ] {
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            run.wrong.push(format!("{found} {what} instead of {expected}"));
        }
    }
}

/// Adds what our endpoint counted, when it has ended.
pub(super) fn count_accepted(run: &mut ClassicRun, accepted: Option<u64>, count: u64) {
    run.accepted = accepted;
    if let Some(accepted) = accepted.filter(|accepted| *accepted != count) {
        run.wrong
            .push(format!("the endpoint accepted {accepted} samples instead of {count}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_missing_foreign_or_altered_is_wrong() {
        let gauges = Gauges::new(GAUGE, 1);
        let now = 1_498_595_865_123;
        let row = |number: u64| AnswerRow {
            timestamp: time_of(now, number),
            value: gauges.value(1, number),
        };
        let check = |rows: &[AnswerRow], expected| what_is_wrong(rows, window_of(now, 5), now, &gauges, expected);
        assert_eq!(check(&[row(6)], Some(1)), None);
        assert_eq!(check(&[row(6), row(5)], Some(2)), None);
        assert_eq!(check(&[row(6), row(5)], None), None);
        let wrong = |rows: &[AnswerRow], words: &str| {
            let said = check(rows, Some(1)).unwrap();
            assert!(said.contains(words), "{said}");
        };
        wrong(&[], "0 rows instead of 1");
        wrong(&[row(6), row(5)], "2 rows instead of 1");
        wrong(&[row(8)], "not asked for");
        wrong(
            &[AnswerRow {
                timestamp: row(6).timestamp + 1,
                ..row(6)
            }],
            "not asked for",
        );
        wrong(
            &[AnswerRow {
                value: row(7).value,
                ..row(6)
            }],
            "was written",
        );
    }

    #[test]
    fn sums_that_are_not_the_published_ones_are_wrong() {
        let mut run = ClassicRun {
            rows: 998,
            rows_expected: Some(1_997),
            empty_expected: Some(0),
            ..ClassicRun::default()
        };
        judge(&mut run);
        assert_eq!(run.wrong, ["998 rows instead of 1997"]);
        count_accepted(&mut run, Some(998), 999);
        assert_eq!(run.wrong.len(), 2);
        let mut unknown = ClassicRun {
            rows: 5,
            ..ClassicRun::default()
        };
        judge(&mut unknown);
        count_accepted(&mut unknown, None, 999);
        assert!(unknown.wrong.is_empty());
    }
}
