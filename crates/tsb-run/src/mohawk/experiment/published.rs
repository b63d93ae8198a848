//! The published figures beside the measured ones, and what the original got wrong.

use tsb_core::report::experiment::mohawk::{ClassicSummary, FeedRun, MohawkDetails};
use tsb_core::report::experiment::{Figure, Row};

/// What the original got wrong, or did not measure.
pub const MISTAKES: [&str; 13] = [
    "one client that waits for each answer, with a connection for each request: it measures the round trip of a \
     script, and no store (here also connections that are kept, several clients, and requests that are due at \
     absolute times)",
    "77 % of the 2.011 s of the memory backend is CPU time of the client, with the start of its interpreter (here \
     client, endpoint and database are apart)",
    "no answer was looked at: SQLite returned 1,997 rows where the others returned 998, so the backends answered \
     different questions (here each row is compared with what was written, and corrected all answer the same \
     question)",
    "the memory backend keeps one sample per 30 s and confirms all: at one sample per minute nobody sees it, at one \
     per second 29 of 30 are gone",
    "durability is not stated: memory only, confirmed by a server before its journal, and a synced transaction per \
     sample stand in one table (here each has its level beside it)",
    "\"%CPU\" is the average over the life of the process, so it grows with the run and depends on how long the \
     server was idle before",
    "for MongoDB only the process of Mohawk was sampled: the CPU time and memory of mongod are in no figure",
    "the column \"RSS byte\" is in KiB",
    "the charts stack minimum and maximum, so a bar ends at their sum",
    "\"1000 writes + 1000 reads\" are 999 of each, and one request for the status",
    "one run of each, no quantiles and no interval; values are not seeded, so no run can be repeated",
    "the output that is shown was edited later: each release changed the version in it, so 0.22.1 stands beside a run \
     of 0.15",
    "the comparison with Hawkular ran another script, which was not published, with six times the CPU time of the \
     client, and compares a store in memory with one on disk",
];

/// What was published of one backend, on a desktop of 2017.
struct PublishedBackend {
    /// What our name of it begins with, and what another's server says of its storage.
    name: &'static str,
    storage: &'static str,
    seconds: f64,
    /// User and system time of the client.
    client_seconds: f64,
    /// The most resident memory of the process of Mohawk.
    rss_kib: f64,
    /// What was measured.
    title: &'static str,
    /// What is said of its time.
    about: &'static str,
}

const PUBLISHED: [PublishedBackend; 3] = [
    PublishedBackend {
        name: "ring:",
        storage: "Memory",
        seconds: 2.011,
        client_seconds: 1.545,
        rss_kib: 11_028.0,
        title: "Mohawk 0.15 in memory",
        about: "",
    },
    PublishedBackend {
        name: "sqlite:",
        storage: "Sqlite3",
        seconds: 14.471,
        client_seconds: 1.587,
        rss_kib: 12_560.0,
        title: "Mohawk 0.15 over SQLite",
        about: "; a commit per sample both times, and most of the time is its syncs, so the disks are compared",
    },
    PublishedBackend {
        name: "mongo:",
        storage: "Mongo",
        seconds: 4.885,
        client_seconds: 1.740,
        rss_kib: 11_892.0,
        title: "Mohawk 0.15 over MongoDB",
        about: "; the CPU time and memory of mongod were not published",
    },
];

/// Number of samples, and of windows, of the original.
const COUNT: u64 = 999;

impl PublishedBackend {
    /// Whether a measured backend is of this kind.
    fn is_of(&self, summary: &ClassicSummary) -> bool {
        let tested = &summary.backend;
        if is_started(summary) {
            tested.status.ends_with(&format!(", {}", self.storage))
        } else {
            tested.name.starts_with(self.name)
        }
    }
}

/// Whether it is another's server.
fn is_started(summary: &ClassicSummary) -> bool {
    summary.backend.name.starts_with("mohawk at")
}

/// The published figures with those of the same kind that were measured here, with `count` samples
/// and windows. Times of another number than the original's have no ratio.
pub fn rows(details: &MohawkDetails, count: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut has_taken_part = [false; PUBLISHED.len()];
    for summary in &details.classic {
        let of = PUBLISHED.iter().position(|published| published.is_of(summary));
        if let Some(of) = of {
            has_taken_part[of] = true;
            rows.extend(of_backend(summary, &PUBLISHED[of], count));
        }
        rows.push(rows_returned(summary));
    }
    for (published, has_taken_part) in PUBLISHED.iter().zip(has_taken_part) {
        if !has_taken_part {
            let why = "it did not take part: see what was not run";
            rows.push(
                Row::new(format!("{}, 999 writes and 999 reads", published.title), None, "s", why)
                    .beside(published.seconds),
            );
        }
    }
    rows.extend(extra_per_write(details));
    for (what, published) in [
        ("Hawkular on Cassandra, in a VM", 128.783),
        ("Mohawk in memory, in a VM", 22.833),
    ] {
        let why = "not measured: the script was never published, and its client alone takes six times the CPU time of \
                   the one that was";
        rows.push(Row::new(what, None, "s", why).beside(published));
    }
    rows.extend(kept_of_feed(&details.feeds));
    rows
}

/// Our endpoint in place of Mohawk, or the real one.
fn server(summary: &ClassicSummary) -> &'static str {
    if is_started(summary) {
        "the server that was given"
    } else {
        "our endpoint"
    }
}

fn of_backend(summary: &ClassicSummary, published: &PublishedBackend, count: u64) -> Vec<Row> {
    let name = &summary.backend.name;
    let (title, about) = (published.title, published.about);
    let server = server(summary);
    let share = summary.client_cpu.zip(summary.seconds);
    let share = share.and_then(|(cpu, all)| one((all.mean > 0.0).then(|| 100.0 * cpu.mean / all.mean)));
    let kib = summary.endpoint_rss.map(|rss| rss.scaled(1.0 / 1_024.0));
    let is_comparable = |row: Row| Row {
        ratio: row.ratio.filter(|_| count == COUNT),
        ..row
    };
    let rows = [
        Row::new(
            format!("{name}, {count} writes and {count} reads"),
            summary.seconds,
            "s",
            format!(
                "published of {title}, by a client in Python with the start of its interpreter; here {server}, by a \
                 compiled client that sends the same bytes over as many connections, on another machine{about}"
            ),
        )
        .beside(published.seconds),
        Row::new(
            format!("{name}, CPU of the client"),
            summary.client_cpu,
            "s",
            "user and system time; published of Python 2 with its start, here of this process, in clock ticks of 10 ms",
        )
        .beside(published.client_seconds),
        Row::new(
            format!("{name}, CPU of the client, share of the time"),
            share,
            "%",
            "what of the figure above is no waiting for the server",
        )
        .beside(100.0 * published.client_seconds / published.seconds),
        Row::new(
            format!("{name}, most memory of the server"),
            kib,
            "KiB",
            format!("RSS, each half second; published as bytes, of {title}; here of {server} after its start"),
        )
        .beside(published.rss_kib),
    ];
    rows.map(is_comparable).to_vec()
}

fn rows_returned(summary: &ClassicSummary) -> Row {
    let empty = match summary.empty {
        Some(0) | None => String::new(),
        Some(1) => ", and one answer of status 204".to_owned(),
        Some(count) => format!(", and {count} answers of status 204"),
    };
    let why = format!(
        "{}{empty}: right in {} of {} rounds; the document looked at none",
        summary.backend.status, summary.rounds_right, summary.rounds
    );
    let rows = one(summary.rows.map(|rows| rows as f64));
    Row::new(format!("{}, rows returned", summary.backend.name), rows, "rows", why)
}

/// How much longer a write takes than in memory.
fn extra_per_write(details: &MohawkDetails) -> Vec<Row> {
    let write_ms = |start: &str| {
        let found = details
            .classic
            .iter()
            .find(|summary| summary.backend.name.starts_with(start));
        found.and_then(|summary| summary.write_ms).map(|figure| figure.mean)
    };
    let memory = write_ms("ring:");
    let extra = |start: &str| Some(write_ms(start)? - memory?);
    let row = |what: &str, start: &str, published: f64, why: &str| {
        extra(start).map(|extra| Row::new(what, one(Some(extra)), "ms", why).beside(published))
    };
    let synced = "published: the difference of the two times over 999 writes; here of the phases of writes: a lookup \
                  and a synced transaction on this disk";
    let asked = "published: the difference of the two times over 999 writes; here of the phases of writes: a lookup \
                 and an insert at mongod";
    [
        row("sqlite: a write beyond memory", "sqlite:", 12.5, synced),
        row("mongo: a write beyond memory", "mongo:", 2.9, asked),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn kept_of_feed(feeds: &[FeedRun]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for feed in feeds {
        if seen.contains(&feed.backend.name.as_str()) {
            continue;
        }
        seen.push(&feed.backend.name);
        let of_backend = feeds.iter().filter(|other| other.backend.name == feed.backend.name);
        let shares: Vec<f64> = of_backend
            .filter(|feed| feed.confirmed > 0)
            .map(|feed| 100.0 * feed.kept as f64 / feed.confirmed as f64)
            .collect();
        let why = match feed.kept_expected {
            Some(expected) if expected < feed.confirmed => {
                "corrected: one slot per 30 s keeps one sample in thirty, and all are confirmed"
            }
            _ => "corrected: every confirmed sample was read back",
        };
        rows.push(Row::new(
            format!("{}, kept of one sample per second", feed.backend.name),
            Figure::of(&shares),
            "%",
            why,
        ));
    }
    rows
}

fn one(value: Option<f64>) -> Option<Figure> {
    Figure::of(value.as_slice())
}

#[cfg(test)]
mod tests {
    use tsb_core::report::experiment::mohawk::TestedBackend;

    use super::*;

    fn summary(name: &str, seconds: f64, write_ms: f64, rows: u64) -> ClassicSummary {
        ClassicSummary {
            backend: TestedBackend {
                name: name.to_owned(),
                status: "Mohawk 0.15.4".to_owned(),
                durability: "volatile".to_owned(),
            },
            seconds: Figure::of(&[seconds]),
            client_cpu: Figure::of(&[seconds / 4.0]),
            endpoint_rss: Figure::of(&[10_240.0]),
            write_ms: Figure::of(&[write_ms]),
            rows: Some(rows),
            ..ClassicSummary::default()
        }
    }

    #[test]
    fn figures_stand_beside_those_of_their_backend_and_what_is_absent_has_no_ratio() {
        let details = MohawkDetails {
            classic: vec![
                summary("ring:", 1.0, 0.5, 998),
                summary("sqlite: layout=mohawk", 7.0, 5.5, 1_997),
                summary("memory: as Hawkular", 1.0, 0.5, 998),
            ],
            feeds: vec![FeedRun {
                confirmed: 600,
                kept: 20,
                kept_expected: Some(20),
                ..FeedRun::default()
            }],
            ..MohawkDetails::default()
        };
        let rows = rows(&details, 999);
        let find = |what: &str| {
            rows.iter()
                .find(|row| row.what.contains(what))
                .unwrap_or_else(|| panic!("{what}"))
        };
        assert_eq!(find("ring:, 999 writes").ratio, Some(1.0 / 2.011));
        assert_eq!(find("ring:, CPU of the client, share").measured, Some(25.0));
        assert_eq!(find("ring:, most memory").measured, Some(10.0));
        assert_eq!(find("sqlite: layout=mohawk, rows").measured, Some(1_997.0));
        assert_eq!(find("sqlite: a write beyond").measured, Some(5.0));
        let mut started = summary("mohawk at h:1", 3.0, 1.0, 1_997);
        started.backend.status = "Mohawk 0.15.4, Sqlite3".to_owned();
        let of: Vec<bool> = PUBLISHED.iter().map(|published| published.is_of(&started)).collect();
        assert_eq!(of, [false, true, false], "by what the server says, and not by its name");
        let few = super::rows(&details, 60);
        let time = few
            .iter()
            .find(|row| row.what == "ring:, 60 writes and 60 reads")
            .unwrap();
        assert_eq!((time.ratio, time.published), (None, Some(2.011)));
        let mongo = find("MongoDB");
        assert_eq!(
            (mongo.measured, mongo.ratio, mongo.published),
            (None, None, Some(4.885))
        );
        assert_eq!(find("Cassandra").ratio, None);
        assert!(!rows.iter().any(|row| row.what.starts_with("memory: as Hawkular, 999")));
        let kept = find("kept of one sample per second");
        assert!((kept.measured.unwrap() - 100.0 / 30.0).abs() < 1e-9 && kept.why.contains("one sample in thirty"));
    }
}
