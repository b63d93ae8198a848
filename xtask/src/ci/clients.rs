//! Tests `tsb ingest` with third-party clients: installs them, then runs the tests that need
//! them.

use std::process::Command;

use anyhow::Result;

use super::{Outcome, features, packages, rrdtool_tests, tests_run};
use crate::golang::{self, INFLUX_STRESS, TSBS};
use crate::shell::{cargo, has, run, succeeds};

/// From the Python package index, as they were when the tests were written.
const PYTHON: &[&str] = &[
    "influxdb==5.3.2",
    "statsd==4.0.1",
    "potsdb==1.0.3",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-proto-http==1.45.2",
];

/// Every client that can be installed here must be understood; none is skipped silently.
pub(super) fn check() -> Result<Outcome> {
    let missing = packages::missing_for_clients();
    if !missing.is_empty() {
        return Ok(Outcome::NotRun(format!("install {}", missing.join(", "))));
    }
    if !has("go", "version") {
        return Ok(Outcome::NotRun("there is no Go to build TSBS with".to_owned()));
    }
    golang::program(&TSBS, "tsbs_generate_data")?;
    golang::program(&TSBS, "tsbs_load_influx")?;
    golang::program(&INFLUX_STRESS, "influx-stress")?;
    install_python()?;
    let rrdtool = rrdtool_tests::fetch(&golang::folder()?.join("rrdtool"));
    // As the other tests are built, so that nothing is built again.
    let mut test = cargo(&["test", "--workspace", "--test", "clients"]);
    test.args(features::every()?).env("TSB_CLIENTS", golang::folder()?);
    let count = tests_run::counted(&mut test)?;
    let left_out = rrdtool
        .err()
        .map(|why| format!("; rrdtool's own tests did not run: {why:#}"));
    Ok(Outcome::Passed(count.note() + &left_out.unwrap_or_default()))
}

fn install_python() -> Result<()> {
    let venv = golang::folder()?.join("venv");
    let python = venv.join("bin/python");
    let probe = "import influxdb, statsd, potsdb, opentelemetry.exporter.otlp.proto.http.metric_exporter";
    if succeeds(Command::new(&python).args(["-c", probe])) {
        return Ok(());
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    run(Command::new(python)
        .args(["-m", "pip", "--quiet", "install"])
        .args(PYTHON))
}
