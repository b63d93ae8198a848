//! Starts InfluxDB 1.x.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Server, Site, curl, ports};
use crate::ci;
use crate::shell::has;

/// One process.
#[derive(Debug)]
pub(super) struct Influxdb;

impl Server for Influxdb {
    fn name(&self) -> &'static str {
        "influxdb"
    }

    fn install(&self) -> Result<()> {
        ci::require(&["influxdb", "curl"])
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
        let file = site.write("influxdb.conf", &text)?;
        let mut command = Command::new("influxd");
        command.arg("-config").arg(file);
        site.spawn("influxd", &mut command, &[port, rpc])?;
        Ok(format!("influx://127.0.0.1:{port}/tsb"))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let port = *site.ports().first().context("it has no port")?;
        let url = |path: &str| format!("http://127.0.0.1:{port}/{path}db=tsb-probe");
        let ask = |statement: &str| {
            curl(
                &url("query?epoch=ns&"),
                &["--data-urlencode", &format!("q={statement}")],
            )
        };
        ask("CREATE DATABASE \"tsb-probe\"")?;
        curl(&url("write?"), &["--data-binary", "probe value=42 7"])?;
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
