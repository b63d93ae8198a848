//! Starts go-carbon, which takes samples and answers the render API itself.

use std::process::Command;

use anyhow::Result;

use super::{Server, Site, graphite, ports};
use crate::golang;

/// One process.
#[derive(Debug)]
pub(super) struct GoCarbon;

impl Server for GoCarbon {
    fn name(&self) -> &'static str {
        "go-carbon"
    }

    fn install(&self) -> Result<()> {
        golang::root_program(&golang::GO_CARBON).map(drop)
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let [line, pickle, web] = ports::free()?;
        let (conf, whisper) = (site.subfolder("conf")?, site.subfolder("whisper")?);
        graphite::write_schemas(site)?;
        let (conf_path, whisper_path) = (conf.display(), whisper.display());
        // Without an index of its own, it looks for series in the file system, at once.
        let text = format!(
            "[common]\nuser = \"\"\nmetric-interval = \"24h0m0s\"\n\
             [whisper]\ndata-dir = \"{whisper_path}\"\nschemas-file = \"{conf_path}/storage-schemas.conf\"\n\
             aggregation-file = \"{conf_path}/storage-aggregation.conf\"\nsparse-create = true\nenabled = true\n\
             [udp]\nenabled = false\n[tcp]\nlisten = \"127.0.0.1:{line}\"\n[pickle]\nlisten = \"127.0.0.1:{pickle}\"\n\
             [carbonlink]\nenabled = false\n[grpc]\nenabled = false\n\
             [carbonserver]\nlisten = \"127.0.0.1:{web}\"\nenabled = true\nscan-frequency = \"0s\"\n\
             query-cache-enabled = false\nfind-cache-enabled = false\nglob-cache-enabled = false\n\
             trigram-index = false\nempty-result-ok = true\ndo-not-log-404s = true\n\
             [[logging]]\nfile = \"stderr\"\nlevel = \"warn\"\n"
        );
        let file = site.write("conf/go-carbon.conf", &text)?;
        let mut command = Command::new(golang::root_program(&golang::GO_CARBON)?);
        command.arg("-config").arg(&file);
        // In the order in which `answers` asks for them.
        site.spawn("go-carbon", &mut command, &[line, web, pickle])?;
        Ok(format!(
            "graphite://127.0.0.1:{line}/tsb?render=127.0.0.1:{web}&folder={whisper_path}&archives={}",
            graphite::ARCHIVES
        ))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let ports = site.all_ports();
        let [line, web, ..] = ports[..] else {
            anyhow::bail!("its process is not recorded");
        };
        graphite::probe(line, web, &site.folder().join("whisper"))
    }

    fn program(&self) -> Option<String> {
        let program = golang::folder().ok()?.join("go-carbon");
        program.is_file().then(|| program.display().to_string())
    }
}
