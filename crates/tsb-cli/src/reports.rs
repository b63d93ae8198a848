//! Reads reports of this version and of earlier ones; errors give line and column.

use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tsb_core::report::{Report, Run, SCHEMA_VERSION};

use crate::exit::Exit;
use crate::failure::Failure;

/// Longer files are refused: an hour at one-second intervals takes a few megabytes.
const BYTES_MAX: u64 = 1 << 30;

/// The fields that reports of all versions have.
#[derive(Deserialize)]
struct ReportHead {
    schema_version: Option<u32>,
    #[serde(default)]
    tsb_version: String,
    runs: Option<IgnoredAny>,
    experiment: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ReportRuns {
    runs: Vec<Run>,
}

/// Reads a report.
///
/// # Errors
/// If the file cannot be read, is not JSON, is not a report, or has an unknown version; with
/// line and column if known.
pub fn read(path: &Path) -> Result<Report, Failure> {
    let text = text(path)?;
    parse(&text).map_err(|why| {
        failure(path)
            .because_of(why)
            .hint("reports are what --out and --format json of tsb run, emit and ingest write")
    })
}

/// Reads the file of a report.
///
/// # Errors
/// If it cannot be read, or is longer than any report.
pub fn text(path: &Path) -> Result<String, Failure> {
    let failure = || failure(path);
    let length = std::fs::metadata(path)
        .map_err(|error| failure().because(&error))?
        .len();
    if length > BYTES_MAX {
        return Err(failure().because_of(format!(
            "it is longer than {BYTES_MAX} bytes: it is not a report of tsb"
        )));
    }
    std::fs::read_to_string(path).map_err(|error| failure().because(&error))
}

fn failure(path: &Path) -> Failure {
    Failure::usage(format!("cannot read report {}", path.display()))
}

/// Parses a document that this program has made.
pub fn parse_own(json: &str) -> Result<Report, Failure> {
    parse(json).map_err(|why| Failure::new(Exit::Bug, "cannot read our own report").because_of(why))
}

/// Parses a report, or says what is wrong with it.
fn parse(text: &str) -> Result<Report, String> {
    let head: ReportHead = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let schema_version = match head.schema_version {
        Some(version @ 1..=SCHEMA_VERSION) => version,
        Some(version) => {
            return Err(format!(
                "its schema_version is {version}; this program reads 1 to {SCHEMA_VERSION}"
            ));
        }
        None => return Err("it has no schema_version: it is not a report of tsb".to_owned()),
    };
    if head.experiment.is_some() {
        return Err("it is the result of an experiment, which tsb report shows only alone".to_owned());
    }
    let runs = match head.runs {
        Some(_) => serde_json::from_str::<ReportRuns>(text).map(|several| several.runs),
        None => serde_json::from_str::<Run>(text).map(|run| vec![run]),
    };
    let runs = runs.map_err(|error| error.to_string())?;
    if runs.is_empty() {
        return Err("it holds no run".to_owned());
    }
    let mut report = Report::new(runs);
    report.schema_version = schema_version;
    report.tsb_version = head.tsb_version;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = include_str!("../fixtures/reports/schema-1-first.json");

    #[test]
    fn a_report_of_the_first_program_is_read() {
        let report = parse(FIRST).unwrap();
        assert_eq!((report.schema_version, report.runs.len()), (1, 1));
        let run = &report.runs[0];
        assert_eq!(run.ledger.counts.count(tsb_core::ledger::Counter::Verified), 16_200);
        assert!(run.intervals.iter().all(|slice| slice.response_cells.is_none()));
        let several = format!("{{\"schema_version\": 1, \"runs\": [{FIRST}, {FIRST}]}}");
        assert_eq!(parse(&several).unwrap().runs.len(), 2);
    }

    #[test]
    fn a_report_of_every_form_so_far_is_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reports");
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let reports: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        assert!(reports.len() >= 2, "{reports:?}");
        for path in reports {
            let report = read(&path).unwrap();
            assert!(
                report.schema_version <= SCHEMA_VERSION && !report.runs[0].intervals.is_empty(),
                "{}",
                path.display()
            );
        }
    }

    #[test]
    fn files_that_are_no_report_are_refused_with_line_and_column() {
        let cut = &FIRST[..FIRST.len() / 2];
        let wrong = FIRST.replacen("\"interrupted\": false", "\"interrupted\": \"no\"", 1);
        for (text, words) in [
            (cut, "line"),
            (&wrong, "line"),
            ("", "line 1 column 0"),
            ("[1, 2]", "line 1"),
            ("{\"a\": 1}", "schema_version"),
            ("{\"schema_version\": 99}", "99"),
            ("{\"schema_version\": 1}", "missing field"),
            ("{\"schema_version\": 1, \"runs\": []}", "no run"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn no_damage_to_a_report_is_a_panic() {
        let mut bytes = FIRST.as_bytes().to_vec();
        for at in (0..bytes.len()).step_by(7) {
            let before = std::mem::replace(&mut bytes[at], b'9');
            if let Ok(text) = std::str::from_utf8(&bytes) {
                let _: Result<Report, String> = parse(text);
            }
            bytes[at] = before;
        }
        assert!(parse(FIRST).is_ok());
    }
}
