//! The published figures next to the measured ones, and the mistakes of the original.

use tsb_core::report::experiment::rrdcached::Round;
use tsb_core::report::experiment::{Figure, Row};

/// Number of files; seconds of direct updates in the first, second and third pass; then through
/// rrdcached in the same passes: the client's time, and the time until the disk was idle.
type Published = (usize, [f64; 3], [(f64, f64); 3]);

const PUBLISHED: [Published; 6] = [
    (1_000, [1.901, 0.030, 0.028], [(0.142, 4.0), (0.037, 1.0), (0.037, 1.0)]),
    (
        5_000,
        [13.857, 0.319, 0.146],
        [(0.481, 15.0), (0.179, 2.0), (0.181, 1.0)],
    ),
    (
        10_000,
        [74.367, 0.924, 0.304],
        [(0.819, 45.0), (0.357, 2.0), (0.363, 4.0)],
    ),
    (
        20_000,
        [101.990, 4.249, 0.621],
        [(1.472, 65.0), (0.733, 6.0), (0.716, 4.0)],
    ),
    (
        40_000,
        [280.950, 57.372, 4.628],
        [(2.632, 180.0), (1.452, 112.0), (1.437, 90.0)],
    ),
    (
        60_000,
        [598.367, 153.301, 96.123],
        [(1.672, 282.0), (2.199, 144.0), (2.374, 41.0)],
    ),
];

/// What the original got wrong, or did not measure.
pub(super) const MISTAKES: [&str; 9] = [
    "with -w 60 a file that is updated once is not queued at all: it waits for the sweep, up to an hour; when the \
     published drains began depends on what the daemon had done before (here FLUSHALL begins them)",
    "the drain was read by eye from iostat, with whatever else the disk did, and without what was left in memory \
     (here it ends when the counters say so, and a sync is measured behind it)",
    "the two tables measure different things: directly until the pages are dirty in memory, through the daemon until \
     the disk is idle; '1.5 times faster' compares them",
    "by the published figures the daemon is slower below 10,000 files: direct/daemon 0.48, 0.92, 1.65, 1.57, 1.56, \
     2.12 when cold",
    "'does not matter when cached' contradicts the table: at 40,000 files the drains took 112 and 90 s, direct \
     passes 57 and 4.6 s",
    "the first pass crossed a step and wrote rows, the second and third did not: cold against warm was also rows \
     against none (here they are rounds of their own)",
    "the daemon's 1.672 s at 60,000 files is below its 2.632 s at 40,000, and equal to the digit to another table's \
     figure for tmpfs: most likely a slip",
    "caches were dropped without a sync before, so dirty pages stayed; nothing showed that they were cold (here \
     residency is printed)",
    "one update a file, one client, no journal, nothing read back: neither coalescing, which is the daemon's purpose, \
     nor what an acknowledgement is worth was measured",
];

/// The published figures with the measured ones of the same kind, over the rounds.
pub(super) fn rows(rounds: &[Round]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (files, direct, daemon) in PUBLISHED {
        for (nth, pass) in ["1st", "2nd", "3rd"].into_iter().enumerate() {
            let measured = |way: &str, seconds: fn(&Round) -> f64| {
                let of_pass = rounds
                    .iter()
                    .filter(|round| round.files == files && round.way == way && round.nth == nth);
                Figure::of(&of_pass.map(seconds).collect::<Vec<_>>())
            };
            let mut add = |way: &str, figure: Option<Figure>, published: f64, why: &str| {
                if figure.is_some() {
                    let what = format!("{files} files, {pass} pass, {way}");
                    rows.push(Row::new(what, figure, "s", why).beside(published));
                }
            };
            for (way, by) in [("librrd", "librrd, too"), ("direct", "our engine")] {
                let why = format!("published: until pages are dirty; measured: the same, by {by}");
                add(way, measured(way, |round| round.accept_seconds), direct[nth], &why);
            }
            for way in ["rrdcached", "write-cache+rrd"] {
                let (client, disk) = daemon[nth];
                let why = "published: the client's time; one update and one reply at a time";
                add(
                    &format!("{way}, accept"),
                    measured(way, |round| round.accept_seconds),
                    client,
                    why,
                );
                let why = "published: until the disk was idle; measured: accept, drain and sync";
                add(&format!("{way}, total"), measured(way, Round::total_seconds), disk, why);
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_ratios_are_those_that_the_page_states() {
        let ratios = PUBLISHED.map(|(_, direct, daemon)| ((direct[0] / daemon[0].1) * 100.0).round() / 100.0);
        assert_eq!(ratios, [0.48, 0.92, 1.65, 1.57, 1.56, 2.12]);
    }
}
