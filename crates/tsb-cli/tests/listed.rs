//! The series of a server, listed by `tsb query` without making or changing anything.
//!
//! `cargo xtask ci --only servers` names the servers; without it the tests are listed as
//! ignored. (Issue 14.)

use std::process::{ExitCode, Output};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

#[path = "support/program.rs"]
mod program;

use program::tsb;

const SERIES: usize = 60;

/// A kind of server: its feature, the variable that names one, and options.
const SERVERS: [(&str, bool, &str, &str); 8] = [
    ("mongo", cfg!(feature = "mongo"), "TSB_TEST_MONGO", "layout=ticks"),
    ("etcd", cfg!(feature = "etcd"), "TSB_TEST_ETCD", "operations=128"),
    (
        "postgres",
        cfg!(feature = "postgres"),
        "TSB_TEST_POSTGRES",
        "write=copy",
    ),
    (
        "clickhouse",
        cfg!(feature = "clickhouse"),
        "TSB_TEST_CLICKHOUSE",
        "max_series=100",
    ),
    (
        "questdb",
        cfg!(feature = "questdb"),
        "TSB_TEST_QUESTDB",
        "max_series=100",
    ),
    (
        "cassandra",
        cfg!(feature = "cassandra"),
        "TSB_TEST_CASSANDRA",
        "max_series=100",
    ),
    (
        "kairosdb",
        cfg!(feature = "kairosdb"),
        "TSB_TEST_KAIROSDB",
        "max_series=100",
    ),
    ("rrdcached", true, "TSB_TEST_RRDCACHED", "step=1s"),
];

fn main() -> ExitCode {
    let trials = SERVERS.map(|(server, is_built, variable, options)| {
        Trial::ignorable_test(format!("{server}::series_are_listed"), move || {
            if !is_built {
                return Ok(Completion::ignored_with(format!("the feature {server} is not built")));
            }
            match std::env::var(variable) {
                Ok(spec) => listed(&place(&spec, options)?).map(|()| Completion::Completed),
                Err(_) => Ok(Completion::ignored_with(format!(
                    "{variable} is not set; cargo xtask ci --only servers starts what it names"
                ))),
            }
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

/// A place of its own at a server.
fn place(spec: &str, options: &str) -> Result<String, Failed> {
    // Cassandra takes no hyphen.
    let place = format!("listed_{}", std::process::id());
    let address = spec.split_once('?').map_or(spec, |(address, _)| address);
    if address.starts_with("rrdcached:") {
        return Ok(format!("{address}?prefix={place}-&{options}"));
    }
    if address.starts_with("postgres:") {
        return Ok(format!("{address}?schema={place}&{options}"));
    }
    let (scheme, rest) = address.split_once("://").ok_or("the spec has no host")?;
    let hosts = rest.split('/').next().unwrap_or(rest);
    Ok(format!("{scheme}://{hosts}/{place}?{options}"))
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// The lines of a query that ends with a code, and all that it says.
fn query(spec: &str, more: &[&str], code: i32) -> Result<(Vec<String>, String), Failed> {
    let output = tsb(&["query", spec]).args(more).output()?;
    let said = words(&output);
    if output.status.code() != Some(code) {
        return Err(format!("{more:?} ends with {:?}, and not {code}: {said}", output.status).into());
    }
    let lines = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect();
    Ok((lines, said))
}

fn listed(spec: &str) -> Result<(), Failed> {
    // Where no run has been, nothing is made: the second time it is still so.
    for _ in 0..2 {
        if spec.starts_with("rrdcached:") {
            let (none, _) = query(spec, &["--list"], 0)?;
            assert_eq!(none, [""; 0]);
        } else {
            for more in [&["--list"][..], &["--series", "cpu"]] {
                let (_, said) = query(spec, more, 2)?;
                assert!(said.contains("nothing of a run"), "{said}");
            }
        }
    }
    let run = [
        "run --quiet --no-calibrate --no-verify --transport inproc --rate max --fleet-time 5s --series",
        &SERIES.to_string(),
    ];
    let run = run.join(" ");
    let run: Vec<&str> = run.split(' ').chain(["--store", spec]).collect();
    let filled = tsb(&run).output()?;
    assert_eq!(filled.status.code(), Some(0), "{}", words(&filled));
    let (all, _) = query(spec, &["--list"], 0)?;
    assert_eq!(all.len(), SERIES, "{all:?}");
    assert!(all.is_sorted());
    // Each is read by the name that is printed, and a wrong name is no new series.
    let (rows, _) = query(spec, &["--series", &all[0]], 0)?;
    assert!(rows.len() > 2, "{rows:?}");
    let wrong = all[0].replacen(|c: char| c.is_ascii_alphabetic(), "Q", 1);
    let (_, said) = query(spec, &["--series", &wrong], 2)?;
    assert!(said.contains("did you mean"), "{said}");
    let (some, _) = query(spec, &["--list", &format!("*{}*", &all[0][1..])], 0)?;
    assert_eq!(some, [all[0].clone()]);
    assert_eq!(query(spec, &["--list"], 0)?.0, all);
    Ok(())
}
