//! Every command's JSON is a document of the report model: it is read into its type and written
//! again without a difference, and it says which program wrote it, on which machine, what was
//! asked for, and the seed of what was generated.

use std::fmt::Debug;
use std::path::Path;
use std::process::Child;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tsb_core::report::canary::CanaryReport;
use tsb_core::report::conformance::{CheckResult, ConformanceReport};
use tsb_core::report::examination::Examination;
use tsb_core::report::experiment::rrdcached::Reproduction;
use tsb_core::report::experiment::{dalmatiner, hm9000, mohawk, records};
use tsb_core::report::listing::Listing;
use tsb_core::report::{Comparison, Run, SCHEMA_VERSION, Verification};
use tsb_run::Plan;
use tsb_run::ends::{EmitReport, FilesReport, IngestReport};

use crate::ingest::listening;
use crate::program::tsb;

/// The fields of a run's report that `Run` does not have.
const BESIDE_A_RUN: [&str; 2] = ["schema_version", "tsb_version"];

/// What the program prints on stdout with these arguments. A run on a busy machine is not valid.
fn printed(arguments: &[&str]) -> Vec<u8> {
    let output = tsb(arguments).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    let is_fine = matches!(
        (arguments[0], output.status.code()),
        (_, Some(0)) | ("run" | "compare", Some(3))
    );
    assert!(is_fine, "{arguments:?}: {:?}, {words}", output.status);
    output.stdout
}

fn ended(child: Child) -> Vec<u8> {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    output.stdout
}

/// Reads a document of type `T`, which has to hold all of it.
fn read<T: DeserializeOwned + Serialize + Debug>(json: &[u8]) -> (T, Value) {
    let document: Value = serde_json::from_slice(json).unwrap();
    let typed: T = serde_json::from_slice(json).unwrap();
    let mut again = serde_json::to_value(&typed).unwrap();
    for name in BESIDE_A_RUN {
        if again.get(name).is_none() {
            again[name] = document[name].clone();
        }
    }
    assert_eq!(again, document);
    assert_eq!(document["schema_version"], SCHEMA_VERSION);
    assert_eq!(document["tsb_version"], env!("CARGO_PKG_VERSION"));
    assert!(document["machine"]["cores"].as_u64() >= Some(1), "{document:#}");
    (typed, document)
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_canary_is_a_document() {
    let canary = [
        "canary",
        "--store",
        "memory:",
        "--interval",
        "1s",
        "--duration",
        "2s",
        "--format",
        "json",
    ];
    let (canary, _) = read::<CanaryReport>(&printed(&canary));
    assert_eq!((canary.store.as_str(), canary.series), ("memory:", 10));
}

#[test]
fn a_run_and_its_verification_are_documents() {
    let folder = tempfile::tempdir().unwrap();
    let (report, store) = (path(folder.path(), "r.json"), path(folder.path(), "x.db"));
    let store = format!("sqlite:{store}");
    let load = ["--series", "54", "--rate", "2k", "--duration", "200ms", "--seed", "7"];
    let run = ["run", "--quiet", "--no-calibrate", "--format", "json"];
    let run = [&run[..], &["--store", &store, "--out", &report], &load].concat();
    let (run, _) = read::<Run>(&printed(&run));
    assert_eq!(run.seed, 7);
    assert!(!run.is_of_strangers());
    assert_eq!(run.plan["workload"]["seed"], 7);
    let (verification, _) = read::<Verification>(&printed(&["verify", &report, "--format", "json"]));
    let store = &verification.stores[0];
    assert_eq!((store.seed, store.plan.as_ref()), (Some(7), Some(&run.plan)));
    let compare = [
        "compare",
        &report,
        &report,
        "--fail-unless",
        "lost=0",
        "--format",
        "json",
    ];
    let (comparison, _) = read::<Comparison>(&printed(&compare));
    assert_eq!((comparison.plan.a, comparison.plan.b), (report.clone(), report));
    assert!(comparison.stores[0].unequal.is_empty() && comparison.thresholds[0].threshold.is_passed());
}

#[test]
fn both_ends_of_a_wire_report_in_documents() {
    let listen = "tsb+tcp://127.0.0.1:0";
    let arguments = ["ingest", "--quiet", "--once", "--duration", "60s", "--format", "json"];
    let mut command = tsb(&arguments);
    command.args(["--listen", listen, "--max-series", "1000", "--store-timeout", "5s"]);
    let (listener, address) = listening(&mut command);
    let to = format!("tsb+tcp://{address}");
    let load = ["--series", "54", "--rate", "2k", "--duration", "200ms", "--seed", "7"];
    let emit = [&["emit", "--quiet", "--format", "json", "--to", &to][..], &load].concat();
    let (sent, document) = read::<EmitReport>(&printed(&emit));
    assert_eq!((sent.seed, sent.plan.workload.seed), (7, 7));
    assert_eq!(
        serde_json::from_value::<Plan>(document["plan"].clone()).unwrap(),
        sent.plan
    );
    let received = ended(listener);
    let (received_report, document) = read::<IngestReport>(&received);
    let plan = received_report.plan;
    assert_eq!(
        (plan.listen, plan.store),
        (vec![listen.to_owned()], "memory:".to_owned())
    );
    assert_eq!((plan.duration_ns, plan.once), (Some(60_000_000_000), true));
    assert_eq!((plan.max_series, plan.max_connections), (Some(1_000), 1_024));
    assert_eq!(plan.store_timeout_ns, Some(5_000_000_000));
    assert_eq!(document.get("seed"), None);
    // It is a report, but no plan of a run, and nothing that can be verified.
    assert!(serde_json::from_slice::<Run>(&received).unwrap().is_of_strangers());
    let folder = tempfile::tempdir().unwrap();
    let report = path(folder.path(), "ingest.json");
    std::fs::write(&report, &received).unwrap();
    printed(&["report", &report]);
    for arguments in [["verify", report.as_str()].as_slice(), &["run", "--plan", &report]] {
        assert_eq!(tsb(arguments).output().unwrap().status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_listener_for_files_reports_in_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let listen = format!("rrdcached+unix:{}", path(folder.path(), "socket"));
    let store = format!("write-cache+rrd:{}", path(folder.path(), "base"));
    let arguments = ["ingest", "--quiet", "--duration", "100ms", "--format", "json"];
    let (report, document) = read::<FilesReport>(&printed(
        &[&arguments[..], &["--listen", &listen, "--store", &store]].concat(),
    ));
    assert_eq!((report.plan.listen, report.plan.store), (vec![listen], store));
    assert_eq!((report.plan.max_series, report.plan.max_name_bytes), (None, None));
    assert!(report.cached.is_some());
    assert_eq!(document.get("seed"), None);
}

/// The arguments of a quick experiment as JSON, in a folder.
fn quick<'a>(experiment: &'a str, dir: &'a str) -> [&'a str; 8] {
    let [command, speed, talk] = ["reproduce", "--quick", "--quiet"];
    [command, experiment, speed, talk, "--format", "json", "--dir", dir]
}

#[test]
fn an_experiment_is_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let arguments = quick("rrdcached", dir);
    let (result, document) = read::<Reproduction>(&printed(&arguments));
    // The smallest published size, so that there are rows.
    assert_eq!((result.plan.asked.files, result.plan.is_quick), (vec![1_000], true));
    assert_eq!(
        (result.plan.experiment, result.plan.asked.dir),
        (result.experiment.name, dir.to_owned())
    );
    // The values of its files are a function of the pass and the file: nothing is drawn.
    assert_eq!(document.get("seed"), None);
    let rows = &result.experiment.rows;
    assert!(rows.len() >= 9, "{rows:?}");
    for row in rows {
        assert_eq!(row.unit, "s");
        let ratio = row
            .measured
            .zip(row.published)
            .map(|(measured, published)| measured / published);
        assert!(ratio.is_some() && row.ratio == ratio, "{row:?}");
        assert!(!row.what.is_empty() && !row.why.is_empty());
    }
}

#[test]
fn the_experiment_of_mohawk_is_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, page) = (path(folder.path(), "."), path(folder.path(), "page.html"));
    let arguments = quick("mohawk", &dir);
    let small = [
        "--backend",
        "ring",
        "--rounds",
        "1",
        "--count",
        "10",
        "--requests",
        "10",
    ];
    let short = ["--seconds", "1", "--rate", "50", "--seed", "7", "--html", &page];
    let (result, document) = read::<mohawk::Reproduction>(&printed(&[&arguments[..], &small, &short].concat()));
    assert_eq!((result.plan.asked.count, result.plan.asked.seed), (10, 7));
    assert_eq!(document["plan"]["backends"], serde_json::json!(["ring:"]));
    let details = &result.experiment.details;
    assert!(details.is_right() && details.failures.is_empty(), "{details:?}");
    assert_eq!(
        (details.as_it_was.len(), details.corrected.len(), details.feeds.len()),
        (1, 4, 1)
    );
    let ways: Vec<&str> = details.ways.iter().map(|summary| summary.way.as_str()).collect();
    assert_eq!(ways, ["kept", "batches", "concurrent", "open"]);
    assert!(
        result
            .experiment
            .rows
            .iter()
            .any(|row| row.published == Some(128.783) && row.measured.is_none())
    );
    // What it made is gone, and its page is there.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(std::fs::read_to_string(&page).unwrap().ends_with("</html>\n"));
}

#[test]
fn the_experiment_of_dalmatiner_is_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, page) = (path(folder.path(), "."), path(folder.path(), "page.html"));
    let arguments = quick("dalmatiner", &dir);
    let small = [
        "--target",
        "mstore, round 2",
        "--target",
        "memory in process",
        "--series",
        "100",
    ];
    let short = [
        "--seconds",
        "1",
        "--peak-seconds",
        "1",
        "--history-series",
        "8",
        "--seed",
        "7",
        "--html",
        &page,
    ];
    let (result, document) = read::<dalmatiner::Reproduction>(&printed(&[&arguments[..], &small, &short].concat()));
    assert_eq!((&result.plan.asked.series, result.plan.asked.seed), (&vec![100], 7));
    assert_eq!(
        document["plan"]["targets"],
        serde_json::json!(["mstore, round 2", "memory in process"])
    );
    let details = &result.experiment.details;
    assert!(details.is_right() && details.failures.is_empty(), "{details:?}");
    // The feed of both; the highest rate of one if the time of a quick run is enough.
    assert!(details.feeds.len() >= 2, "{:?}", details.feeds);
    assert!(
        details.feeds.iter().all(|run| run.verified == run.sent && run.sent > 0),
        "{:?}",
        details.feeds
    );
    let [size] = &details.sizes[..] else {
        panic!("{:?}", details.sizes)
    };
    assert_eq!((size.samples, size.nominal_bits), (8 * 86_400, Some(64.0)));
    let [kill] = &details.kills[..] else {
        panic!("{:?}", details.kills)
    };
    // What waited in the cache of half an hour is gone, but for the series that was asked for.
    assert!(
        kill.taken == 150_000 && kill.lost > 100_000 && kill.lost < kill.taken,
        "{kill:?}"
    );
    assert!(
        result
            .experiment
            .rows
            .iter()
            .any(|row| row.published == Some(80_514.0) && row.measured.is_none())
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(std::fs::read_to_string(&page).unwrap().ends_with("</html>\n"));
}

#[test]
fn the_experiment_of_hm9000_is_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, page) = (path(folder.path(), "."), path(folder.path(), "page.html"));
    let arguments = quick("hm9000", &dir);
    let small = [
        "--store", "memory:", "--store", "sqlite:", "--apps", "300", "--rounds", "1",
    ];
    let short = ["--seconds", "1", "--seconds-as-it-was", "1", "--html", &page];
    let (result, document) = read::<hm9000::Reproduction>(&printed(&[&arguments[..], &small, &short].concat()));
    assert_eq!((result.plan.asked.apps, result.plan.asked.seed), (vec![300], 1));
    assert_eq!(document["plan"]["stores"], serde_json::json!(["memory:", "sqlite:"]));
    let details = &result.experiment.details;
    assert_eq!(
        (details.runs.len(), details.failures.len()),
        (2, 0),
        "{:?}",
        details.failures
    );
    assert!(
        details
            .runs
            .iter()
            .all(|run| run.keys_acknowledged == run.keys_due && run.lost == 0)
    );
    let stores: Vec<&str> = details.curve.iter().map(|point| point.store.as_str()).collect();
    assert_eq!(stores, ["memory:", "sqlite:"]);
    // In virtual time, so always the same: the document is wrong about 30,500 apps.
    let falsely = details
        .as_it_was
        .iter()
        .find(|run| run.is_virtual && run.apps == 30_500)
        .unwrap();
    assert!(
        falsely.fresh_at_seconds.is_some() && falsely.missing_max > 0,
        "{falsely:?}"
    );
    assert!(result.experiment.rows.iter().any(|row| row.published == Some(30_000.0)));
    // What it made is gone, and its page is there.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(std::fs::read_to_string(&page).unwrap().ends_with("</html>\n"));
}

#[test]
fn the_experiment_of_records_is_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, page) = (path(folder.path(), "."), path(folder.path(), "page.html"));
    let arguments = quick("records", &dir);
    let small = [
        "--in-flight",
        "1,5",
        "--sizes",
        "128",
        "--records",
        "64",
        "--apps",
        "30",
    ];
    let few = ["--samples", "2", "--seed", "7", "--html", &page];
    let (result, document) = read::<records::Reproduction>(&printed(&[&arguments[..], &small, &few].concat()));
    assert_eq!((result.plan.asked.samples, result.plan.asked.seed), (2, 7));
    assert_eq!(document["plan"]["stores"], serde_json::json!(["memory:", "sqlite:"]));
    let details = &result.experiment.details;
    assert!(
        details.is_right() && details.failures.is_empty(),
        "{:?}",
        details.failures
    );
    let counts = (details.samples.len(), details.app_samples.len());
    assert_eq!((counts, details.cells.len(), details.app_cells.len()), ((8, 4), 4, 2));
    assert!(details.samples.iter().all(|sample| sample.read.found == 64));
    let levels: Vec<&str> = details.stores.iter().map(|store| store.durability.as_str()).collect();
    assert_eq!(levels, ["volatile", "synced"]);
    // A mean, a sigma and an interval, in one object.
    let rate = &document["experiment"]["cells"][0]["write"]["records_per_second"];
    assert!(
        ["mean", "sigma", "low", "high"]
            .iter()
            .all(|name| rate[name].is_number()),
        "{rate}"
    );
    assert!(result.experiment.rows.iter().all(|row| row.published.is_none()));
    assert!(details.absent.iter().any(|absent| absent.starts_with("ZooKeeper")));
    // What it made is gone, and its page is there.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(std::fs::read_to_string(&page).unwrap().ends_with("</html>\n"));
}

#[test]
fn the_checks_of_a_store_are_a_document() {
    let arguments = [
        "conformance",
        "--only",
        "c10_",
        "--store",
        "memory:",
        "--format",
        "json",
    ];
    let (checks, document) = read::<ConformanceReport>(&printed(&arguments));
    assert_eq!((checks.store.as_str(), checks.count(CheckResult::Fail)), ("memory:", 0));
    assert!(checks.count(CheckResult::Pass) >= 3, "{:?}", checks.checks);
    assert!(checks.checks.iter().all(|check| check.clause == 10));
    assert_eq!(document.get("seed"), None);
}

#[test]
fn an_examination_and_the_list_of_stores_are_documents() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let (examination, _) = read::<Examination>(&printed(&["doctor", "--format", "json", "--dir", dir]));
    assert_eq!(examination.plan.dir, dir);
    assert!(examination.findings.len() > 5);
    let (listing, document) = read::<Listing>(&printed(&["stores", "--format", "json"]));
    let named = |scheme: &str| listing.stores.iter().find(|store| store.scheme == scheme).unwrap();
    assert!(named("throttle").wrapper && !named("throttle").takes_path);
    assert_eq!(named("sqlite").feature.as_deref(), Some("sqlite"));
    // Nothing is asked of it.
    assert_eq!((document.get("plan"), document.get("seed")), (None, None));
}
