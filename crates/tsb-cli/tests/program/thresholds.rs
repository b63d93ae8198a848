//! Thresholds end a run or a comparison with exit code 5 and name the figure; the script of
//! `examples/ci` finds a store that has become slower.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::output::output_of;

/// A short run in process, whose verdict does not depend on how busy the machine is.
const SHORT: [&str; 10] = [
    "run",
    "--quiet",
    "--no-calibrate",
    "--transport",
    "inproc",
    "--rate",
    "max",
    "--fleet-time",
    "5s",
    "--series=200",
];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_crossed_threshold_is_exit_code_5_with_the_measured_figure() {
    let output = output_of(
        &[
            &SHORT[..],
            &[
                "--fail-if",
                "verified>900",
                "--fail-unless",
                "lost=0",
                "--format",
                "json",
            ],
        ]
        .concat(),
    );
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{stderr}");
    let said = "tsb: threshold crossed: verified is 1,000, above 900 (--fail-if 'verified>900')\n";
    assert_eq!(stderr, said);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let thresholds = report["thresholds"].as_array().unwrap();
    assert_eq!(
        (&thresholds[0]["outcome"], &thresholds[0]["measured"]),
        (&"crossed".into(), &1000.0.into())
    );
    assert_eq!(
        (&thresholds[1]["outcome"], &thresholds[1]["fail"]),
        (&"passed".into(), &"unless".into())
    );
}

#[test]
fn passed_thresholds_are_exit_code_0_and_stand_in_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("run.html");
    let html = page.to_str().unwrap();
    let output = output_of(&[&SHORT[..], &["--fail-unless", "lost=0", "--html", html]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = "threshold passed: lost is 0, equal to 0";
    assert!(text(&output.stdout).contains(said), "{}", text(&output.stdout));
    assert!(fs::read_to_string(page).unwrap().contains(said));
}

#[test]
fn a_figure_that_the_run_does_not_have_passes_no_threshold() {
    for (condition, why) in [
        (
            "refused>0",
            "there is no refused: this run has no count of refused samples",
        ),
        ("query.q1.p99>1s", "there is no query.q1.p99: the run asked no queries"),
    ] {
        let output = output_of(&[&SHORT[..], &["--fail-if", condition]].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{stderr}");
        assert!(stderr.contains(&format!("threshold not decided: {why}")), "{stderr}");
    }
}

#[test]
fn conditions_that_cannot_be_read_stop_a_run_before_it_starts() {
    for (arguments, words) in [
        (
            ["--fail-if", "respnse.p99>50ms"],
            &["cannot read --fail-if respnse.p99>50ms", "response.p99"][..],
        ),
        (["--fail-if", "response.p99>2GiB"], &["is a time", "is a size", "50ms"]),
        (["--fail-if", "held<-5%"], &["nothing to compare with", "tsb compare"]),
        (["--retry-noisy", "0"], &["--retry-noisy"]),
        (["--set", "fail-if=lost<0"], &["no lost is below 0"]),
    ] {
        let output = output_of(&[&SHORT[..], &arguments].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(words.iter().all(|word| stderr.contains(word)), "{stderr}");
    }
}

#[test]
fn a_run_file_has_thresholds() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.toml");
    let path = file.to_str().unwrap();
    let written = output_of(
        &[
            &["plan"],
            &SHORT[3..],
            &["--fail-if", "verified>900", "--retry-noisy", "2"],
        ]
        .concat(),
    );
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    fs::write(&file, &written.stdout).unwrap();
    let run = output_of(&["run", "--quiet", "--no-calibrate", "--plan", path]);
    assert_eq!(run.status.code(), Some(5), "{}", text(&run.stderr));
    fs::write(&file, "\nfail-unless = [\"lost=0\", \"valdi\"]\n").unwrap();
    let wrong = text(&output_of(&["run", "--plan", path]).stderr);
    assert!(wrong.contains("line 2") && wrong.contains("valid"), "{wrong}");
}

#[test]
fn two_reports_are_compared_and_what_is_no_report_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = ["old.json", "new.json"].map(|name| folder.path().join(name));
    let [old, new] = [old.to_str().unwrap(), new.to_str().unwrap()];
    for (path, series) in [(old, "--series=200"), (new, "--series=300")] {
        assert_eq!(
            output_of(&[&SHORT[..9], &[series, "--out", path]].concat())
                .status
                .code(),
            Some(0)
        );
    }
    let output = output_of(&["compare", old, new, "--fail-if", "verified>+20%", "--format", "json"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("verified is 1,500, above 1,200 (1,000 before: +50.0 %)"));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verified = document["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["metric"] == "verified");
    assert_eq!(
        (&verified.unwrap()["a"], &verified.unwrap()["ratio"]),
        (&1000.0.into(), &1.5.into())
    );
    let unequal = document["stores"][0]["unequal"].to_string();
    assert!(
        unequal.contains("did not do the same work") && unequal.contains("workload.series"),
        "{unequal}"
    );
    let shown = output_of(&["compare", old, new]);
    assert_eq!(shown.status.code(), Some(0));
    assert!(text(&shown.stdout).find("same work").unwrap() < text(&shown.stdout).find("B/A").unwrap());
    let missing = output_of(&["compare", old, "no-such.json"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("no-such.json"));
}

/// Both sides are run here, in rounds; the second serves 20 % less.
#[test]
fn two_stores_are_compared_in_rounds_and_the_slower_one_is_named() {
    let output = output_of(&[
        "compare",
        "throttle+memory:?throttle.rate=5000",
        "throttle+memory:?throttle.rate=4000",
        "--rounds=2",
        "--duration=2s",
        "--transport=inproc",
        "--rate=max",
        "--series=2000",
        "--batch=host",
        "--workers=4",
        "--no-calibrate",
        "--quiet",
        "--fail-if",
        "held<-5%",
    ]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(5), "{stdout}{stderr}");
    assert!(stderr.contains("threshold crossed: held is "), "{stderr}");
    for words in ["A  throttle+memory:?throttle.rate=5000", "2 rounds in ", "Warm-up: "] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    let held = stdout.lines().find(|line| line.trim_start().starts_with("held "));
    assert!(held.is_some_and(|line| line.contains(" 0.8")), "{stdout}");
}

/// The script of `examples/ci`, with a store that holds 5,000 samples per second and one that holds
/// `new_rate`. Its load is a closed loop of four workers in turn, so that what the store holds does
/// not depend on how busy the machine is.
fn regression(new_rate: u32) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ci/regression.sh");
    let folder = tempfile::tempdir().unwrap();
    Command::new("sh")
        .arg(script)
        .current_dir(folder.path())
        .env("OLD_TSB", env!("CARGO_BIN_EXE_tsb"))
        .env("OLD_STORE", "throttle+memory:?throttle.rate=5000")
        .env("NEW_STORE", format!("throttle+memory:?throttle.rate={new_rate}"))
        .env(
            "LOAD",
            "--transport inproc --rate max --duration 4s --series 2000 --batch host --workers 4 --no-calibrate",
        )
        .env("FAIL_IF", "held<-5%")
        .env("ROUNDS", "1")
        .output()
        .unwrap()
}

#[test]
fn the_script_of_the_example_passes_a_store_that_is_as_fast_as_before() {
    let output = regression(5_000);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    assert!(
        text(&output.stdout).contains("threshold passed: held is "),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn the_script_of_the_example_finds_a_store_that_holds_a_tenth_less() {
    let output = regression(4_500);
    assert_eq!(
        output.status.code(),
        Some(5),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("threshold crossed: held is ") && stderr.contains("(--fail-if 'held<-5%')"),
        "{stderr}"
    );
}
