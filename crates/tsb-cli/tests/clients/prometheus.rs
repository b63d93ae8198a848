//! Prometheus, which scrapes itself and passes on what it got by remote write.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::ingest::{Ingest, Sample, free_port, patiently};
use crate::{Daemon, output};

/// Series of each kind: of the scrape itself, of the target, and with labels of its own.
const SERIES: [&str; 4] = ["up", "scrape_samples_scraped", "go_goroutines", "prometheus_build_info"];

pub(crate) fn prometheus_writes_what_it_has_scraped() {
    let ingest = Ingest::start("remote-write+http");
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let configuration = format!(
        "global: {{scrape_interval: 1s}}\n\
         scrape_configs: [{{job_name: self, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n\
         remote_write: [{{url: 'http://{}/api/v1/write', queue_config: {{batch_send_deadline: 1s}}}}]\n",
        ingest.address
    );
    let file = folder.path().join("prometheus.yml");
    fs::write(&file, configuration).unwrap();
    let mut server = Command::new("prometheus");
    server.arg(format!("--config.file={}", file.display()));
    server.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
    server.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let server = Daemon::start(&mut server);
    let expected: Vec<Sample> = patiently(|| {
        let found: Vec<Sample> = SERIES.iter().flat_map(|name| scraped(port, name)).collect();
        let is_enough = found.len() >= 3 * SERIES.len();
        is_enough
            .then_some(found)
            .ok_or_else(|| std::io::Error::other("it has scraped itself less than three times"))
    });
    // Before it ends, it sends what it has.
    server.stop();
    let stored = ingest.stop();
    assert_eq!((stored.count("malformed"), stored.count("rejected")), (0, 0));
    assert!(
        stored.series() > 300 && stored.accepted() > 1_000,
        "{}",
        stored.series()
    );
    stored.assert_has_among_others(&expected);
}

/// The samples of a series of the server itself, as it shows them.
fn scraped(port: u16, name: &str) -> Vec<Sample> {
    let url = format!("http://127.0.0.1:{port}/api/v1/query?query={name}%5B5m%5D");
    let mut ask = Command::new("curl");
    ask.args(["-s", "--retry", "50", "--retry-connrefused", "--retry-delay", "1", &url]);
    let answer: Value = serde_json::from_str(&output(&mut ask)).unwrap();
    let mut samples = Vec::new();
    for series in answer["data"]["result"].as_array().into_iter().flatten() {
        let labels = series["metric"].as_object().unwrap();
        let labels = labels.iter().filter(|(label, _)| *label != "__name__");
        let mut labels: Vec<String> = labels
            .map(|(label, value)| format!("{label}={}", value.as_str().unwrap()))
            .collect();
        labels.sort_unstable();
        let name = format!("{name}{{{}}}", labels.join(","));
        for row in series["values"].as_array().into_iter().flatten() {
            let millis = (row[0].as_f64().unwrap() * 1e3).round() as i64;
            let value = row[1].as_str().unwrap().parse().unwrap();
            samples.push((name.clone(), millis * 1_000_000, value));
        }
    }
    samples
}
