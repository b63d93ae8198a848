//! Starts rrdtool's daemon on a Unix socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{Server, Site};
use crate::shell::succeeds;

/// One process.
#[derive(Debug)]
pub(super) struct Rrdcached;

impl Server for Rrdcached {
    fn name(&self) -> &'static str {
        "rrdcached"
    }

    fn install(&self) -> Result<()> {
        if self.program().is_none() {
            bail!("install rrdcached; cargo xtask ci --only packages does");
        }
        Ok(())
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let socket = socket(site);
        let mut command = Command::new("rrdcached");
        command.args(["-g", "-B", "-w", "60", "-z", "10", "-f", "300"]);
        command.arg("-l").arg(format!("unix:{}", socket.display()));
        command.arg("-b").arg(site.subfolder("files")?);
        command.arg("-j").arg(site.subfolder("journal")?);
        command.arg("-p").arg(site.folder().join("pid"));
        site.spawn("rrdcached", &mut command, &[])?;
        Ok(format!("rrdcached:unix:{}", socket.display()))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let stream = UnixStream::connect(socket(site)).context("nobody listens")?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let mut ask = |command: &str| -> Result<String> {
            (&stream).write_all(format!("{command}\n").as_bytes())?;
            let head = lines.next().context("it hung up")??;
            let more: usize = head.split(' ').next().unwrap_or_default().parse().unwrap_or(0);
            let mut answer = head;
            for line in lines.by_ref().take(more) {
                answer = format!("{answer}\n{}", line?);
            }
            if answer.starts_with('-') {
                bail!("{command}: {answer}");
            }
            Ok(answer)
        };
        ask("CREATE probe.rrd -O -b 1000000000 -s 1 DS:v:GAUGE:10:U:U RRA:AVERAGE:0.5:1:10").or_else(|error| {
            if error.to_string().contains("exists") {
                Ok(String::new())
            } else {
                Err(error)
            }
        })?;
        ask("UPDATE probe.rrd 1000000001:42 1000000002:42")?;
        ask("FLUSH probe.rrd")?;
        let rows = ask("FETCH probe.rrd AVERAGE 1000000000 1000000002")?;
        if !rows.contains("1000000002: 4.2") {
            bail!("it answers {rows:?}");
        }
        ask("FORGET probe.rrd")?;
        std::fs::remove_file(site.folder().join("files/probe.rrd")).context("the file of the probe is not there")
    }

    fn program(&self) -> Option<String> {
        // It has no argument with which it does nothing.
        succeeds(Command::new("sh").args(["-c", "command -v rrdcached"])).then(|| "rrdcached".to_owned())
    }
}

/// The path of a socket has about a hundred bytes at most, and a workspace may lie deep.
fn socket(site: &Site) -> PathBuf {
    let near = site.folder().join("socket");
    if near.as_os_str().len() < 100 {
        return near;
    }
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in near.as_os_str().as_encoded_bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    std::env::temp_dir().join(format!("tsb-rrdcached-{hash:016x}"))
}
