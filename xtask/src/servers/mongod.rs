//! Starts a single mongod.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Server, Site, ports, python};

/// Writes a document durably, reads it back by what was written, and removes it.
const PROBE: &str = "\
import sys, pymongo
address, concern = sys.argv[1], sys.argv[2]
client = pymongo.MongoClient(address, serverSelectionTimeoutMS=1000, connectTimeoutMS=1000, socketTimeoutMS=5000)
concern = pymongo.WriteConcern(w=int(concern) if concern.isdigit() else concern, j=True, wtimeout=4000)
probes = client.tsb_probe.get_collection('probe', write_concern=concern)
written = probes.insert_one({'value': 42}).inserted_id
assert probes.find_one({'_id': written})['value'] == 42
client.drop_database('tsb_probe')
";

/// One process.
#[derive(Debug)]
pub(super) struct Mongod;

impl Server for Mongod {
    fn name(&self) -> &'static str {
        "mongod"
    }

    fn install(&self) -> Result<()> {
        python::install()
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let [port] = ports::free()?;
        let data = site.subfolder("data")?;
        site.spawn(
            "mongod",
            command(&data, port)?.args(["--wiredTigerCacheSizeGB", "1"]),
            &[port],
        )?;
        Ok(format!("mongo://127.0.0.1:{port}/tsb"))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        probe(&site.ports(), "", "1")
    }

    fn program(&self) -> Option<String> {
        let program = python::program().ok()?;
        program.is_file().then(|| program.display().to_string())
    }
}

/// The program with what every one of them is told.
pub(super) fn command(data: &Path, port: u16) -> Result<Command> {
    let mut command = Command::new(python::program()?);
    command.arg("--dbpath").arg(data);
    command.args(["--bind_ip", "127.0.0.1", "--nounixsocket", "--port", &port.to_string()]);
    Ok(command)
}

/// One write and one read at the level `concern`.
pub(super) fn probe(ports: &[u16], options: &str, concern: &str) -> Result<()> {
    let address = format!("mongodb://{}/{options}", hosts(ports));
    python::script(PROBE, &[address, concern.to_owned()])
}

/// As addresses of MongoDB name them.
pub(super) fn hosts(ports: &[u16]) -> String {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    hosts.join(",")
}
