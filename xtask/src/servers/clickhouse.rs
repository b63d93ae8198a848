//! Starts ClickHouse.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Server, Site, curl, ports};
use crate::ci;
use crate::shell::succeeds;

/// One process.
#[derive(Debug)]
pub(super) struct ClickHouse;

impl Server for ClickHouse {
    fn name(&self) -> &'static str {
        "clickhouse"
    }

    fn install(&self) -> Result<()> {
        ci::require(&["clickhouse-server", "curl"])
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let [http, tcp] = ports::free::<2>()?;
        let folder_of = |name: &str| -> Result<String> { Ok(site.subfolder(name)?.display().to_string()) };
        let (data, temporary) = (folder_of("data")?, folder_of("tmp")?);
        // Many requests at once, as for the other servers; the default of 100 refuses the next.
        let config = format!(
            "<yandex>\n<logger><level>error</level><console>true</console></logger>\n\
             <http_port>{http}</http_port>\n<tcp_port>{tcp}</tcp_port>\n<listen_host>127.0.0.1</listen_host>\n\
             <path>{data}/</path>\n<tmp_path>{temporary}/</tmp_path>\n\
             <mark_cache_size>268435456</mark_cache_size>\n<max_concurrent_queries>1000</max_concurrent_queries>\n\
             <users_config>users.xml</users_config>\n<default_profile>default</default_profile>\n\
             <default_database>default</default_database>\n</yandex>\n"
        );
        let users = "<yandex>\n<profiles><default/></profiles>\n<quotas><default/></quotas>\n<users><default>\
                     <password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile>\
                     <quota>default</quota></default></users>\n</yandex>\n";
        site.write("users.xml", users)?;
        let file = site.write("config.xml", &config)?;
        let mut command = Command::new("clickhouse-server");
        command.arg(format!("--config-file={}", file.display()));
        site.spawn("clickhouse-server", &mut command, &[http, tcp])?;
        Ok(format!("clickhouse://127.0.0.1:{http}/tsb"))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let port = *site.ports().first().context("it has no port")?;
        let url = format!("http://127.0.0.1:{port}/");
        let ask = |statement: &str| curl(&url, &["--data-binary", statement]);
        ask("CREATE DATABASE IF NOT EXISTS `tsb-probe`")?;
        ask("CREATE TABLE IF NOT EXISTS `tsb-probe`.probe (x UInt8) ENGINE = MergeTree ORDER BY x")?;
        ask("INSERT INTO `tsb-probe`.probe VALUES (42)")?;
        let got = ask("SELECT max(x) FROM `tsb-probe`.probe")?;
        if got.trim() != "42" {
            bail!("it answers {got:?}");
        }
        ask("DROP DATABASE `tsb-probe`").map(drop)
    }

    fn program(&self) -> Option<String> {
        // It has no argument with which it does nothing.
        succeeds(Command::new("sh").args(["-c", "command -v clickhouse-server"]))
            .then(|| "clickhouse-server".to_owned())
    }
}
