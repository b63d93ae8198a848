//! Runs that several processes share: together they report what one process reports, and a host
//! that dies is named.

use std::path::Path;

use serde_json::Value;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use crate::output::{output_of, stderr};
use crate::program::tsb;
use crate::running::{Running, until};

/// A report, from a run to its end.
fn report(arguments: &[&str]) -> Value {
    let output = output_of(&[&["run", "--format", "json", "--quiet"], arguments].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

/// What does not depend on times: equal of one process and of several.
fn counts(report: &Value) -> [Value; 6] {
    ["ledger", "fingerprint", "seed", "issued", "offered", "exceptions"].map(|name| report[name].clone())
}

#[test]
fn several_processes_report_what_one_reports() {
    let fleets: [&[&str]; 6] = [
        &["--series", "1080", "--transport", "inproc"],
        &["--series", "1080", "--workload", "mix", "--batch", "tick"],
        &[
            "--series",
            "1080",
            "--late",
            "5%",
            "--duplicate",
            "5%",
            "--jitter",
            "100ms",
            "--rate",
            "5k",
        ],
        &[
            "--series",
            "540",
            "--churn",
            "steady:2s",
            "--interval",
            "100ms",
            "--transport",
            "inproc",
        ],
        &["--series", "1080", "--schedule", "ramp:200..2000/4s"],
        &[
            "--series",
            "540",
            "--schedule",
            "poisson:500,seed=3",
            "--preload",
            "1m",
            "--transport",
            "inproc",
        ],
    ];
    let hosts = ["2", "3", "8", "2", "3", "2"];
    for (fleet, hosts) in fleets.into_iter().zip(hosts) {
        // Calibrating would take longer than sending.
        let common = [fleet, &["--fleet-time", "3s", "--no-calibrate"]].concat();
        let workers = if fleet.contains(&"tick") { hosts } else { "1" };
        let one = report(&[&common[..], &["--workers", workers]].concat());
        let several = report(&[&common[..], &["--hosts-local", hosts]].concat());
        assert_eq!(counts(&several), counts(&one), "{fleet:?}");
        // Tests beside this one may take the CPU, and make it noisy or its generator late.
        let status = several["verdict"]["status"].as_str().unwrap();
        let reasons = several["verdict"]["reasons"].to_string();
        let is_disturbed = ["NOISY", "GENERATOR-LIMITED", "STORE-LIMITED"].contains(&status)
            && reasons.contains("others took the CPU");
        assert!(status == "VALID" || is_disturbed, "{:?}", several["verdict"]);
        assert_eq!(
            several["latency"]["response"]["count"],
            one["latency"]["response"]["count"]
        );
        let of_hosts = several["hosts"].as_array().unwrap();
        assert_eq!(of_hosts.len().to_string(), hosts);
        let sum = |name: &str| of_hosts.iter().map(|host| host[name].as_u64().unwrap()).sum::<u64>();
        assert_eq!(Value::from(sum("sent")), one["ledger"]["sent"]);
        assert_eq!(Value::from(sum("series")), one["offered"]["series"]);
        assert!(of_hosts.iter().all(|host| host["ended"] == "reported"), "{of_hosts:?}");
        let intervals = several["intervals"].as_array().unwrap();
        let timed = intervals.iter().map(|interval| &interval["response_cells"]["counts"]);
        // One that is cut off by the end of the run may have none.
        let timed = timed.filter(|counts| counts.is_array()).count();
        assert!(timed + 1 >= intervals.len(), "{intervals:?}");
        let accepted = intervals.iter();
        let accepted: u64 = accepted.map(|interval| interval["accepted"].as_u64().unwrap()).sum();
        let history = several["preload"]["accepted"].as_u64().unwrap_or(0);
        assert_eq!(Value::from(accepted + history), one["ledger"]["accepted"]);
    }
}

/// A run file with a history, two phases, a stall, and queries.
const SCENARIO: &str = r#"
series = 540
transport = "inproc"
preload = "2m"
queries = "last@20/s"
no-calibrate = true

[[phases]]
name = "load"
duration = "2s"
rate = 500

[[phases]]
name = "spike"
duration = "2s"
rate = 2000
faults = { stall = "500ms" }
queries = "q1@5/s"
"#;

/// A run file with a phase that slows the store down.
const SLOWED: &str = r#"
[[phases]]
name = "slow"
duration = "1s"
rate = 500
faults = { rate = 100 }
"#;

#[test]
fn a_scenario_is_divided_with_its_history_its_phases_and_its_queries() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("scenario.toml");
    std::fs::write(&plan, SCENARIO).unwrap();
    let plan = ["--plan", plan.to_str().unwrap()];
    let one = report(&plan);
    let several = report(&[&plan[..], &["--hosts-local", "3"]].concat());
    assert_eq!(counts(&several), counts(&one));
    assert_eq!(several["preload"]["accepted"], one["preload"]["accepted"]);
    assert_eq!(several["preload"]["accepted"], 120 * 540);
    for (of_several, of_one) in several["phases"]
        .as_array()
        .unwrap()
        .iter()
        .zip(one["phases"].as_array().unwrap())
    {
        for name in ["name", "from_ns", "end_ns", "faults"] {
            assert_eq!(of_several[name], of_one[name]);
        }
        let timed = |phase: &Value| phase["latency"]["response"]["count"].as_u64().unwrap();
        assert_eq!(timed(of_several), timed(of_one), "{of_several}");
        let near = |name: &str| {
            let (several, one) = (of_several[name].as_f64().unwrap(), of_one[name].as_f64().unwrap());
            assert!((several / one - 1.0).abs() < 0.2, "{name}: {several} and {one}");
        };
        near("asked_per_second");
    }
    for (name, most) in [("last", 80), ("spike/q1", 10)] {
        let [of_several, of_one] = [&several, &one].map(|report| &report["query_latency"][name]);
        assert_eq!(of_several["query"], of_one["query"]);
        assert_eq!(of_several["wrong"], 0, "{of_several}");
        let answers = of_several["answers"].as_u64().unwrap();
        assert!((most / 2..=most).contains(&answers), "{name}: {of_several}");
        assert_eq!(
            of_several["count"], of_several["answers"],
            "quantiles are of all answers"
        );
    }
}

/// The document that a command prints.
fn document(arguments: &[&str]) -> Value {
    let output = output_of(arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

/// Whether two hosts made each of these runs.
fn are_of_two_hosts(runs: &Value) -> bool {
    let of_two = |run: &Value| run["hosts"].as_array().is_some_and(|hosts| hosts.len() == 2);
    runs.as_array().unwrap().iter().all(of_two)
}

#[test]
fn several_processes_make_each_run_of_a_comparison() {
    let common = [
        "--transport",
        "inproc",
        "--series",
        "540",
        "--duration",
        "1s",
        "--quiet",
    ];
    let repeated = [
        "compare",
        "memory:",
        "--repeat",
        "2",
        "--hosts-local",
        "2",
        "--format",
        "json",
    ];
    let compared = document(&[&repeated[..], &common].concat());
    assert_eq!(compared["runs"].as_array().unwrap().len(), 2);
    assert!(are_of_two_hosts(&compared["runs"]), "{compared}");
    let held = compared["sides"][0]["figures"]["held"]["value"].as_f64().unwrap();
    assert!((400.0..600.0).contains(&held), "{held}");
}

/// Two hosts of another terminal: each goes on with the next run of the search.
#[test]
fn hosts_that_join_again_make_all_probes_of_a_search() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("folder:{}", folder.path().join("run").display());
    let mut hosts = ["a", "b"].map(|name| {
        let more = ["--again", "--wait", "20s", "--quiet", "--name", name];
        start(&[&["join", address.as_str()][..], &more].concat())
    });
    let search = [
        "capacity",
        "--coordinator",
        &address,
        "--hosts",
        "2",
        "--format",
        "json",
        "--quiet",
    ];
    let load = ["--transport", "inproc", "--series", "540", "--duration", "2s"];
    let bounds = [
        "--rate",
        "1000",
        "--highest",
        "4000",
        "--max-probes",
        "3",
        "--no-passes",
    ];
    let found = document(&[&search[..], &load, &bounds].concat());
    let probes = found["capacity"]["probes"].as_array().unwrap();
    assert_eq!(probes.len(), 3, "{found}");
    for probe in probes {
        let (load, held) = (&probe["load_per_second"], &probe["held_per_second"]);
        let (load, held) = (load.as_f64().unwrap(), held.as_f64().unwrap());
        assert!(held > 0.7 * load, "the probe of {load} held {held}");
    }
    for host in &mut hosts {
        assert_eq!(host.code(), Some(0));
    }
}

fn start(arguments: &[&str]) -> Running {
    Running::silent(&mut tsb(arguments))
}

/// A leader that writes its report into a folder, and hosts a, b and c.
struct SharedRun {
    folder: tempfile::TempDir,
    leader: Running,
    hosts: [Running; 3],
}

impl SharedRun {
    /// Starts all, and returns when samples are sent.
    fn begun(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("folder:{}", folder.path().join("run").display());
        let run = Self::started(folder, &address, more);
        let is_running = |text: String| text.contains("running");
        until("the start", || run.path("alive/a=value").is_some_and(is_running));
        run
    }

    /// Starts all.
    fn started(folder: tempfile::TempDir, address: &str, more: &[&str]) -> Self {
        let out = folder.path().join("r.json");
        let arguments = [
            "run",
            "--quiet",
            "--no-calibrate",
            "--coordinator",
            address,
            "--hosts",
            "3",
        ];
        let arguments = [
            &arguments[..],
            &["--out", out.to_str().unwrap(), "--series", "540"],
            more,
        ]
        .concat();
        let leader = start(&arguments);
        let hosts = ["a", "b", "c"].map(|name| start(&["join", address, "--quiet", "--name", name]));
        Self { folder, leader, hosts }
    }

    /// A document, of the leader or below the number of the run.
    fn path(&self, document: &str) -> Option<String> {
        let folder = self.folder.path().join("run");
        let below = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let paths = below.map(|entry| entry.path().join(document));
        std::iter::once(folder.join(document))
            .chain(paths)
            .find_map(|path| std::fs::read_to_string(path).ok())
    }

    fn report(&self) -> Value {
        let text = std::fs::read_to_string(self.folder.path().join("r.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

fn host<'r>(report: &'r Value, name: &str) -> &'r Value {
    let hosts = report["hosts"].as_array().unwrap();
    hosts.iter().find(|host| host["name"] == name).unwrap()
}

#[test]
fn a_host_that_is_killed_is_named_and_no_run_without_it_is_valid() {
    let mut run = SharedRun::begun(&["--transport", "inproc", "--duration", "4s"]);
    run.hosts[1].signal("-KILL");
    assert!(run.leader.code().is_some());
    let report = run.report();
    assert_eq!(host(&report, "b")["ended"], "lost");
    assert_eq!(host(&report, "a")["ended"], "reported");
    // Its store was in its memory.
    assert_eq!(report["verdict"]["status"], "UNVERIFIED");
    let reasons = report["verdict"]["reasons"].to_string();
    assert!(reasons.contains("b: the generator lost this host"), "{reasons}");
    assert_eq!(report["ledger"]["balanced"], true);
    assert!(run.path("plan=value").is_none(), "the documents are removed");
}

#[test]
fn a_host_that_pauses_for_five_seconds_is_not_lost() {
    let mut run = SharedRun::begun(&["--transport", "inproc", "--duration", "8s"]);
    run.hosts[1].signal("-STOP");
    let clock = MonotonicClock::new();
    clock.wait_until(5 * SECOND_NS);
    run.hosts[1].signal("-CONT");
    assert!(run.leader.code().is_some());
    let report = run.report();
    assert_eq!(host(&report, "b")["ended"], "reported");
    assert_ne!(report["verdict"]["status"], "VALID", "it stood still");
    assert_eq!(report["ledger"]["balanced"], true);
}

#[test]
fn ctrl_c_at_one_host_ends_the_run_everywhere() {
    let mut run = SharedRun::begun(&["--transport", "inproc", "--duration", "10m"]);
    run.hosts[2].signal("-INT");
    assert_eq!(run.leader.code(), Some(130));
    let report = run.report();
    assert_eq!(report["interrupted"], true);
    assert_eq!(report["ledger"]["lost"], 0);
    for process in &mut run.hosts {
        assert!(process.code().is_some());
    }
}

/// What happens to a host, at any moment of a run.
#[derive(Clone, Copy, Debug)]
enum HostFault {
    Killed,
    /// For longer than a host is waited for: the others take it for lost, and it hears of it later.
    CutOff,
    /// For five seconds.
    Paused,
}

/// Draws the fault and its moment of one run.
fn drawn(number: u64) -> (HostFault, u64) {
    let mut state = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state ^= state >> 31;
    let fault = [HostFault::Killed, HostFault::CutOff, HostFault::Paused][(state % 3) as usize];
    (fault, state / 3 % (6 * SECOND_NS))
}

/// One run with a fault; panics if it hangs, or an unbalanced or incomplete result is called VALID.
/// Returns what it came to, in words.
fn with_fault(number: u64) -> String {
    let (fault, at_ns) = drawn(number);
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| format!("tsb-hosts-{name}-{}-{number}", std::process::id());
    let etcd = std::env::var("TSB_TEST_ETCD").ok();
    let etcd = etcd
        .as_deref()
        .and_then(|spec| spec.rsplit_once('/'))
        .map(|(server, _)| server);
    let (address, store) = match etcd {
        Some(server) => (
            format!("{server}/{}", place("run")),
            format!("{server}/{}", place("data")),
        ),
        None => (
            format!("folder:{}", folder.path().join("run").display()),
            "memory:".to_owned(),
        ),
    };
    let more = [
        "--transport",
        "inproc",
        "--duration",
        "3s",
        "--hosts-wait",
        "30s",
        "--store",
        &store,
    ];
    let mut run = SharedRun::started(folder, &address, &more);
    let clock = MonotonicClock::new();
    clock.wait_until(at_ns);
    let host = &run.hosts[1];
    match fault {
        HostFault::Killed => host.signal("-KILL"),
        HostFault::CutOff | HostFault::Paused => {
            let seconds = if matches!(fault, HostFault::Paused) { 5 } else { 16 };
            host.signal("-STOP");
            clock.wait_until(at_ns + seconds * SECOND_NS);
            host.signal("-CONT");
        }
    }
    let code = run.leader.code();
    for host in &mut run.hosts {
        host.code();
    }
    if !run.folder.path().join("r.json").exists() {
        // It could not begin without the host.
        assert_ne!(code, Some(0), "{number}: {fault:?}");
        return format!("{fault:?}: no run, exit {code:?}");
    }
    let report = run.report();
    let status = report["verdict"]["status"].as_str().unwrap().to_owned();
    let lost = report["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|host| host["ended"] == "lost")
        .count();
    let is_balanced = report["ledger"]["balanced"] == true;
    let is_good = status == "VALID" || status == "NOISY";
    assert!(is_balanced || status == "INVALID", "{number}: {fault:?}: {report}");
    assert!(!is_good || (lost == 0 && is_balanced), "{number}: {fault:?}: {report}");
    assert_eq!(
        report["ledger"]["lost"], 0,
        "{number}: {fault:?}: {}",
        report["verdict"]
    );
    format!("{fault:?}: {status}, {lost} lost")
}

/// `TSB_HOST_FAULTS` runs, 4 without it; into etcd if `TSB_TEST_ETCD` names one.
#[test]
fn no_fault_of_a_host_makes_a_run_hang_or_a_wrong_result_valid() {
    let runs = std::env::var("TSB_HOST_FAULTS").ok();
    let runs = runs.map_or(4, |text| text.parse().unwrap());
    let next = std::sync::atomic::AtomicU64::new(0);
    let results = std::sync::Mutex::new(std::collections::BTreeMap::<String, u32>::new());
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if number >= runs {
                        break;
                    }
                    let result = with_fault(number);
                    *results.lock().unwrap().entry(result).or_default() += 1;
                }
            });
        }
    });
    println!("{runs} runs: {:#?}", results.lock().unwrap());
}

#[test]
fn what_cannot_be_shared_is_refused_with_a_reason() {
    let refused = |arguments: &[&str], why: &str| {
        let output = output_of(&[&["run", "--quiet"], arguments].concat());
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains(why), "{arguments:?}: {said}");
    };
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", folder.path().join("m.db").display());
    if cfg!(feature = "sqlite") {
        refused(
            &["--hosts-local", "2", "--store", &file],
            "several processes cannot have the files",
        );
    }
    let plan = folder.path().join("slow.toml");
    std::fs::write(&plan, SLOWED).unwrap();
    let slowed = ["--hosts-local", "2", "--plan", plan.to_str().unwrap()];
    refused(&slowed, "slows the store down in front of each host");
    refused(&["--hosts-local", "0"], "--hosts is from 1");
    refused(&["--hosts-local", "3", "--series", "54"], "it has 2 groups of series");
    refused(&["--coordinator", "memory:", "--hosts", "2"], "give etcd://HOST");
    refused(&["--hosts", "2"], "--coordinator");
    refused(&["--hosts-wait", "1m"], "--hosts-local");
    let local_and_etcd = ["--hosts-local", "2", "--coordinator", "etcd://127.0.0.1/runs"];
    refused(&local_and_etcd, "cannot be used with");
    assert!(!Path::new(&file[7..]).exists());
}

#[test]
fn a_host_without_a_leader_says_so_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("folder:{}", folder.path().display());
    let output = output_of(&["join", &address, "--wait", "300ms"]);
    let said = stderr(&output);
    assert!(said.contains("no leader published a plan"), "{said}");
    assert_eq!(output.status.code(), Some(4), "{said}");
}

#[test]
fn a_leader_without_hosts_says_so_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("folder:{}", folder.path().display());
    let arguments = [
        "run",
        "--coordinator",
        &address,
        "--hosts",
        "2",
        "--hosts-wait",
        "300ms",
        "--quiet",
    ];
    let output = output_of(&arguments);
    let said = stderr(&output);
    assert!(said.contains("only 0 of 2 hosts have joined"), "{said}");
}
