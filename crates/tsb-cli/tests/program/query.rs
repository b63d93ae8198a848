//! `tsb query` as its users meet it: stores filled by one process and asked by another.

use tempfile::TempDir;

use crate::output::output_of;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The answer of a query that must end well.
fn answer(store: &str, more: &[&str]) -> String {
    let output = output_of(&[&["query", store], more].concat());
    assert_eq!(output.status.code(), Some(0), "{more:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// What a query that must fail says.
fn refused(store: &str, more: &[&str], code: i32) -> String {
    let output = output_of(&[&["query", store], more].concat());
    assert_eq!(output.status.code(), Some(code), "{more:?}: {}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    text(&output.stderr)
}

/// A store of 540 series, and the folder that it is in.
fn filled(scheme: &str, name: &str, options: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("{scheme}:{}", folder.path().join(name).display());
    let with_options = format!("{store}{options}");
    let output = output_of(&[
        "run",
        "--quiet",
        "--no-calibrate",
        "--no-verify",
        "--workload",
        "mix",
        "--series",
        "540",
        "--transport",
        "inproc",
        "--rate",
        "max",
        "--fleet-time",
        "30s",
        "--store",
        &with_options,
    ]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", text(&output.stderr));
    (folder, store)
}

#[test]
fn series_are_listed_and_an_unknown_one_is_an_error_with_near_names() {
    let (_folder, store) = filled("sqlite", "m.db", "");
    let all = answer(&store, &["--list"]);
    assert_eq!(all.lines().count(), 540, "{all}");
    assert!(
        !all.contains('\\') && !all.contains('"'),
        "keys are read as they stand: {all}"
    );
    let key = all.lines().next().unwrap();
    let host = key
        .split("host=")
        .nth(1)
        .map(|rest| rest.split([',', '}']).next().unwrap());
    let pattern = format!("*{}*", host.unwrap_or(key));
    let some = answer(&store, &["--list", &pattern]);
    assert!((1..540).contains(&some.lines().count()), "{pattern}: {some}");
    let rows = answer(&store, &["--series", key]);
    assert!(rows.lines().count() > 20, "{rows}");
    assert_eq!(answer(&store, &["--series", key, "--series", key]), rows);
    let wrong = key.replacen(|c: char| c.is_ascii_alphabetic(), "Q", 1);
    let said = refused(&store, &["--series", &wrong], 2);
    assert!(
        said.contains(&wrong) && said.contains("did you mean") && said.contains("--list"),
        "{said}"
    );
    // It was not made by being asked for.
    assert_eq!(answer(&store, &["--list"]), all);
}

#[test]
fn times_are_dates_or_relative_and_printed_as_asked() {
    let (_folder, store) = filled("sqlite", "m.db", "?layout=rows");
    let all = answer(&store, &["--list"]);
    let key = all.lines().next().unwrap();
    let rows = answer(&store, &["--series", key, "--rfc3339"]);
    let first = rows.lines().nth(1).unwrap();
    let fields: Vec<&str> = first.rsplitn(3, ',').collect();
    let at = fields[1];
    assert!(at.ends_with('Z') && at.contains('T'), "{first}");
    let from = answer(&store, &["--series", key, "--rfc3339", "--from", at]);
    assert_eq!(from, rows, "the first time is in");
    let before = answer(&store, &["--series", key, "--to", at]);
    assert_eq!(before, "series,time,value\n", "the end is not in");
    let recent = answer(
        &store,
        &["--series", key, "--rfc3339", "--from", "-1h", "--to", "now+1h"],
    );
    assert_eq!(recent, rows);
    let said = refused(&store, &["--series", key, "--from", "yesterday"], 2);
    assert!(said.contains("--from yesterday") && said.contains("-1h"), "{said}");
}

#[test]
fn rrd_files_say_themselves_how_they_are_laid_out() {
    let options = "?step=1s&heartbeat=10s&archives=average:1:600,max:5:600";
    let (folder, store) = filled("rrd", "files", options);
    let all = answer(&store, &["--list"]);
    assert_eq!(all.lines().count(), 540, "{all}");
    let key = all.lines().next().unwrap();
    let rows = answer(&store, &["--series", key]);
    assert!(rows.lines().count() > 20, "{rows}");
    let coarse = answer(&store, &["--series", key, "--step", "5s", "--rows", "max"]);
    assert!((4..10).contains(&coarse.lines().count()), "{coarse}");
    let said = refused(&store, &["--series", key, "--step", "7s"], 2);
    assert!(said.contains("average of 1s, max of 5s"), "{said}");
    let said = refused(&store, &["--series", "nothing.like.it"], 2);
    assert!(said.contains("holds no series nothing.like.it"), "{said}");
    let nowhere = format!("{}/nowhere", folder.path().display());
    let said = refused(&format!("rrd:{nowhere}"), &["--list"], 4);
    assert!(
        said.contains("no such folder") && !std::path::Path::new(&nowhere).exists(),
        "{said}"
    );
}

#[test]
fn a_store_that_cannot_say_its_series_says_that() {
    let said = refused("memory:", &["--list"], 2);
    assert!(said.contains("cannot list the series of memory:"), "{said}");
}

#[test]
fn a_series_of_mohawks_layout_is_found_by_the_key_that_the_list_shows() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}?layout=mohawk", folder.path().join("m.db").display());
    let recording = folder.path().join("labels.prom");
    let line = |second| format!("cpu{{host=\"a\",core=\"0\"}} {second} 170000000{second}000\n");
    std::fs::write(&recording, (0..3).map(line).collect::<String>()).unwrap();
    let workload = format!("trace:{}", recording.display());
    let run = [
        "run",
        "--store",
        &store,
        "--transport",
        "inproc",
        "--workload",
        &workload,
    ];
    let short = [
        "--rate",
        "max",
        "--fleet-time",
        "3s",
        "--no-calibrate",
        "--no-verify",
        "--quiet",
    ];
    let output = output_of(&[&run[..], &short].concat());
    assert!(folder.path().join("m.db").exists(), "{}", text(&output.stderr));
    let list = answer(&store, &["--list"]);
    let key = list.lines().find(|key| key.contains('{')).unwrap();
    assert!(answer(&store, &["--series", key]).lines().count() > 1);
}
