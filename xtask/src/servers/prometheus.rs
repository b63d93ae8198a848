//! Starts Prometheus as a receiver of remote write.

use std::process::Command;

use anyhow::Result;

use super::{Server, Site, curl, ports};
use crate::ci;
use crate::shell::has;

/// Samples of any time are taken, as long as each series gets them in order: checks write times of
/// long ago beside runs of today.
const CONFIGURATION: &str = "storage:\n  tsdb:\n    out_of_order_time_window: 200y\n";

/// One process.
#[derive(Debug)]
pub(super) struct Prometheus;

impl Server for Prometheus {
    fn name(&self) -> &'static str {
        "prometheus"
    }

    fn install(&self) -> Result<()> {
        ci::require(&["prometheus", "curl"])
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let [port] = ports::free::<1>()?;
        let configuration = site.write("prometheus.yml", CONFIGURATION)?;
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", configuration.display()));
        command.arg(format!("--storage.tsdb.path={}", site.subfolder("data")?.display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command.args([
            "--web.enable-remote-write-receiver",
            "--web.enable-admin-api",
            "--storage.tsdb.retention.time=200y",
        ]);
        site.spawn("prometheus", &mut command, &[port])?;
        Ok(format!("prometheus://127.0.0.1:{port}/tsb"))
    }

    /// A rule writes and reads nothing without a minute's wait, so this asks whether it is ready,
    /// which it is once its log is read.
    fn answers(&self, site: &Site) -> Result<()> {
        for port in site.ports() {
            curl(&format!("http://127.0.0.1:{port}/-/ready"), &[])?;
        }
        Ok(())
    }

    fn program(&self) -> Option<String> {
        has("prometheus", "--version").then(|| "prometheus".to_owned())
    }
}
