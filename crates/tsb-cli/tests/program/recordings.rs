//! Recordings of strangers: what a file holds is what is read back, sample for sample and
//! time for time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use tsb_core::{SeriesId, SeriesKey};
use tsb_run::spec::Spec;
use tsb_stores::{Store, StoreExt, TimeRange};

use crate::output::{output_of, stderr};

/// Series by key: nanoseconds since the recording's first sample, and values.
type Samples = BTreeMap<String, Vec<(i64, f64)>>;

/// Nanoseconds since 1970 of `YYYY-MM-DD HH:MM:SS`, by the calendar's rule and not by the
/// code that is tested.
fn nanos(date: &str) -> i64 {
    let part = |range: std::ops::Range<usize>| date[range].parse::<i64>().unwrap();
    let (year, month, day) = (part(0..4), part(5..7), part(8..10));
    let is_leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let february = 28 + i64::from(is_leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let years: i64 = (1970..year).map(|year| 365 + i64::from(is_leap(year))).sum();
    let days = years + months[..month as usize - 1].iter().sum::<i64>() + day - 1;
    (days * 86_400 + part(11..13) * 3_600 + part(14..16) * 60 + part(17..19)) * 1_000_000_000
}

/// The date of a time, by counting days.
fn date(seconds: i64) -> String {
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut month) = (1970, 0);
    let is_leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    while days >= 365 + i64::from(is_leap(year)) {
        days -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let months = [
        31,
        28 + i64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!(
        "{year}-{:02}-{:02} {hour:02}:{minute:02}:{:02}",
        month + 1,
        days + 1,
        second % 60
    )
}

/// What follows the seed, without a pattern that a grid could meet.
fn scramble(n: u64) -> u64 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

/// Replays one pass into an SQLite file; the report, and what is in the file then.
fn replay(source: &str, length_ns: i64, more: &[&str]) -> (Value, Samples) {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("x.db").display());
    let (workload, fleet_time) = (format!("trace:{source}"), format!("{length_ns}ns"));
    let mut arguments = vec![
        "run",
        "--quiet",
        "--format",
        "json",
        "--no-calibrate",
        "--transport",
        "inproc",
    ];
    arguments.extend([
        "--store",
        &store,
        "--workload",
        &workload,
        "--rate",
        "max",
        "--fleet-time",
        &fleet_time,
    ]);
    arguments.extend(more);
    let output = output_of(&arguments);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let report = report["runs"].get(0).unwrap_or(&report).clone();
    let ledger = &report["ledger"];
    assert_eq!(ledger["balanced"], true, "{ledger}");
    assert_eq!(ledger["lost"], 0, "{ledger}");
    let base = report["started_at_ns"].as_i64().unwrap();
    let spec: Spec = store.parse().unwrap();
    let found = read(&*spec.open().unwrap(), &report, base);
    (report, found)
}

/// Everything in a store, series by series.
fn read(store: &dyn Store, report: &Value, base: i64) -> Samples {
    let source = &report["plan"]["workload"]["fleet"];
    let workload = serde_json::from_value::<tsb_core::workload::WorkloadSpec>(report["plan"]["workload"].clone());
    let workload =
        tsb_core::workload::Workload::new(&workload.unwrap()).unwrap_or_else(|error| panic!("{error}: {source}"));
    let keys: Vec<(SeriesId, SeriesKey)> = workload.catalog().definitions();
    store.define(&keys).unwrap();
    let series = keys.iter().map(|(id, key)| {
        let rows = store.rows(*id, TimeRange::ALL, None).unwrap();
        (
            key.to_string(),
            rows.into_iter()
                .map(|(at, value)| (at.as_nanos() - base, value))
                .collect(),
        )
    });
    series.collect()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A folder of two-column files with dates, as the Numenta Anomaly Benchmark has them: each
/// at times of its own, some of them late, one with a gap and an empty cell.
#[test]
fn a_folder_of_two_column_files_is_read_back_time_for_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = Samples::new();
    let start = 1_392_388_200;
    for file in 0..5_i64 {
        let mut text = "timestamp,value\n".to_owned();
        let mut at = start + 7_213 * file;
        let name = ["aws.cpu", "aws.disk", "tweets", "traffic", "taxi"][file as usize];
        let samples = expected.entry(name.to_owned()).or_default();
        for row in 0..400 {
            let draw = scramble((file * 1_000 + row) as u64);
            at += match draw % 9 {
                0 => 300 + (draw / 9 % 120) as i64,
                1 if row == 200 => 5_000,
                _ => 300,
            };
            if row == 77 {
                writeln!(text, "{},", date(at)).unwrap();
                continue;
            }
            let value = (draw % 100_000) as f64 / 1_000.0;
            writeln!(text, "{},{value}", date(at)).unwrap();
            samples.push((nanos(&date(at)), value));
        }
        write(&folder.path().join(format!("{}.csv", name.replace('.', "/"))), &text);
    }
    let first = expected.values().flatten().map(|&(at, _)| at).min().unwrap();
    let last = expected.values().flatten().map(|&(at, _)| at).max().unwrap();
    for (at, _) in expected.values_mut().flatten() {
        *at -= first;
    }
    let (report, found) = replay(folder.path().to_str().unwrap(), last - first + 1, &[]);
    assert_eq!(found, expected);
    assert_eq!(report["ledger"]["verified"], 5 * 399);
    let recording = &report["offered"]["recording"];
    assert_eq!(recording["start_ns"], first);
    assert_eq!(
        (&recording["times"], &recording["samples"]),
        (&"own".into(), &(5 * 399).into())
    );
    assert_eq!((&recording["moved"], &recording["dropped"]), (&0.into(), &0.into()));
    assert_eq!(recording["left_out"], 5);
    let decisions = recording["decisions"].to_string();
    assert!(
        decisions.contains("5 of 5 files: times are dates without a zone, taken as UTC"),
        "{decisions}"
    );
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("replayed at its own times: 1,995 samples, none moved or dropped"),
        "{notes}"
    );
    assert!(notes.contains("NA or the like): 5"), "{notes}");
}

/// On a grid that was asked for, what is dropped and moved is in the report.
#[test]
fn samples_that_a_grid_drops_or_moves_are_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cpu.csv");
    write(&path, "timestamp,value\n100,1\n110,2\n113,3\n121,4\n130,5\n");
    let source = format!("{}?grid=10s", path.display());
    let (report, found) = replay(&source, 40_000_000_000, &["--phase", "aligned"]);
    let second = 1_000_000_000;
    assert_eq!(
        found["cpu"],
        [(0, 1.0), (10 * second, 3.0), (20 * second, 4.0), (30 * second, 5.0)]
    );
    let recording = &report["offered"]["recording"];
    assert_eq!(
        (&recording["times"], &recording["grid_ns"]),
        (&"grid".into(), &(10 * second).into())
    );
    assert_eq!((&recording["samples"], &recording["dropped"]), (&4.into(), &1.into()));
    assert_eq!(
        (&recording["moved"], &recording["moved_ns_max"]),
        (&2.into(), &(3 * second).into())
    );
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("laid on a grid of 10") && notes.contains("of 5 samples 2 were moved"),
        "{notes}"
    );
    let (report, found) = replay(path.to_str().unwrap(), 31 * second, &[]);
    let whole = [(0, 1.0), (10, 2.0), (13, 3.0), (21, 4.0), (30, 5.0)].map(|(at, value)| (at * second, value));
    assert_eq!(found["cpu"], whole);
    assert_eq!(report["offered"]["recording"]["dropped"], 0);
}

#[test]
fn a_wide_file_is_read_back_time_for_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sensors.csv");
    let mut text = "\u{feff}Date;Time;site;\"temperature, C\";load\r\n".to_owned();
    let mut expected = Samples::new();
    let start = 1_388_620_800;
    for row in 0..300_i64 {
        let at = start + 60 * row + (scramble(row as u64) % 3) as i64;
        let site = ["north", "south"][row as usize % 2];
        let (celsius, load) = (row as f64 / 8.0 - 10.0, (row * row) as f64);
        let stamp = date(at);
        let (day, clock) = stamp.split_once(' ').unwrap();
        let cell = if row % 50 == 7 {
            "NA".to_owned()
        } else {
            celsius.to_string()
        };
        write!(text, "{day};{clock};{site};{cell};{load}\r\n").unwrap();
        let offset = nanos(&stamp);
        if row % 50 != 7 {
            let key = format!("temperature, C{{site={site}}}");
            expected.entry(key).or_default().push((offset, celsius));
        }
        expected
            .entry(format!("load{{site={site}}}"))
            .or_default()
            .push((offset, load));
    }
    write(&path, &text);
    let first = expected.values().flatten().map(|&(at, _)| at).min().unwrap();
    for (at, _) in expected.values_mut().flatten() {
        *at -= first;
    }
    // Longer than the recording, so that every sample of it is sent once at least.
    let (report, found) = replay(path.to_str().unwrap(), 20_000_000_000_000, &[]);
    let length = report["offered"]["recording"]["length_ns"].as_i64().unwrap();
    let once = |samples: &Vec<(i64, f64)>| {
        samples
            .iter()
            .copied()
            .filter(|&(at, _)| at < length)
            .collect::<Vec<_>>()
    };
    let found: Samples = found
        .iter()
        .map(|(key, samples)| (key.clone(), once(samples)))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(report["offered"]["recording"]["left_out"], 6);
    assert!(
        report["offered"]["recording"]["passes"].as_f64().unwrap() > 1.0,
        "the window came again"
    );
}

#[test]
fn open_metrics_in_seconds_is_read_back_time_for_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scrapes.prom");
    let mut text = "# TYPE up gauge\n".to_owned();
    let mut expected = Samples::new();
    for row in 0..200_i64 {
        let millis = 15_000 * row + (scramble(row as u64) % 40) as i64 * i64::from(row > 0);
        let at = 1_520_879_607_000 + millis;
        for job in ["a", "b"] {
            let value = (row % 7) as f64;
            // Some timestamps are whole seconds, and do not show what they are.
            let stamp = if at % 1_000 == 0 {
                (at / 1_000).to_string()
            } else {
                format!("{}.{:03}", at / 1_000, at % 1_000)
            };
            writeln!(text, "up{{job=\"{job}\"}} {value} {stamp}").unwrap();
            expected
                .entry(format!("up{{job={job}}}"))
                .or_default()
                .push((millis * 1_000_000, value));
        }
    }
    text.push_str("# EOF\n");
    write(&path, &text);
    let length = expected.values().flatten().map(|&(at, _)| at).max().unwrap() + 1;
    let (report, found) = replay(path.to_str().unwrap(), length, &[]);
    assert_eq!(found, expected);
    assert_eq!(
        report["offered"]["recording"]["start_ns"],
        1_520_879_607_000_000_000_i64
    );
    let decisions = report["offered"]["recording"]["decisions"].to_string();
    assert!(
        decisions.contains("OpenMetrics, by a timestamp with a fraction: times are seconds"),
        "{decisions}"
    );
}

#[test]
fn a_file_that_cannot_be_read_says_where_and_which_header_it_wants() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.csv"), "timestamp,value\n1,1\n");
    write(&folder.path().join("b.csv"), "when,what\nx,y\n");
    let workload = format!("trace:{}", folder.path().display());
    let output = output_of(&["run", "--workload", &workload, "--duration", "1s"]);
    assert_eq!(output.status.code(), Some(2));
    // Lines are broken to fit a terminal.
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "in b.csv: line 1: no column is called timestamp",
        "\"when,what\"",
        "a header is timestamp,series,value",
    ] {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
}

/// Open loop, with many copies, over TCP: what was sent is found again, to the sample.
#[test]
fn copies_of_an_irregular_recording_pass_the_audit_over_a_wire() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts.csv");
    let mut text = "timestamp,series,host,value\n".to_owned();
    for row in 0..400_u64 {
        let at = 1_700_000_000_000 + row * 100 + scramble(row) % 90;
        writeln!(text, "{at},cpu,h{},{}", row % 4, scramble(row) % 100).unwrap();
    }
    write(&path, &text);
    let workload = format!("trace:{}", path.display());
    let output = output_of(&[
        "run",
        "--quiet",
        "--format",
        "json",
        "--no-calibrate",
        "--store",
        "memory:",
        "--transport",
        "tcp",
        "--workload",
        &workload,
        "--series",
        "1001",
        "--rate",
        "20k",
        "--duration",
        "1s",
    ]);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let ledger = &report["ledger"];
    assert_eq!(ledger["balanced"], true, "{ledger}");
    assert_eq!(ledger["lost"], 0, "{ledger}");
    let accepted = ledger["accepted"].as_u64().unwrap();
    assert!(accepted > 1_000, "{ledger}");
    let (verified, superseded) = (
        ledger["verified"].as_u64().unwrap(),
        ledger["superseded"].as_u64().unwrap_or(0),
    );
    assert_eq!(verified + superseded, accepted, "{ledger}");
    let recording = &report["offered"]["recording"];
    assert_eq!(
        (&recording["times"], &recording["copies"]),
        (&"own".into(), &251.into())
    );
}
