//! Scenarios in files: the ones of `examples/`, each shortened and run by the real program, and
//! plans that are written, changed and read back by it.

use std::path::Path;

use serde_json::Value;
use tsb_core::report::Run;
use tsb_core::verdict::Status;

use crate::output::{output_of, stderr};

const SECOND_NS: u64 = 1_000_000_000;

/// The path of a scenario of the repository.
fn scenario(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    folder.join(name).to_str().unwrap().to_owned()
}

/// Runs a scenario with a small fleet and with `sets`. A run on a busy machine is not valid.
fn run(name: &str, series: &str, sets: &[&str]) -> Run {
    let path = scenario(name);
    let mut arguments = vec!["run", "--quiet", "--no-calibrate", "--format", "json", "--plan", &path];
    arguments.extend(["--series", series]);
    arguments.extend(sets.iter().flat_map(|set| ["--set", *set]));
    let output = output_of(&arguments);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let run: Run = serde_json::from_slice(&output.stdout).unwrap();
    assert_ne!(run.verdict.status, Status::Invalid, "{:?}", run.verdict);
    assert!(run.ledger.counts.is_balanced());
    run
}

/// The names of the phases, of which each has figures.
fn names(run: &Run) -> Vec<&str> {
    for phase in &run.phases {
        assert!(
            phase.is_measured() && phase.latency.is_some(),
            "{phase:?}: {:?}",
            run.notes
        );
    }
    run.phases.iter().map(|phase| phase.name.as_str()).collect()
}

#[test]
fn a_morning_peak_rises_and_falls() {
    let run = run(
        "morning-peak.toml",
        "540",
        &[
            "report-interval=500ms",
            "night.duration=500ms",
            "night.rate=2k",
            "rise.duration=1s",
            "rise.rate=2k..8k",
            "peak.duration=1s",
            "peak.rate=8k",
            "fall.duration=500ms",
            "fall.rate=8k..5k",
            "day.duration=500ms",
            "day.rate=5k",
        ],
    );
    assert_eq!(names(&run), ["night", "rise", "peak", "fall", "day"]);
    // An operation of fifty samples more or less is a tenth of the shortest phase's.
    for (phase, asked) in run.phases.iter().zip([2_000.0, 5_000.0, 8_000.0, 6_500.0, 5_000.0]) {
        let is = phase.asked_per_second.unwrap();
        assert!((is / asked - 1.0).abs() < 0.15, "{}: {is} of {asked}", phase.name);
    }
    let end_ns = run.phases.last().unwrap().end_ns;
    assert_eq!(end_ns, 3_500_000_000);
}

#[test]
fn a_spike_meets_a_stalling_store_and_the_recovery_is_timed() {
    let run = run(
        "spike-and-stall.toml",
        "540",
        &[
            "report-interval=500ms",
            "store=throttle+memory:?throttle.rate=8000",
            "warm-up.duration=500ms",
            "warm-up.rate=2k",
            "load.duration=500ms",
            "load.rate=4k",
            "spike.duration=1s",
            "spike.rate=10k",
            "spike.faults.stall=500ms",
            "recovery.duration=3s",
            "recovery.rate=4k",
        ],
    );
    assert_eq!(names(&run), ["warm-up", "load", "spike", "recovery"]);
    let [.., spike, recovery] = run.phases.as_slice() else {
        panic!("{:?}", run.phases)
    };
    assert_eq!((spike.from_ns, spike.end_ns), (SECOND_NS, 2 * SECOND_NS));
    assert_eq!(spike.faults.as_deref(), Some("stalls for 500 ms"));
    let slowest = |phase: &tsb_core::report::PhaseReport| phase.latency.unwrap().response.max_ns.unwrap();
    assert!(slowest(spike) >= 500_000_000, "{spike:?}");
    // Of 10,000 samples due it had time for 4,000, and then works off 4,000 a second.
    assert!(spike.held_per_second.unwrap() < 6_000.0, "{spike:?}");
    assert!(spike.kept_share.unwrap() < 0.9, "{spike:?}");
    assert!(
        recovery.held_per_second.unwrap() > recovery.asked_per_second.unwrap(),
        "{recovery:?}"
    );
    assert!(recovery.on_time_after_ns.unwrap() >= SECOND_NS, "{recovery:?}");
    assert!(recovery.kept_share.unwrap() > 0.99, "{recovery:?}");
    let judged = |name: &str| run.verdict.measured.iter().any(|measured| measured.what.contains(name));
    assert!(
        judged("phase recovery") && !judged("phase spike"),
        "{:?}",
        run.verdict.measured
    );
}

#[test]
fn a_deploy_brings_new_series_and_takes_them_away() {
    let run = run(
        "deploy.toml",
        // Two hosts; in the deploy there is a third.
        "4320",
        &[
            "report-interval=500ms",
            "churn=spike:1.5x/4s/1s",
            "before.duration=3s",
            "before.rate=4320",
            "deploy.duration=1s",
            "deploy.rate=6480",
            "after.duration=1s",
            "after.rate=4320",
        ],
    );
    assert_eq!(names(&run), ["before", "deploy", "after"]);
    // The host that came had series of its own.
    assert_eq!(run.offered.series, 6_480);
    let of = |index: usize| run.phases[index].asked_per_second.unwrap();
    assert!((of(1) / of(0) - 1.5).abs() < 0.2, "{:?}", run.phases);
}

#[test]
fn a_scenario_is_told_as_text_and_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("r.json"), folder.path().join("r.html"));
    let (json, html) = (json.to_str().unwrap(), html.to_str().unwrap());
    let plan = folder.path().join("plan.toml");
    std::fs::write(
        &plan,
        "series = 54\ntransport = \"inproc\"\nreport-interval = \"200ms\"\nno-calibrate = true\n\
         [[phases]]\nname = \"load\"\nduration = \"400ms\"\nrate = 540\n\
         [[phases]]\nname = \"stall\"\nduration = \"400ms\"\nrate = 540\nfaults = { stall = \"300ms\" }\n",
    )
    .unwrap();
    let output = output_of(&[
        "run",
        "--quiet",
        "--plan",
        plan.to_str().unwrap(),
        "--out",
        json,
        "--html",
        html,
    ]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Phases: samples per second"), "{text}");
    assert!(
        text.contains("stall: by the plan the store stalls for 300 ms"),
        "{text}"
    );
    assert!(text.contains("throttle(memory"), "the faults have a name: {text}");
    let page = std::fs::read_to_string(html).unwrap();
    for words in [
        "Phase by phase",
        "<th scope=\"row\">2 stall</th>",
        "\"has_faults\":true",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // The plan of the report is the plan that was run, and its phases can be changed.
    let again = output_of(&["run", "--print-plan", "--plan", json, "--set", "stall.faults=none"]);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["phases"][1].get("faults"), None, "{again}");
    assert_eq!(again["schedule"], "steps:540*400ms,540*400ms");
}

/// The plan of these arguments, as JSON.
fn plan(arguments: &[&str]) -> Value {
    let output = output_of(&[&["run", "--print-plan"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_written_plan_is_the_plan_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("written.toml");
    let path = path.to_str().unwrap();
    let peak = scenario("morning-peak.toml");
    for arguments in [
        &[
            "--store",
            "memory:?retention=7d",
            "--rate",
            "20k",
            "--churn",
            "steady:10m",
            "-d",
            "90s",
        ][..],
        &["--transport", "udp", "--gso", "off", "--late", "1%", "--batch", "7"],
        &["--plan", &peak, "--set", "peak.rate=90k", "--seed", "7"],
    ] {
        let output = output_of(&[&["plan"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        std::fs::write(path, &output.stdout).unwrap();
        assert_eq!(plan(&["--plan", path]), plan(arguments));
    }
}

#[test]
fn sets_win_over_the_file_and_flags_win_over_sets() {
    let peak = scenario("morning-peak.toml");
    let set = plan(&["--plan", &peak, "--set", "series=100", "--set", "seed=3", "--seed", "4"]);
    assert_eq!(set["workload"]["series"], 100);
    assert_eq!(set["workload"]["seed"], 4);
    let phase = plan(&[
        "--plan",
        &peak,
        "--set",
        "peak.rate=90k",
        "--set",
        "peak.faults.stall=1s",
    ]);
    assert_eq!(phase["phases"][2]["rate_per_second"], 90_000);
    assert_eq!(phase["phases"][2]["faults"]["stall_ns"], SECOND_NS);
    assert_eq!(
        phase["schedule"],
        "steps:20000*10s,20000..80000*20s,90000*30s,80000..54000*10s,54000*10s"
    );
}

/// Arguments beside a scenario, and the words of the refusal.
const REFUSED: [(&[&str], &[&str]); 10] = [
    (
        &["--set", "peek.rate=1k"],
        &["--set peek.rate=1k", "\"peek\"", "did you mean peak?"],
    ),
    (
        &["--set", "peak.rat=1k"],
        &["unknown key \"rat\"", "did you mean rate?"],
    ),
    (&["--set", "peak.faults.stal=1s"], &["\"stal\"", "did you mean stall?"]),
    (&["--set", "peak.fault.stall=1s"], &["\"fault.stall\""]),
    (&["--set", "peak.rate=soon"], &["soon", "count"]),
    (&["--set", "serie=7"], &["--set serie=7", "did you mean series?"]),
    (&["--set", "series"], &["has no ="]),
    (&["--set", "peak.duration=0s"], &["duration of phase peak"]),
    (&["--rate", "10k"], &["--rate", "phases", "--set night.rate=10k"]),
    (&["--duration", "10s"], &["--duration", "phases"]),
];

#[test]
fn unknown_keys_of_a_scenario_are_refused_with_the_nearest_name() {
    let peak = scenario("morning-peak.toml");
    for (arguments, words) in REFUSED {
        let output = output_of(&[&["run", "--plan", &peak], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = stderr(&output);
        assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
    }
    let spike = scenario("spike-and-stall.toml");
    let emitted = output_of(&["emit", "--to", "tsb+tcp://127.0.0.1:1", "--plan", &spike]);
    assert_eq!(emitted.status.code(), Some(2));
    let said = stderr(&emitted);
    assert!(
        said.contains("faults of the store") && said.contains("--set spike.faults=none"),
        "{said}"
    );
    let none = output_of(&["run", "--set", "load.rate=1k"]);
    assert!(stderr(&none).contains("the plan has no phases"), "{}", stderr(&none));
    let printed = output_of(&["plan", "--print-plan"]);
    assert!(
        stderr(&printed).contains("tsb run --print-plan"),
        "{}",
        stderr(&printed)
    );
}
