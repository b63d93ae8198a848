//! The published figures, what the document got wrong, and the rows beside what is measured here.

use tsb_core::report::experiment::dalmatiner::{DalmatinerDetails, QueryRun, TargetSummary};
use tsb_core::report::experiment::{Figure, Row};

/// What the document got wrong, or left unmeasured.
pub const MISTAKES: [&str; 9] = [
    "the headline is 54,000 metrics per second, and every table was measured at 14,000 to 15,000: two rounds, ten weeks apart, with different software, transports and caches, are compared as one experiment",
    "the workloads were not the same: the feed sent Graphite one point in five (tachyon-aggregator from June to December 2014), so that its CPU time and growth are those of a fifth",
    "nobody compared what was stored with what was sent: lost datagrams, buffers dropped after an error, ignored answers, and the defect of the cache of round 2 were all invisible",
    "8.65 bit/point is the nine bytes of a point over the compression ratio of the pool: no index, no metadata, no file was measured",
    "growth is in KiB and printed as B; that of Whisper, whose files have their full size from the start, means nothing",
    "a cache that keeps half an hour in memory without a log counts as CPU and disk saved; what a crash loses is not mentioned, nor that one node acknowledged",
    "memory leaves out the cache of ZFS, on which a store that reads without a cache of its own depends most",
    "each query was timed once or twice, rounded, and never beside the feed; the first answer mixes a cold file with the flush of the cache",
    "percentages are of 32 hardware threads: 1.5 % is half a core; charts and tables differ by a factor of two",
];

/// Metrics per second of the tables of the second round.
const SERIES: u64 = 15_000;
/// Points of ten minutes at that rate.
const TEN_MINUTES: f64 = 600.0 * SERIES as f64;
const ROUND_1: &str = "mstore, round 1";
const ROUND_2: &str = "mstore, round 2";

/// Bits of a point of `bytes` bytes in a pool of this compression ratio: the whole of "8.65
/// bit/point".
pub fn compressed_bits(bytes: u32, ratio: f64) -> f64 {
    f64::from(bytes) * 8.0 / ratio
}

/// The published figures with those of the same kind that were measured here.
pub fn rows(details: &DalmatinerDetails) -> Vec<Row> {
    let mut rows = Vec::new();
    usage(details, &mut rows);
    sizes(details, &mut rows);
    answers(details, &mut rows);
    let peak = summary_of(details, ROUND_2, None).and_then(|summary| summary.peak_per_second);
    rows.push(
        Row::new(
            "highest rate of one node",
            peak,
            "samples/s",
            "published: the chart of JPC's benchmark, eight generators on other machines, values 0 to 999, nothing read \
             back; here mstore of round 2 behind one connection, generator and target on this machine, all verified",
        )
        .beside(1_500_000.0),
    );
    rows.extend(others());
    rows
}

/// The summary of a target that was measured at the published rate, or at any.
fn summary_of<'d>(details: &'d DalmatinerDetails, name: &str, series: Option<u64>) -> Option<&'d TargetSummary> {
    let mut summaries = details.summaries.iter();
    summaries.find(|summary| match series {
        Some(series) => summary.target.name == name && summary.series == series,
        None => summary.target.name == name && summary.peak_per_second.is_some(),
    })
}

fn usage(details: &DalmatinerDetails, rows: &mut Vec<Row>) {
    let graphite = details
        .summaries
        .iter()
        .find(|summary| summary.target.name.starts_with("graphite:"));
    let graphite = graphite.map_or("graphite", |summary| &*summary.target.name);
    let published = [
        (
            ROUND_2,
            "DalmatinerDB, round 2",
            0.48,
            381.0,
            "one TCP connection, 30 minutes of cache",
        ),
        (
            ROUND_1,
            "DalmatinerDB, round 1, at 14,000",
            0.9,
            135.0,
            "30 UDP sockets then, one TCP connection here; 100 s of cache",
        ),
        (
            graphite,
            "Graphite",
            1.44,
            251.0,
            "the feed of the document sent it one point in five",
        ),
    ];
    for (name, title, cores, rss_mb, about) in published {
        let summary = summary_of(details, name, Some(SERIES));
        let absent = if summary.is_some() {
            ""
        } else {
            "; not measured at this rate here"
        };
        let megabytes = summary.and_then(|summary| Some(summary.rss_bytes?.scaled(1e-6)));
        rows.push(
            Row::new(
                format!("{name}: CPU at {SERIES} samples/s"),
                summary.and_then(TargetSummary::cores),
                "cores",
                format!("published: {title}, an hour's mean of a zone of 2014; here the target's processes alone, until everything was sent: what a cache still holds is written later, one write for each series; {about}{absent}"),
            )
            .beside(cores),
        );
        rows.push(
            Row::new(
                format!("{name}: RSS at {SERIES} samples/s"),
                megabytes,
                "MB",
                format!("published: {title}, after a week, in a zone with all that it runs; here the most of the target's processes in a short run{absent}"),
            )
            .beside(rss_mb),
        );
    }
}

fn sizes(details: &DalmatinerDetails, rows: &mut Vec<Row>) {
    let of = |name: &str| {
        let runs = details.sizes.iter().filter(|run| run.target.name == name);
        Figure::of(&runs.map(|run| run.compressed_bits).collect::<Vec<_>>())
    };
    let bits = of(ROUND_2);
    rows.push(
        Row::new(
            format!("{ROUND_2}: bits per point"),
            bits,
            "bit",
            "published: 72 bits over the ratio 8.32 of a pool of ZFS; here 64 bits of the later format, a day of the same kind of values, index included, each 128 KiB by Snappy",
        )
        .beside(compressed_bits(9, 8.32)),
    );
    rows.push(
        Row::new(
            format!("{ROUND_2}: growth in ten minutes at {SERIES} samples/s"),
            bits.map(|bits| bits.scaled(TEN_MINUTES / 8.0 / 1_024.0)),
            "KiB",
            "published as B, of a pool whose growth hardly repeated; here the bits above times nine million points",
        )
        .beside(9_133.0),
    );
}

fn answers(details: &DalmatinerDetails, rows: &mut Vec<Row>) {
    let published = [
        ("q1", "first", 2.0),
        ("q1", "repeated", 1.3),
        ("q2", "first", 120.0),
        ("q2", "repeated", 85.0),
    ];
    for (query, state, published_ms) in published {
        let is_it = |run: &&QueryRun| run.target.name == ROUND_2 && run.query == query && run.state == state;
        let runs = details.queries.iter().filter(is_it).filter(|run| run.times.count > 0);
        let times: Vec<f64> = runs.map(|run| run.mean_ms).collect();
        let what = if query == "q1" {
            "3,600 points of one metric to 60 maxima"
        } else {
            "604,800 points of seven metrics to 168 maxima"
        };
        let first = if state == "first" {
            "; the cache is flushed with it"
        } else {
            ""
        };
        rows.push(
            Row::new(
                format!("{ROUND_2}: {query}, {state}"),
                Figure::of(&times),
                "ms",
                format!("{what}{first}; published once, rounded; here points over TCP, maxima computed by the client, all answers checked"),
            )
            .beside(published_ms),
        );
    }
}

/// What nothing takes the part of.
fn others() -> Vec<Row> {
    let why = "not measured: KairosDB 0.9.3 on Cassandra 2.0.5, retired after the first round, at 14,000";
    [
        ("KairosDB with Cassandra: CPU", 1.696, "cores"),
        ("KairosDB with Cassandra: RSS", 6_849.0, "MB"),
        ("KairosDB: growth in ten minutes", 80_514.0, "KiB"),
        ("KairosDB: q1, first", 300.0, "ms"),
        ("KairosDB: q1, repeated", 135.0, "ms"),
        ("KairosDB: q2, first", 1_600.0, "ms"),
        ("KairosDB: q2, repeated", 1_450.0, "ms"),
    ]
    .map(|(what, published, unit)| Row::new(what, None, unit, why).beside(published))
    .to_vec()
}

#[cfg(test)]
mod tests {
    use tsb_core::report::experiment::dalmatiner::{SizeRun, TestedTarget};

    use super::*;

    fn target(name: &str) -> TestedTarget {
        TestedTarget {
            name: name.to_owned(),
            ..TestedTarget::default()
        }
    }

    #[test]
    fn figures_stand_beside_those_of_their_round_and_what_is_absent_has_no_ratio() {
        let details = DalmatinerDetails {
            summaries: vec![TargetSummary {
                target: target(ROUND_2),
                series: SERIES,
                cpu_seconds_per_million: Figure::of(&[16.0]),
                ..TargetSummary::default()
            }],
            sizes: vec![SizeRun {
                target: target(ROUND_2),
                compressed_bits: 17.3,
                ..SizeRun::default()
            }],
            ..DalmatinerDetails::default()
        };
        let rows = rows(&details);
        let find = |what: &str| rows.iter().find(|row| row.what.contains(what)).unwrap();
        // 16 s per million samples are 0.24 cores at 15,000 per second.
        assert_eq!(find("round 2: CPU").ratio, Some(0.24 / 0.48));
        assert_eq!(find("round 1: CPU").ratio, None);
        assert!((find("bits per point").ratio.unwrap() - 2.0).abs() < 0.001);
        assert_eq!(find("KairosDB: q1, first").measured, None);
        assert!(find("graphite: CPU").why.contains("not measured"));
        assert!((compressed_bits(9, 8.32) - 8.65).abs() < 0.005);
    }
}
