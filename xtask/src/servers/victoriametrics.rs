//! Starts VictoriaMetrics, one node.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Server, Site, curl, ports};
use crate::ci;
use crate::shell::succeeds;

/// One process.
#[derive(Debug)]
pub(super) struct VictoriaMetrics;

impl Server for VictoriaMetrics {
    fn name(&self) -> &'static str {
        "victoriametrics"
    }

    fn install(&self) -> Result<()> {
        ci::require(&["victoria-metrics", "curl"])
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let [port, put] = ports::free()?;
        let mut command = Command::new("victoria-metrics");
        command.arg(format!("-storageDataPath={}", site.subfolder("data")?.display()));
        command.arg(format!("-httpListenAddr=127.0.0.1:{port}"));
        command.arg(format!("-opentsdbListenAddr=127.0.0.1:{put}"));
        // Samples of any time since 1970, as tests write them.
        command.arg("-retentionPeriod=100y");
        site.spawn("victoria-metrics", &mut command, &[port, put])?;
        Ok(format!("victoriametrics://127.0.0.1:{port}/tsb"))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let port = *site.ports().first().context("it has no port")?;
        let ask = |path: &str, more: &[&str]| {
            let more = [&["--globoff"], more].concat();
            curl(&format!("http://127.0.0.1:{port}{path}"), &more)
        };
        ask("/api/v1/import/prometheus", &["--data-binary", "tsb_probe 42 1000"])?;
        ask("/internal/force_flush", &[])?;
        let got = ask("/api/v1/export?match[]=tsb_probe&start=0", &[])?;
        if !got.contains("[42]") {
            bail!("it answers {got:?}");
        }
        ask("/api/v1/admin/tsdb/delete_series?match[]=tsb_probe", &["-X", "POST"]).map(drop)
    }

    fn program(&self) -> Option<String> {
        // Its version goes to the standard output of one that is there.
        let is_there = succeeds(Command::new("victoria-metrics").arg("--version"));
        is_there.then(|| "victoria-metrics".to_owned())
    }
}
