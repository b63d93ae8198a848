//! What the servers of Graphite have in common: what Whisper keeps, and the probe.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use super::Site;

/// What Whisper keeps of a series, as the option `archives` of a spec.
pub(super) const ARCHIVES: &str = "1s:1h,10s:1d";
/// The path that the probe writes.
const PROBE: &str = "tsb-probe.value";

/// Writes what Whisper keeps, into the folder `conf`: of paths below prefixes that begin with `past-`, ten-minute slots of
/// years, so that samples of any time can be written.
pub(super) fn write_schemas(site: &Site) -> Result<()> {
    let schemas = format!(
        "[past]\npattern = ^past-\nretentions = 10m:300w,1h:350w\n\n[all]\npattern = .*\nretentions = {ARCHIVES}\n"
    );
    let aggregation = "[all]\npattern = .*\nxFilesFactor = 0.5\naggregationMethod = average\n";
    for (name, text) in [
        ("storage-schemas.conf", &*schemas),
        ("storage-aggregation.conf", aggregation),
    ] {
        site.write(&format!("conf/{name}"), text)?;
    }
    Ok(())
}

/// Writes a sample as a line, reads it back by the render API, and removes its file.
#[expect(
    clippy::disallowed_methods,
    reason = "xtask does not depend on tsb-core, whose clock it would be"
)]
pub(super) fn probe(line: u16, web: u16, whisper: &Path) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut carbon = connect(line)?;
    carbon.write_all(format!("{PROBE} 42.5 {now}\n").as_bytes())?;
    drop(carbon);
    let path = format!(
        "/render/?format=json&noCache=1&from={}&until={now}&target={PROBE}",
        now - 10
    );
    let mut render = connect(web)?;
    write!(render, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")?;
    let mut answer = String::new();
    render.read_to_string(&mut answer)?;
    if !answer.contains("42.5") {
        bail!("it answers {:?}", answer.lines().last().unwrap_or_default());
    }
    match fs::remove_dir_all(whisper.join("tsb-probe")) {
        // go-carbon answers from its memory before there is a file.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!("the file of the probe is not there"),
        removed => Ok(removed?),
    }
}

fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).with_context(|| format!("nobody listens at {port}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    Ok(stream)
}
