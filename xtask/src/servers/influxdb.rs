//! Starts InfluxDB 1.x.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Server, Site, ports};
use crate::shell::{capture, has};

/// One process.
#[derive(Debug)]
pub(super) struct Influxdb;

impl Server for Influxdb {
    fn name(&self) -> &'static str {
        "influxdb"
    }

    fn install(&self) -> Result<()> {
        if self.program().is_none() || !has("curl", "--version") {
            bail!("install influxdb and curl; cargo xtask ci --only packages does");
        }
        Ok(())
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let [port, rpc] = ports::free::<2>()?;
        let folder_of = |name: &str| -> Result<String> { Ok(site.subfolder(name)?.display().to_string()) };
        let (meta, data, wal) = (folder_of("meta")?, folder_of("data")?, folder_of("wal")?);
        // Its own statistics would be load of its own.
        let text = format!(
            "reporting-disabled = true\nbind-address = \"127.0.0.1:{rpc}\"\n[meta]\ndir = {meta:?}\n\
             [data]\ndir = {data:?}\nwal-dir = {wal:?}\n[monitor]\nstore-enabled = false\n\
             [http]\nbind-address = \"127.0.0.1:{port}\"\nlog-enabled = false\n"
        );
        let file = site.folder().join("influxdb.conf");
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        let mut command = Command::new("influxd");
        command.arg("-config").arg(file);
        site.spawn("influxd", &mut command, &[port, rpc])?;
        Ok(format!("influx://127.0.0.1:{port}/tsb"))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let port = *site.ports().first().context("it has no port")?;
        let ask = |statement: &str| {
            let mut command = Command::new("curl");
            command.args(["-sS", "--fail", "--max-time", "2"]);
            command.arg(format!("http://127.0.0.1:{port}/query?db=tsb-probe&epoch=ns"));
            command.args(["--data-urlencode", &format!("q={statement}")]);
            capture(&mut command)
        };
        ask("CREATE DATABASE \"tsb-probe\"")?;
        let mut write = Command::new("curl");
        write.args(["-sS", "--fail", "--max-time", "2", "--data-binary", "probe value=42 7"]);
        capture(write.arg(format!("http://127.0.0.1:{port}/write?db=tsb-probe")))?;
        let got = ask("SELECT value FROM probe")?;
        if !got.contains("[7,42]") {
            bail!("it answers {got:?}");
        }
        ask("DROP DATABASE \"tsb-probe\"").map(drop)
    }

    fn program(&self) -> Option<String> {
        has("influxd", "version").then(|| "influxd".to_owned())
    }
}
