//! `tsb reproduce`, in small: what it says has to be there and to add up.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::ingest::listening;
use crate::program::tsb;

fn reproduce(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = tsb(&["reproduce", "rrdcached", "--quick", "--files", "60"])
        .args(arguments)
        .arg("--dir")
        .arg(folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    // What it made is gone.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_experiment_of_rrdcached_measures_every_round_and_reads_it_back() {
    let result: Value = serde_json::from_str(&reproduce(&["--format", "json", "--rounds", "2"])).unwrap();
    let experiment = &result["experiment"];
    assert_eq!(
        (&experiment["name"], &experiment["files_wrong"]),
        (&"rrdcached".into(), &0.into())
    );
    let rounds = experiment["rounds"].as_array().unwrap();
    let librrd = cfg!(feature = "librrd").then_some("librrd");
    for way in ["direct", "write-cache+rrd"].into_iter().chain(librrd) {
        let of_all: Vec<&Value> = rounds.iter().filter(|round| round["way"] == way).collect();
        assert_eq!(of_all.len(), 8);
        let of_way: Vec<&Value> = of_all.into_iter().filter(|round| round["round"] == 1).collect();
        let names: Vec<&str> = of_way.iter().map(|round| round["pass"].as_str().unwrap()).collect();
        assert_eq!(names, ["cold, across", "warm, within", "warm, within", "warm, across"]);
        let crossing: Vec<u64> = of_way.iter().map(|round| round["crossing"].as_u64().unwrap()).collect();
        assert_eq!(crossing, [60, 0, 0, 60]);
        assert!(
            of_way
                .iter()
                .all(|round| round["accept_seconds"].as_f64().unwrap() > 0.0)
        );
    }
    let of_ours: Vec<&Value> = experiment["beyond"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["way"] == "write-cache+rrd")
        .collect();
    let with = |name: &str| -> Vec<f64> {
        let entries = of_ours.iter().filter(|entry| entry[name].is_number());
        entries.filter_map(|entry| entry["coalescing"].as_f64()).collect()
    };
    assert_eq!(with("values_per_file"), [1.0, 10.0, 10.0, 10.0, 10.0]);
    assert_eq!(with("threads"), [10.0; 3]);
    // Updated every 250 ms and written after one to two seconds.
    assert!(
        matches!(with("timeout_seconds")[..], [some] if some > 1.0),
        "{of_ours:?}"
    );
    assert!(experiment["mistakes"].as_array().unwrap().len() > 5);
}

#[test]
fn text_and_page_have_the_rounds_and_the_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let html = folder.path().join("page.html");
    let page = reproduce(&["--rounds", "1", "--html", html.to_str().unwrap()]);
    let html = std::fs::read_to_string(html).unwrap();
    for part in [
        "cold, across",
        "write-cache+rrd",
        "What the original got wrong",
        "</html>",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("<script"), "{html}");
    for part in [
        "cold, across",
        "write-cache+rrd",
        "FLUSH of one file",
        "What the original got wrong",
        "0 files do not hold",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn without_a_name_the_experiments_are_listed() {
    let output = tsb(&["reproduce"]).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let listed = text.lines().filter_map(|line| line.strip_prefix("tsb reproduce "));
    for name in listed {
        assert!(
            tsb(&["reproduce", name, "--help"]).output().unwrap().status.success(),
            "{name}"
        );
    }
    assert!(text.contains("tsb reproduce rrdcached\n  asks"), "{text}");
    assert!(text.contains("tsb reproduce hm9000\n  asks"), "{text}");
    assert!(text.contains("tsb reproduce records\n  asks"), "{text}");
    assert!(text.contains("tsb reproduce mohawk\n  asks"), "{text}");
    assert!(text.contains("tsb reproduce dalmatiner\n  asks"), "{text}");
}

/// Checks that these arguments are refused as bad usage, in these words.
fn refuses(experiment: &str, arguments: &[&str], words: &str) {
    let output = tsb(&["reproduce", experiment, "--quick"])
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains(words), "{errors}");
}

#[test]
fn what_hm9000_cannot_do_is_refused_before_it_starts() {
    for (arguments, words) in [
        (&["--store", "zookeeper:h"][..], "no such store of keys"),
        (
            &["--store", "memory:", "--store", "memory:"],
            "each store takes part once",
        ),
        (&["--without", "rust"], "advertise-bump"),
        (&["--apps", "0"], "it is from 1 to"),
        (&["--outages", "3"], "--outage <COMMAND>"),
        (&["--out", "x.json", "--html", "x.json"], "name the same file"),
    ] {
        refuses("hm9000", arguments, words);
    }
}

/// The smallest run in memory: as it was, corrected, and shown again from its file.
#[test]
fn hm9000_is_repeated_in_small_and_shown_again() {
    let folder = tempfile::tempdir().unwrap();
    let [out, html, again] = ["out.json", "page.html", "again.html"].map(|name| folder.path().join(name));
    let small = ["--store", "memory:", "--apps", "300", "--rounds", "1", "--seconds", "2"];
    let output = tsb(&["reproduce", "hm9000", "--quick", "--seconds-as-it-was", "2"])
        .args(small)
        .arg("--out")
        .arg(&out)
        .arg("--html")
        .arg(&html)
        .arg("--dir")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    let experiment = &result["experiment"];
    let of_model = experiment["as_it_was"].as_array().unwrap().iter();
    let of_model: Vec<&Value> = of_model.filter(|run| run["is_virtual"] == true).collect();
    // At the published break thousands of instances are missing, and far beyond it nothing is fresh.
    assert!(of_model[1]["fresh_at_seconds"].as_f64().unwrap() < 31.0, "{experiment}");
    assert!(of_model[1]["missing_max"].as_u64().unwrap() > 1_000, "{experiment}");
    assert!(of_model[2]["fresh_at_seconds"].is_null(), "{experiment}");
    let run = &experiment["runs"][0];
    assert_eq!((&run["apps"], &run["lost"]), (&300.into(), &0.into()));
    assert_eq!(run["keys_acknowledged"], run["keys_due"]);
    let shown = tsb(&["report", out.to_str().unwrap(), "--html", again.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(shown.stdout, output.stdout);
    let page = std::fs::read_to_string(&html).unwrap();
    assert_eq!(std::fs::read_to_string(&again).unwrap(), page);
    assert!(page.contains("What their program measured was a timer") && page.contains("</html>"));
    let twice = tsb(&["report", out.to_str().unwrap(), out.to_str().unwrap()]);
    for mut refused in [twice, tsb(&["report", out.to_str().unwrap(), "--format", "csv"])] {
        assert_eq!(refused.output().unwrap().status.code(), Some(2));
    }
}

#[test]
fn an_interrupted_experiment_of_hm9000_leaves_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = tsb(&[
        "reproduce",
        "hm9000",
        "--store",
        "memory:",
        "--apps",
        "300",
        "--format",
        "json",
    ])
    .arg("--dir")
    .arg(folder.path())
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap()).lines();
    // The first run has begun.
    progress.next().unwrap().unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["experiment"]["interrupted"], true);
    let runs = result["experiment"]["as_it_was"].as_array().unwrap();
    assert!(
        !runs.is_empty() && runs.iter().all(|run| run["is_virtual"] == true),
        "{result}"
    );
}

#[test]
fn what_records_cannot_do_is_refused_before_it_starts() {
    for (arguments, words) in [
        (&["--store", "zookeeper:h:1"][..], "no such store of keys"),
        (&["--etcd", "h:1", "--etcd", "h:1"], "each store takes part once"),
        (&["--in-flight", "0"], "it is from 1 to 256"),
        (&["--sizes", "128,65537"], "it is from 1 to 65536"),
        (&["--apps", "0"], "it is from 1 to"),
        (&["--samples", "0"], "1..=1000"),
        (&["--records", "100000", "--sizes", "65536"], "at most 256 MiB"),
    ] {
        refuses("records", arguments, words);
    }
}

/// The quick run in memory: counted, compared, and shown again from its file.
#[test]
fn records_are_repeated_in_memory_and_shown_again() {
    let folder = tempfile::tempdir().unwrap();
    let [out, html, again] = ["out.json", "page.html", "again.html"].map(|name| folder.path().join(name));
    let output = tsb(&["reproduce", "records", "--quick", "--store", "memory:"])
        .arg("--out")
        .arg(&out)
        .arg("--html")
        .arg(&html)
        .arg("--dir")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    let experiment = &result["experiment"];
    // Three numbers of requests in flight by three sizes, and three numbers of apps; five samples.
    let samples = experiment["samples"].as_array().unwrap();
    let apps = experiment["app_samples"].as_array().unwrap();
    assert_eq!((samples.len(), apps.len()), (45, 15), "{experiment}");
    for sample in samples {
        let read = &sample["read"];
        assert_eq!((&read["found"], &read["wrong"]), (&512.into(), &0.into()), "{sample}");
    }
    for sample in apps {
        let twice = sample["apps"].as_u64().unwrap() * 2;
        assert_eq!(
            (&sample["read"]["found"], &sample["left"]),
            (&twice.into(), &0.into()),
            "{sample}"
        );
    }
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    for part in ["old/phd: 512 records", "ZooKeeper", "volatile", "5/5", "not published"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let shown = tsb(&["report", out.to_str().unwrap(), "--html", again.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(shown.stdout, output.stdout);
    let page = std::fs::read_to_string(&html).unwrap();
    assert_eq!(std::fs::read_to_string(&again).unwrap(), page);
    assert!(page.contains("the moment is what was measured") && page.ends_with("</html>\n"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn a_simulation_predicts_drains_and_hours_of_each_server() {
    let result: Value = serde_json::from_str(&reproduce(&["--simulate", "--rounds", "1", "--format", "json"])).unwrap();
    let simulated = &result["experiment"]["simulated"];
    assert_eq!(result["experiment"]["rounds"].as_array().map(Vec::len), Some(0));
    let of = |list: &str| -> Vec<&Value> {
        let all = simulated[list].as_array().unwrap().iter();
        all.filter(|entry| entry["way"] == "write-cache+rrd").collect()
    };
    // Drain and sync of three depths, a cold drain, and three paces.
    assert_eq!(of("points").len(), 10);
    for point in of("points") {
        assert!(point["predicted"].as_f64().unwrap() > 0.0, "{point}");
        assert!(point["measured"].is_null() && point["error"].is_null(), "{point}");
    }
    assert_eq!(of("hours").len(), 2);
    for (hour, least) in of("hours").into_iter().zip([1.5, 5.5]) {
        assert!(hour["coalescing"].as_f64().unwrap() > least, "{hour}");
        assert_eq!(hour["fingerprint"].as_str().map(str::len), Some(16));
    }
    assert!(of("costs")[0]["write_ns"].as_u64().unwrap() > 0, "{simulated}");
}

/// Runs the experiment of Mohawk with a small corrected part; its document and its text.
fn mohawk(arguments: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let out = folder.path().join("mohawk.json");
    let small = [
        "--requests",
        "20",
        "--batch",
        "5",
        "--connections",
        "2",
        "--seconds",
        "1",
    ];
    let output = tsb(&["reproduce", "mohawk", "--quick"])
        .args(small)
        .args(arguments)
        .arg("--out")
        .arg(&out)
        .arg("--html")
        .arg(folder.path().join("page.html"))
        .arg("--dir")
        .arg(files.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{errors} {text}");
    // What the stores made is gone.
    assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 0);
    let again = folder.path().join("again.html");
    let shown = tsb(&["report", out.to_str().unwrap(), "--html", again.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(shown.stdout).unwrap(), text);
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert_eq!(std::fs::read_to_string(again).unwrap(), page);
    assert!(page.contains("What was measured is mostly the script") && page.ends_with("</html>\n"));
    let document = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    (document, text)
}

/// The oracle: the rows that each backend of 0.15.4 returned, and Hawkular.
#[test]
fn the_rows_of_mohawks_benchmark_are_those_of_each_backend() {
    let sqlite: &[&str] = if cfg!(feature = "sqlite") {
        &["--backend", "sqlite"]
    } else {
        &[]
    };
    let arguments = [
        &["--rounds", "1", "--backend", "ring", "--backend", "hawkular"][..],
        sqlite,
    ]
    .concat();
    let (document, text) = mohawk(&arguments);
    let experiment = &document["experiment"];
    let runs = experiment["as_it_was"].as_array().unwrap();
    let of = |name: &str| {
        let run = runs
            .iter()
            .find(|run| run["backend"]["name"].as_str().unwrap().starts_with(name));
        let run = run.unwrap_or_else(|| panic!("{name}: {experiment}"));
        assert_eq!(
            (&run["requests"], &run["accepted"]),
            (&1_999.into(), &999.into()),
            "{run}"
        );
        assert_eq!(
            (&run["rows"], &run["empty"]),
            (&run["rows_expected"], &run["empty_expected"])
        );
        (run["rows"].as_u64().unwrap(), run["empty"].as_u64().unwrap())
    };
    assert_eq!(of("ring:"), (998, 0));
    assert_eq!(of("memory: as Hawkular"), (998, 1));
    if cfg!(feature = "sqlite") {
        assert_eq!(of("sqlite:"), (1_997, 0));
        assert!(text.contains("1,997"), "{text}");
    }
    // The client and the endpoint are apart, and both were seen.
    for run in runs {
        let roles: Vec<&str> = run["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|process| process["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["client", "endpoint"]);
        assert!(run["processes"][1]["rss_bytes"].as_u64().unwrap() > 0, "{run}");
    }
    for part in [
        "Not run",
        "--mongo HOST:PORT",
        "--mohawk HOST:PORT",
        "Cassandra",
        "volatile",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn corrected_mohawks_backends_are_read_back_and_slots_lose_samples() {
    let (document, text) = mohawk(&[
        "--count",
        "20",
        "--rounds",
        "1",
        "--backend",
        "ring",
        "--backend",
        "hawkular",
    ]);
    let experiment = &document["experiment"];
    let runs = experiment["corrected"].as_array().unwrap();
    assert_eq!(runs.len(), 8, "{experiment}");
    for run in runs {
        assert_eq!(
            (&run["failed"], &run["lost"], &run["altered"]),
            (&0.into(), &0.into(), &0.into()),
            "{run}"
        );
        assert_eq!(run["verified"], run["confirmed"]);
        assert_eq!(run["backend"]["durability"], "volatile");
    }
    let confirmed = |way: &str| {
        let run = runs.iter().find(|run| run["way"] == way).unwrap();
        run["confirmed"].as_u64().unwrap()
    };
    // 20 of one gauge; one write of 5; 10 of two clients each; at most 50 writes, and 2 x 60 before.
    assert_eq!(
        (confirmed("kept"), confirmed("batches"), confirmed("concurrent")),
        (20, 5, 20)
    );
    assert!((121..=170).contains(&confirmed("open")), "{experiment}");
    let kept: Vec<(&Value, &Value)> = experiment["feeds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|feed| (&feed["confirmed"], &feed["kept"]))
        .collect();
    assert!(
        kept.contains(&(&300.into(), &10.into())) && kept.contains(&(&300.into(), &300.into())),
        "{kept:?}"
    );
    assert!(text.contains("10 of 300 (3.3 %)"), "{text}");
    // Another number than the original's has no ratio of times.
    let rows = experiment["rows"].as_array().unwrap();
    let time = rows
        .iter()
        .find(|row| row["what"] == "ring:, 20 writes and 20 reads")
        .unwrap();
    assert!(time["published"] == 2.011 && time["ratio"].is_null(), "{time}");
}

#[test]
fn what_mohawk_cannot_do_is_refused_or_said() {
    for (arguments, words) in [
        (&["--backend", "redis"][..], "known are ring, sqlite, hawkular"),
        (
            &["--backend", "ring", "--backend", "ring"],
            "each backend takes part once",
        ),
        (&["--mongo", "mongodb://h"], "HOST:PORT"),
        (&["--mohawk", "user@h:1"], "HOST:PORT"),
        (&["--count", "1"], "2..=10000"),
    ] {
        refuses("mohawk", arguments, words);
    }
}

/// A Mohawk that somebody started: our own endpoint takes its part. One that is not there is said,
/// and the rest is measured.
#[test]
fn a_mohawk_that_runs_already_takes_part_and_one_that_does_not_is_a_failure() {
    let listen = "hawkular+http://127.0.0.1:0";
    let arguments = ["ingest", "--quiet", "--format", "json", "--duration", "120s"];
    let (mut child, address) = listening(tsb(&arguments).args(["--listen", listen, "--store", "ring:"]));
    let (document, text) = mohawk(&[
        "--count",
        "20",
        "--rounds",
        "2",
        "--backend",
        "ring",
        "--mohawk",
        &address,
    ]);
    let runs = document["experiment"]["as_it_was"].as_array().unwrap();
    let started: Vec<&Value> = runs
        .iter()
        .filter(|run| run["backend"]["name"] == format!("mohawk at {address}"))
        .collect();
    // A tenant of its own for each round, so the second finds nothing of the first.
    assert_eq!(started.len(), 2, "{runs:?}");
    for run in started {
        assert_eq!(
            (&run["rows"], &run["backend"]["status"]),
            (&19.into(), &"Mohawk 0.15.4, Memory".into())
        );
        assert_eq!(
            run["processes"][1]["role"], "endpoint",
            "its process is found by its port"
        );
    }
    assert!(!text.contains("--mohawk HOST:PORT"), "{text}");
    child.kill().unwrap();
    child.wait().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let small = [
        "--count",
        "20",
        "--requests",
        "10",
        "--seconds",
        "1",
        "--rounds",
        "1",
        "--backend",
        "ring",
    ];
    let output = tsb(&["reproduce", "mohawk", "--quick"])
        .args(small)
        .args(["--mohawk", &address, "--dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(
        text.contains(&format!("as it was, mohawk at {address}, round 1 of 1: "))
            && text.contains("ring:, rows returned")
    );
}

#[test]
fn an_interrupted_experiment_of_mohawk_leaves_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = tsb(&[
        "reproduce",
        "mohawk",
        "--backend",
        "ring",
        "--rounds",
        "1",
        "--seconds",
        "60",
    ])
    .args(["--format", "json", "--count", "20", "--dir"])
    .arg(folder.path())
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap()).lines();
    // The corrected part has begun, so the run as it was is over.
    let begun = progress
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line.starts_with("corrected"));
    assert!(begun.is_some());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["experiment"]["interrupted"], true);
    assert_eq!(result["experiment"]["as_it_was"][0]["rows"], 19, "{result}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
