//! Starts QuestDB, a Java program from Maven.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Server, Site, curl, ports};
use crate::ci;
use crate::golang;
use crate::maven;
use crate::shell::empty_folder;

pub(super) const VERSION: &str = "9.3.4";
/// What the server may use of memory for its own objects; samples are in files, which it maps.
const HEAP: &str = "-Xmx512m";

/// One process.
#[derive(Debug)]
pub(super) struct QuestDb;

impl Server for QuestDb {
    fn name(&self) -> &'static str {
        "questdb"
    }

    fn install(&self) -> Result<()> {
        ci::require(&["default-jre-headless", "maven", "curl"])?;
        if jar()?.is_file() {
            return Ok(());
        }
        let folder = empty_folder(folder()?)?;
        maven::copy(&format!("org.questdb:questdb:{VERSION}"), &folder)
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let [port] = ports::free()?;
        site.subfolder("data/conf")?;
        site.write(
            "data/conf/server.conf",
            &format!(
                "http.bind.to=127.0.0.1:{port}\nhttp.min.enabled=false\npg.enabled=false\nline.tcp.enabled=false\n\
                 line.udp.enabled=false\ntelemetry.enabled=false\n"
            ),
        )?;
        let mut command = Command::new("java");
        command.args([HEAP, "--add-exports", "java.base/jdk.internal.math=ALL-UNNAMED", "-cp"]);
        command.arg(jar()?).args(["io.questdb.ServerMain", "-d"]);
        command.arg(site.subfolder("data")?);
        site.spawn("questdb", &mut command, &[port])?;
        Ok(format!("questdb://127.0.0.1:{port}/tsb"))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let port = *site.ports().first().context("it has no port")?;
        let ask = |statement: &str| {
            let query = format!("query={statement}");
            curl(
                &format!("http://127.0.0.1:{port}/exec"),
                &["-G", "--data-urlencode", &query],
            )
        };
        ask("CREATE TABLE IF NOT EXISTS \"tsb-probe\" AS (SELECT 42 answer)")?;
        let got = ask("SELECT max(answer) FROM \"tsb-probe\"")?;
        if !got.contains("[[42]]") {
            bail!("it answers {got:?}");
        }
        ask("DROP TABLE \"tsb-probe\"").map(drop)
    }

    fn program(&self) -> Option<String> {
        let jar = jar().ok()?;
        jar.is_file().then(|| jar.display().to_string())
    }
}

/// The server with its libraries, in one file.
fn jar() -> Result<PathBuf> {
    Ok(folder()?.join(format!("questdb-{VERSION}.jar")))
}

fn folder() -> Result<PathBuf> {
    Ok(golang::folder()?.join("questdb"))
}
