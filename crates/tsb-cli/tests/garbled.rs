//! A whole run into a server whose words arrive garbled: it ends in time, with a report, and
//! with the verdict that follows from what could be read back.
//!
//! `cargo xtask ci --only servers` names the servers; without it the tests are listed as
//! ignored.

use std::process::{Child, ExitCode, Stdio};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::Value;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

#[path = "support/program.rs"]
mod program;
#[path = "../../tsb-run/tests/servers/relay.rs"]
mod relay;

use program::tsb;
use relay::{Relay, RelayMode};

/// How long a run sends, and how much later it may end: every request has a second.
const DURATION_S: u64 = 6;
const PATIENCE_S: u64 = 60;

/// A test of a server with this spec, and these options added.
type Test = fn(&str, &str) -> Result<(), Failed>;

fn main() -> ExitCode {
    let servers = [
        ("mongo", cfg!(feature = "mongo"), "TSB_TEST_MONGO", "layout=ticks&j=1"),
        ("etcd", cfg!(feature = "etcd"), "TSB_TEST_ETCD", "operations=128"),
        (
            "postgres",
            cfg!(feature = "postgres"),
            "TSB_TEST_POSTGRES",
            "write=copy",
        ),
        (
            "prometheus",
            cfg!(feature = "prometheus"),
            "TSB_TEST_PROMETHEUS",
            "max_series=1000",
        ),
    ];
    let kinds: [(&str, Test); 2] = [("for_two_seconds", for_two_seconds), ("to_the_end", to_the_end)];
    let mut trials = Vec::new();
    for (server, is_built, variable, options) in servers {
        for (kind, test) in kinds {
            trials.push(Trial::ignorable_test(format!("{server}::garbled_{kind}"), move || {
                if !is_built {
                    return Ok(Completion::ignored_with(format!("the feature {server} is not built")));
                }
                match std::env::var(variable) {
                    Ok(spec) => test(&spec, options).map(|()| Completion::Completed),
                    Err(_) => Ok(Completion::ignored_with(format!(
                        "{variable} is not set; cargo xtask ci --only servers starts what it names"
                    ))),
                }
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A relay in front of a server, and the spec of a place of its own behind it.
fn behind_relay(spec: &str, name: &str, options: &str) -> Result<(Relay, String), Failed> {
    let address = spec.split_once('?').map_or(spec, |(address, _)| address);
    let (scheme, hosts) = address.split_once("://").ok_or("the spec has no host")?;
    let (_, port) = hosts
        .split('/')
        .next()
        .and_then(|host| host.rsplit_once(':'))
        .ok_or("the spec has no port")?;
    let relay = Relay::to(port.parse()?)?;
    let place = format!("garbled-{name}-{}", std::process::id());
    let port = relay.port();
    let place = match hosts.rsplit_once('@') {
        Some((user, rest)) => {
            let database = rest.rsplit_once('/').map_or(rest, |(_, database)| database);
            format!("{user}@127.0.0.1:{port}/{database}?schema={place}&")
        }
        None => format!("127.0.0.1:{port}/{place}?"),
    };
    let spec = format!("{scheme}://{place}drop=1&timeout=1s&{options}");
    Ok((relay, spec))
}

fn run(spec: &str) -> Result<Child, Failed> {
    let mut command = tsb(&[
        "run",
        "--store",
        spec,
        "--transport",
        "inproc",
        "--series",
        "100",
        "--rate",
        "1000",
    ]);
    command.args([
        "--duration",
        &format!("{DURATION_S}s"),
        "--no-calibrate",
        "--quiet",
        "--format",
        "json",
    ]);
    Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

/// The report of a run that has to end by itself.
fn report(child: Child, clock: &MonotonicClock) -> Result<(Option<i32>, Value), Failed> {
    let output = child.wait_with_output()?;
    let took_s = clock.now() / SECOND_NS;
    if took_s > DURATION_S + PATIENCE_S {
        return Err(format!("the run took {took_s} s").into());
    }
    let text = String::from_utf8(output.stdout)?;
    let report = serde_json::from_str(&text).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("no report ({error}), exit {:?}: {said}", output.status.code())
    })?;
    Ok((output.status.code(), report))
}

fn ensure(holds: bool, what: &str, report: &Value) -> Result<(), Failed> {
    let shown = || {
        format!(
            "{what}: {:#}\n{:#}\n{:#}",
            report["verdict"], report["ledger"], report["notes"]
        )
    };
    if holds { Ok(()) } else { Err(shown().into()) }
}

/// In the middle: what was under way is unknown, and settled when everything is read back.
fn for_two_seconds(spec: &str, options: &str) -> Result<(), Failed> {
    let (relay, spec) = behind_relay(spec, "middle", options)?;
    let clock = MonotonicClock::new();
    let child = run(&spec)?;
    clock.wait_until(2 * SECOND_NS);
    relay.behave(RelayMode::Garbage);
    clock.wait_until(4 * SECOND_NS);
    relay.behave(RelayMode::Honest);
    let (code, report) = report(child, &clock)?;
    let ledger = &report["ledger"];
    let count = |name: &str| ledger[name].as_u64().unwrap_or_default();
    ensure(ledger["balanced"] == true, "it does not balance", &report)?;
    ensure(count("unknown") > 0, "nobody noticed", &report)?;
    ensure(
        count("accepted") > 0 && count("verified") == count("accepted") && count("lost") == 0,
        "not everything is verified",
        &report,
    )?;
    let status = report["verdict"]["status"].as_str().unwrap_or_default();
    let is_sound = [
        "VALID",
        "NOISY",
        "STORE-LIMITED",
        "TRANSPORT-LIMITED",
        "GENERATOR-LIMITED",
    ]
    .contains(&status);
    ensure(is_sound && matches!(code, Some(0 | 3)), "it is not sound", &report)
}

/// From two seconds on: there is a report of what was confirmed, and it is unverified.
fn to_the_end(spec: &str, options: &str) -> Result<(), Failed> {
    let (relay, spec) = behind_relay(spec, "end", options)?;
    let clock = MonotonicClock::new();
    let child = run(&spec)?;
    clock.wait_until(2 * SECOND_NS);
    relay.behave(RelayMode::Garbage);
    let (code, report) = report(child, &clock)?;
    let count = |name: &str| report["ledger"][name].as_u64().unwrap_or_default();
    ensure(
        count("confirmed") > 0 && count("unknown") > 0,
        "nothing is known of it",
        &report,
    )?;
    ensure(
        report["verdict"]["status"] == "UNVERIFIED",
        "it has another verdict",
        &report,
    )?;
    ensure(code == Some(0), &format!("it ends with {code:?}"), &report)
}
