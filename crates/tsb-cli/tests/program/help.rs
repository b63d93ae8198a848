//! Help as it is read: short on a small terminal, whole with `--help`.

use crate::program::tsb;
use crate::snapshot::is_as_kept;

/// Commands with a help of their own; the first is `tsb` alone.
const COMMANDS: &[&str] = &[
    "",
    "run",
    "capacity",
    "plan",
    "ingest",
    "emit",
    "verify",
    "report",
    "compare",
    "query",
    "record",
    "reproduce",
    "canary",
    "conformance",
    "reproduce rrdcached",
    "reproduce hm9000",
    "reproduce records",
    "reproduce dalmatiner",
    "reproduce mohawk",
    "stores",
    "doctor",
    "completions",
    "man",
];

fn help(command: &str, flag: &str) -> String {
    let given = command.split_whitespace().chain([flag]);
    let output = tsb(&given.collect::<Vec<_>>()).output().unwrap();
    assert!(output.status.success(), "tsb {command} {flag}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_is_as_kept() {
    is_as_kept("help/tsb.txt", &help("", "--help"));
    is_as_kept("help/tsb-short.txt", &help("", "-h"));
    let kept = COMMANDS
        .iter()
        .filter(|command| !["", "completions", "man"].contains(command));
    for command in kept {
        is_as_kept(
            &format!("help/{}.txt", command.replace(' ', "-")),
            &help(command, "--help"),
        );
    }
    for command in ["run", "query"] {
        is_as_kept(&format!("help/{command}-short.txt"), &help(command, "-h"));
    }
}

#[test]
fn short_help_fits_a_screen() {
    for command in COMMANDS {
        let text = help(command, "-h");
        let lines = text.lines().count();
        assert!(lines <= 40, "tsb {command} -h has {lines} lines:\n{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "tsb {command} -h: {line:?}");
        }
    }
}

#[test]
fn long_help_fits_80_columns() {
    for command in COMMANDS {
        for line in help(command, "--help").lines() {
            assert!(line.chars().count() <= 80, "tsb {command} --help: {line:?}");
        }
    }
}

#[test]
fn the_options_of_a_run_are_grouped_with_the_common_ones_first_and_examples_last() {
    let text = help("run", "--help");
    let places = [
        "\nOptions:",
        "--store",
        "--duration",
        "\nWorkload:",
        "\nDisorder:",
        "\nSchedule:",
        "\nWire:",
        "\nResult:",
        "\nOutput:",
        "\nExamples:",
    ];
    for words in places {
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
    }
    let first = |words: &str| text.find(words).unwrap();
    assert!(
        places[1..3].iter().all(|words| first(words) < first("\nWorkload:")),
        "{text}"
    );
    assert!(
        places[..9].iter().all(|words| first(words) < first("\nExamples:")),
        "{text}"
    );
}

#[test]
fn the_options_of_a_run_are_not_said_twice() {
    let text = help("", "--help");
    assert!(!text.contains("--out-of-order") && text.contains("run "), "{text}");
    let emit = help("emit", "--help");
    for flag in ["--store ", "--transport ", "--no-verify"] {
        assert!(!emit.contains(flag), "tsb emit has no {flag}");
    }
    for flag in ["--series ", "--html ", "--hdr-log ", "--max-series "] {
        assert!(emit.contains(flag), "tsb emit has {flag}: {emit}");
    }
}
