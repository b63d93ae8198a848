//! Folders: names, merging, what is not read, and errors that name the file.

use crate::time::Timestamp;
use crate::trace::open;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn every_file_is_a_series_that_is_called_by_its_path() {
    let folder = folder(&[
        (
            "b.csv",
            "timestamp,value\n2014-04-01 00:00:00,1\n2014-04-01 00:05:00,\n",
        ),
        ("aws/a.csv", "timestamp,value\n2014-04-02 00:00:00,2\n"),
        ("c.tsv", "time\tx\ty\n1396310400\t3\t4\n"),
        ("d.om", "m 5 1396310400\n"),
        ("README.md", "no trace"),
        (".hidden.csv", "neither"),
    ]);
    let trace = open(folder.path()).unwrap();
    let names: Vec<String> = trace.keys.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["aws.a", "b", "x{file=c}", "y{file=c}", "m"]);
    assert_eq!(trace.columns[4].times(), [Timestamp::from_secs(1_396_310_400)]);
    let problem = trace.problems.named[0].to_string();
    assert!(
        problem.starts_with("b.csv, line 3: a cell without a value"),
        "{problem}"
    );
    let has = |text: &str| trace.decisions.iter().any(|decision| decision == text);
    assert!(
        has("2 of 4 files: times are dates without a zone, taken as UTC"),
        "{:?}",
        trace.decisions
    );
    assert!(
        has("1 files with other endings were not read: README.md"),
        "{:?}",
        trace.decisions
    );
}

#[test]
fn parts_of_one_recording_are_one_series() {
    let folder = folder(&[
        ("day1.csv", "timestamp,series,value\n1,cpu,1\n2,cpu,2\n"),
        ("day2.csv", "timestamp,series,value\n3,cpu,3\n"),
    ]);
    let trace = open(folder.path()).unwrap();
    assert_eq!((trace.keys.len(), trace.columns[0].values()), (1, &[1.0, 2.0, 3.0][..]));
}

#[test]
fn an_error_names_the_file_the_line_and_what_was_found() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let folder = folder(files);
        let error = open(folder.path()).unwrap_err().to_string();
        for part in expected {
            assert!(error.contains(part), "{error}");
        }
    };
    check(
        &[("a.csv", "timestamp,value\n1,1\n"), ("z.csv", "when,what\nx,y\n")],
        &[
            "in z.csv: line 1: no column",
            "\"when,what\"",
            "a header is timestamp,series,value",
        ],
    );
    check(
        &[("a.csv", "1,1\n"), ("a.tsv", "1\t1\n")],
        &["in a.csv: ", "the same name but for its ending"],
    );
    check(&[("notes.md", "x")], &["no file in this folder ends in .csv"]);
    check(&[("a.prom", "m 1 1396310400\n")], &["in a.prom: ", "unit=s or unit=ms"]);
    check(
        &[("a.csv", "timestamp,value\n1,x\n")],
        &["no sample in it; 2 rows were left out, the first at a.csv, line 2"],
    );
}
