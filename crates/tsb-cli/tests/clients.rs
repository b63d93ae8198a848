//! Clients that nobody here wrote, each into `tsb ingest`: what they say they sent must be
//! there, sample for sample.
//!
//! They are installed by `cargo xtask ci --only clients`, which runs these tests; without
//! them (`TSB_CLIENTS` not set) each is listed as ignored with what it needs.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

#[path = "clients/collectd.rs"]
mod collectd;
#[path = "clients/ingest.rs"]
mod ingest;
#[path = "clients/otlp.rs"]
mod otlp;
#[path = "support/program.rs"]
mod program;
#[path = "clients/prometheus.rs"]
mod prometheus;
#[path = "clients/rrdtool.rs"]
mod rrdtool;
#[path = "rrdcached/server.rs"]
#[expect(dead_code, reason = "killing it is another test's")]
mod server;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ingest::{Ingest, free_port};
use libtest_mimic::{Arguments, Trial};

const RRDTOOLS_TESTS: &str = "rrdtools_own_tests_pass_as_through_rrdcached";

fn main() -> std::process::ExitCode {
    let clients: &[(&str, &str, fn())] = &[
        ("tsbs_loads_every_metric", "needs TSBS", tsbs_loads_every_metric),
        (
            "influx_stress_writes_every_point",
            "needs influx-stress",
            influx_stress_writes_every_point,
        ),
        (
            "the_influx_client_of_python_is_understood",
            "needs the Python client of InfluxDB",
            the_influx_client_of_python_is_understood,
        ),
        (
            "a_statsd_client_is_understood",
            "needs a StatsD client",
            a_statsd_client_is_understood,
        ),
        (
            "an_opentsdb_client_is_understood",
            "needs potsdb, a client of OpenTSDB",
            an_opentsdb_client_is_understood,
        ),
        (
            "a_carbon_relay_passes_on_what_it_gets_as_lines_and_as_pickles",
            "needs carbon's relay",
            a_carbon_relay_passes_on_what_it_gets_as_lines_and_as_pickles,
        ),
        (
            "collectd_writes_to_graphite",
            "needs collectd",
            collectd::collectd_writes_to_graphite,
        ),
        (
            "collectd_writes_to_rrdcached",
            "needs collectd",
            collectd::collectd_writes_to_rrdcached,
        ),
        (
            "prometheus_writes_what_it_has_scraped",
            "needs Prometheus",
            prometheus::prometheus_writes_what_it_has_scraped,
        ),
        (
            "the_otlp_exporter_of_python_is_understood",
            "needs OpenTelemetry's exporter for Python",
            otlp::the_otlp_exporter_of_python_is_understood,
        ),
        (
            RRDTOOLS_TESTS,
            "needs rrdtool's source package",
            rrdtool::rrdtools_own_tests_pass_as_through_rrdcached,
        ),
    ];
    let is_bare = std::env::var_os("TSB_CLIENTS").is_none();
    let trial = |(name, needs, run): &(&str, &str, fn())| {
        let run = *run;
        let trial = Trial::test(*name, move || {
            run();
            Ok(())
        });
        let is_ignored = is_bare || (*name == RRDTOOLS_TESTS && rrdtool::source().is_none());
        trial.with_kind(*needs).with_ignored_flag(is_ignored)
    };
    let trials = clients.iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Where xtask has put what is not a package of the system.
fn installed(name: &str) -> PathBuf {
    let folder = std::env::var_os("TSB_CLIENTS");
    let folder = folder.unwrap_or_else(|| panic!("TSB_CLIENTS is what cargo xtask ci --only clients fills"));
    Path::new(&folder).join(name)
}

/// Runs a client to its end, and returns what it printed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    said + &errors
}

fn python(script: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(installed("venv/bin/python"));
    output(command.args(["-c", script]).args(arguments))
}

/// A program that runs until it is told to stop.
struct Daemon(Child);

impl Daemon {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Daemon {
    /// Asks it to end, and waits until it has.
    fn stop(mut self) {
        let asked = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(asked.unwrap().success());
        self.0.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The number behind a word, as programs print their counts.
fn number_behind(text: &str, word: &str) -> u64 {
    let (_, behind) = text.split_once(word).unwrap_or_else(|| panic!("no {word:?} in {text}"));
    let digits: String = behind.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

fn tsbs_loads_every_metric() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.influx");
    let mut generate = Command::new(installed("tsbs_generate_data"));
    generate.args([
        "--use-case=cpu-only",
        "--seed=1",
        "--scale=20",
        "--log-interval=10s",
        "--format=influx",
    ]);
    generate.args([
        "--timestamp-start=2016-01-01T00:00:00Z",
        "--timestamp-end=2016-01-01T00:30:00Z",
    ]);
    output(generate.arg("--file").arg(&file));
    let ingest = Ingest::start("influx+http");
    let mut load = Command::new(installed("tsbs_load_influx"));
    load.args(["--workers=2", "--batch-size=500"])
        .arg(format!("--urls=http://{}", ingest.address));
    let said = output(load.arg("--file").arg(&file));
    let loaded = number_behind(&said, "loaded");
    assert_eq!(loaded, 20 * 180 * 10, "{said}");
    let stored = ingest.stop();
    assert_eq!((stored.accepted(), stored.count("malformed")), (loaded, 0));
    // Every value of some hosts, as the file has it.
    let text = fs::read_to_string(&file).unwrap();
    for host in ["host_0,", "host_13,"] {
        let mut expected = Vec::new();
        for line in text.lines().filter(|line| line.contains(&format!("hostname={host}"))) {
            let mut parts = line.split(' ');
            let (head, fields, at) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            let (name, tags) = head.split_once(',').unwrap();
            let mut tags: Vec<&str> = tags.split(',').collect();
            tags.sort_unstable();
            let tags = tags.join(",");
            for (field, value) in fields.split(',').map(|field| field.split_once('=').unwrap()) {
                let value: f64 = value.trim_end_matches('i').parse().unwrap();
                expected.push((format!("{name}{{_field={field},{tags}}}"), at.parse().unwrap(), value));
            }
        }
        assert_eq!(expected.len(), 1_800);
        stored.assert_has(&expected);
    }
}

fn influx_stress_writes_every_point() {
    for gzip in ["0", "1"] {
        let ingest = Ingest::start("influx+http");
        let host = format!("http://{}", ingest.address);
        let mut stress = Command::new(installed("influx-stress"));
        stress.args([
            "insert", "--strict", "-n", "20000", "--pps", "20000", "-b", "1000", "-s", "100",
        ]);
        let said = output(stress.args(["--gzip", gzip, "--host", &host]));
        let written = number_behind(&said, "Points Written:");
        let stored = ingest.stop();
        assert_eq!((stored.accepted(), stored.count("malformed")), (written, 0), "{said}");
        assert_eq!((written, stored.series()), (20_000, 100));
    }
}

fn the_influx_client_of_python_is_understood() {
    const SCRIPT: &str = r"
import sys
from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBClientError
host, port = sys.argv[1].rsplit(':', 1)
for gzip in (False, True):
    client = InfluxDBClient(host, int(port), database='py', gzip=gzip)
    client.ping()
    client.create_database('py')
    assert {'name': 'py'} in client.get_list_database()
    points = [{'measurement': 'a b', 'tags': {'host name': 'h %d' % (i % 7), 'zip': str(gzip)},
               'time': 1700000000000 + i, 'fields': {'value': i / 4, 'n': i}} for i in range(1000)]
    assert client.write_points(points, time_precision='ms', batch_size=300)
try:
    client.write(['good value=1 5', 'bad'], {'db': 'py'}, protocol='line')
    sys.exit('a bad line was confirmed')
except InfluxDBClientError as error:
    assert 'partial write' in str(error) and 'missing fields' in str(error), error
";
    let ingest = Ingest::start("influx+http");
    python(SCRIPT, &[&ingest.address]);
    let stored = ingest.stop();
    assert_eq!((stored.accepted(), stored.count("malformed")), (2 * 2_000 + 1, 1));
    let mut expected = vec![("good".to_owned(), 5, 1.0)];
    for zip in ["False", "True"] {
        for index in 0..1_000_i32 {
            let at = (1_700_000_000_000 + i64::from(index)) * 1_000_000;
            let tags = format!("host name=h {},zip={zip}", index % 7);
            expected.push((format!("a b{{{tags}}}"), at, f64::from(index) / 4.0));
            expected.push((format!("a b{{_field=n,{tags}}}"), at, f64::from(index)));
        }
    }
    stored.assert_has(&expected);
}

fn a_statsd_client_is_understood() {
    const SCRIPT: &str = r"
import sys
import statsd
host, port = sys.argv[1].rsplit(':', 1)
client = statsd.StatsClient(host, int(port), prefix='p')
for i in range(300):
    client.gauge('g%d' % i, i / 8)
client.timing('t', 12.5)
client.incr('c', 3)
with client.pipeline() as pipe:
    for i in range(300, 400):
        pipe.gauge('g%d' % i, i)
";
    let ingest = Ingest::start("statsd+udp");
    python(SCRIPT, &[&ingest.address]);
    ingest.await_accepted(402);
    let stored = ingest.stop();
    assert_eq!((stored.accepted(), stored.count("malformed")), (402, 0));
    let gauges = (0..400_i32).map(|index| {
        let value = if index < 300 {
            f64::from(index) / 8.0
        } else {
            f64::from(index)
        };
        (format!("p.g{index}"), value)
    });
    let others = [
        ("p.t{_type=timer}".to_owned(), 12.5),
        ("p.c{_type=counter}".to_owned(), 3.0),
    ];
    stored.assert_values(&gauges.chain(others).collect::<Vec<_>>());
}

fn an_opentsdb_client_is_understood() {
    const SCRIPT: &str = r"
import sys
import potsdb
host, port = sys.argv[1].rsplit(':', 1)
client = potsdb.Client(host, port=int(port), host_tag='h1')
for i in range(500):
    client.log('m.%d' % (i % 10), i / 4, timestamp=1700000000 + i, rack='r')
client.wait()
";
    let ingest = Ingest::start("opentsdb+tcp");
    python(SCRIPT, &[&ingest.address]);
    let stored = ingest.stop();
    assert_eq!((stored.accepted(), stored.count("malformed")), (500, 0));
    let expected = (0..500_i32).map(|index| {
        let at = (1_700_000_000 + i64::from(index)) * 1_000_000_000;
        (
            format!("m.{}{{host=h1,rack=r}}", index % 10),
            at,
            f64::from(index) / 4.0,
        )
    });
    stored.assert_has(&expected.collect::<Vec<_>>());
}

fn a_carbon_relay_passes_on_what_it_gets_as_lines_and_as_pickles() {
    for (listen, protocol) in [("pickle+tcp", "pickle"), ("graphite+tcp", "line")] {
        let ingest = Ingest::start(listen);
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().display();
        let (host, port) = ingest.address.rsplit_once(':').unwrap();
        let (lines_in, pickles_in) = (free_port(), free_port());
        let configuration = format!(
            "[relay]\nSTORAGE_DIR = {home}\nCONF_DIR = {home}\nLOG_DIR = {home}\nPID_DIR = {home}\nLOCAL_DATA_DIR = {home}\n\
             LINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {lines_in}\n\
             PICKLE_RECEIVER_INTERFACE = 127.0.0.1\nPICKLE_RECEIVER_PORT = {pickles_in}\n\
             RELAY_METHOD = consistent-hashing\nREPLICATION_FACTOR = 1\n\
             DESTINATIONS = {host}:{port}:a\nDESTINATION_PROTOCOL = {protocol}\nUSER =\n\
             CARBON_METRIC_INTERVAL = 0\nMAX_DATAPOINTS_PER_MESSAGE = 500\nMAX_QUEUE_SIZE = 100000\n"
        );
        let file = folder.path().join("carbon.conf");
        fs::write(&file, configuration).unwrap();
        fs::write(folder.path().join("storage-schemas.conf"), "").unwrap();
        let mut relay = Command::new("carbon-relay");
        relay
            .arg(format!("--config={}", file.display()))
            .args(["--nodaemon", "start"]);
        let relay = Daemon::start(&mut relay);
        let mut socket = ingest::connect(lines_in);
        let mut lines = String::new();
        let mut expected = Vec::new();
        for index in 0..5_000_i64 {
            let (name, second, value) = (
                format!("relayed.{}", index % 50),
                1_700_000_000 + index,
                index as f64 / 4.0,
            );
            writeln!(lines, "{name} {value} {second}").unwrap();
            expected.push((name, second * 1_000_000_000, value));
        }
        socket.write_all(lines.as_bytes()).unwrap();
        ingest.await_accepted(5_000);
        drop(relay);
        let stored = ingest.stop();
        assert_eq!((stored.accepted(), stored.count("malformed")), (5_000, 0), "{protocol}");
        stored.assert_has(&expected);
    }
}
