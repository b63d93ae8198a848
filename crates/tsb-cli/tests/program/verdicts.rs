//! The verdict's rules as a table, each from both sides of its threshold, through the whole
//! program: a run for each status, with its exit code.
//!
//! Runs are closed loops where they can be: the rule on the generator's own lag does not
//! apply to them, so that a busy machine cannot decide what is tested. What a busy machine
//! can always add is NOISY, which comes last but for VALID.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::Value;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use crate::program;

fn tsb(arguments: &str) -> Command {
    let mut command = program::tsb(&["run", "--quiet", "--format", "json", "--workload", "mix"]);
    command.args(arguments.split_whitespace());
    command
}

/// A report with its exit code.
struct Run {
    report: Value,
    code: Option<i32>,
}

fn run(arguments: &str) -> Run {
    try_run(arguments).unwrap_or_else(|said| panic!("no report: {said}"))
}

/// A run, or what the program said instead.
fn try_run(arguments: &str) -> Result<Run, String> {
    let output = tsb(arguments).output().expect("the program starts");
    let report: Value =
        serde_json::from_slice(&output.stdout).map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let run = Run {
        report: report["runs"].get(0).unwrap_or(&report).clone(),
        code: output.status.code(),
    };
    run.is_consistent();
    Ok(run)
}

impl Run {
    fn status(&self) -> &str {
        self.report["verdict"]["status"].as_str().expect("there is a verdict")
    }

    /// The figure with this beginning, its limit, and whether it is on the wrong side of it.
    fn measured(&self, what: &str) -> Option<(f64, f64, bool)> {
        let all = self.report["verdict"]["measured"]
            .as_array()
            .expect("there are figures");
        let begins = |one: &&Value| one["what"].as_str().is_some_and(|name| name.starts_with(what));
        all.iter().find(begins).map(crossed)
    }

    fn reasons(&self) -> String {
        self.report["verdict"]["reasons"].to_string()
    }

    /// The status is the first for which a figure is on the wrong side of its limit, but for
    /// the two that need no figure; and the exit code is that of the status.
    fn is_consistent(&self) {
        const ORDER: [&str; 7] = [
            "INVALID",
            "UNVERIFIED",
            "GENERATOR-LIMITED",
            "TRANSPORT-LIMITED",
            "STORE-LIMITED",
            "NOISY",
            "VALID",
        ];
        let verdict = &self.report["verdict"];
        let measured = verdict["measured"].as_array().expect("there are figures");
        let wrong = measured.iter().filter(|one| crossed(one).2);
        let wrong = wrong.filter_map(|one| ORDER.iter().position(|status| one["status"] == **status));
        let place = ORDER.iter().position(|status| *status == self.status());
        let first = wrong.min().unwrap_or(ORDER.len() - 1);
        assert!(place == Some(first) || place < Some(2), "{verdict:#}");
        let expected = if ["INVALID", "GENERATOR-LIMITED"].contains(&self.status()) {
            3
        } else {
            0
        };
        assert_eq!(self.code, Some(expected), "{verdict:#}");
    }
}

fn crossed(one: &Value) -> (f64, f64, bool) {
    let number = |name: &str| one[name].as_f64().expect("it is a number");
    let (value, limit) = (number("value"), number("limit"));
    let is_crossed = if one["bound"] == "at_least" {
        value < limit
    } else {
        value > limit
    };
    (value, limit, is_crossed)
}

/// A closed loop of a fixed number of samples: 200 seconds of 54 series.
const FIXED: &str = "--transport inproc --rate max --fleet-time 200s --series 54 --interval 1s --no-calibrate";

/// Runs `crossing`, which must have `status`, and `keeping`, which must not; the figure
/// `what` stands on either side of its limit.
fn both_sides(status: &str, what: &str, keeping: &str, crossing: &str) {
    let run = |arguments: &str, is_crossing: bool| {
        let run = run(arguments);
        let (value, limit, is_crossed) = run
            .measured(what)
            .unwrap_or_else(|| panic!("{what}: {}", run.reasons()));
        assert_eq!(is_crossed, is_crossing, "{what} is {value}, limit {limit}");
        assert_eq!(
            run.status() == status,
            is_crossing,
            "{}: {}",
            run.status(),
            run.reasons()
        );
    };
    run(keeping, false);
    run(crossing, true);
}

#[test]
fn a_sound_run_is_valid_unless_the_machine_was_disturbed() {
    let run = run(FIXED);
    assert!(["VALID", "NOISY"].contains(&run.status()), "{}", run.reasons());
    assert_eq!(run.report["ledger"]["verified"], 54 * 200);
}

#[test]
fn one_sample_that_is_lost_altered_or_duplicated_makes_a_run_invalid() {
    for (fault, counter) in [("lose", "lost"), ("alter", "altered"), ("duplicate", "duplicated")] {
        // One sample in ten thousand of 10,800, and none: the first in a million comes later.
        for (one_in, samples) in [(10_000, 1), (1_000_000, 0)] {
            let run = run(&format!(
                "{FIXED} --store throttle+memory:?throttle.{fault}_one_in={one_in}"
            ));
            assert_eq!(run.report["ledger"][counter], samples, "{fault}: {}", run.reasons());
            let is_invalid = (run.status(), run.code) == ("INVALID", Some(3));
            assert_eq!(is_invalid, samples > 0, "{fault}: {}", run.reasons());
        }
    }
}

#[test]
fn a_run_of_which_nothing_was_verified_is_unverified() {
    for (arguments, reason) in [
        (format!("{FIXED} --no-verify"), "the plan says so (--no-verify)"),
        (format!("{FIXED} --store null:"), "cannot return samples"),
        (
            format!("{FIXED} --store memory:?max_bytes=64KiB"),
            "the store refused 10800 of the 10800",
        ),
        (format!("{FIXED} --missing 100%"), "nothing was due"),
        (
            "--transport inproc --series 54 --duration 1ms --no-calibrate".to_owned(),
            "nothing was due",
        ),
    ] {
        let run = run(&arguments);
        assert_eq!((run.status(), run.code), ("UNVERIFIED", Some(0)), "{}", run.reasons());
        assert!(run.reasons().contains(reason), "{}", run.reasons());
        assert_eq!(run.report["ledger"]["balanced"], true);
    }
}

#[test]
fn most_of_what_was_accepted_has_to_be_compared() {
    let dir = tempfile::tempdir().expect("a folder can be made");
    let files = |name: &str| format!("rrd:{}/{name}?step=1s", dir.path().display());
    // The last step of each series has not ended: one of 50, and one of 200.
    both_sides(
        "UNVERIFIED",
        "compared",
        &format!("{FIXED} --store {}", files("long")),
        &format!("{} --store {}", FIXED.replace("200s", "50s"), files("short")),
    );
    // What retention took was not compared either.
    both_sides(
        "UNVERIFIED",
        "compared",
        &format!("{FIXED} --store memory:?retention=199s"),
        &format!("{FIXED} --store memory:?retention=190s"),
    );
}

#[test]
fn a_rate_near_the_ceiling_is_the_generators_limit() {
    const TRIES: u32 = 10;
    let asking = |rate: f64| {
        try_run(&format!(
            "--transport inproc --series 5400 --duration 200ms --rate {rate:.0}"
        ))
    };
    // Three ceilings, and the ceiling of a busy machine differs from run to run: beyond ten
    // of them a rate is refused, and below 0.9 of them it is sound.
    let near = (0..TRIES).find_map(|_| {
        let far = asking(54_000.0).expect("it runs");
        let (share, limit, is_crossed) = far.measured("asked").expect("the ceiling was measured");
        assert!(!is_crossed, "{share} of {limit}");
        let ceiling = far.report["rate"]["ceiling_per_second"]
            .as_f64()
            .expect("it was measured");
        let near = asking(3.0 * ceiling).ok()?;
        near.measured("asked")
            .is_some_and(|(.., is_crossed)| is_crossed)
            .then_some(near)
    });
    let near = near.expect("the ceiling of this machine is known to a factor of three");
    assert_eq!((near.status(), near.code), ("GENERATOR-LIMITED", Some(3)));
}

/// An open loop, again where the machine made the generator late.
fn open_loop(arguments: &str) -> Run {
    const TRIES: u32 = 5;
    let in_time = |_| {
        let run = run(arguments);
        let (.., is_late) = run.measured("p99 of the generator's own lag").expect("it was measured");
        (!is_late).then_some(run)
    };
    (0..TRIES).find_map(in_time).expect("the generator is not always late")
}

/// The same as [`both_sides`], of open loops.
fn both_sides_of_open_loops(status: &str, what: &str, keeping: &str, crossing: &str) -> Run {
    let [kept, crossed] = [keeping, crossing].map(open_loop);
    for (run, is_crossing) in [(&kept, false), (&crossed, true)] {
        let (value, limit, is_crossed) = run.measured(what).expect("it was measured");
        assert_eq!(is_crossed, is_crossing, "{what} is {value}, limit {limit}");
        assert_eq!(run.status() == status, is_crossing, "{}", run.reasons());
    }
    crossed
}

#[test]
fn the_limit_of_the_generators_own_lag_is_a_tenth_of_the_interval_and_at_most_100_ms() {
    // Beyond it: a process that was stopped, below.
    for (interval, series, limit_ms) in [
        ("20ms", 540, 2.0),
        ("200ms", 540, 20.0),
        ("1s", 5_400, 100.0),
        ("60s", 54_000, 100.0),
    ] {
        let run = run(&format!(
            "--transport inproc --series {series} --rate natural --duration 500ms --no-calibrate --interval {interval}"
        ));
        let (_, limit, _) = run.measured("p99 of the generator's own lag").expect("it was measured");
        assert!((limit - limit_ms).abs() < 1e-6, "{interval}: {limit}");
    }
    let kept = open_loop("--transport inproc --series 540 --duration 500ms --no-calibrate");
    assert_ne!(kept.status(), "GENERATOR-LIMITED", "{}", kept.reasons());
}

#[test]
fn a_store_that_does_not_hold_the_asked_rate_is_limited() {
    let fleet = "--transport inproc --series 5400 --rate 5400 --duration 2s --no-calibrate";
    both_sides_of_open_loops(
        "STORE-LIMITED",
        "held, of the asked rate",
        &format!("{fleet} --store throttle+memory:?throttle.rate=100k"),
        &format!("{fleet} --store throttle+memory:?throttle.rate=2700"),
    );
}

#[test]
fn a_backlog_worked_off_after_a_peak_was_not_held_at_the_peak() {
    // 26,000 samples in four seconds: as a mean, 8,000 per second are enough.
    let steps = "--transport inproc --series 540 --schedule steps:2000*1s,20000*1s,2000*2s --duration 4s \
                 --no-calibrate";
    let run = both_sides_of_open_loops(
        "STORE-LIMITED",
        "held at the highest rate",
        &format!("{steps} --store throttle+memory:?throttle.rate=200k"),
        &format!("{steps} --store throttle+memory:?throttle.rate=8000"),
    );
    let peak = &run.report["rate"]["peak"];
    let number = |name: &str| peak[name].as_f64().expect("it is a number");
    assert!(
        (number("from_ns") - 1e9).abs() < 2e8 && (number("end_ns") - 2e9).abs() < 2e8,
        "{peak}"
    );
    let (asked, accepted) = (number("asked_per_second"), number("accepted_per_second"));
    assert!((16_000.0..=20_500.0).contains(&asked), "{peak}");
    // A busy machine accepts fewer than the throttle lets through.
    assert!((4_000.0..=10_000.0).contains(&accepted), "{peak}");
    // Of 22,000 due by its end, at most 18,000 were accepted a second later.
    assert!((0.5..=0.9).contains(&number("kept_share")), "{peak}");
    let (held, ..) = run.measured("held, of the asked rate").expect("it was measured");
    assert!(held > 0.95, "{held}");
}

#[test]
fn the_highest_rate_of_a_schedule_is_compared_with_the_ceiling() {
    const TRIES: u32 = 10;
    let asking = |peak: f64| {
        try_run(&format!(
            "--transport inproc --series 540 --batch 1 --report-interval 100ms --duration 1s \
             --schedule steps:20000*500ms,{peak:.0}*100ms,20000*400ms"
        ))
    };
    let share = |run: &Run| {
        let number = |name: &str| run.report.pointer(name).and_then(Value::as_f64).expect("a number");
        let ceiling = number("/rate/ceiling_per_second");
        let [peak, mean] = ["/rate/peak/asked_per_second", "/rate/asked_per_second"].map(number);
        let (share, _, is_crossed) = run.measured("asked, of the generator's ceiling").expect("there is one");
        assert!((share - peak / ceiling).abs() < 1e-9, "{share}: {}", run.report["rate"]);
        (mean / ceiling, is_crossed, ceiling)
    };
    // The ceiling of a busy machine differs from run to run.
    let far = asking(60_000.0).expect("it runs");
    let near = (0..TRIES).find_map(|_| {
        let (_, is_crossed, ceiling) = share(&asking(60_000.0).expect("it runs"));
        assert!(!is_crossed);
        let near = asking(2.5 * ceiling).ok()?;
        let (mean, is_crossed, _) = share(&near);
        (is_crossed && mean < 0.9).then_some(near)
    });
    let near = near.expect("the ceiling of this machine is known to a factor of two");
    assert!(!share(&far).1, "{}", far.reasons());
    assert_eq!(
        (near.status(), near.code),
        ("GENERATOR-LIMITED", Some(3)),
        "{}",
        near.reasons()
    );
}

#[test]
fn a_closed_loop_states_its_ceiling_and_is_not_judged_by_it() {
    let run = run("--transport inproc --series 540 --rate max --duration 200ms");
    let rate = &run.report["rate"];
    assert!(
        rate["ceiling_per_second"].as_f64().is_some_and(|ceiling| ceiling > 0.0),
        "{rate}"
    );
    assert_eq!(run.measured("asked"), None);
    if run.status() == "VALID" {
        assert!(
            run.reasons().contains("of the generator's ceiling held"),
            "{}",
            run.reasons()
        );
    }
}

#[test]
fn losses_between_emitter_and_store_are_the_transports_limit() {
    let udp = "--transport udp --protocol graphite --no-calibrate --series 5400 --batch tick";
    both_sides(
        "TRANSPORT-LIMITED",
        "lost between emitter and store",
        &format!("{udp} --rate 5400 --duration 1s --interval 1s"),
        &format!("{udp} --rate max --duration 1s --receive-buffer 4KiB"),
    );
    let run = run(&format!("{udp} --rate max --duration 1s --receive-buffer 4KiB"));
    assert!(
        run.reasons().contains("in our listener's receive buffer of "),
        "{}",
        run.reasons()
    );
    let ledger = &run.report["ledger"];
    assert!(ledger["kernel_dropped"].as_u64() > Some(1_000));
    assert_eq!(ledger["balanced"], true);
}

#[test]
fn refusals_of_the_store_are_its_limit() {
    // One sample in 80 is refused, and one in 120.
    both_sides(
        "STORE-LIMITED",
        "refused",
        &format!("{FIXED} --store throttle+memory:?throttle.error_one_in=120"),
        &format!("{FIXED} --store throttle+memory:?throttle.error_one_in=80"),
    );
}

#[test]
fn a_store_that_refuses_all_but_a_few_is_limited_and_not_valid() {
    // As much as the first rows need: everything behind them is refused.
    let long = FIXED.replace("200s", "5000s");
    let run = run(&format!("{long} --store memory:?max_bytes=256KiB"));
    let count = |name: &str| run.report["ledger"][name].as_u64().expect("it is counted");
    let (accepted, rejected) = (count("accepted"), count("rejected"));
    assert!(
        accepted > 0 && rejected > accepted,
        "{accepted} accepted, {rejected} rejected"
    );
    assert_eq!(
        (run.status(), run.code),
        ("STORE-LIMITED", Some(0)),
        "{}",
        run.reasons()
    );
}

/// Waits for the first line of progress, and returns the rest of what is said.
fn first_progress(child: &mut Child) -> BufReader<std::process::ChildStderr> {
    let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    while !line.contains("accepted") {
        line.clear();
        assert!(
            said.read_line(&mut line).expect("it is text") > 0,
            "it ended before it began"
        );
    }
    said
}

/// A run of four seconds that is stopped for half a second, as its report.
fn stopped(arguments: &str) -> Run {
    let mut command = tsb(arguments);
    let arguments: Vec<_> = command.get_args().filter(|argument| *argument != "--quiet").collect();
    let mut loud = Command::new(command.get_program());
    loud.args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command = loud;
    let mut child = command.spawn().expect("the program starts");
    // A report is longer than a pipe holds, and stderr ends after it.
    let mut stdout = child.stdout.take().expect("it is piped");
    let report = std::thread::spawn(move || {
        let mut report = Vec::new();
        stdout.read_to_end(&mut report).map(|_| report)
    });
    let mut said = first_progress(&mut child);
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &child.id().to_string()]).status();
        assert!(status.expect("there is a kill").success());
    };
    signal("-STOP");
    MonotonicClock::new().wait_until(SECOND_NS / 2);
    signal("-CONT");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("it is text");
    let status = child.wait().expect("it ends");
    let report = report.join().expect("it reads").expect("it is read");
    let report: Value = serde_json::from_slice(&report).expect("there is a report");
    let run = Run {
        report: report["runs"].get(0).unwrap_or(&report).clone(),
        code: status.code(),
    };
    run.is_consistent();
    run
}

#[test]
fn a_process_that_was_stopped_is_noisy_however_busy_it_was_and_however_long_its_interval_is() {
    let four_seconds = "--transport inproc --duration 4s --no-calibrate";
    for arguments in [
        format!("{four_seconds} --rate max --series 540"),
        format!("{four_seconds} --rate max --series 540 --interval 60s"),
    ] {
        let run = stopped(&arguments);
        let (value, limit, is_crossed) = run.measured("the process stood still").expect("it was watched");
        assert!(is_crossed, "{value} of {limit}");
        assert_eq!((run.status(), run.code), ("NOISY", Some(0)), "{}", run.reasons());
    }
    // A store that is busy for nine tenths of the time hides nothing either.
    let busy = stopped(&format!(
        "{four_seconds} --series 5400 --store throttle+memory:?throttle.rate=6000"
    ));
    assert!(
        busy.reasons().contains("stood still") && busy.status() != "VALID",
        "{}",
        busy.reasons()
    );
    // In an open loop what was due meanwhile was late, which comes first.
    let late = stopped(&format!("{four_seconds} --series 54k --interval 60s"));
    assert!(
        late.measured("the process stood still")
            .is_some_and(|(.., is_crossed)| is_crossed)
    );
    assert!(
        late.measured("p99 of the generator's own lag")
            .is_some_and(|(.., is_crossed)| is_crossed)
    );
    assert_eq!(
        (late.status(), late.code),
        ("GENERATOR-LIMITED", Some(3)),
        "{}",
        late.reasons()
    );
    // The slowest operations say what it was: the generator was late, and the process stood still.
    let breakdown = &late.report["latency"]["breakdown"];
    let max = breakdown["quantiles"].as_array().and_then(|all| all.last());
    let share = max.and_then(|max| max["shares"]["late"].as_f64());
    assert!(share > Some(0.9), "{max:?}");
    let during = breakdown["worst"][0]["during"].as_array();
    assert!(
        during.is_some_and(|all| all.iter().any(|event| event["kind"] == "paused")),
        "{during:?}"
    );
}

#[test]
fn a_noisy_run_is_repeated_in_an_empty_place() {
    let folder = tempfile::tempdir().expect("there is a folder");
    let place = folder.path().join("samples.db");
    let run = stopped(&format!(
        "--transport inproc --duration 4s --no-calibrate --rate max --series 540 --retry-noisy 1 --store sqlite:{}",
        place.display()
    ));
    // The second attempt is as noisy as the machine is.
    assert!(matches!(run.status(), "NOISY" | "VALID"), "{}", run.reasons());
    assert_eq!(run.code, Some(0));
    let attempts = run.report["attempts"].as_array().expect("there was an attempt before");
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0]["verdict"]["status"], "NOISY");
    // What the first attempt stored would be copies beyond what was sent, or make the place refuse.
    assert_eq!(run.report["ledger"]["duplicated"], 0);
    assert_eq!(run.report["ledger"]["verified"], run.report["ledger"]["accepted"]);
}

#[test]
fn a_busy_neighbour_on_the_only_cpu_makes_a_closed_loop_noisy() {
    // The run and one thread of this test share one CPU: children inherit it.
    let all = rustix::thread::sched_getaffinity(None).expect("it can be asked");
    let first = (0..rustix::thread::CpuSet::MAX_CPU)
        .find(|cpu| all.is_set(*cpu))
        .expect("there is a CPU");
    let is_over = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(first);
            while !is_over.load(Relaxed) {
                black_box((0..1_000_u64).sum::<u64>());
            }
        });
        let run = scope.spawn(|| {
            pin(first);
            run("--transport inproc --rate max --duration 2s --series 540 --no-calibrate")
        });
        let run = run.join().expect("it ran");
        is_over.store(true, Relaxed);
        run
    });
    let (value, limit, is_crossed) = run.measured("CPU taken").expect("it was watched");
    assert!(is_crossed, "{value} of {limit}");
    assert_eq!((run.status(), run.code), ("NOISY", Some(0)), "{}", run.reasons());
}

/// Binds the calling thread, and what it starts, to one CPU.
fn pin(cpu: usize) {
    let mut only = rustix::thread::CpuSet::new();
    only.set(cpu);
    rustix::thread::sched_setaffinity(None, &only).expect("a thread may bind itself");
}
