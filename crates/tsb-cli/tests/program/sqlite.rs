//! Files of the SQLite store as users meet them: filled by one process, read by another.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::output::{output_of, stderr};

/// A folder with a file that a run has filled, and its report.
struct FilledFile {
    folder: TempDir,
    report: Value,
}

impl FilledFile {
    fn new(options: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}{options}", folder.path().join("x.db").display());
        let mut arguments = vec![
            "run",
            "--quiet",
            "--format",
            "json",
            "--no-calibrate",
            "--workload",
            "mix",
            "--store",
            &store,
        ];
        arguments.extend(more);
        let output = output_of(&arguments);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
        std::fs::write(folder.path().join("report.json"), &output.stdout).unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        Self {
            folder,
            report: report["runs"].get(0).unwrap_or(&report).clone(),
        }
    }

    fn small(options: &str) -> Self {
        Self::of_540_series(options, "500ms")
    }

    fn of_540_series(options: &str, duration: &str) -> Self {
        Self::new(
            options,
            &[
                "--series",
                "540",
                "--rate",
                "20k",
                "--duration",
                duration,
                "--transport",
                "inproc",
            ],
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn verify(&self, store: Option<&Path>) -> Output {
        let report = self.path("report.json").display().to_string();
        match store {
            None => output_of(&["verify", &report, "--format", "json"]),
            Some(path) => {
                let store = format!("sqlite:{}", path.display());
                output_of(&["verify", &report, "--format", "json", "--store", &store])
            }
        }
    }
}

/// Opening must fail with words about why, and leave the file as it was.
fn refused(path: &Path, words: &[&str]) {
    let before = std::fs::read(path).unwrap();
    let store = format!("sqlite:{}", path.display());
    let output = output_of(&["query", "--store", &store, "--series", "a"]);
    let text = stderr(&output);
    assert!(matches!(output.status.code(), Some(2..=4)), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
    assert_eq!(std::fs::read(path).unwrap(), before, "the file was changed");
}

#[test]
fn a_run_is_verified_by_another_process_and_under_another_name() {
    let filled = FilledFile::small("?commit=100ms");
    assert_ne!(
        filled.report["verdict"]["status"], "INVALID",
        "{}",
        filled.report["verdict"]
    );
    let durability = &filled.report["durability"];
    assert_eq!(
        (durability["level"].as_str(), durability["acknowledged"].as_str()),
        (Some("synced"), Some("volatile"))
    );
    assert!(durability["wait"]["count"].as_u64() > Some(10), "{durability}");
    assert!(filled.report["cost"]["disk_bytes_per_sample"].as_f64() > Some(0.1));
    let accepted = filled.report["ledger"]["accepted"].as_u64().unwrap();
    let output = filled.verify(None);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    std::fs::rename(filled.path("x.db"), filled.path("moved.db")).unwrap();
    let output = filled.verify(None);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("no such file"));
    let output = filled.verify(Some(&filled.path("moved.db")));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["schema_version"].as_u64() >= Some(2), "{result}");
    let verified = &result["stores"][0];
    assert_eq!(verified["ledger"]["verified"].as_u64(), Some(accepted), "{result}");
    assert_eq!(verified["verdict"]["status"], "VALID", "{result}");
}

#[test]
fn verify_finds_missing_samples() {
    let filled = FilledFile::small("?layout=rows");
    let database = rusqlite::Connection::open(filled.path("x.db")).unwrap();
    // On a busy machine, some series have no samples.
    let of_one = "DELETE FROM sample WHERE series = (SELECT min(series) FROM sample)";
    let gone = database.execute(of_one, []).unwrap();
    assert!(gone > 0);
    database.close().unwrap();
    let store = format!("sqlite:{}?layout=rows", filled.path("x.db").display());
    let output = output_of(&[
        "verify",
        &filled.path("report.json").display().to_string(),
        "--store",
        &store,
    ]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("lost {gone}")));
}

#[test]
fn every_layout_is_filled_and_read_back() {
    for options in [
        "",
        "?commit=each&synchronous=normal",
        "?commit=1s&tail=2",
        "?layout=rows",
    ] {
        // A slow disk may hold the first commit up for half a second; what is due behind it is shed.
        let filled = FilledFile::of_540_series(options, "2s");
        let verified = filled.report["ledger"]["verified"].as_u64();
        assert!(verified > Some(1000), "{options}: {}", filled.report["ledger"]);
        assert_eq!(verified, filled.report["ledger"]["accepted"].as_u64(), "{options}");
    }
    let mohawk = FilledFile::new(
        "?layout=mohawk",
        &[
            "--series",
            "5",
            "--rate",
            "50",
            "--duration",
            "500ms",
            "--transport",
            "inproc",
        ],
    );
    assert_eq!(
        mohawk.report["ledger"]["lost"].as_u64(),
        Some(0),
        "{}",
        mohawk.report["ledger"]
    );
    assert!(mohawk.report["ledger"]["verified"].as_u64() > Some(5));
}

#[test]
fn samples_are_printed_and_nothing_is_made() {
    let filled = FilledFile::small("");
    let database = rusqlite::Connection::open(filled.path("x.db")).unwrap();
    let (name, labels): (String, String) = database
        .query_row("SELECT name, labels FROM series WHERE number = 3", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    let labels: Value = serde_json::from_str(&labels).unwrap();
    let labels: Vec<String> = labels
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap()))
        .collect();
    let key = if labels.is_empty() {
        name
    } else {
        format!("{name}{{{}}}", labels.join(","))
    };
    database.close().unwrap();
    let store = format!("sqlite:{}", filled.path("x.db").display());
    let unknown = output_of(&["query", "--store", &store, "--series", &key, "--series", "nobody"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
    let output = output_of(&["query", "--store", &store, "--series", &key]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.lines().count() > 5 && text.starts_with("series,time,value\n"),
        "{text}"
    );
    let count = output_of(&[
        "query", "--store", &store, "--series", &key, "--step", "1h", "--rows", "count",
    ]);
    let rows = String::from_utf8(count.stdout).unwrap();
    let sum: f64 = rows
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert_eq!(sum as usize, text.lines().count() - 1, "{rows}");
    let database = rusqlite::Connection::open(filled.path("x.db")).unwrap();
    let nobody: i64 = database
        .query_row("SELECT count(*) FROM series WHERE name = 'nobody'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(nobody, 0);
}

#[test]
fn foreign_files_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(
        path("text"),
        "not a database at all, but long enough to look at\n".repeat(200),
    )
    .unwrap();
    refused(&path("text"), &["text", "no SQLite database"]);
    let foreign = rusqlite::Connection::open(path("foreign.db")).unwrap();
    foreign
        .execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        .unwrap();
    foreign.close().unwrap();
    refused(&path("foreign.db"), &["another program"]);
    let filled = FilledFile::small("");
    let newer = rusqlite::Connection::open(filled.path("x.db")).unwrap();
    newer.execute_batch("PRAGMA user_version=2").unwrap();
    newer.close().unwrap();
    refused(&filled.path("x.db"), &["format 2", "up to 1"]);
    let rows = FilledFile::small("?layout=rows");
    let store = format!("sqlite:{}?layout=ticks", rows.path("x.db").display());
    let said = stderr(&output_of(&["query", "--store", &store, "--series", "a"]));
    assert!(said.contains("layout is rows") && said.contains("ticks"), "{said}");
}

/// Runs the program as somebody whom permissions bind: the superuser they do not.
fn as_nobody(folder: &Path, arguments: &[&str]) -> Output {
    let program = folder.join("tsb");
    std::fs::copy(env!("CARGO_BIN_EXE_tsb"), &program).unwrap();
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    command.args(arguments).stdin(Stdio::null());
    loop {
        match command.output() {
            // A process that another test forks holds the copy open for writing until it
            // executes its own program.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => return output.unwrap(),
        }
    }
}

fn permit(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_or_a_folder_that_cannot_be_written_is_named_and_left_alone() {
    let filled = FilledFile::small("");
    let path = filled.path("x.db");
    let before = std::fs::read(&path).unwrap();
    let store = format!("sqlite:{}", path.display());
    for (folder_mode, words) in [(0o777, "the file cannot be written"), (0o555, "cannot lock")] {
        permit(&path, 0o444);
        permit(filled.folder.path(), 0o755);
        let program = tempfile::tempdir().unwrap();
        permit(program.path(), 0o755);
        permit(filled.folder.path(), folder_mode);
        let output = as_nobody(program.path(), &["query", "--store", &store, "--series", "a"]);
        let text = stderr(&output);
        permit(filled.folder.path(), 0o755);
        assert_eq!(output.status.code(), Some(4), "{text}");
        assert!(text.contains(words) && text.contains("x.db"), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_second_run_into_the_same_file_is_refused() {
    let filled = FilledFile::small("");
    let store = format!("sqlite:{}", filled.path("x.db").display());
    let output = output_of(&[
        "run",
        "--quiet",
        "--series",
        "10",
        "--duration",
        "100ms",
        "--store",
        &store,
    ]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("already holds"), "{}", stderr(&output));
}

#[test]
fn a_damaged_page_is_an_error_that_names_the_file() {
    let filled = FilledFile::new(
        "?tail=20",
        &[
            "--series",
            "540",
            "--rate",
            "max",
            "--fleet-time",
            "100s",
            "--batch",
            "tick",
            "--transport",
            "inproc",
        ],
    );
    let bytes = std::fs::read(filled.path("x.db")).unwrap();
    let pages = bytes.len() / 4096;
    let mut found = 0;
    for page in (2..pages).step_by(pages / 24) {
        let mut damaged = bytes.clone();
        for byte in &mut damaged[page * 4096 + 700..page * 4096 + 2700] {
            *byte = byte.wrapping_add(77);
        }
        std::fs::write(filled.path("damaged.db"), damaged).unwrap();
        let output = filled.verify(Some(&filled.path("damaged.db")));
        let text = stderr(&output);
        assert!(!text.contains("panicked"), "page {page}: {text}");
        // A free page may be damaged without anybody missing it; but no value is ever wrong.
        match output.status.code() {
            Some(0) => {}
            // Said, or seen by the audit.
            Some(3 | 4) => {
                if output.stdout.is_empty() {
                    assert!(text.contains("damaged.db"), "page {page}: {text}");
                } else {
                    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
                    let store = &result["stores"][0];
                    assert_eq!(store["ledger"]["altered"], 0, "page {page}: {result}");
                    let reasons = store["verdict"]["reasons"].to_string();
                    let is_named = reasons.contains("cannot trust the file") && reasons.contains("damaged.db");
                    assert!(
                        store["ledger"]["lost"].as_u64() > Some(0) || is_named,
                        "page {page}: {result} {text}"
                    );
                }
                found += 1;
            }
            code => panic!("page {page}: {code:?} {text}"),
        }
    }
    assert!(found > 4, "{found} of the damaged pages were found");
}

#[test]
fn a_place_where_no_file_can_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = format!("sqlite:{}", folder.path().join("no/such/folder/x.db").display());
    let output = output_of(&["run", "--quiet", "--duration", "100ms", "--store", &missing]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("no/such/folder"), "{}", stderr(&output));
}
