//! The fuzz targets, one entry each. A check is given a file, and returns whether it was
//! accepted.

use std::error::Error;
use std::path::Path;

use clap::Parser;
use serde_json::Value;
use tsb_cli::args::{Cli, Command};
use tsb_cli::endpoint::Endpoint;
use tsb_cli::plan::{Plan, load};
use tsb_cli::render::{csv, html, side_by_side, text};
use tsb_cli::reports;
use tsb_run::json;
use tsb_run::spec::Spec;

/// A parser of untrusted files.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Valid inputs.
    pub(crate) corpus: fn() -> Result<Vec<String>, Box<dyn Error>>,
    /// Parses a file; panics if a guarantee is violated.
    pub(crate) check: fn(&Path) -> bool,
}

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "report",
        corpus: some_reports,
        check: report,
    },
    Target {
        name: "plan",
        corpus: plans,
        check: plan,
    },
    Target {
        name: "run-file",
        corpus: run_files,
        check: plan,
    },
    Target {
        name: "spec",
        corpus: specs,
        check: spec,
    },
];

/// Lists are cut to this many elements, so that thousands of reports per second can be parsed.
const KEPT: usize = 3;

/// Reports of every version, with their lists cut short.
fn some_reports() -> Result<Vec<String>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reports");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "json") {
            let mut tree: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
            shorten(&mut tree);
            found.push(tree.to_string());
        }
    }
    found.sort();
    Ok(found)
}

fn shorten(tree: &mut Value) {
    match tree {
        Value::Array(items) => {
            items.truncate(KEPT);
            items.iter_mut().for_each(shorten);
        }
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

/// A report that is accepted can be shown in every format, and its JSON can be read again.
fn report(path: &Path) -> bool {
    let Ok(report) = reports::read(path) else { return false };
    for width in [None, Some(40)] {
        assert!(!text::report(&report, width).is_empty());
    }
    assert!(csv::report(&report).lines().count() > 0);
    let _ = html::page(&report);
    for run in &report.runs {
        let _ = side_by_side::caveats(run);
    }
    let mut bytes = Vec::new();
    if json::write(&report, &mut bytes).is_ok() {
        assert!(std::fs::write(path, &bytes).is_ok(), "the disk is full");
        let again = reports::read(path);
        assert!(
            again.is_ok(),
            "{}",
            again.err().map_or_else(String::new, |error| error.to_string())
        );
    }
    true
}

fn plans() -> Result<Vec<String>, Box<dyn Error>> {
    let default = serde_json::to_string(&Plan::default().complete().map_err(|failure| failure.to_string())?)?;
    Ok([some_reports()?, vec![default]].concat())
}

#[expect(clippy::unnecessary_wraps, reason = "all targets have a corpus of one type")]
fn run_files() -> Result<Vec<String>, Box<dyn Error>> {
    let all = [
        "store = [\"memory:\", \"sqlite:/tmp/x.db\"]\nseries = 540\nrate = \"20k\"\nduration = \"10s\"\nout = \"r.json\"\n",
        "store = \"write-cache+rrd:/tmp/x\"\nworkload = \"mix\"\ntransport = \"inproc\"\nrate = \"max\"\nfleet-time = \"2h\"\n",
        "transport = \"tcp\"\nprotocol = \"graphite\"\nschedule = \"ramp:5000..500000/60s\"\nworkers = 2\nseed = 7\n",
        "late = \"5%\"\nmissing = \"1%\"\nduplicate = \"2%\"\njitter = \"5ms\"\nquiet = true\n",
    ];
    Ok(all.map(str::to_owned).to_vec())
}

/// A plan that is accepted is complete, and is unchanged when it is written and read again.
fn plan(path: &Path) -> bool {
    let words = ["tsb".as_ref(), "run".as_ref(), "--plan".as_ref(), path.as_os_str()];
    let Ok(Cli {
        command: Some(Command::Run(args)),
        ..
    }) = Cli::try_parse_from(words)
    else {
        return false;
    };
    let Ok(plan) = load(&args.run) else { return false };
    let written = serde_json::to_value(&plan).unwrap_or_default();
    let again: Result<Plan, _> = serde_json::from_value(written.clone());
    let again = again.ok().and_then(|plan| plan.complete().ok());
    assert_eq!(again.and_then(|plan| serde_json::to_value(plan).ok()), Some(written));
    true
}

#[expect(clippy::unnecessary_wraps, reason = "all targets have a corpus of one type")]
fn specs() -> Result<Vec<String>, Box<dyn Error>> {
    let all = [
        "memory:?retention=7d&max_bytes=1GiB",
        "write-cache+rrd:/x?step=10s&archives=average:1:60,max:6:10&journal=/j&sync=group",
        "throttle+sqlite:/x.db?rate=100&layout=rows&commit=each",
        "mongo://user:word@127.0.0.1:27017,b:1/db?layout=ticks&j=1",
        "graphite+tcp://127.0.0.1:2003?idle=1s",
        "influx+http://user:word@[::1]:8086/write?db=x&precision=ms",
    ];
    Ok(all.map(str::to_owned).to_vec())
}

/// A spec that is accepted is displayed so that it parses to the same text, except for hidden
/// credentials.
fn spec(path: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(path) else {
        return false;
    };
    let read = text.parse::<Spec>();
    if let Ok(spec) = &read {
        let shown = spec.to_string();
        if let Ok(again) = shown.parse::<Spec>() {
            assert_eq!(again.to_string(), shown);
        }
    }
    let endpoint = text.parse::<Endpoint>();
    read.is_ok() || endpoint.is_ok()
}
